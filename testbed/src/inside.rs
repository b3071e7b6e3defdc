//! The testbed, seen from a program that runs in it: all it has is the environment variable.

use crate::address::{address, host_name};
use crate::enter::network_of;
use crate::netlink::{self, RailState, observe};
use crate::wiring::MTU_MAX;
use crate::{ENVIRONMENT, Rate, TestbedError, wiring};
use nmad_netlink::Socket;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::net::Ipv4Addr;
use std::str::FromStr;

/// IPv6 works with no less.
const MTU_MIN: u32 = 1280;

/// A testbed from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// All hosts, by number.
    pub hosts: Vec<InsideHost>,
}

/// One host of a testbed, from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsideHost {
    /// Its number, from 0.
    pub index: u32,
    /// Its host name, `host0`.
    pub name: String,
    /// A command prefix that runs a program there.
    pub prefix: Vec<String>,
    pid: u32,
}

/// A change to a rail in the middle of things: `r1=down`, `host0:r1=up`, `r0=500mbit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which host's end of the rail; `None` is every host's.
    pub host: Option<String>,
    /// The number of the rail.
    pub rail: u32,
    /// What becomes of it.
    pub what: What,
}

/// What becomes of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Switched on.
    Up,
    /// Switched off.
    Down,
    /// Limited in what a host sends.
    Rate(Rate),
    /// The host loses one in this number of the frames that it receives; zero: none.
    Loss(u32),
    /// Longest frame, in bytes behind its Ethernet header: 1280, the least that IPv6 may have, to 65535. If
    /// the ends of a rail differ, frames too long for one of them are lost.
    Mtu(u32),
    /// The host has its addresses on the rail, or has lost them.
    Address(bool),
    /// Whether the host has its IPv4 address on the rail; it keeps its IPv6 address.
    Ipv4(bool),
}

impl Inside {
    /// Reads `NMAD_TESTBED`; `None` if it is not set.
    ///
    /// # Errors
    /// [`TestbedError::Environment`] if it is set to something else than a list of hosts.
    pub fn from_env() -> Result<Option<Inside>, TestbedError> {
        match std::env::var_os(ENVIRONMENT) {
            None => Ok(None),
            Some(text) => text.to_string_lossy().parse().map(Some),
        }
    }

    /// The host this program runs in, by its network namespace; `None` if it left it.
    pub fn here(&self) -> Option<&InsideHost> {
        let look = |path: &str| rustix::fs::stat(path).ok().map(|found| (found.st_dev, found.st_ino));
        let ours = look("/proc/thread-self/ns/net")?;
        self.hosts.iter().find(|host| look(&format!("/proc/{}/ns/net", host.pid)) == Some(ours))
    }

    /// Makes `change`.
    ///
    /// # Errors
    /// [`TestbedError::NoSuchHost`], [`TestbedError::NoSuchRail`], or what the kernel refused.
    pub fn set(&self, change: &Change) -> Result<(), TestbedError> {
        for host in self.chosen(change.host.as_deref())? {
            let mut socket = host.socket(Socket::open)?;
            match change.what {
                What::Up => wiring::switch(&mut socket, host.index, change.rail, true)?,
                What::Down => wiring::switch(&mut socket, host.index, change.rail, false)?,
                What::Rate(rate) => wiring::limit(&mut socket, change.rail, rate)?,
                What::Address(has) => wiring::address_rail(&mut socket, host.index, change.rail, has)?,
                What::Ipv4(has) => wiring::address_v4(&mut socket, host.index, change.rail, has)?,
                What::Mtu(mtu) => wiring::size(&mut socket, change.rail, mtu)?,
                What::Loss(one_in) => {
                    let mut filter = host.socket(netlink::open_filter)?;
                    wiring::lose(&mut socket, &mut filter, change.rail, one_in)?;
                }
            }
        }
        Ok(())
    }

    fn chosen(&self, name: Option<&str>) -> Result<Vec<&InsideHost>, TestbedError> {
        let chosen: Vec<_> =
            self.hosts.iter().filter(|host| name.is_none_or(|name| name == host.name)).collect();
        match (chosen.is_empty(), name) {
            (true, Some(name)) => {
                Err(TestbedError::NoSuchHost { asked: name.to_owned(), last: self.hosts.len() as u32 - 1 })
            }
            _ => Ok(chosen),
        }
    }
}

impl InsideHost {
    /// Its IPv4 address on `rail`.
    pub fn addr(&self, rail: u32) -> Ipv4Addr {
        address(self.index, rail)
    }

    /// Its rails, as the kernel has them now.
    pub fn rails(&self) -> Result<Vec<RailState>, TestbedError> {
        observe(&mut self.socket(Socket::open)?).map_err(|source| self.unreachable(source))
    }

    /// A netlink socket of its network, made by a thread that moves there and ends.
    fn socket(&self, open: fn() -> std::io::Result<Socket>) -> Result<Socket, TestbedError> {
        let network = network_of(self.pid)?;
        let visit = std::thread::spawn(move || {
            move_into_link_name_space(rustix::fd::AsFd::as_fd(&network), Some(LinkNameSpaceType::Network))?;
            open()
        });
        let lost = |_| Err(std::io::Error::other("the visiting thread panicked"));
        visit.join().unwrap_or_else(lost).map_err(|source| self.unreachable(source))
    }

    fn unreachable(&self, source: std::io::Error) -> TestbedError {
        TestbedError::Kernel {
            step: format!("reach the network of {}", self.name),
            source,
            remedy: "has the testbed ended? this works from inside it only",
        }
    }
}

impl FromStr for Inside {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Inside, TestbedError> {
        let damaged = |at: &str| TestbedError::Environment { at: at.to_owned() };
        let hosts = (0..)
            .zip(text.split(';'))
            .map(|(index, part)| read_host(index, part).ok_or_else(|| damaged(part)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Inside { hosts })
    }
}

/// `host0=PROGRAM testbed-enter PID`; the PID is always the last word.
fn read_host(index: u32, part: &str) -> Option<InsideHost> {
    let (name, prefix) = part.split_once('=')?;
    let prefix: Vec<String> = prefix.split(' ').map(str::to_owned).collect();
    let pid = prefix.last()?.parse().ok()?;
    (name == host_name(index)).then(|| InsideHost { index, name: name.to_owned(), prefix, pid })
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (place, what) = text.split_once('=').ok_or_else(|| unreadable(text))?;
        let (host, rail) = match place.split_once(':') {
            Some((host, rail)) => (Some(host.to_owned()), rail),
            None => (None, place),
        };
        let rail = rail.strip_prefix('r').and_then(|digits| digits.parse().ok());
        let what = match what {
            "up" => What::Up,
            "down" => What::Down,
            "address" => What::Address(true),
            "noaddress" => What::Address(false),
            "ipv4" => What::Ipv4(true),
            "noipv4" => What::Ipv4(false),
            loss if loss.starts_with("loss:") => What::Loss(one_in(&loss[5..]).ok_or_else(|| {
                format!("`{loss}` is no loss: write loss:1%, loss:0.1%, or loss:0 to end it")
            })?),
            mtu if mtu.starts_with("mtu:") => What::Mtu(mtu_of(&mtu[4..]).ok_or_else(|| {
                format!("`{mtu}` is no MTU: write mtu:9000, or another from {MTU_MIN} to {MTU_MAX} B")
            })?),
            rate => What::Rate(
                rate.parse()
                    .map_err(|error| format!("{error}; or up, down, address, noaddress, ipv4, noipv4"))?,
            ),
        };
        Ok(Change { host, rail: rail.ok_or_else(|| unreadable(text))?, what })
    }
}

/// `1%` is one in a hundred, `0` none.
fn one_in(text: &str) -> Option<u32> {
    let percent: f64 = text.trim_end_matches('%').parse().ok()?;
    match percent {
        0.0 => Some(0),
        percent if (0.001..=50.0).contains(&percent) => Some((100.0 / percent).round() as u32),
        _ => None,
    }
}

fn mtu_of(text: &str) -> Option<u32> {
    text.parse().ok().filter(|mtu| (MTU_MIN..=MTU_MAX).contains(mtu))
}

fn unreadable(text: &str) -> String {
    format!("`{text}` is no change: write r1=down, r1=up, r1=500mbit, or for one host only host0:r1=down")
}

/// Changes a rail of the testbed that this program runs in: `host`'s end of it, or every host's if `None`.
/// `NMAD_TESTBED` is all it needs.
///
/// # Errors
/// [`TestbedError::NotInside`] outside a testbed; else those of [`Inside::set`].
pub fn set(host: Option<&str>, rail: u32, what: What) -> Result<(), TestbedError> {
    let inside = Inside::from_env()?.ok_or(TestbedError::NotInside)?;
    inside.set(&Change { host: host.map(str::to_owned), rail, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_host_by_host() {
        let inside: Inside =
            "host0=/bin/nmad testbed-enter 12;host1=/bin/nmad testbed-enter 13".parse().unwrap();
        assert_eq!(inside.hosts[1].prefix, ["/bin/nmad", "testbed-enter", "13"]);
        assert_eq!((inside.hosts[1].index, inside.hosts[1].pid), (1, 13));
        for damaged in ["", "host0", "host0=", "host0=nmad testbed-enter x", "host1=nmad testbed-enter 1"] {
            assert!(damaged.parse::<Inside>().is_err(), "{damaged}");
        }
    }

    #[test]
    fn changes_are_read_and_explain_themselves() {
        let change = |host: Option<&str>, rail, what| Change { host: host.map(str::to_owned), rail, what };
        assert_eq!("r1=down".parse(), Ok(change(None, 1, What::Down)));
        assert_eq!("host0:r1=up".parse(), Ok(change(Some("host0"), 1, What::Up)));
        assert_eq!("r0=4G".parse(), Ok(change(None, 0, What::Rate(Rate::Limited(4_000_000_000)))));
        for damaged in ["r1", "1=down", "r=up", "host0:=up"] {
            assert!(damaged.parse::<Change>().unwrap_err().contains("host0:r1=down"), "{damaged}");
        }
        for (text, one_in) in
            [("r0=loss:1%", 100), ("r0=loss:0.1%", 1000), ("r0=loss:20%", 5), ("r0=loss:0", 0)]
        {
            assert_eq!(text.parse(), Ok(change(None, 0, What::Loss(one_in))), "{text}");
        }
        assert_eq!("host1:r0=noaddress".parse(), Ok(change(Some("host1"), 0, What::Address(false))));
        assert_eq!("r1=noipv4".parse(), Ok(change(None, 1, What::Ipv4(false))));
        assert_eq!("host1:r0=mtu:9000".parse(), Ok(change(Some("host1"), 0, What::Mtu(9000))));
        for wrong in ["r0=mtu:", "r0=mtu:9k", "r0=mtu:1000", "r0=mtu:65536"] {
            assert!(wrong.parse::<Change>().unwrap_err().contains("write mtu:9000"), "{wrong}");
        }
        assert!("r0=loss:x".parse::<Change>().unwrap_err().contains("loss:1%"));
        assert!("r1=off".parse::<Change>().unwrap_err().contains("or up, down"));
    }
}
