//! The cipher of one direction of a link.
//!
//! The nonce of a record is its number, from 0, xored into the iv that is derived together with the key (as
//! in TLS 1.3, RFC 8446, section 5.3). No number is used twice with one key: a link that opens again has
//! other keys, and data that is sent again is encrypted again, under another number. After [`EPOCH`] records
//! the key is replaced: the next secret is derived from the present one, which is then overwritten (the
//! cipher's own copy of the key is not). So at most 16 GiB of TCP records are encrypted with one key: the
//! advantage of an attacker against AES-GCM, (blocks)^2 / 2^129, stays below 2^-68 for each key; 2^-65 for
//! datagrams of 64 KiB.

use super::expand::expand;
use nmad_wire::Cipher;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use zeroize::Zeroize;

/// Bytes of a tag, which follows the encrypted data.
pub const TAG: usize = 16;
/// Records under one key.
pub const EPOCH: u64 = 1 << 20;
/// Number of forged records after which a direction accepts no record any more: the bound of DTLS 1.3
/// (RFC 9147, section 4.5.3) for one key, here for all keys of a direction together.
const FORGED_MAX: u64 = 1 << 36;

/// The error for a record that cannot be encrypted: all numbers are used, or the record is longer than the
/// cipher permits, which no caller's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// A cipher with a key.
pub(super) struct Aead {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl Aead {
    pub(super) fn new(cipher: Cipher, key: &[u8; 32], iv: [u8; 12]) -> Aead {
        let algorithm = match cipher {
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let Ok(key) = UnboundKey::new(algorithm, key) else { unreachable!("both ciphers have keys of 32 B") };
        Aead { key: LessSafeKey::new(key), iv }
    }

    #[inline]
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, other)| *byte ^= other);
        Nonce::assume_unique_for_key(nonce)
    }

    #[inline]
    pub(super) fn seal(&self, number: u64, aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG], Broken> {
        let tag = self.key.seal_in_place_separate_tag(self.nonce(number), Aad::from(aad), data);
        let mut bytes = [0; TAG];
        bytes.copy_from_slice(tag.map_err(|_| Broken)?.as_ref());
        Ok(bytes)
    }

    #[inline]
    fn open(&self, number: u64, aad: &[u8], data: &mut [u8], tag: &[u8; TAG]) -> bool {
        let (nonce, aad, tag) = (self.nonce(number), Aad::from(aad), Tag::from(*tag));
        self.key.open_in_place_separate_tag(nonce, aad, tag, data, 0..).is_ok()
    }
}

/// The key of one epoch, and the secret from which the next epoch is derived.
struct Epoch {
    number: u64,
    cipher: Cipher,
    secret: [u8; 32],
    aead: Aead,
}

impl Epoch {
    fn new(number: u64, cipher: Cipher, secret: [u8; 32]) -> Epoch {
        let mut key: [u8; 32] = expand(&secret, b"NewMadeleine seal, key", &[]);
        let aead = Aead::new(cipher, &key, expand(&secret, b"NewMadeleine seal, nonce", &[]));
        key.zeroize();
        Epoch { number, cipher, secret, aead }
    }

    fn next(&self) -> Epoch {
        let secret = expand(&self.secret, b"NewMadeleine seal, next", &[]);
        Epoch::new(self.number + 1, self.cipher, secret)
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

/// The number of one record, with the key that encrypts or decrypts it. Several threads use one each at the
/// same time; the use consumes it, so no number is used for two records.
pub struct Number<'k> {
    aead: &'k Aead,
    number: u64,
}

impl Number<'_> {
    /// Encrypts the record in place, like [`Sealer::seal`].
    ///
    /// # Errors
    /// See [`Broken`].
    #[inline]
    pub fn seal(self, aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG], Broken> {
        self.aead.seal(self.number, aad, data)
    }

    /// Decrypts the record in place, like [`Unsealer::open_apart`].
    #[inline]
    pub fn open(self, aad: &[u8], data: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.aead.open(self.number, aad, data, tag)
    }
}

/// Takes the next `count` numbers, or fewer where the key changes.
fn take<'k>(next: &mut u64, epoch: &'k Epoch, count: usize) -> impl Iterator<Item = Number<'k>> + use<'k> {
    let end = (epoch.number + 1).saturating_mul(EPOCH).min(next.saturating_add(count as u64)).max(*next);
    let first = std::mem::replace(next, end);
    (first..end).map(|number| Number { aead: &epoch.aead, number })
}

/// Encrypts the records that one side sends on a link.
pub struct Sealer {
    epoch: Epoch,
    number: u64,
}

impl Sealer {
    pub(super) fn new(cipher: Cipher, secret: [u8; 32]) -> Sealer {
        Sealer { epoch: Epoch::new(0, cipher, secret), number: 0 }
    }

    /// The cipher.
    pub fn cipher(&self) -> Cipher {
        self.epoch.cipher
    }

    /// The number of the next record.
    #[inline]
    pub fn next(&self) -> u64 {
        self.number
    }

    /// Encrypts the next record in place, and returns its tag, which also covers `aad`.
    ///
    /// # Errors
    /// See [`Broken`].
    #[inline]
    pub fn seal(&mut self, aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG], Broken> {
        self.renew();
        let behind = self.number.checked_add(1).ok_or(Broken)?;
        let tag = self.epoch.aead.seal(self.number, aad, data)?;
        self.number = behind;
        Ok(tag)
    }

    /// Takes the numbers of the next `count` records, or of fewer where the key changes; none if all are
    /// used.
    pub fn numbers(&mut self, count: usize) -> impl Iterator<Item = Number<'_>> {
        self.renew();
        take(&mut self.number, &self.epoch, count)
    }

    /// Replaces the key at the end of its epoch.
    #[inline]
    fn renew(&mut self) {
        if self.number / EPOCH != self.epoch.number {
            self.epoch = self.epoch.next();
        }
    }
}

/// Decrypts the records that one side receives on a link.
pub struct Unsealer {
    /// The epoch before the present one, for datagrams that arrive late.
    before: Option<Epoch>,
    epoch: Epoch,
    /// The epoch after the present one, derived when the first record with a number of that epoch arrives.
    next: Option<Epoch>,
    /// Number of records with a wrong tag.
    forged: u64,
    /// Number of the next record, where records arrive in order.
    number: u64,
}

impl Unsealer {
    pub(super) fn new(cipher: Cipher, secret: [u8; 32]) -> Unsealer {
        Unsealer { before: None, epoch: Epoch::new(0, cipher, secret), next: None, forged: 0, number: 0 }
    }

    /// Decrypts the next record like [`Unsealer::open`], where records arrive in order: after a wrong tag the
    /// caller must end the link.
    #[inline]
    pub fn open_next<'d>(&mut self, aad: &[u8], sealed: &'d mut [u8]) -> Option<&'d mut [u8]> {
        self.number += 1;
        self.open(self.number - 1, aad, sealed)
    }

    /// Decrypts the next record like [`Unsealer::open_apart`], where records arrive in order: after a wrong
    /// tag the caller must end the link.
    #[inline]
    pub fn open_next_apart(&mut self, aad: &[u8], data: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.number += 1;
        self.open_apart(self.number - 1, aad, data, tag)
    }

    /// Takes the numbers of the next `count` records, where records arrive in order; fewer, or none, where
    /// the key changes: only [`Unsealer::open_next`] and [`Unsealer::open_next_apart`] change it. After a
    /// wrong tag the caller must end the link.
    pub fn numbers(&mut self, count: usize) -> impl Iterator<Item = Number<'_>> {
        let count = if self.number / EPOCH == self.epoch.number { count } else { 0 };
        take(&mut self.number, &self.epoch, count)
    }

    /// Decrypts the record with this number in place; its tag follows its data. `None` if the peer did not
    /// send this record with this `aad` under this number. The caller must refuse a number that was received
    /// before.
    #[inline]
    pub fn open<'d>(&mut self, number: u64, aad: &[u8], sealed: &'d mut [u8]) -> Option<&'d mut [u8]> {
        let Some((data, tag)) = sealed.split_last_chunk_mut::<TAG>() else {
            self.forged += 1;
            return None;
        };
        self.open_apart(number, aad, data, tag).then_some(data)
    }

    /// Decrypts a record like [`Unsealer::open`], with its tag apart from its data; returns whether the peer
    /// has sent it. If not, the bytes of `data` have no meaning.
    #[inline]
    pub fn open_apart(&mut self, number: u64, aad: &[u8], data: &mut [u8], tag: &[u8; TAG]) -> bool {
        if number / EPOCH != self.epoch.number || self.forged >= FORGED_MAX {
            return self.open_elsewhere(number, aad, data, tag);
        }
        let is_open = self.epoch.aead.open(number, aad, data, tag);
        self.forged += u64::from(!is_open);
        is_open
    }

    /// Decrypts a record of another epoch than the present one.
    #[cold]
    fn open_elsewhere(&mut self, number: u64, aad: &[u8], data: &mut [u8], tag: &[u8; TAG]) -> bool {
        if self.forged >= FORGED_MAX {
            return false;
        }
        let wanted = number / EPOCH;
        let is_next = wanted == self.epoch.number + 1;
        if is_next && self.next.is_none() {
            self.next = Some(self.epoch.next());
        }
        let epoch = if is_next { &self.next } else { &self.before };
        let epoch = epoch.as_ref().filter(|epoch| epoch.number == wanted);
        let is_open = epoch.is_some_and(|epoch| epoch.aead.open(number, aad, data, tag));
        match is_open {
            false => self.forged += 1,
            true if is_next => {
                if let Some(next) = self.next.take() {
                    self.before = Some(std::mem::replace(&mut self.epoch, next));
                }
            }
            true => {}
        }
        is_open
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are omitted.
        f.debug_struct("Sealer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Unsealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are omitted.
        f.debug_struct("Unsealer").field("epoch", &self.epoch.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(cipher: Cipher) -> (Sealer, Unsealer) {
        (Sealer::new(cipher, [3; 32]), Unsealer::new(cipher, [3; 32]))
    }

    fn sealed(sealer: &mut Sealer, aad: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = data.to_vec();
        let tag = sealer.seal(aad, &mut bytes).expect("it is short");
        [bytes, tag.to_vec()].concat()
    }

    #[test]
    fn a_record_is_opened_unchanged_under_its_number_only() {
        for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let (mut sealer, mut unsealer) = pair(cipher);
            for number in 0..40 {
                let data: Vec<u8> = (0..number as u8).collect();
                let record = sealed(&mut sealer, b"header", &data);
                for bit in 0..8 * record.len() {
                    let mut changed = record.clone();
                    changed[bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(unsealer.open(number, b"header", &mut changed), None, "bit {bit}");
                }
                for len in 0..record.len() {
                    assert_eq!(
                        unsealer.open(number, b"header", &mut record[..len].to_vec()),
                        None,
                        "{len} B"
                    );
                }
                assert_eq!(unsealer.open(number, b"Header", &mut record.clone()), None);
                assert_eq!(unsealer.open(number + 1, b"header", &mut record.clone()), None);
                assert_eq!(unsealer.open(number, b"header", &mut record.clone()).expect("right"), data);
            }
        }
    }

    #[test]
    fn keys_change_and_late_records_of_the_key_before_are_opened() {
        let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
        let early = sealed(&mut sealer, &[], b"early");
        sealer.number = EPOCH - 1;
        let last = sealed(&mut sealer, &[], b"last");
        let first = sealed(&mut sealer, &[], b"first");
        assert_eq!(sealer.epoch.number, 1);
        assert_ne!(sealer.epoch.secret, unsealer.epoch.secret);
        assert_eq!(unsealer.open(EPOCH, &[], &mut last.clone()), None);
        assert_eq!(unsealer.epoch.number, 0, "a forged record changes no key");
        assert_eq!(unsealer.open(EPOCH, &[], &mut first.clone()).expect("right"), b"first");
        assert_eq!(unsealer.open(EPOCH - 1, &[], &mut last.clone()).expect("late"), b"last");
        assert_eq!(unsealer.open(0, &[], &mut early.clone()).expect("late"), b"early");
        assert_eq!(unsealer.open(3 * EPOCH, &[], &mut first.clone()), None, "no key of the far future");
        sealer.number = 2 * EPOCH;
        let second = sealed(&mut sealer, &[], b"second");
        assert_eq!(unsealer.open(2 * EPOCH, &[], &mut second.clone()).expect("right"), b"second");
        assert_eq!(unsealer.open(0, &[], &mut early.clone()), None, "that key is erased");
    }

    #[test]
    fn numbers_taken_at_once_are_those_of_the_next_records_and_end_with_their_key() {
        let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
        (sealer.number, unsealer.number) = (EPOCH - 3, EPOCH - 3);
        let mut records: Vec<[u8; 4]> = (0..5).map(|number| [number; 4]).collect();
        let (before, behind) = records.split_at_mut(3);
        let mut tags = Vec::new();
        for (numbers, records) in [(9, before), (2, behind)] {
            let numbers: Vec<Number<'_>> = sealer.numbers(numbers).collect();
            assert_eq!(numbers.len(), records.len(), "the key changes behind the third");
            for (number, record) in numbers.into_iter().zip(records) {
                tags.push(number.seal(b"head", record).expect("it is short"));
            }
        }
        let last: Vec<Number<'_>> = unsealer.numbers(4).collect();
        assert_eq!(last.len(), 3);
        for (number, (record, tag)) in last.into_iter().zip(records.iter_mut().zip(&tags)).rev() {
            assert!(number.open(b"head", record, tag), "in any order");
        }
        assert_eq!(unsealer.numbers(4).count(), 0, "a record of the next key must arrive first");
        assert!(unsealer.open_next_apart(b"head", &mut records[3], &tags[3]));
        let mut next = unsealer.numbers(1);
        assert!(next.next().is_some_and(|number| number.open(b"head", &mut records[4], &tags[4])));
        assert!(next.next().is_none());
        drop(next);
        assert!(records.iter().zip(0..).all(|(record, number)| *record == [number; 4]));
        sealer.number = u64::MAX;
        assert_eq!(sealer.seal(&[], &mut [1]), Err(Broken));
        assert_eq!(sealer.numbers(1).count(), 0, "all are used");
    }

    #[test]
    fn forged_records_are_bounded() {
        let (mut sealer, mut unsealer) = pair(Cipher::ChaCha20Poly1305);
        let record = sealed(&mut sealer, &[], b"data");
        unsealer.forged = FORGED_MAX - 1;
        assert_eq!(unsealer.open(0, &[], &mut record[1..].to_vec()), None);
        assert_eq!(unsealer.open(0, &[], &mut record.clone()), None, "nothing is taken any more");
    }

    #[test]
    fn keys_are_not_printed() {
        let text = format!("{:?} {:?}", pair(Cipher::Aes256Gcm).0, pair(Cipher::Aes256Gcm).1);
        assert_eq!(text, "Sealer { number: 0, .. } Unsealer { epoch: 0, .. }");
    }
}
