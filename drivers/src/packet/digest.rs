//! Universal hash of a frame's data, which is part of the frame's tag.
//!
//! A frame on its way through kernels and virtual interfaces has no checksum, so its tag covers the data.
//! The tag of a link ([`crate::datagram::seal`]) encrypts a hash with a pseudo-random number for each
//! sequence number; NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO 1999, section 4) of the
//! data, under a key of the job, is added to that hash. A changed frame, by accident or by intent, passes
//! with a probability of 2^-32 (`docs/udp.md`). NH costs two multiplications for each 16 bytes and no
//! lookup.

/// Words of a block. The last block is padded with zeroes; the length is in the header, which the tag
/// covers.
const WORDS: usize = 8;
const BLOCK: usize = 4 * WORDS;

/// The key of a job.
pub struct Digest {
    key: Vec<[u32; WORDS]>,
}

impl Digest {
    /// Creates a key for data of at most `len` bytes.
    pub fn new(secret: &[u8; 32], len: usize) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(b"NewMadeleine data of frames");
        let mut bytes = vec![0; len.next_multiple_of(BLOCK)];
        hasher.finalize_xof().fill(&mut bytes);
        let (blocks, _) = bytes.as_chunks::<BLOCK>();
        Digest { key: blocks.iter().map(words).collect() }
    }

    /// Returns the hash of `data`; bytes beyond the length of the key are ignored.
    #[inline]
    pub fn of(&self, data: &[u8]) -> u64 {
        let (blocks, rest) = data.as_chunks::<BLOCK>();
        let mut sums = [0; WORDS / 2];
        blocks.iter().zip(&self.key).for_each(|(block, key)| add(&mut sums, block, key));
        if let Some(key) = self.key.get(blocks.len()).filter(|_| !rest.is_empty()) {
            add(&mut sums, &filled_up(rest), key);
        }
        total(&sums)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest")
    }
}

#[inline]
fn total(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |sum, part| sum.wrapping_add(*part))
}

/// Pads an incomplete block with zeroes, word by word: for so few bytes, a copy of variable length would
/// take longer than the hash.
#[inline]
fn filled_up(rest: &[u8]) -> [u8; BLOCK] {
    let (eights, tail) = rest.as_chunks::<8>();
    let mut block = [0; BLOCK];
    let (places, _) = block.as_chunks_mut::<8>();
    places.iter_mut().zip(eights).for_each(|(place, eight)| *place = *eight);
    if let Some(place) = places.get_mut(eights.len()) {
        place.iter_mut().zip(tail).for_each(|(place, byte)| *place = *byte);
    }
    block
}

#[inline]
fn words(block: &[u8; BLOCK]) -> [u32; WORDS] {
    let (words, _) = block.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

/// Adds a block to the sums. Words four apart are paired, which suits vector units.
#[inline]
fn add(sums: &mut [u64; WORDS / 2], block: &[u8; BLOCK], key: &[u32; WORDS]) {
    let data = words(block);
    for (at, sum) in sums.iter_mut().enumerate() {
        let low = data[at].wrapping_add(key[at]);
        let high = data[at + WORDS / 2].wrapping_add(key[at + WORDS / 2]);
        *sum = sum.wrapping_add(u64::from(low) * u64::from(high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts_at_each_length() {
        let digest = Digest::new(&[7; 32], 100);
        for len in 1..=100 {
            let data: Vec<u8> = (0..len).map(|at| (at * 37) as u8).collect();
            let right = digest.of(&data);
            for at in 0..len {
                let mut changed = data.clone();
                changed[at] ^= 1 << (at % 8);
                assert_ne!(digest.of(&changed), right, "byte {at} of {len}");
            }
        }
        assert_eq!(digest.of(&[]), 0);
    }

    /// The vector of `docs/udp.md`, which an independent implementation computed.
    #[test]
    fn it_is_that_of_the_documentation() {
        let digest = Digest::new(&std::array::from_fn(|at| at as u8), 64);
        let data: Vec<u8> = (0..40).collect();
        assert_eq!(digest.of(&data), 0xb162_b05d_813e_0896);
    }

    #[test]
    fn it_is_the_published_sum_under_the_key_of_the_secret() {
        let digest = Digest::new(&[7; 32], 64);
        let data: Vec<u8> = (0..64).collect();
        let word = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|n| data[at * 4 + n])));
        let key = |at: usize| u64::from(digest.key[at / 8][at % 8]);
        let half = |at: usize| (word(at) + key(at)) & 0xffff_ffff;
        let sum = [0, 1, 2, 3, 8, 9, 10, 11]
            .iter()
            .fold(0u64, |sum, &at| sum.wrapping_add(half(at) * half(at + 4)));
        assert_eq!(digest.of(&data), sum);
        assert_ne!(Digest::new(&[8; 32], 64).of(&data), sum, "another job");
    }
}
