//! Authentication tags: a sender that does not see a link's traffic cannot forge a datagram of it.
//!
//! A tag is a Wegman-Carter MAC (JCSS 22, 1981), as in UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway,
//! CRYPTO 1999; RFC 4418): a universal hash of the message, encrypted with a pseudo-random number that
//! belongs to the datagram's sequence number ([`super::pads`]) and is used once. The hash is NH of UMAC.
//! Here it covers headers (number, index and length), in [`crate::packet::digest`] also data. Keys belong
//! to one link and direction, and are derived from the secret of the job and both nonces of the handshake.
//! `docs/udp.md` has the bound, its proof, test vectors, and why the hash is not POLYVAL or Poly1305.
//!
//! A sender off the path has seen no pad: each attempt succeeds with a probability of 2^-64. An attacker on
//! the path that changes a header before the datagram arrives succeeds with 2^-32; data over UDP it can
//! change anyway, as in the stream of a TCP rail. [`super::window`] drops repetitions.
//!
//! A datagram of an encrypted link has no such tag in its header: its data is encrypted and followed by the
//! tag of the cipher ([`nmad_seal`]).

use super::greeting;
use super::header::{Datagram, LEN};
pub use super::pads::AT_ONCE;
use super::pads::Pads;
use super::window::Window;
use crate::opening::Opened;
use nmad_seal::{Sealer, TAG, Unsealer};

/// The keys of one direction.
struct Keys {
    pads: Pads,
    /// Key of the hash of a header.
    hash: [u32; 2],
}

impl Keys {
    /// NH of a header: one pair of words.
    #[inline]
    fn hash(&self, datagram: &Datagram) -> u64 {
        let [number, place] = datagram.words();
        let (number, place) = (number.wrapping_add(self.hash[0]), place.wrapping_add(self.hash[1]));
        u64::from(number) * u64::from(place)
    }
}

/// Creates the tags of one direction and checks those of the other.
pub struct Seal {
    ours: Keys,
    theirs: Keys,
    sent: u64,
    came: Window,
    secret: [u8; 32],
    /// The ciphers of both directions, if the link is encrypted; the keys of the tags are then unused.
    ciphers: Option<Box<(Sealer, Unsealer)>>,
}

impl Seal {
    /// Derives the keys of a link after its handshake.
    pub fn new(opened: &Opened, secret: &[u8; 32]) -> Self {
        let (ends, connecting) = (&opened.ends, opened.is_attempt);
        let key = |of_connecting: bool| {
            let mut hasher = blake3::Hasher::new_keyed(secret);
            hasher.update(b"NewMadeleine pads and hashes of datagrams");
            hasher.update(&[u8::from(of_connecting), ends.hello.rail, ends.rail]);
            hasher.update(&ends.hello.from.to_le_bytes());
            hasher.update(&ends.hello.to.to_le_bytes());
            hasher.update(&ends.hello.nonce);
            hasher.update(&ends.nonce);
            let (mut pads, mut hash) = ([0; 16], [[0; 4]; 2]);
            let mut bytes = hasher.finalize_xof();
            bytes.fill(&mut pads);
            bytes.fill(hash.as_flattened_mut());
            Keys { pads: Pads::new(pads), hash: hash.map(u32::from_le_bytes) }
        };
        Seal {
            ours: key(connecting),
            theirs: key(!connecting),
            sent: 0,
            came: Window::new(),
            secret: *secret,
            ciphers: opened.directions().map(Box::new),
        }
    }

    /// Returns whether the link is encrypted. If so, [`Seal::encrypt`] and [`Seal::decrypt`] make and check
    /// datagrams instead of the methods for tags in headers.
    #[inline]
    pub fn is_encrypted(&self) -> bool {
        self.ciphers.is_some()
    }

    /// Returns the number of bytes behind the data of a datagram.
    #[inline]
    pub fn behind(&self) -> usize {
        if self.is_encrypted() { TAG } else { 0 }
    }

    /// Writes the header and the tag of the next datagram, and encrypts its data. `staged` has room for the
    /// header, then the data, then room for the tag. For encrypted links only.
    pub fn encrypt(&mut self, datagram: &Datagram, staged: &mut [u8]) {
        let Some(ciphers) = &mut self.ciphers else { return };
        let (head, sealed) = staged.split_at_mut(LEN);
        head.copy_from_slice(&datagram.encode(0));
        let (data, tag) = sealed.split_at_mut(sealed.len() - TAG);
        match ciphers.0.seal(head, data) {
            Ok(right) => tag.copy_from_slice(&right),
            // After 2^64 datagrams. Zeroes are sent instead of the data, and the peer drops the datagram.
            Err(nmad_seal::Broken) => data.fill(0),
        }
        self.sent += 1;
    }

    /// Decrypts a datagram of an encrypted link in place, and marks its number as received; returns its data.
    ///
    /// # Errors
    /// The peer did not send it, or it was received before.
    pub fn decrypt<'b>(&mut self, datagram: &Datagram, bytes: &'b mut [u8]) -> Result<&'b mut [u8], Check> {
        let Some(ciphers) = &mut self.ciphers else { return Err(Check::Forged) };
        let sequence = self.came.expand(datagram.sequence);
        // A flood of repeated datagrams costs no decryption.
        if !self.came.is_new(sequence) {
            return Err(Check::Repeated);
        }
        let (head, sealed) = bytes.split_at_mut(LEN);
        let data = ciphers.1.open(sequence, head, sealed).ok_or(Check::Forged)?;
        self.came.take(sequence);
        Ok(data)
    }

    /// Returns whether a datagram without the link's tag is a handshake message of a sender that knows the
    /// secret.
    pub fn is_greeting(&self, bytes: &[u8]) -> bool {
        greeting::is_one(bytes) && greeting::decode(bytes, &self.secret) != greeting::Decoded::Stranger
    }

    /// The sequence number of the next datagram.
    #[inline]
    pub fn next(&self) -> u64 {
        self.sent
    }

    /// Returns the tag of the next datagram.
    #[inline]
    pub fn tag(&mut self, datagram: &Datagram) -> u64 {
        let pad = self.ours.pads.next(self.sent);
        self.sent += 1;
        pad.wrapping_add(self.ours.hash(datagram))
    }

    /// Returns the tags of the next datagrams, at most [`AT_ONCE`].
    pub fn tags(&mut self, datagrams: &[Datagram]) -> [u64; AT_ONCE] {
        let mut tags = self.ours.pads.run(self.sent, datagrams.len());
        self.sent += datagrams.len() as u64;
        for (tag, datagram) in tags.iter_mut().zip(datagrams) {
            *tag = tag.wrapping_add(self.ours.hash(datagram));
        }
        tags
    }

    /// Checks the tag of a datagram, and marks its number as received if the tag is right.
    #[inline]
    pub fn check(&mut self, tag: u64, datagram: &Datagram) -> Check {
        let sequence = self.came.expand(datagram.sequence);
        let right = self.theirs.pads.of(sequence).wrapping_add(self.theirs.hash(datagram));
        self.judge(tag, right, sequence)
    }

    /// Checks the tags of datagrams, at most [`AT_ONCE`].
    pub fn check_all(&mut self, all: &[(u64, Datagram)], verdicts: &mut [Check; AT_ONCE]) {
        let Some((_, first)) = all.first() else { return };
        let first = self.came.expand(first.sequence);
        let run = self.theirs.pads.run(first, all.len());
        for (place, (tag, datagram)) in all.iter().enumerate().take(AT_ONCE) {
            let sequence = self.came.expand(datagram.sequence);
            // The kernel joins datagrams of one train, mostly in order.
            let in_order = sequence == first.wrapping_add(place as u64);
            let pad = if in_order { run[place] } else { self.theirs.pads.of(sequence) };
            verdicts[place] = self.judge(*tag, pad.wrapping_add(self.theirs.hash(datagram)), sequence);
        }
    }

    #[inline]
    fn judge(&mut self, tag: u64, right: u64, sequence: u64) -> Check {
        // The comparison of two registers takes constant time.
        if tag != right {
            Check::Forged
        } else if self.came.take(sequence) {
            self.theirs.pads.came(sequence);
            Check::Right
        } else {
            Check::Repeated
        }
    }
}

/// Result of checking a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The peer sent the datagram, and it is new.
    Right,
    /// The sender does not know the key.
    Forged,
    /// The datagram was received before, or is too old to tell.
    Repeated,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are omitted.
        f.debug_struct("Seal").field("sent", &self.sent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Ends;
    use nmad_wire::Hello;

    fn pair() -> (Seal, Seal) {
        let hello = Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], offer: None, mac: [0; 32] };
        let ends = Ends { hello, rail: 0, nonce: [2; 32], offer: None };
        [true, false].map(|is_attempt| Seal::new(&Opened::of(ends, None, is_attempt), &[3; 32])).into()
    }

    #[test]
    fn each_tagged_datagram_is_accepted_once() {
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

    /// The vectors of `docs/udp.md`, which an independent implementation computed.
    #[test]
    fn tags_are_those_of_the_documentation() {
        let hello = Hello { from: 2, to: 3, rail: 0, nonce: [1; 32], offer: None, mac: [0; 32] };
        let ends = Ends { hello, rail: 1, nonce: [2; 32], offer: None };
        let secret = std::array::from_fn(|at| at as u8);
        let mut seal = Seal::new(&Opened::of(ends, None, true), &secret);
        let first = Datagram { sequence: 0, number: 5, len: 28, index: 0 };
        let second = Datagram { sequence: 1, number: 6, len: 1452, index: super::super::header::index(1, 3) };
        assert_eq!([first, second].map(|d| seal.tag(&d)), [0xee11_9cfc_9c7a_9678, 0x6eb4_ced5_4320_f31c]);
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

    /// Both sides of an encrypted link.
    fn encrypted(private: [u8; 2]) -> (Seal, Seal) {
        Opened::encrypted(private).map(|side| Seal::new(&side, &[3; 32])).into()
    }

    #[test]
    fn an_encrypted_datagram_is_taken_once_unchanged_and_by_the_other_side_only() {
        let ((mut a, mut b), data) = (encrypted([4, 5]), b"what nobody else may read");
        let mut recorded = Vec::new();
        for n in 0..50 {
            let datagram = Datagram::part(a.next() as u32, n, 0, data.len() + TAG);
            let mut bytes = [&[0; LEN][..], data, &[0; TAG]].concat();
            a.encrypt(&datagram, &mut bytes);
            assert!(!bytes.windows(4).any(|some| data.windows(4).any(|other| some == other)), "in the clear");
            for bit in 0..8 * bytes.len() {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                if let Some((_, datagram)) = Datagram::decode(&changed) {
                    let len = usize::from(datagram.len);
                    assert_eq!(b.decrypt(&datagram, &mut changed[..len]), Err(Check::Forged), "bit {bit}");
                }
            }
            assert_eq!(a.decrypt(&datagram, &mut bytes.clone()), Err(Check::Forged), "reflected");
            recorded.push((datagram, bytes));
        }
        for (datagram, bytes) in recorded.iter().rev() {
            assert_eq!(b.decrypt(datagram, &mut bytes.clone()).expect("in any order"), data);
            assert_eq!(b.decrypt(datagram, &mut bytes.clone()), Err(Check::Repeated));
        }
        let (_, mut other) = encrypted([6, 7]);
        let (datagram, bytes) = &recorded[0];
        assert_eq!(other.decrypt(datagram, &mut bytes.clone()), Err(Check::Forged), "another link");
    }

    /// Random numbers that follow from a seed (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
    fn dice(state: &mut u64) -> usize {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) as usize
    }

    /// Changes some bytes, cuts, lengthens, or puts the beginning of another datagram in front.
    fn mutate(bytes: &mut Vec<u8>, other: &[u8], state: &mut u64) {
        for _ in 0..=dice(state) % 3 {
            let at = dice(state) % bytes.len().max(1);
            match dice(state) % 5 {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_slice(&other[..dice(state) % other.len()]),
                2 => bytes
                    .splice(..at.min(bytes.len()), other[..dice(state) % other.len()].to_vec())
                    .for_each(drop),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (dice(state) % 8)),
            }
        }
    }

    #[test]
    fn of_a_million_changed_datagrams_none_is_taken() {
        let ((mut a, mut b), mut state) = (encrypted([4, 5]), 1);
        let mut pair: [Vec<u8>; 2] = std::array::from_fn(|n| {
            let datagram = Datagram::part(a.next() as u32, n as u32, 0, 60 + TAG);
            let mut bytes = vec![7; LEN + 60 + TAG];
            a.encrypt(&datagram, &mut bytes);
            bytes
        });
        let mut tried = 0;
        while tried < 1_000_000 {
            let mut bytes = pair[tried % 2].clone();
            mutate(&mut bytes, &pair[1 - tried % 2], &mut state);
            if pair.iter().any(|whole| bytes.starts_with(whole)) {
                continue;
            }
            tried += 1;
            if let Some((_, datagram)) = Datagram::decode(&bytes) {
                let len = usize::from(datagram.len);
                assert_eq!(b.decrypt(&datagram, &mut bytes[..len]), Err(Check::Forged), "{tried}");
            }
        }
        for bytes in &mut pair {
            let (_, datagram) = Datagram::decode(bytes).expect("a datagram");
            assert_eq!(b.decrypt(&datagram, bytes).expect("the link goes on"), [7; 60]);
        }
    }
}
