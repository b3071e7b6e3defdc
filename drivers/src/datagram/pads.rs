//! One-time pads that encrypt tags: one secret number for each datagram of a direction.
//!
//! Pads do not depend on the content of a datagram, so they are computed in advance (as the pad derivation
//! of UMAC: RFC 4418, section 3.3, where one block of AES serves two tags of 64 bits): one call encrypts
//! several blocks, which the processor works on at the same time, and a tag costs one access to a cached
//! line.

use aes::cipher::{BlockEncrypt, KeyInit};
use aes::{Aes128, Block};

/// Number of pads that are kept.
const KEPT: usize = 16;
/// Pads in a block of AES.
const IN_BLOCK: usize = 2;
/// Pads computed with one call at most.
pub const AT_ONCE: usize = 64;

/// The pads of one direction of a link.
pub struct Pads {
    kept: [u64; KEPT],
    /// Sequence number of the first kept pad, a multiple of their count.
    first: u64,
    cipher: Aes128,
}

impl Pads {
    /// Creates the pads of this key.
    pub fn new(key: [u8; 16]) -> Pads {
        let mut pads = Pads { kept: [0; KEPT], first: 0, cipher: Aes128::new(&key.into()) };
        pads.keep(0);
        pads
    }

    /// The pad of the next datagram that this side sends; sequence numbers are consecutive.
    #[inline]
    pub fn next(&mut self, sequence: u64) -> u64 {
        if !self.has(sequence) {
            self.keep(sequence);
        }
        self.kept[sequence as usize % KEPT]
    }

    /// The pad of a received datagram with this sequence number.
    #[inline]
    pub fn of(&self, sequence: u64) -> u64 {
        if self.has(sequence) { self.kept[sequence as usize % KEPT] } else { self.make(sequence) }
    }

    /// Records a datagram with the right tag: the next ones have numbers near it. Only such a datagram
    /// moves the kept pads, so that forged numbers do not make other tags more expensive.
    #[inline]
    pub fn came(&mut self, sequence: u64) {
        if sequence >= self.first + KEPT as u64 {
            self.keep(sequence);
        }
    }

    /// The pads of datagrams with consecutive numbers, at most [`AT_ONCE`].
    pub fn run(&self, from: u64, count: usize) -> [u64; AT_ONCE] {
        let mut blocks = [Block::from([0; 16]); AT_ONCE / IN_BLOCK + 1];
        let skipped = from as usize % IN_BLOCK;
        let used = (skipped + count.min(AT_ONCE)).div_ceil(IN_BLOCK);
        self.fill(from / IN_BLOCK as u64, &mut blocks[..used]);
        std::array::from_fn(|at| half(&blocks[(skipped + at) / IN_BLOCK], skipped + at))
    }

    #[inline]
    fn has(&self, sequence: u64) -> bool {
        sequence.wrapping_sub(self.first) < KEPT as u64
    }

    #[cold]
    fn keep(&mut self, sequence: u64) {
        let mut blocks = [Block::from([0; 16]); KEPT / IN_BLOCK];
        self.first = sequence - sequence % KEPT as u64;
        self.fill(self.first / IN_BLOCK as u64, &mut blocks);
        self.kept = std::array::from_fn(|at| half(&blocks[at / IN_BLOCK], at));
    }

    #[cold]
    fn make(&self, sequence: u64) -> u64 {
        let mut block = [Block::from([0; 16])];
        self.fill(sequence / IN_BLOCK as u64, &mut block);
        half(&block[0], sequence as usize)
    }

    /// Encrypts consecutive numbers with AES.
    fn fill(&self, first: u64, blocks: &mut [Block]) {
        for (number, block) in (first..).zip(&mut *blocks) {
            block[..8].copy_from_slice(&number.to_le_bytes());
        }
        self.cipher.encrypt_blocks(blocks);
    }
}

#[inline]
fn half(block: &Block, sequence: usize) -> u64 {
    let (halves, _) = block.as_chunks::<8>();
    u64::from_le_bytes(halves[sequence % IN_BLOCK])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: half of the AES of half of the number.
    fn defined(key: [u8; 16], sequence: u64) -> u64 {
        let mut block = [0; 16];
        block[..8].copy_from_slice(&(sequence / 2).to_le_bytes());
        let mut block = Block::from(block);
        Aes128::new(&key.into()).encrypt_block(&mut block);
        let half = if sequence.is_multiple_of(2) { &block[..8] } else { &block[8..] };
        u64::from_le_bytes(half.try_into().expect("eight bytes"))
    }

    #[test]
    fn each_way_gives_the_pads_that_are_defined() {
        let key = [9; 16];
        let (mut sender, mut receiver) = (Pads::new(key), Pads::new(key));
        // Consecutive numbers, jumps forward, and jumps back.
        for sequence in [0, 1, 2, 15, 16, 17, 40, 39, 5, 1 << 40, 41, 47, 48, u64::MAX] {
            assert_eq!(receiver.of(sequence), defined(key, sequence), "{sequence}");
            assert_eq!(sender.next(sequence), defined(key, sequence), "{sequence}");
            if sequence < 1 << 40 {
                receiver.came(sequence);
            }
        }
        for (from, count) in [(0, 64), (1, 64), (7, 1), (8, 5)] {
            let run = sender.run(from, count);
            (0..count).for_each(|at| assert_eq!(run[at], defined(key, from + at as u64)));
        }
    }

    #[test]
    fn forged_datagrams_do_not_move_the_kept_pads() {
        let pads = Pads::new([9; 16]);
        pads.of(1 << 50);
        assert!(pads.has(0) && pads.has(15) && !pads.has(16));
    }
}
