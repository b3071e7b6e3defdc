//! The yardstick's ground: plain sockets between the two ranks over the rails that the session uses.
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::{BenchError, Pair};
use crate::plain::datagram::Datagrams;
use crate::plain::frames::Frames;
use crate::plain::memory::Memory;
use crate::plain::{Listener, Policy, Socket};
use nmad_drivers::packet::frame::Way;

/// Connecting and accepting must be over by then.
const LIMIT: Duration = Duration::from_secs(10);

/// The rails that both ranks have in common, as plain sockets see them; none inside a node, where bare shared
/// memory stands beside the rails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yard {
    lanes: Vec<Lane>,
}

/// A rail.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lane {
    /// Name of the rail, for example `tcp/r0`.
    name: String,
    /// Numbers of the session's rails that use it, each by a driver of its own.
    numbers: Vec<u8>,
    /// Our address on it.
    ours: IpAddr,
    /// Rate in bytes per second to which software slows the rail down; none: as fast as it is.
    pace: Option<u64>,
}

/// An address and the subnet it is on, as a rail says it: `10.0.1.3/24:40123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    ip: IpAddr,
    prefix: u32,
}

impl Yard {
    /// Finds the rails by asking both ranks; a rail of one that shares no subnet with a rail of the other is
    /// left out. `throttle` has the rates of rails that are slowed down in software
    /// ([`newmadeleine::Options::throttle`]).
    ///
    /// # Errors
    /// The ranks have no rail in common with which a yardstick could compare, or the other rank is gone.
    pub fn survey(pair: Pair<'_>, throttle: &[u64]) -> Result<Yard, BenchError> {
        let mine = lanes(pair, throttle);
        let told: Vec<String> = mine.iter().map(|(place, _)| place.to_text()).collect();
        let chosen = if pair.is_active() {
            let theirs: Vec<Place> = pair.hear()?.lines().filter_map(Place::parse).collect();
            let matches = matches(&mine.iter().map(|(place, _)| *place).collect::<Vec<_>>(), &theirs);
            let numbers: Vec<String> = matches.iter().map(|(_, theirs)| theirs.to_string()).collect();
            pair.tell(&numbers.join(" "))?;
            matches.into_iter().map(|(ours, _)| ours).collect()
        } else {
            pair.tell(&told.join("\n"))?;
            pair.hear()?.split(' ').filter_map(|number| number.parse().ok()).collect::<Vec<usize>>()
        };
        let lanes: Vec<Lane> =
            chosen.iter().filter_map(|&number| mine.get(number)).map(|(_, lane)| lane.clone()).collect();
        let in_memory = |rail: &newmadeleine::RailInfo| rail.name == "shm" && rail.peers > 0;
        let inside = pair.session.rails().iter().any(in_memory);
        match lanes.is_empty() && !inside {
            true => Err(BenchError::Job(
                "the two ranks have no rail with an address in common to compare with".into(),
            )),
            false => Ok(Yard { lanes }),
        }
    }

    /// Memory that the two ranks share; none if there are rails with sockets to compare with.
    ///
    /// # Errors
    /// The ranks do not reach each other's memory.
    pub fn memory(&self, pair: Pair<'_>) -> Result<Option<Memory>, BenchError> {
        if !self.lanes.is_empty() {
            return Ok(None);
        }
        let fail = BenchError::socket("share memory (--no-plain measures without a yardstick)");
        if pair.is_active() {
            let (memory, place) = Memory::offer().map_err(fail)?;
            pair.tell(&place)?;
            // The other rank has joined it before this one may let it go.
            pair.hear()?;
            return Ok(Some(memory));
        }
        let memory = Memory::join(&pair.hear()?).map_err(fail)?;
        pair.tell("joined")?;
        Ok(Some(memory))
    }

    /// Names of the rails, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lanes.iter().map(|lane| lane.name.as_str())
    }

    /// Numbers of the session's rails that use the one at this place in [`Yard::names`], one for each driver.
    pub fn numbers(&self, rail: usize) -> &[u8] {
        self.lanes.get(rail).map_or(&[], |lane| &lane.numbers)
    }

    /// How many rails there are.
    pub fn count(&self) -> usize {
        self.lanes.len()
    }

    /// A connected socket over each of the `rails` (their numbers in the order of [`Yard::names`]), all under
    /// one policy.
    ///
    /// # Errors
    /// A socket cannot be opened within ten seconds.
    pub fn open(&self, pair: Pair<'_>, rails: &[usize], policy: &Policy) -> Result<Vec<Socket>, BenchError> {
        let lanes: Vec<&Lane> = rails.iter().filter_map(|&rail| self.lanes.get(rail)).collect();
        if pair.is_active() {
            let addresses = pair.hear()?;
            return lanes.iter().zip(addresses.lines()).map(|(lane, to)| lane.connect(to, policy)).collect();
        }
        let listen = |lane: &&Lane| lane.listen(policy);
        let listeners: Vec<(Listener, SocketAddr)> = lanes.iter().map(listen).collect::<Result<_, _>>()?;
        let addresses: Vec<String> = listeners.iter().map(|(_, at)| at.to_string()).collect();
        pair.tell(&addresses.join("\n"))?;
        let accept = |(listener, at): &(Listener, SocketAddr)| {
            listener.accept(LIMIT).map_err(BenchError::socket(format!("wait for the other rank at {at}")))
        };
        listeners.iter().map(accept).collect()
    }

    /// A UDP socket over the first rail, tied to the other rank's; none if no rail of the session carries
    /// datagrams.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn datagrams(&self, pair: Pair<'_>) -> Result<Option<Datagrams>, BenchError> {
        let is_udp = |rail: &newmadeleine::RailInfo| rail.address.starts_with("udp:") && rail.peers > 0;
        let lane = self.lanes.first().filter(|_| pair.session.rails().iter().any(is_udp));
        let Some(Lane { ours, .. }) = lane else { return Ok(None) };
        let fail = || BenchError::socket(format!("use UDP at {ours}"));
        let (socket, at) = Datagrams::open(*ours).map_err(fail())?;
        let at = at.to_string();
        let there = if pair.is_active() {
            pair.tell(&at)?;
            pair.hear()?
        } else {
            let there = pair.hear()?;
            pair.tell(&at)?;
            there
        };
        let wrong = || BenchError::Job(format!("the other rank is at `{there}`, which is no address"));
        socket.connect(there.parse().map_err(|_| wrong())?).map_err(fail())?;
        Ok(Some(socket))
    }

    /// A packet socket over the first rail, tied to the other rank's; none if no rail of the session carries
    /// raw frames.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn frames(&self, pair: Pair<'_>) -> Result<Option<Frames>, BenchError> {
        let is_raw = |rail: &newmadeleine::RailInfo| rail.address.starts_with("packet:") && rail.peers > 0;
        let lane = self.lanes.first().filter(|_| pair.session.rails().iter().any(is_raw));
        let Some(Lane { ours, name, .. }) = lane else { return Ok(None) };
        let interface = name.split_once('/').map_or("", |(_, interface)| interface);
        let mut socket =
            Frames::open(interface, *ours).map_err(BenchError::socket(format!("use Ethernet at {ours}")))?;
        let Way { mac, port } = socket.way();
        let words: Vec<String> = mac.iter().map(u8::to_string).chain([port.to_string()]).collect();
        let there = if pair.is_active() {
            pair.tell(&words.join(" "))?;
            pair.hear()?
        } else {
            let there = pair.hear()?;
            pair.tell(&words.join(" "))?;
            there
        };
        let numbers: Result<Vec<u16>, _> = there.split(' ').map(str::parse).collect();
        let [a, b, c, d, e, f, port] = numbers.unwrap_or_default()[..] else {
            return Err(BenchError::Job(format!("the other rank is at `{there}`, which is no address")));
        };
        socket.connect(Way { mac: [a, b, c, d, e, f].map(|byte| byte as u8), port });
        Ok(Some(socket))
    }

    /// [`Yard::open`] for one rail.
    ///
    /// # Errors
    /// See there.
    pub fn open_one(&self, pair: Pair<'_>, rail: usize, policy: &Policy) -> Result<Socket, BenchError> {
        let none = || BenchError::Job(format!("there is no rail number {rail}"));
        self.open(pair, &[rail], policy)?.pop().ok_or_else(none)
    }
}

impl Lane {
    fn policy(&self, policy: &Policy) -> Policy {
        Policy { pace: self.pace, ..policy.clone() }
    }

    fn connect(&self, to: &str, policy: &Policy) -> Result<Socket, BenchError> {
        let wrong = || BenchError::Job(format!("the other rank listens at `{to}`, which is no address"));
        let to: SocketAddr = to.parse().map_err(|_| wrong())?;
        Socket::connect(Some(self.ours), to, &self.policy(policy), LIMIT)
            .map_err(BenchError::socket(format!("connect from {} to {to}", self.ours)))
    }

    fn listen(&self, policy: &Policy) -> Result<(Listener, SocketAddr), BenchError> {
        let fail = || BenchError::socket(format!("listen at {}", self.ours));
        let listener = Listener::open(SocketAddr::new(self.ours, 0), &self.policy(policy)).map_err(fail())?;
        let at = listener.addr().map_err(fail())?;
        Ok((listener, at))
    }
}

/// The rails of this rank that lead to the other one, and have an address.
fn lanes(pair: Pair<'_>, throttle: &[u64]) -> Vec<(Place, Lane)> {
    let rails = pair.session.rails().into_iter().enumerate();
    let lane = |(number, rail): (usize, newmadeleine::RailInfo)| {
        let place = Place::parse(&rail.address).filter(|_| rail.peers > 0)?;
        let pace = throttle.get(number).copied();
        Some((place, Lane { name: rail.name, numbers: vec![number as u8], ours: place.ip, pace }))
    };
    join(rails.filter_map(lane))
}

/// Two drivers of one interface are one rail to plain sockets, unless software slows each of them down.
fn join(lanes: impl Iterator<Item = (Place, Lane)>) -> Vec<(Place, Lane)> {
    let mut joined: Vec<(Place, Lane)> = Vec::new();
    for (place, lane) in lanes {
        let same = |other: &&mut (Place, Lane)| lane.pace.is_none() && other.0.ip == place.ip;
        match joined.iter_mut().find(same) {
            Some((_, first)) => first.numbers.extend(lane.numbers),
            None => joined.push((place, lane)),
        }
    }
    joined
}

/// Pairs of rails (ours, theirs) on one subnet; each rail is used once.
fn matches(ours: &[Place], theirs: &[Place]) -> Vec<(usize, usize)> {
    let mut free: Vec<usize> = (0..theirs.len()).collect();
    let partner = |(number, place): (usize, &Place)| {
        let at = free.iter().position(|&other| place.shares_subnet(&theirs[other]))?;
        Some((number, free.remove(at)))
    };
    ours.iter().enumerate().filter_map(partner).collect()
}

impl Place {
    /// None if it is no address of an IP rail.
    fn parse(text: &str) -> Option<Place> {
        let text = text.strip_prefix("udp:").unwrap_or(text);
        let text = text.split_once('@').map_or(text, |(_, address)| address);
        let (ip, rest) = text.split_once('/')?;
        let (prefix, _port) = rest.split_once(':')?;
        Some(Place { ip: ip.parse().ok()?, prefix: prefix.parse().ok()? })
    }

    fn to_text(self) -> String {
        format!("{}/{}:0", self.ip, self.prefix)
    }

    fn shares_subnet(&self, other: &Place) -> bool {
        let same_bits = match (self.ip, other.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        same_bits >= self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(texts: &[&str]) -> Vec<Place> {
        texts.iter().map(|text| Place::parse(text).expect(text)).collect()
    }

    #[test]
    fn rails_are_matched_by_subnet_and_used_once() {
        let ours = places(&["10.0.0.1/24:5", "10.0.1.1/24:6", "fd00::1/64:7"]);
        let theirs = places(&["fd00::2/64:1", "10.0.1.2/24:1", "192.168.0.1/16:1"]);
        assert_eq!(matches(&ours, &theirs), [(1, 1), (2, 0)]);
        let twice = places(&["127.0.0.1/8:1", "127.0.0.1/8:2"]);
        assert_eq!(matches(&twice, &twice), [(0, 0), (1, 1)]);
    }

    #[test]
    fn drivers_of_one_interface_are_one_rail_that_knows_them() {
        let lane = |(number, (name, text, pace)): (usize, (&str, &str, Option<u64>))| {
            let place = Place::parse(text).expect(text);
            (place, Lane { name: name.into(), numbers: vec![number as u8], ours: place.ip, pace })
        };
        let (tcp, udp) = ("10.0.0.1/24:5", "udp:10.0.0.1/24:6");
        let rails = [("tcp/r0", tcp, None), ("udp/r0", udp, None), ("tcp/r1", "10.0.1.1/24:5", None)];
        let joined = join(rails.into_iter().enumerate().map(lane));
        let numbers: Vec<&[u8]> = joined.iter().map(|(_, lane)| &*lane.numbers).collect();
        assert_eq!(numbers, [&[0, 1][..], &[2]]);
        let slowed = [("tcp/lo", tcp, Some(5)), ("tcp/lo", tcp, Some(3))];
        assert_eq!(join(slowed.into_iter().enumerate().map(lane)).len(), 2);
    }

    #[test]
    fn what_is_no_address_is_no_place() {
        for text in ["", "shm", "10.0.0.1:5", "10.0.0.1/x:5"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
