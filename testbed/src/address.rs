//! Names and addresses, which follow from the numbers of host and rail alone.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Most hosts of one testbed: the last byte of an IPv4 address, less network, broadcast and some room.
pub(crate) const MAX_HOSTS: u32 = 250;
/// Most rails of one testbed: more than any machine has, and well within a byte.
pub(crate) const MAX_RAILS: usize = 32;

/// IPv4 address of `host` on `rail`, `10.88.RAIL.(HOST+1)`, in a network of 24 bits.
///
/// Numbers beyond what a [`crate::Spec`] allows give an address that nobody has.
pub fn address(host: u32, rail: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, rail as u8, (host + 1) as u8)
}

/// IPv6 address of `host` on `rail`, `fd88:RAIL::(HOST+1)`, written in hexadecimal, in a network of 64
/// bits.
pub fn address6(host: u32, rail: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd88, rail as u16, 0, 0, 0, 0, 0, (host + 1) as u16)
}

/// Name of the interface of `rail` in every host: `r0`, `r1`, ...
pub fn rail_name(rail: u32) -> String {
    format!("r{rail}")
}

/// Name of `host`: `host0`, `host1`, ...
pub(crate) fn host_name(host: u32) -> String {
    format!("host{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_tell_rail_and_host() {
        assert_eq!(address(0, 0).to_string(), "10.88.0.1");
        assert_eq!(address(1, 3).to_string(), "10.88.3.2");
        assert_eq!(address6(1, 3).to_string(), "fd88:3::2");
    }
}
