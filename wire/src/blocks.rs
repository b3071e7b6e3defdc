//! Blocks of a large message that travel with its request to send (P1 section 5.3).

use crate::cursor::{Cursor, Malformed};
use alloc::vec::Vec;

/// Where a block lies in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Bytes of the message before it.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
}

impl Block {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// Returns the end of the block in its message; `None`: there is no such byte.
    fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.len))
    }
}

/// The blocks of a message that travel with its [`super::Rts`]: their places, ascending and disjoint, and
/// then their bytes in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocks<'a> {
    places: &'a [u8],
    data: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// Bytes of the number of blocks before their places.
    pub const COUNT_LEN: usize = 2;
    /// Largest number of blocks.
    pub const MAX: usize = u16::MAX as usize;
    /// No blocks.
    pub const NONE: Blocks<'static> = Blocks { places: &[], data: &[] };

    /// Makes blocks of their places, as [`Blocks::encode_places`] writes them behind the number, and of
    /// their bytes. A decoder refuses places that are out of order, outside of the message, or do not match
    /// the bytes.
    pub const fn new(places: &'a [u8], data: &'a [u8]) -> Blocks<'a> {
        Blocks { places, data }
    }

    /// Appends the number and the places of blocks; their bytes must follow.
    ///
    /// # Panics
    /// More than [`Blocks::MAX`] blocks.
    pub fn encode_places(blocks: &[Block], out: &mut Vec<u8>) {
        let count = u16::try_from(blocks.len()).expect("at most 65535 blocks travel with a request");
        out.extend_from_slice(&count.to_le_bytes());
        for block in blocks {
            out.extend_from_slice(&block.offset.to_le_bytes());
            out.extend_from_slice(&block.len.to_le_bytes());
        }
    }

    /// Whether there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the number of blocks.
    #[inline]
    pub fn count(&self) -> usize {
        self.places.len() / Block::LEN
    }

    /// Returns the bytes of all blocks, in the order of the message.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the places as [`Blocks::new`] takes them.
    #[inline]
    pub fn encoded_places(&self) -> &'a [u8] {
        self.places
    }

    /// Iterates over the places of the blocks.
    pub fn places(&self) -> impl Iterator<Item = Block> + Clone + use<'a> {
        self.places.chunks_exact(Block::LEN).map(|place| {
            let (offset, len) = place.split_at(8);
            let offset = u64::from_le_bytes(offset.try_into().expect("8 of 12 bytes"));
            Block { offset, len: u32::from_le_bytes(len.try_into().expect("4 of 12 bytes")) }
        })
    }

    /// Iterates over the blocks: the bytes of the message before each, and its own.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let mut rest = self.data;
        self.places().map(move |block| {
            let (own, others) = rest.split_at(block.len as usize);
            rest = others;
            (block.offset, own)
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.count() as u16).to_le_bytes());
        out.extend_from_slice(self.places);
        out.extend_from_slice(self.data);
    }

    /// Reads the blocks of a message of `len` bytes, `pushed` of which follow in a chunk.
    pub(crate) fn decode(c: &mut Cursor<'a>, len: u64, pushed: u64) -> Result<Blocks<'a>, Malformed> {
        let count = c.u16("Rts cut short")?;
        if count == 0 {
            return Err(Malformed("an Rts with no block where it announces some"));
        }
        let places = c.take(usize::from(count) * Block::LEN, "Rts cut short")?;
        let blocks = Blocks { places, data: &[] };
        let (mut end, mut bytes) = (0, 0);
        for block in blocks.places() {
            if block.len == 0 || block.offset < end {
                return Err(Malformed("an Rts whose blocks are empty or out of order"));
            }
            let inside = block.end().filter(|&end| end <= len);
            end = inside.ok_or(Malformed("an Rts with a block outside of its message"))?;
            bytes += u64::from(block.len);
        }
        // Disjoint and inside of the message, so they are no longer than it.
        if pushed > len - bytes || bytes == len {
            return Err(Malformed("an Rts whose blocks leave less than it sends behind them"));
        }
        let data = c.take(bytes as usize, "blocks longer than their packet")?;
        Ok(Blocks { places, data })
    }
}
