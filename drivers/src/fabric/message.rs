//! Messages between the two sides of a link: a prefix of sixteen bytes, and content that depends on its
//! kind.
//!
//! | kind | number | behind the prefix |
//! |---|---|---|
//! | packet | | a whole packet |
//! | chunk | of the chunk | the header of a chunk, and the addresses of its bytes |
//! | whole | of the chunk | the header of a chunk, and its bytes |
//! | parted | of the chunk | the header of a chunk, whose bytes come in parts |
//! | part | of the chunk | the next bytes of the chunk |
//! | done | of the chunk | nothing: its sender's memory is free |
//! | grant | of the chunk | number of further parts that may be sent, four bytes |
//! | credit | | nothing: it only carries credits |
//!
//! All numbers are little endian. Packets and chunks cost a credit each; the others are answers, or were
//! granted. The token is a secret of the link, which datagrams of other senders lack. On encrypted links the
//! content is encrypted and a tag follows it.

use super::adapter::Place;
use nmad_wire::{ChunkHeader, Malformed};

/// Length of the prefix in bytes.
pub(crate) const PREFIX: usize = 16;
/// Bytes of an address in a chunk message: address, key, length.
const PLACE: usize = 24;
/// Addresses in a chunk message at most; a chunk of more pieces travels in parts.
pub(crate) const PLACES: usize = 16;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A packet.
    Packet = 1,
    /// A chunk whose bytes are at the addresses in the message.
    Chunk,
    /// A chunk with its bytes.
    Whole,
    /// A chunk whose bytes come in parts.
    Parted,
    /// The next bytes of such a chunk.
    Part,
    /// A chunk has arrived, or is not wanted.
    Done,
    /// More parts may be sent.
    Grant,
    /// Only credits.
    Credit,
}

const KINDS: [Kind; 8] =
    [Kind::Packet, Kind::Chunk, Kind::Whole, Kind::Parted, Kind::Part, Kind::Done, Kind::Grant, Kind::Credit];

/// The prefix of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The kind of the content.
    pub(crate) kind: Kind,
    /// Messages that the receiver may send in addition.
    pub(crate) credits: u16,
    /// Number of the chunk.
    pub(crate) number: u32,
    /// The receiver's token of the link.
    pub(crate) token: u64,
}

impl Prefix {
    /// Encodes the prefix.
    #[inline]
    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[0] = self.kind as u8;
        out[1] = 0;
        out[2..4].copy_from_slice(&self.credits.to_le_bytes());
        out[4..8].copy_from_slice(&self.number.to_le_bytes());
        out[8..16].copy_from_slice(&self.token.to_le_bytes());
    }

    /// Decodes the prefix; none: the bytes are not a message.
    #[inline]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Prefix> {
        let prefix = bytes.first_chunk::<PREFIX>()?;
        let kind = *KINDS.get(usize::from(prefix[0]).wrapping_sub(1))?;
        let credits = u16::from_le_bytes([prefix[2], prefix[3]]);
        let number = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]);
        let (_, token) = prefix.split_last_chunk::<8>()?;
        Some(Prefix { kind, credits, number, token: u64::from_le_bytes(*token) })
    }
}

/// A range of a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemoteRange {
    /// Its address.
    pub(crate) at: Place,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// Encodes the header of a chunk and the addresses of its bytes; returns the length.
pub(crate) fn encode_chunk(header: &ChunkHeader, places: &[RemoteRange], out: &mut [u8]) -> usize {
    out[..ChunkHeader::LEN].copy_from_slice(&header.encode());
    let mut len = ChunkHeader::LEN;
    for RemoteRange { at, len: bytes } in places {
        for word in [at.address, at.key, *bytes] {
            out[len..len + 8].copy_from_slice(&word.to_le_bytes());
            len += 8;
        }
    }
    len
}

/// Decodes the addresses of a chunk of `len` bytes.
///
/// # Errors
/// They are too many, or their lengths do not add up to `len`.
pub(crate) fn decode_places(bytes: &[u8], len: u64) -> Result<Vec<RemoteRange>, Malformed> {
    if !bytes.len().is_multiple_of(PLACE) || bytes.len() > PLACES * PLACE {
        return Err(Malformed("places of a chunk"));
    }
    let word = |bytes: &[u8], at: usize| {
        let word = bytes[at..].first_chunk::<8>();
        word.map_or(0, |word| u64::from_le_bytes(*word))
    };
    let place = |bytes: &[u8]| RemoteRange {
        at: Place { address: word(bytes, 0), key: word(bytes, 8) },
        len: word(bytes, 16),
    };
    let places: Vec<RemoteRange> = bytes.chunks_exact(PLACE).map(place).collect();
    let all = places.iter().try_fold(0u64, |sum, ranges| sum.checked_add(ranges.len));
    match all {
        Some(all) if all == len => Ok(places),
        _ => Err(Malformed("length of the places of a chunk")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prefix_survives_its_encoding() {
        for kind in KINDS {
            let prefix = Prefix { kind, credits: 0x1234, number: 0x89ab_cdef, token: u64::MAX - 7 };
            let mut bytes = [0xff; 20];
            prefix.encode(&mut bytes);
            assert_eq!(Prefix::decode(&bytes), Some(prefix));
        }
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        assert_eq!(Prefix::decode(&[1; 15]), None);
        for kind in [0, KINDS.len() as u8 + 1, 255] {
            assert_eq!(Prefix::decode(&[kind; 16]), None);
        }
    }

    #[test]
    fn places_have_the_length_of_their_chunk() {
        let header = ChunkHeader { number: 1, ack: 2, region: 3, key: 4, offset: 5, len: 30 };
        let places = [10, 20].map(|len| RemoteRange { at: Place { address: 1 << 40, key: u64::MAX }, len });
        let mut bytes = [0; 200];
        let len = encode_chunk(&header, &places, &mut bytes);
        let places_at = &bytes[ChunkHeader::LEN..len];
        assert_eq!(decode_places(places_at, 30).as_deref(), Ok(&places[..]));
        assert!(decode_places(places_at, 31).is_err());
        assert!(decode_places(&places_at[1..], 30).is_err());
        let far = RemoteRange { len: u64::MAX, ..places[0] };
        let len = encode_chunk(&header, &[far, far], &mut bytes);
        assert!(decode_places(&bytes[ChunkHeader::LEN..len], u64::MAX - 1).is_err());
    }
}
