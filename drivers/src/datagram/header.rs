//! The header of twenty bytes of each datagram of an open link.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | tag, see [`super::seal`] |
//! | 8 | 4 | sequence: lower half of the number of datagrams that the link has sent |
//! | 12 | 4 | number of the packet or chunk on the link; of a signal: its kind |
//! | 16 | 2 | length of the datagram, including this header |
//! | 18 | 1 | index in the train |
//! | 19 | 1 | how often the sender has shortened its parts; 255 with index 255: a signal |
//!
//! A packet or chunk, header first, is cut into parts of equal length, of which the last may be shorter. If
//! the path MTU shrinks, parts become shorter, and do not fit between those that were sent before. Each
//! datagram has its length because the kernel may join several on their way to the reader.

/// Encoded length in bytes.
pub const LEN: usize = 20;
/// A sender shortens its parts at most this often.
pub const SHORTENED_MAX: u8 = u8::MAX - 1;
/// The index of datagrams without data.
const SIGNAL: u16 = u16::MAX;

/// The index field of part `place`, after the sender has `shortened` its parts this often.
#[inline]
pub const fn index(shortened: u8, place: usize) -> u16 {
    (shortened as u16) << 8 | place as u16
}

/// The fields of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Lower half of the sequence number on the link.
    pub sequence: u32,
    /// Number of the packet or chunk.
    pub number: u32,
    /// Length in bytes, including this header.
    pub len: u16,
    /// The part, encoded by [`index`].
    pub index: u16,
}

/// Kinds of datagrams without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Signal {
    /// Asks whether the peer is alive; answered by [`Signal::Alive`].
    Probe = 1,
    /// The link is open here.
    Alive = 2,
    /// The link ends.
    Close = 3,
}

impl Datagram {
    /// Header of a part of a packet or chunk; the datagram has `len` bytes.
    pub const fn part(sequence: u32, number: u32, index: u16, len: usize) -> Self {
        Datagram { sequence, number, len: (LEN + len) as u16, index }
    }

    /// Header of a signal.
    pub const fn signal(sequence: u32, signal: Signal) -> Self {
        Datagram { sequence, number: signal as u32, len: LEN as u16, index: SIGNAL }
    }

    /// Index of the part.
    #[inline]
    pub const fn place(&self) -> usize {
        (self.index & 0xff) as usize
    }

    /// How often the sender had shortened its parts.
    #[inline]
    pub const fn shortened(&self) -> u8 {
        (self.index >> 8) as u8
    }

    /// The signal; none: the datagram is a part. An unknown signal is `Some(None)`.
    pub const fn as_signal(&self) -> Option<Option<Signal>> {
        match (self.index, self.number) {
            (SIGNAL, 1) => Some(Some(Signal::Probe)),
            (SIGNAL, 2) => Some(Some(Signal::Alive)),
            (SIGNAL, 3) => Some(Some(Signal::Close)),
            (SIGNAL, _) => Some(None),
            _ => None,
        }
    }

    /// The header fields that the tag covers, except for the sequence.
    #[inline]
    pub const fn words(&self) -> [u32; 2] {
        [self.number, self.len as u32 | (self.index as u32) << 16]
    }

    /// Encodes the header with its tag.
    #[inline]
    pub fn encode(&self, tag: u64) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..8].copy_from_slice(&tag.to_le_bytes());
        out[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        out[12..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..18].copy_from_slice(&self.len.to_le_bytes());
        out[18..].copy_from_slice(&self.index.to_le_bytes());
        out
    }

    /// Decodes tag and header at the beginning of `bytes`; none if `bytes` is shorter than the header or
    /// its length field.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<(u64, Datagram)> {
        let head = bytes.first_chunk::<LEN>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let tag = u64::from(word(0)) | u64::from(word(4)) << 32;
        let datagram = Datagram { sequence: word(8), number: word(12), len: half(16), index: half(18) };
        let len = usize::from(datagram.len);
        (LEN..=bytes.len()).contains(&len).then_some((tag, datagram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire_and_short_ones_are_refused() {
        let datagram = Datagram::part(7, 0x0102_0304, 44, 1000);
        let mut bytes = datagram.encode(0x1122_3344_5566_7788).to_vec();
        assert_eq!(Datagram::decode(&bytes), None, "its data is missing");
        bytes.resize(LEN + 1000, 0);
        assert_eq!(Datagram::decode(&bytes), Some((0x1122_3344_5566_7788, datagram)));
        assert_eq!(Datagram::decode(&bytes[..LEN - 1]), None);
        bytes[16..18].copy_from_slice(&19u16.to_le_bytes());
        assert_eq!(Datagram::decode(&bytes), None, "shorter than its header");
    }

    #[test]
    fn signals_are_no_parts() {
        for signal in [Signal::Probe, Signal::Alive, Signal::Close] {
            assert_eq!(Datagram::signal(1, signal).as_signal(), Some(Some(signal)));
        }
        assert_eq!(Datagram { number: 9, ..Datagram::signal(1, Signal::Probe) }.as_signal(), Some(None));
        assert_eq!(Datagram::part(0, 1, 0, 0).as_signal(), None);
        let last = Datagram::part(0, 1, index(SHORTENED_MAX, 255), 0);
        assert_eq!((last.as_signal(), last.shortened(), last.place()), (None, SHORTENED_MAX, 255));
    }
}
