//! Opens the rails of this process.
//!
//! By default these are all interfaces that are up and lead to another node, and shared memory if another
//! rank of the node exists. The driver finds out whether a rail reaches a peer, by a handshake with a time
//! limit at their first message, never by names.

use crate::error::SessionError;
use crate::options::{Options, RailChoice};
use crate::sampling::learnt;
use nmad_drivers::around::layers::Layers;
use nmad_drivers::around::trace::TraceHandle;
use nmad_drivers::error::DriverError;
use nmad_drivers::interface::{Interface, interfaces};
use nmad_drivers::interpreted;
use nmad_drivers::loopback::LoopbackRail;
use nmad_drivers::network::{Network, Place};
use nmad_drivers::node::Segment;
use nmad_drivers::shm::{ShmConfig, ShmRail};
use nmad_engine::{Driver, PeerId};
use nmad_launch::Bootstrap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Most records of each rail in a trace; the latest replace the oldest.
const TRACE_MOST: usize = 1 << 18;

/// An open rail, and its peers.
pub(crate) struct OpenRail {
    pub(crate) driver: Box<dyn Driver>,
    /// Its number in this process, which its peers use.
    pub(crate) number: u8,
    /// The user's bandwidth, zero for none.
    pub(crate) bandwidth: u64,
    pub(crate) reach: Reach,
    /// The first rail over the same wire, which may be this one.
    pub(crate) wire: usize,
    /// The record of its traffic, if the user wants a trace.
    pub(crate) trace: Option<TraceHandle>,
}

/// The ranks for which a rail is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All ranks but this one: the user named the rail.
    Others,
    /// Ranks of the same node.
    Node,
    /// Ranks of other nodes.
    Network,
    /// This rank.
    Myself,
}

/// A rail to be opened.
struct Wanted {
    medium: Medium,
    bandwidth: u64,
    reach: Reach,
}

impl Wanted {
    /// Returns the name of the future rail.
    fn name(&self) -> String {
        match &self.medium {
            Medium::Memory => ShmRail::NAME.into(),
            Medium::Interface(network, interface) => format!("{}/{}", network.name(), interface.name),
        }
    }
}

/// The medium of a rail.
enum Medium {
    /// Shared memory of a node.
    Memory,
    /// An interface, with one of its drivers.
    Interface(Network, Interface),
}

impl Reach {
    pub(crate) fn includes(self, job: &dyn Bootstrap, peer: u32) -> bool {
        let (me, nodes) = (job.rank(), job.nodes());
        let same_node = nodes[peer as usize] == nodes[me as usize];
        match self {
            Reach::Myself => peer == me,
            Reach::Others => peer != me,
            Reach::Node => peer != me && same_node,
            Reach::Network => peer != me && !same_node,
        }
    }
}

/// Opens the rails of the options or the machine, and the loopback rail, which comes last. `oversubscribed`
/// is set before the limits of the rails are read.
///
/// # Errors
/// A rail cannot be opened.
pub(crate) fn open(
    options: &Options,
    job: &dyn Bootstrap,
    oversubscribed: &Arc<AtomicBool>,
) -> Result<Vec<OpenRail>, SessionError> {
    let numbers: Vec<u8> = (0..nmad_engine::MAX_RAILS as u8).collect();
    let mut rails = open_as(options, job, oversubscribed, &numbers)?;
    let wire = rails.len();
    let myself = Box::new(LoopbackRail::new(PeerId(job.rank()), rails.len() as u8));
    let number = rails.len() as u8;
    rails.push(OpenRail { driver: myself, number, bandwidth: 0, reach: Reach::Myself, wire, trace: None });
    Ok(rails)
}

/// Opens rails with these numbers, without the loopback rail. Unless the user named the interfaces, those
/// that cannot be rails are skipped, if at least one can.
///
/// # Errors
/// A rail cannot be opened, or there are too few numbers.
pub(crate) fn open_as(
    options: &Options,
    job: &dyn Bootstrap,
    oversubscribed: &Arc<AtomicBool>,
    numbers: &[u8],
) -> Result<Vec<OpenRail>, SessionError> {
    let mut rails = Vec::new();
    let (mut left_out, mut has_interface) = (Vec::new(), false);
    let wanted = wanted(options, job)?;
    let mut names = Vec::new();
    for wanted in wanted {
        let name = wanted.name();
        let Wanted { medium, bandwidth, reach } = wanted;
        let Some(&number) = numbers.get(rails.len()) else {
            let most = nmad_engine::MAX_RAILS;
            let text = format!("a process has {most} rails at most: disconnect from jobs, or set NMAD_RAILS");
            return Err(SessionError::Rail(text));
        };
        let (driver, trace) = match medium {
            Medium::Memory => {
                let mut config = ShmConfig::new(PeerId(job.rank()), number, job.secret());
                config.cross_memory = options.cross_memory.unwrap_or(!interpreted::by_valgrind());
                config.oversubscribed = oversubscribed.clone();
                config.learnt = learnt::recall(options, ShmRail::NAME, number);
                layers(options, number).around(ShmRail::open(config).map_err(failed)?)
            }
            Medium::Interface(network, mut interface) => {
                if bandwidth > 0 {
                    interface.bandwidth = bandwidth;
                }
                let (rank, secret, encrypt) = (PeerId(job.rank()), job.secret(), options.encrypt);
                let place = Place { rank, rail: number, interface, secret, encrypt };
                match network.open(place, &layers(options, number)) {
                    Ok(opened) => {
                        has_interface = true;
                        opened
                    }
                    Err(why) if options.rails.is_none() => {
                        left_out.push(why);
                        continue;
                    }
                    Err(why) => return Err(failed(why)),
                }
            }
        };
        names.push(name);
        rails.push(OpenRail { driver, number, bandwidth, reach, wire: 0, trace });
    }
    rails.iter_mut().zip(wires(&names)).for_each(|(rail, wire)| rail.wire = wire);
    if !has_interface && !left_out.is_empty() {
        return Err(failed(left_out.swap_remove(0)));
    }
    for why in left_out {
        log::warn!("{why}; other rails are used");
    }
    Ok(rails)
}

/// Returns for each rail, by name (`tcp/eth0`, `shm`), the first one over the same wire. Rails of different
/// drivers on one interface share a NIC. An interface that the user names twice for one driver counts as
/// two.
pub fn wires(rails: &[String]) -> Vec<usize> {
    let wire = |place: usize| match rails[place].split_once('/') {
        Some((_, interface)) => {
            (interface, rails[..place].iter().filter(|other| **other == rails[place]).count())
        }
        None => ("", place),
    };
    let all: Vec<_> = (0..rails.len()).map(wire).collect();
    all.iter().map(|wire| all.iter().position(|other| other == wire).unwrap_or(0)).collect()
}

fn failed(error: DriverError) -> SessionError {
    SessionError::Rail(error.to_string())
}

/// Returns the layers around a rail for these options.
fn layers(options: &Options, number: u8) -> Layers {
    let throttle = options.throttle.get(usize::from(number)).copied();
    Layers { throttle, trace: options.trace.as_ref().map(|_| (number, TRACE_MOST)) }
}

/// Checks that the interfaces that the user names exist.
pub(crate) fn check(options: &Options) -> Result<(), SessionError> {
    let found = found()?;
    let mut choices = options.rails.iter().flatten();
    choices.try_for_each(|choice| named(choice, &found, options).map(drop))
}

fn found() -> Result<Vec<Interface>, SessionError> {
    interfaces().map_err(|source| SessionError::System { what: "list the network interfaces", source })
}

fn wanted(options: &Options, job: &dyn Bootstrap) -> Result<Vec<Wanted>, SessionError> {
    let found = found()?;
    if let Some(choices) = &options.rails {
        let named: Result<Vec<_>, _> = choices.iter().map(|choice| named(choice, &found, options)).collect();
        return Ok(named?.into_iter().flatten().collect());
    }
    let any = |reach: Reach| (0..job.size()).any(|peer| reach.includes(job, peer));
    let mut wanted = Vec::new();
    if any(Reach::Network) {
        let network = |(network, interface)| Wanted {
            medium: Medium::Interface(network, interface),
            bandwidth: 0,
            reach: Reach::Network,
        };
        let by_each =
            |interface: Interface| options.drivers().iter().map(move |&driver| (driver, interface.clone()));
        let one_each = one_address_each(&found).into_iter().flat_map(by_each).map(network);
        // Two places are reserved for the rail to the node and the loopback rail.
        wanted.extend(one_each.take(nmad_engine::MAX_RAILS - 2));
    }
    if any(Reach::Node) {
        let medium = match Segment::is_possible() {
            Ok(()) => Medium::Memory,
            Err(why) => {
                log::info!("the system refuses shared memory ({why}): ranks of this node talk over lo");
                Medium::Interface(options.drivers()[0], Interface::loopback())
            }
        };
        wanted.push(Wanted { medium, bandwidth: 0, reach: Reach::Node });
    }
    Ok(wanted)
}

/// Returns the rails for one interface that the user named.
fn named(choice: &RailChoice, found: &[Interface], options: &Options) -> Result<Vec<Wanted>, SessionError> {
    let bandwidth = choice.bandwidth;
    if choice.interface == ShmRail::NAME {
        return Ok(vec![Wanted { medium: Medium::Memory, bandwidth, reach: Reach::Node }]);
    }
    let loopback = || (choice.interface == "lo").then(Interface::loopback);
    let mut candidates = found.iter().filter(|i| i.name == choice.interface);
    let v4 = candidates.clone().find(|i| i.address.is_ipv4());
    let interface = v4.or_else(|| candidates.next()).cloned().or_else(loopback).ok_or_else(|| {
        let mut names: Vec<&str> = found.iter().map(|i| i.name.as_str()).collect();
        names.dedup();
        SessionError::Setting {
            setting: Options::name_of(&nmad_words::setting::RAILS),
            why: format!(
                "interface '{}' is not up or has no address (there are: {}, lo, shm)",
                choice.interface,
                names.join(", ")
            ),
        }
    })?;
    let wanted = |&network: &Network| {
        let medium = Medium::Interface(network, interface.clone());
        Wanted { medium, bandwidth, reach: Reach::Others }
    };
    Ok(options.drivers_of(choice).iter().map(wanted).collect())
}

/// Keeps one address of each interface, preferably IPv4, since an interface is one rail.
fn one_address_each(found: &[Interface]) -> Vec<Interface> {
    let mut chosen: Vec<Interface> = Vec::new();
    for interface in found {
        match chosen.iter_mut().find(|other| other.name == interface.name) {
            Some(other) if other.address.is_ipv6() && interface.address.is_ipv4() => {
                *other = interface.clone()
            }
            Some(_) => {}
            None => chosen.push(interface.clone()),
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_of_one_interface_share_its_wire() {
        let rails = ["tcp/a", "udp/b", "udp/a", "shm", "tcp/b", "tcp/a", "udp/a"].map(String::from);
        assert_eq!(wires(&rails), [0, 1, 0, 3, 1, 5, 5]);
    }
}
