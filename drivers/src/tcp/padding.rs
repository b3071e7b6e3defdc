//! Padding between the header of a chunk and its data.
//!
//! The kernel copies what is sent to pages that it fills from their beginning, header first, so the
//! data of a buffer that begins at the start of a page, or 16 bytes behind it as malloc's do, would be
//! copied to where it comes from plus 24 to 40 bytes, counted within a page. Processors whose loads are
//! held up by stores to the same place of another page copy up to twice as slowly then (measured on AMD
//! Zen 5; from a distance of 64 bytes on they do not). Both sides of a stream count the same padding, so it
//! needs no place in the format.

use nmad_wire::ChunkHeader;

/// Chunks from this length on are padded, in bytes.
const PADDED: u32 = 16 << 10;
/// Where the data of such a chunk begins, in bytes behind the beginning of its header.
const BEGIN: usize = 128;

static ZEROES: [u8; BEGIN - ChunkHeader::LEN] = [0; BEGIN - ChunkHeader::LEN];

/// Bytes that precede the `len` bytes of data of a chunk, its header included.
pub const fn ahead(len: u32) -> usize {
    if len < PADDED { ChunkHeader::LEN } else { BEGIN }
}

/// The padding between the header of a chunk and its data.
pub fn bytes(len: u32) -> &'static [u8] {
    if len < PADDED { &[] } else { &ZEROES }
}
