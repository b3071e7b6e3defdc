//! The sixteen bytes that begin everything on a link.

use crate::cursor::{Cursor, Malformed, put};
use crate::{MAX_LEN, VERSION};

/// The kind of the bytes behind a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Frames, to the end of the packet.
    Packet = 1,
    /// The rest of a [`crate::ChunkHeader`] and bytes for a receive region.
    Chunk = 2,
    /// A [`crate::Control`] message of a link that is being opened or refused.
    Control = 3,
    /// Frames that need no delivery of their own (acknowledgements): the number is not one of the link's.
    Notice = 4,
}

/// Length, kind, and the numbers of the link: its own and the acknowledgement of the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind of the bytes that follow.
    pub kind: Kind,
    /// Bytes of the whole packet or chunk, this header included.
    pub len: u32,
    /// Number of this packet or chunk on its link; counts up by one and wraps.
    pub number: u32,
    /// Everything that the other direction of this link numbered below this has arrived.
    pub ack: u32,
}

impl Header {
    /// Encoded length in bytes.
    pub const LEN: usize = 16;

    /// The header as bytes.
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let at = &mut 0;
        put(&mut out, at, &self.len.to_le_bytes());
        put(&mut out, at, &[self.kind as u8, VERSION, 0, 0]);
        put(&mut out, at, &self.number.to_le_bytes());
        put(&mut out, at, &self.ack.to_le_bytes());
        out
    }

    /// Reads a header from the first bytes of `bytes`.
    ///
    /// # Errors
    /// Fewer than [`Header::LEN`] bytes, an unknown kind or version, a length below the header's own or
    /// above [`MAX_LEN`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Header, Malformed> {
        let mut c = Cursor::new(bytes);
        let len = c.u32("header cut short")?;
        let kind = match c.u8("header cut short")? {
            1 => Kind::Packet,
            2 => Kind::Chunk,
            3 => Kind::Control,
            4 => Kind::Notice,
            _ => return Err(Malformed("unknown kind of packet")),
        };
        if c.u8("header cut short")? != VERSION {
            return Err(Malformed("unknown version"));
        }
        if c.u16("header cut short")? != 0 {
            return Err(Malformed("reserved bits of the header are set"));
        }
        if len < Self::LEN as u32 || len > MAX_LEN {
            return Err(Malformed("length of the packet out of range"));
        }
        Ok(Header { kind, len, number: c.u32("header cut short")?, ack: c.u32("header cut short")? })
    }
}
