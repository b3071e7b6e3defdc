//! The address of a rail, as published to peers: `10.0.1.3/24:40123`.

use crate::interface::Interface;
use nmad_seal::is_public;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Listening address and subnet of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The interface's address.
    pub ip: IpAddr,
    /// Length of the subnet prefix in bits.
    pub prefix: u8,
    /// The port.
    pub port: u16,
}

// A process knows one for each rank of its job.
const _: () = assert!(size_of::<Address>() <= 20);

impl Address {
    /// Creates the address of a rail over this interface.
    pub fn at(interface: &Interface, port: u16) -> Address {
        Address { ip: interface.address, prefix: interface.prefix, port }
    }

    /// Returns address and port.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.ip, self.port)
    }

    /// Returns whether packets to `other` may pass through networks of strangers: `other` is in another
    /// subnet, or is a public address.
    pub fn is_far(&self, other: &Address) -> bool {
        let to = other.ip;
        to != self.ip && !to.is_loopback() && (is_public(to) || !self.same_subnet(other))
    }

    /// Returns whether `other` is on the subnet of this address.
    pub fn same_subnet(&self, other: &Address) -> bool {
        match (self.ip, other.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                differ.leading_zeros() >= u32::from(self.prefix).min(32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                differ.leading_zeros() >= u32::from(self.prefix).min(128)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.ip, self.prefix, self.port)
    }
}

/// The error for text that is not the address of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnAddress;

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (ip, rest) = text.split_once('/').ok_or(NotAnAddress)?;
        let (prefix, port) = rest.split_once(':').ok_or(NotAnAddress)?;
        let ip: IpAddr = ip.parse().map_err(|_| NotAnAddress)?;
        let prefix: u8 = prefix.parse().map_err(|_| NotAnAddress)?;
        let port: u16 = port.parse().map_err(|_| NotAnAddress)?;
        if port == 0 || prefix > if ip.is_ipv4() { 32 } else { 128 } {
            return Err(NotAnAddress);
        }
        Ok(Address { ip, prefix, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        text.parse().unwrap_or_else(|_| panic!("{text} is an address"))
    }

    #[test]
    fn an_address_survives_its_text() {
        for text in ["10.0.1.3/24:40123", "fd00::3/64:1", "::1/128:65535"] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in ["", "10.0.1.3:4", "10.0.1.3/33:4", "10.0.1.3/24:0", "10.0.1.3/24", "x/24:4", "::1/129:4"]
        {
            assert_eq!(text.parse::<Address>(), Err(NotAnAddress), "{text}");
        }
    }

    #[test]
    fn the_prefix_decides_which_addresses_share_a_subnet() {
        let here = parse("10.0.1.2/24:1");
        assert!(here.same_subnet(&parse("10.0.1.77/8:9")));
        assert!(!here.same_subnet(&parse("10.0.2.2/24:1")));
        assert!(!here.same_subnet(&parse("fd00::3/64:1")));
        assert!(parse("fd00::1/64:1").same_subnet(&parse("fd00::ffff:1/64:1")));
    }

    #[test]
    fn other_subnets_and_public_addresses_are_far() {
        let here = parse("10.0.1.2/24:1");
        for near in ["10.0.1.77/8:9", "10.0.1.2/24:7", "127.0.0.1/8:5"] {
            assert!(!here.is_far(&parse(near)), "{near}");
        }
        assert!(here.is_far(&parse("10.0.2.2/24:1")) && here.is_far(&parse("fd00::1/64:1")));
        for (one, other, is_far) in [
            ("203.0.113.5/24:1", "203.0.113.6/24:1", true),
            ("100.64.1.2/16:1", "100.64.1.3/16:1", false),
            ("169.254.1.2/16:1", "169.254.1.3/16:1", false),
            ("fd00::1/64:1", "fd00::2/64:1", false),
            ("2001:db8::1/64:1", "2001:db8::2/64:1", true),
            ("127.0.0.1/8:1", "127.0.0.1/8:2", false),
        ] {
            assert_eq!(parse(one).is_far(&parse(other)), is_far, "{one} and {other}");
        }
    }
}
