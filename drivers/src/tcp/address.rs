//! The address of a rail, as published to peers: `10.0.1.3/24:40123`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Listening address and subnet of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Address and port.
    pub socket: SocketAddr,
    /// Length of the subnet prefix in bits.
    pub prefix: u8,
}

impl Address {
    /// Returns whether `other` is on the subnet of this address.
    pub fn same_subnet(&self, other: &Address) -> bool {
        match (self.socket.ip(), other.socket.ip()) {
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
        write!(f, "{}/{}:{}", self.socket.ip(), self.prefix, self.socket.port())
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
        Ok(Address { socket: SocketAddr::new(ip, port), prefix })
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
}
