//! The header in front of a datagram on Ethernet, and the address of a rail as published to peers.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 6 + 6 | hardware address of the receiver, of the sender |
//! | 12 | 2 | EtherType 0x88B5: for local experiments (IEEE 802, section 9.2.3) |
//! | 14 | 2 + 2 | port of the receiver's process, of the sender's, most significant byte first |
//!
//! A datagram of the UDP driver's format follows. Ethernet pads short frames; a datagram contains its
//! length.

use crate::tcp::address::Address;
use std::fmt;
use std::str::FromStr;

/// Length of a hardware address in bytes.
pub const MAC: usize = 6;
/// Bytes in front of a datagram.
pub const HEAD: usize = ETHERNET + PORTS;
/// The part of them that does not count towards the MTU.
pub const ETHERNET: usize = 2 * MAC + 2;
/// The part that does.
pub const PORTS: usize = 4;
/// The EtherType of our frames.
pub const ETHERTYPE: u16 = 0x88B5;

/// A process on a network: a hardware address, and a port that is unique at that address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    /// Hardware address of its interface.
    pub mac: [u8; MAC],
    /// Port; the process also holds the UDP socket with this number.
    pub port: u16,
}

/// The beginning of each frame from one process to another.
pub fn head(from: Way, to: Way) -> [u8; HEAD] {
    let mut out = [0; HEAD];
    out[..MAC].copy_from_slice(&to.mac);
    out[MAC..2 * MAC].copy_from_slice(&from.mac);
    out[2 * MAC..ETHERNET].copy_from_slice(&ETHERTYPE.to_be_bytes());
    out[ETHERNET..ETHERNET + 2].copy_from_slice(&to.port.to_be_bytes());
    out[ETHERNET + 2..].copy_from_slice(&from.port.to_be_bytes());
    out
}

/// The sender of a frame, and the datagram in it, possibly padded; none if the frame is shorter than its
/// header.
#[inline]
pub fn open(frame: &[u8]) -> Option<(Way, &[u8])> {
    let (head, data) = frame.split_first_chunk::<HEAD>()?;
    let mac = [head[6], head[7], head[8], head[9], head[10], head[11]];
    Some((Way { mac, port: u16::from_be_bytes([head[16], head[17]]) }, data))
}

/// The address of a rail: `packet:02:00:00:00:00:01@10.0.1.3/24:40123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Hardware address of the interface.
    pub mac: [u8; MAC],
    /// IP address with its subnet, and the port.
    pub address: Address,
}

/// The error for text that is not the address of such a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPlace;

impl Place {
    /// The address that frames contain.
    pub fn way(&self) -> Way {
        Way { mac: self.mac, port: self.address.port }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.mac;
        write!(f, "packet:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}@{}", self.address)
    }
}

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (mac, address) =
            text.strip_prefix("packet:").and_then(|rest| rest.split_once('@')).ok_or(NotAPlace)?;
        let bytes: Result<Vec<u8>, _> = mac.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
        let mac = bytes.ok().and_then(|bytes| bytes.try_into().ok()).ok_or(NotAPlace)?;
        Ok(Place { mac, address: address.parse().map_err(|_| NotAPlace)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_who_sent_it_and_short_ones_say_nothing() {
        let (a, b) = (Way { mac: [1; 6], port: 0x1234 }, Way { mac: [2; 6], port: 7 });
        let frame = [&head(a, b)[..], b"data"].concat();
        assert_eq!(open(&frame), Some((a, &b"data"[..])));
        assert_eq!(frame[12..16], [0x88, 0xB5, 0, 7]);
        assert_eq!(open(&frame[..HEAD - 1]), None);
    }

    #[test]
    fn a_place_survives_its_text_and_nonsense_is_refused() {
        let text = "packet:02:00:00:00:0a:ff@10.0.1.3/24:40123";
        assert_eq!(text.parse::<Place>().map(|place| place.to_string()), Ok(text.into()));
        for wrong in
            ["", "packet:", "10.0.1.3/24:40123", "packet:02:00@10.0.1.3/24:1", "packet:1:2:3:4:5:6@x"]
        {
            assert_eq!(wrong.parse::<Place>(), Err(NotAPlace), "{wrong}");
        }
    }
}
