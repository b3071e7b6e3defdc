//! Part of a large message on one rail: where its bytes belong.

use crate::cursor::{Cursor, Malformed, put};
use crate::{Header, Kind};

/// What precedes the bytes of a chunk on rails that carry them in a stream or datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Number on the link; packets and chunks share one sequence.
    pub number: u32,
    /// Cumulative acknowledgement of the other direction.
    pub ack: u32,
    /// The receiver's receive region.
    pub region: u64,
    /// The key by which the receiver's rail finds the receive region.
    pub key: u64,
    /// Where in the receive region the bytes begin.
    pub offset: u64,
    /// Bytes that follow.
    pub len: u32,
}

impl ChunkHeader {
    /// Encoded length in bytes, the common [`Header`] included.
    pub const LEN: usize = Header::LEN + 24;

    /// The header as bytes. `len` must leave room for the header below [`crate::MAX_LEN`].
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let at = &mut 0;
        let len = Self::LEN as u32 + self.len;
        let header = Header { kind: Kind::Chunk, len, number: self.number, ack: self.ack };
        put(&mut out, at, &header.encode());
        put(&mut out, at, &self.region.to_le_bytes());
        put(&mut out, at, &self.key.to_le_bytes());
        put(&mut out, at, &self.offset.to_le_bytes());
        out
    }

    /// Reads the rest of a chunk's header; `header` is its already decoded beginning, `bytes` starts there.
    ///
    /// # Errors
    /// Too few bytes, a length that does not hold the header, a range past the end of 64 bits.
    pub fn decode(header: Header, bytes: &[u8]) -> Result<ChunkHeader, Malformed> {
        let mut c = Cursor::new(bytes);
        c.take(Header::LEN, "chunk header cut short")?;
        let region = c.u64("chunk header cut short")?;
        let key = c.u64("chunk header cut short")?;
        let offset = c.u64("chunk header cut short")?;
        let len =
            header.len.checked_sub(Self::LEN as u32).ok_or(Malformed("chunk shorter than its header"))?;
        if offset.checked_add(u64::from(len)).is_none() {
            return Err(Malformed("chunk range past the end of 64 bits"));
        }
        Ok(ChunkHeader { number: header.number, ack: header.ack, region, key, offset, len })
    }
}
