//! Network interfaces of this machine over which a rail can run.

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Flags of a usable interface. One that has just come up has its carrier but is not RUNNING for a while.
const CARRIER: InterfaceFlags = InterfaceFlags::IFF_RUNNING.union(InterfaceFlags::IFF_LOWER_UP);

/// An address of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface, for example `eth1`.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Length of the subnet prefix in bits.
    pub prefix: u8,
    /// Nominal speed in bytes per second, zero if unknown.
    pub bandwidth: u64,
}

impl Interface {
    /// The loopback interface.
    pub fn loopback() -> Self {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Interface { name: "lo".into(), address, prefix: 8, bandwidth: 0 }
    }
}

/// The interfaces that are up, one entry per address; the loopback interface only if there is no other.
/// Link-local IPv6 addresses are left out.
///
/// # Errors
/// The system cannot list its interfaces.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let (loopback, mut others): (Vec<_>, Vec<_>) = getifaddrs()?
        .filter(|i| i.flags.contains(InterfaceFlags::IFF_UP) && i.flags.intersects(CARRIER))
        .filter_map(|i| Some((i.flags.contains(InterfaceFlags::IFF_LOOPBACK), interface(&i)?)))
        .partition(|(loopback, _)| *loopback);
    if others.is_empty() {
        others = loopback;
    }
    Ok(others.into_iter().map(|(_, interface)| interface).collect())
}

/// Every address of this machine with the name of its interface, whether up or down.
pub(super) fn own_addresses() -> io::Result<Vec<(IpAddr, String)>> {
    Ok(getifaddrs()?.filter_map(|i| Some((address(&i)?, i.interface_name))).collect())
}

fn address(found: &InterfaceAddress) -> Option<IpAddr> {
    let address = found.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

fn interface(found: &InterfaceAddress) -> Option<Interface> {
    let address = address(found)?;
    let mask = found.netmask.as_ref();
    let prefix = match address {
        IpAddr::V4(_) => {
            mask.and_then(|m| m.as_sockaddr_in()).map_or(32, |m| m.ip().to_bits().leading_ones())
        }
        IpAddr::V6(ip) if ip.is_unicast_link_local() => return None,
        IpAddr::V6(_) => {
            mask.and_then(|m| m.as_sockaddr_in6()).map_or(128, |m| m.ip().to_bits().leading_ones())
        }
    };
    let name = found.interface_name.clone();
    let bandwidth = bandwidth(&name);
    Some(Interface { name, address, prefix: prefix as u8, bandwidth })
}

/// Bytes per second from the kernel's figure (Mbit/s, -1 if unknown); zero if unknown.
fn bandwidth(name: &str) -> u64 {
    let path = format!("/sys/class/net/{name}/speed");
    let mbit = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0);
    mbit.max(0) as u64 * 1_000_000 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_a_subnet_and_none_is_link_local() {
        let found = interfaces().expect("the system lists its interfaces");
        for interface in &found {
            let bits = if interface.address.is_ipv4() { 32 } else { 128 };
            assert!((1..=bits).contains(&interface.prefix), "{interface:?}");
            assert!(!interface.address.to_string().starts_with("fe80"), "{interface:?}");
        }
        let loopback = found.iter().filter(|i| i.address.is_loopback()).count();
        assert!(loopback == 0 || loopback == found.len(), "loopback beside others: {found:?}");
    }
}
