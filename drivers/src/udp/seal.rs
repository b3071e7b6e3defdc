//! Tags: who does not see a link's traffic cannot forge a datagram of it.
//!
//! A tag is half of the AES-128 of the datagram's number, place and length, one block, under a key of the
//! link and direction that follows from the secret of the job and both nonces of the handshake. AES is a
//! pseudo-random function of a single block, so a tag tells nothing of the next one. It covers headers, not
//! data: a sender off the path cannot inject anything, whoever sits on the path can change data, as in the
//! stream of a TCP rail. Repetitions are dropped by [`super::window`].

use super::datagram::Datagram;
use super::greeting;
use super::window::Window;
use crate::handshake::Ends;
use aes::cipher::{BlockEncrypt, KeyInit};
use aes::{Aes128, Block};

/// Tags made or checked with one call; the processor works on several at a time.
pub const AT_ONCE: usize = 64;

/// Makes the tags of one direction and checks those of the other.
pub struct Seal {
    ours: Aes128,
    theirs: Aes128,
    sent: u64,
    came: Window,
    secret: [u8; 32],
}

impl Seal {
    /// For a link whose ends have proved themselves.
    pub fn new(ends: &Ends, secret: &[u8; 32], connecting: bool) -> Self {
        let key = |of_connecting: bool| {
            let mut hasher = blake3::Hasher::new_keyed(secret);
            hasher.update(b"NewMadeleine datagrams");
            hasher.update(&[u8::from(of_connecting), ends.hello.rail, ends.rail]);
            hasher.update(&ends.hello.from.to_le_bytes());
            hasher.update(&ends.hello.to.to_le_bytes());
            hasher.update(&ends.hello.nonce);
            hasher.update(&ends.nonce);
            let mut key = [0; 16];
            hasher.finalize_xof().fill(&mut key);
            Aes128::new(&key.into())
        };
        Seal {
            ours: key(connecting),
            theirs: key(!connecting),
            sent: 0,
            came: Window::new(),
            secret: *secret,
        }
    }

    /// Whether a datagram without the link's tag is a greeting of somebody who knows the secret.
    pub fn is_greeting(&self, bytes: &[u8]) -> bool {
        greeting::is_one(bytes) && greeting::decode(bytes, &self.secret) != greeting::Heard::Stranger
    }

    /// The sequence number of the next datagram.
    #[inline]
    pub fn next(&self) -> u64 {
        self.sent
    }

    /// The tag of the next datagram.
    #[inline]
    pub fn tag(&mut self, datagram: &Datagram) -> u64 {
        let mut block = Block::from(datagram.block(self.sent));
        self.sent += 1;
        self.ours.encrypt_block(&mut block);
        first_half(&block)
    }

    /// The tags of the next datagrams, at most [`AT_ONCE`].
    pub fn tags(&mut self, datagrams: &[Datagram]) -> [u64; AT_ONCE] {
        let mut blocks = [Block::from([0; 16]); AT_ONCE];
        for (block, datagram) in blocks.iter_mut().zip(datagrams) {
            *block = datagram.block(self.sent).into();
            self.sent += 1;
        }
        self.ours.encrypt_blocks(&mut blocks[..datagrams.len()]);
        blocks.map(|block| first_half(&block))
    }

    /// Whether a datagram bears the right tag; its number then counts as taken.
    #[inline]
    pub fn check(&mut self, tag: u64, datagram: &Datagram) -> Check {
        let sequence = self.came.expand(datagram.sequence);
        let mut block = Block::from(datagram.block(sequence));
        self.theirs.encrypt_block(&mut block);
        self.judge(tag, first_half(&block), sequence)
    }

    /// Whether datagrams, at most [`AT_ONCE`], bear the right tags.
    pub fn check_all(&mut self, all: &[(u64, Datagram)], verdicts: &mut [Check; AT_ONCE]) {
        let mut blocks = [Block::from([0; 16]); AT_ONCE];
        let mut sequences = [0; AT_ONCE];
        for (place, (_, datagram)) in all.iter().enumerate().take(AT_ONCE) {
            sequences[place] = self.came.expand(datagram.sequence);
            blocks[place] = datagram.block(sequences[place]).into();
        }
        self.theirs.encrypt_blocks(&mut blocks[..all.len()]);
        for (place, (tag, _)) in all.iter().enumerate().take(AT_ONCE) {
            verdicts[place] = self.judge(*tag, first_half(&blocks[place]), sequences[place]);
        }
    }

    #[inline]
    fn judge(&mut self, tag: u64, right: u64, sequence: u64) -> Check {
        // One comparison of registers takes the same time wherever the difference is.
        if tag != right {
            Check::Forged
        } else if self.came.take(sequence) {
            Check::Right
        } else {
            Check::Repeated
        }
    }
}

/// What a tag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The peer made it, and it is new.
    Right,
    /// Nobody who knows the key made it.
    Forged,
    /// It came before, or is too old to tell.
    Repeated,
}

fn first_half(block: &[u8]) -> u64 {
    block.first_chunk().map_or(0, |half| u64::from_le_bytes(*half))
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without its keys.
        f.debug_struct("Seal").field("sent", &self.sent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_wire::Hello;

    fn pair() -> (Seal, Seal) {
        let hello = Hello { from: 0, to: 1, rail: 0, nonce: [1; 32] };
        let ends = Ends { hello, rail: 0, nonce: [2; 32] };
        (Seal::new(&ends, &[3; 32], true), Seal::new(&ends, &[3; 32], false))
    }

    #[test]
    fn what_one_side_tags_the_other_takes_once() {
        let (mut a, mut b) = pair();
        for n in 0..200 {
            let datagram = Datagram::part(a.next() as u32, n, 0, 8);
            let tag = a.tag(&datagram);
            assert_eq!(b.check(tag ^ 1, &datagram), Check::Forged);
            let longer = Datagram { len: datagram.len + 1, ..datagram };
            assert_eq!(b.check(tag, &longer), Check::Forged);
            assert_eq!(a.check(tag, &datagram), Check::Forged, "reflected");
            assert_eq!(b.check(tag, &datagram), Check::Right);
            assert_eq!(b.check(tag, &datagram), Check::Repeated);
        }
    }

    #[test]
    fn many_at_once_are_as_one_after_the_other() {
        let (mut a, mut b) = pair();
        let all: Vec<_> = (0..AT_ONCE as u16).map(|n| Datagram::part(u32::from(n), 5, n, 100)).collect();
        let tags = a.tags(&all);
        let mut tagged: Vec<_> = tags.into_iter().zip(all).collect();
        tagged[7].0 ^= 1 << 40;
        let mut verdicts = [Check::Repeated; AT_ONCE];
        b.check_all(&tagged, &mut verdicts);
        let forged: Vec<_> = (0..AT_ONCE).filter(|n| verdicts[*n] != Check::Right).collect();
        assert_eq!((forged, verdicts[7]), (vec![7], Check::Forged));
    }
}
