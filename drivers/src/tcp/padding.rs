//! Padding between the header of a chunk and its data.
//!
//! The kernel copies sent data into pages that it fills from their beginning, header first. The data of a
//! buffer that begins at the start of a page, or 16 bytes behind it as malloc's do, would be copied to an
//! offset in the page that is 24 to 40 bytes higher than its source's. Processors whose loads are held up
//! by stores to the same offset of another page then copy up to twice as slowly (measured on AMD Zen 5;
//! from a distance of 64 bytes on they do not). Both sides of a stream compute the same padding, so it
//! needs no field in the format.

use nmad_wire::ChunkHeader;

/// Chunks from this length on are padded, in bytes.
const PADDED: u32 = 16 << 10;
/// Offset of the data of such a chunk from the beginning of its header, in bytes.
const BEGIN: usize = 128;

static ZEROES: [u8; BEGIN - ChunkHeader::LEN] = [0; BEGIN - ChunkHeader::LEN];

/// Number of bytes in front of the `len` bytes of data of a chunk, including its header.
pub const fn ahead(len: u32) -> usize {
    if len < PADDED { ChunkHeader::LEN } else { BEGIN }
}

/// The padding between the header of a chunk and its data.
pub fn bytes(len: u32) -> &'static [u8] {
    if len < PADDED { &[] } else { &ZEROES }
}
