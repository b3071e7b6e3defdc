//! A packet that holds nothing but one message without a request, as most do.

use crate::code::EAGER;
use crate::{Eager, Header, Kind, MAX_LEN, VERSION, flags};

/// The bytes before the data of a packet that [`Eager::alone`] takes apart, eight in each word.
pub type AloneHead = [u64; Eager::ALONE_LEN / 8];

/// The second word of such a packet, and the first of its frame.
const KIND: u32 = u32::from_le_bytes([Kind::Packet as u8, VERSION, 0, 0]);
const FRAME: u32 = u32::from_le_bytes([EAGER, 0, 0, 0]);

impl Eager {
    /// Bytes of header and frame of a packet with one message and nothing else, whose data follows.
    pub const ALONE_LEN: usize = Header::LEN + Self::PLAIN_LEN;

    /// The parts of a packet that holds nothing but one message, in order and without a request: the packet's
    /// header, the frame, the data. None: it holds something else, or is malformed, which [`Header::decode`]
    /// and [`frames`] tell.
    #[inline]
    pub fn alone(packet: &[u8]) -> Option<(Header, Eager, &[u8])> {
        let (head, data) = packet.split_first_chunk()?;
        let (header, frame) = Self::alone_behind(head, data.len())?;
        Some((header, frame, data))
    }

    /// As [`Eager::alone`], of a packet of which only what goes before its `data_len` bytes of data is here.
    #[inline(always)]
    pub fn alone_behind(head: &[u8; Self::ALONE_LEN], data_len: usize) -> Option<(Header, Eager)> {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = word(0);
        let alone = word(4) == KIND
            && word(16) == FRAME
            && len as usize == Self::ALONE_LEN + data_len
            && word(36) as usize == data_len
            && len <= MAX_LEN;
        let header = Header { kind: Kind::Packet, len, number: word(8), ack: word(12) };
        let tag = u64::from(word(24)) | u64::from(word(28)) << 32;
        let frame = Eager { flags: 0, context: word(20), tag, seq: word(32), len: word(36), request: 0 };
        alone.then_some((header, frame))
    }

    /// The bytes before the data in such a packet. They are built in words, so that a reader that copies
    /// words does not stall until the stores have reached the cache.
    #[inline]
    pub fn alone_head(&self, header: &Header) -> AloneHead {
        debug_assert!(self.flags & flags::FIN == 0 && header.kind == Kind::Packet);
        let pair = |low: u32, high: u32| (u64::from(low) | u64::from(high) << 32).to_le();
        let frame = FRAME | u32::from(self.flags) << 8;
        [
            pair(header.len, KIND),
            pair(header.number, header.ack),
            pair(frame, self.context),
            self.tag.to_le(),
            pair(self.seq, self.len),
        ]
    }
}
