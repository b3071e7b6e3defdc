//! Kinds of cells of a ring, and the encoding of their content.

use super::CONTENT;
use crate::shm::selector::Method;
use nmad_engine::packet::{Key, RegionId};

/// A packet; the value is its length, the content its bytes, which continue in the next cells if they do
/// not fit.
pub const PACKET: u8 = 1;
/// Cells that a packet may take; longer ones go through bounce buffers, which costs a further line. EPYC (2
/// virtual cores): with half, 200 and 256 B take 1.4 times as long; with twice, 300 to 512 B take 0.8.
pub const ROW: usize = 6;
/// A packet in a bounce buffer; the value is its length, the content a [`Range`].
pub const BOUNCED_PACKET: u8 = 2;
/// A chunk that both sides copy; the value is [`About`], the content [`Chunk`].
pub const CHUNK: u8 = 4;
/// Bytes of a chunk in a bounce buffer; the value is their number, the content a [`Range`].
pub const PART: u8 = 5;

const WORDS: usize = CONTENT / 8;

/// Encodes words as content.
fn of_words(words: [u64; WORDS]) -> [u8; CONTENT] {
    let mut content = [0; CONTENT];
    for (place, word) in content.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    content
}

fn words(content: &[u8; CONTENT]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, place) in words.iter_mut().zip(content.chunks_exact(8)) {
        *word = u64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    words
}

/// How a chunk is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Index and round of its claim word: 16 bits.
    pub name: u32,
    /// The method, as long as both sides do their part.
    pub method: Method,
    /// The receiver is to report the duration.
    pub is_measured: bool,
    /// The sender's last chunk crossed one from the other side.
    pub crossed: bool,
}

impl About {
    pub fn encode(&self) -> u32 {
        self.name
            | (self.method as u32) << 16
            | u32::from(self.is_measured) << 18
            | u32::from(self.crossed) << 19
    }

    /// Decodes a cell's value; none: there is no such method.
    pub fn decode(value: u32) -> Option<About> {
        let method = Method::of(value >> 16 & 3)?;
        Some(About {
            name: value & 0xffff,
            method,
            is_measured: value >> 18 & 1 != 0,
            crossed: value >> 19 & 1 != 0,
        })
    }
}

/// Announcement of a part of a large message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub number: u32,
    pub ack: u32,
    pub region: RegionId,
    pub key: Key,
    pub offset: u64,
    pub len: u64,
    /// Address in the sender's memory: of the bytes, or of a list if there are several pieces. Zero pieces:
    /// the receiver must not read the memory.
    pub address: u64,
    pub pieces: u64,
}

impl Chunk {
    pub fn encode(&self) -> [u8; CONTENT] {
        let numbers = u64::from(self.number) | u64::from(self.ack) << 32;
        of_words([numbers, self.region.0, self.key.0, self.offset, self.len, self.address, self.pieces])
    }

    /// Decodes content; none: the end of the chunk overflows 64 bits.
    pub fn decode(content: &[u8; CONTENT]) -> Option<Chunk> {
        let [numbers, region, key, offset, len, address, pieces] = words(content);
        offset.checked_add(len)?;
        Some(Chunk {
            number: numbers as u32,
            ack: (numbers >> 32) as u32,
            region: RegionId(region),
            key: Key(key),
            offset,
            len,
            address,
            pieces,
        })
    }
}

/// Decodes the value and the content of the cell of a chunk.
///
/// # Errors
/// There is no such chunk.
pub fn decode_chunk(value: u32, content: &[u8; CONTENT]) -> Result<(About, Chunk), String> {
    let both = About::decode(value).zip(Chunk::decode(content));
    both.ok_or_else(|| "broke the protocol: impossible chunk".into())
}

/// Bytes in a bounce buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Their start in the bounce buffer.
    pub start: u32,
    /// For a chunk its [`About::name`]; for a packet a question that its reader answers, or zero.
    pub of: u32,
    /// Their offset in the chunk.
    pub at: u64,
}

impl Range {
    pub fn encode(&self) -> [u8; CONTENT] {
        of_words([u64::from(self.start) | u64::from(self.of) << 32, self.at, 0, 0, 0, 0, 0])
    }

    pub fn decode(content: &[u8; CONTENT]) -> Range {
        let [first, at, ..] = words(content);
        Range { start: first as u32, of: (first >> 32) as u32, at }
    }
}

/// The content of a consumed cell, set aside to be handled later ([`super::aside`]).
#[derive(Debug)]
pub enum Aside {
    Packet(Vec<u8>),
    Chunk(About, Chunk),
    /// Bytes of a chunk that was set aside as well, or has no receive region yet.
    Part(Range, Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_chunk_cell_survives_its_encoding() {
        for &method in Method::ALL {
            let (is_measured, crossed) = (method == Method::Cma, method == Method::Bounce);
            let about = About { name: 0xfedc, method, is_measured, crossed };
            assert_eq!(About::decode(about.encode()), Some(about));
        }
        assert_eq!(About::decode(3 << 16), None);
    }

    #[test]
    fn a_chunk_survives_its_encoding() {
        let chunk = Chunk {
            number: 1,
            ack: 2,
            region: RegionId(3),
            key: Key(4),
            offset: 5,
            len: 6,
            address: 7,
            pieces: 8,
        };
        assert_eq!(Chunk::decode(&chunk.encode()), Some(chunk));
        assert_eq!(Chunk::decode(&Chunk { offset: u64::MAX, ..chunk }.encode()), None);
    }
}
