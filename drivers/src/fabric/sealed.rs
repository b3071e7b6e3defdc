//! Messages of encrypted links. The content behind the prefix is encrypted in its slot, and followed by a tag
//! that also covers the prefix. The number of a message on its link determines its nonce; fabrics deliver
//! messages in order, so the number is not sent.
//!
//! An adapter moves chunks without the processor, which therefore cannot encrypt them on the way. So the
//! memory of the application is neither registered for peers nor exposed to them on such a link: chunks
//! travel in parts.

use super::message::PREFIX;
use crate::opening::Opened;
use nmad_seal::{Broken, Sealer, TAG, Unsealer};

/// Encrypts the messages that one side sends on a link.
pub(crate) struct Sealing(Box<Sealer>);

/// Decrypts the messages that one side receives on a link.
pub(crate) struct Unsealing {
    unsealer: Box<Unsealer>,
    /// Number of the next message.
    number: u64,
}

/// Creates both for a new link; none: it is not encrypted.
pub(crate) fn directions(opened: &Opened) -> Option<(Sealing, Unsealing)> {
    let (sealer, unsealer) = opened.keys.as_ref()?.directions(opened.is_attempt);
    Some((Sealing(Box::new(sealer)), Unsealing { unsealer: Box::new(unsealer), number: 0 }))
}

impl Sealing {
    /// Encrypts the next message, whose first `len` bytes are complete; returns its length with the tag.
    ///
    /// # Errors
    /// The link has sent 2^64 messages.
    pub(crate) fn seal(&mut self, message: &mut [u8], len: usize) -> Result<usize, String> {
        let (prefix, content) = message.split_at_mut(PREFIX);
        let (content, rest) = content.split_at_mut(len - PREFIX);
        let tag = self.0.seal(prefix, content).map_err(|Broken| "has used up the numbers of its messages")?;
        rest[..TAG].copy_from_slice(&tag);
        Ok(len + TAG)
    }
}

impl Unsealing {
    /// Decrypts the content of the next message in place.
    ///
    /// # Errors
    /// The peer has not sent this message, or not at this place in the order.
    pub(crate) fn open<'c>(&mut self, prefix: &[u8], content: &'c mut [u8]) -> Result<&'c mut [u8], String> {
        let number = self.number;
        self.number += 1;
        self.unsealer.open(number, prefix, content).ok_or_else(|| {
            "has lost its link: a message was changed on its way, or another host sent it (who can write to \
             this network?); its data is not used"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Ends;
    use nmad_seal::exchange::Scalar;
    use nmad_wire::{Cipher, Hello, Offer};

    /// Both directions of both sides of a link.
    fn link() -> [(Sealing, Unsealing); 2] {
        let scalars = [4, 5].map(|byte| Scalar::new([byte; 32]));
        let [ours, theirs] =
            scalars.each_ref().map(|one| Offer { cipher: Cipher::Aes256Gcm, key: one.public() });
        let hello = Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], offer: Some(ours), mac: [0; 32] };
        let ends = Ends { hello, rail: 0, nonce: [2; 32], offer: Some(theirs) };
        let side = |is_attempt: bool| {
            let (scalar, key) = if is_attempt { (&scalars[0], theirs.key) } else { (&scalars[1], ours.key) };
            let keys = ends.keys(&[3; 32], scalar, &key);
            directions(&Opened::of(ends, keys, is_attempt)).expect("both sides encrypt")
        };
        [side(true), side(false)]
    }

    /// Encrypts a message with this content.
    fn message(sealing: &mut Sealing, content: &[u8]) -> Vec<u8> {
        let mut bytes = [&[9; PREFIX], content, &[0; TAG]].concat();
        let len = sealing.seal(&mut bytes, PREFIX + content.len()).expect("the first of 2^64");
        assert_eq!(len, bytes.len());
        bytes
    }

    fn open(unsealing: &mut Unsealing, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        let (prefix, content) = bytes.split_at_mut(PREFIX);
        unsealing.open(prefix, content).ok().map(|content| content.to_vec())
    }

    #[test]
    fn messages_open_in_the_order_in_which_they_were_sent() {
        let [(mut sealing, mut own), (_, mut peers)] = link();
        let all = [&b"the first text"[..], b"", b"another"].map(|text| (text, message(&mut sealing, text)));
        assert!(!all[0].1.windows(4).any(|some| some == b"text"), "in the clear");
        assert_eq!(open(&mut own, &all[0].1), None, "reflected");
        for (text, bytes) in &all {
            assert_eq!(open(&mut peers, bytes).as_deref(), Some(*text));
        }
        assert_eq!(open(&mut peers, &all[0].1), None, "repeated");
    }

    #[test]
    fn changed_shortened_and_missing_messages_do_not_open() {
        let changes = |bytes: &[u8]| {
            let flipped = (0..8 * bytes.len()).map(|bit| {
                let mut changed = bytes.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                changed
            });
            let short = (PREFIX..bytes.len()).map(|len| bytes[..len].to_vec());
            flipped.chain(short).collect::<Vec<_>>()
        };
        let [(mut sealing, _), _] = link();
        let (first, second) = (message(&mut sealing, b"one"), message(&mut sealing, b"two"));
        for changed in changes(&first).iter().chain([&second]) {
            let [_, (_, mut peers)] = link();
            assert_eq!(open(&mut peers, changed), None);
        }
    }
}
