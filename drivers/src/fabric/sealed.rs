//! Messages of encrypted links. The content behind the prefix is encrypted in its slot, and followed by a tag
//! that also covers the prefix. The number of a message on its link determines its nonce; fabrics deliver
//! messages in order, so the number is not sent.
//!
//! An adapter moves chunks without the processor, which therefore cannot encrypt them on the way. So the
//! memory of the application is neither registered for peers nor exposed to them on such a link: chunks
//! travel in parts.

use super::message::PREFIX;
use nmad_seal::{Broken, Sealer, TAG, Unsealer};

/// Encrypts the next message of a link, of which `len` bytes are complete; returns its length with the tag.
///
/// # Errors
/// The link has sent 2^64 messages.
pub(super) fn seal(sealer: &mut Sealer, message: &mut [u8], len: usize) -> Result<usize, String> {
    let (prefix, content) = message.split_at_mut(PREFIX);
    let (content, rest) = content.split_at_mut(len - PREFIX);
    let tag = sealer.seal(prefix, content).map_err(|Broken| "has used up the numbers of its messages")?;
    rest[..TAG].copy_from_slice(&tag);
    Ok(len + TAG)
}

/// Decrypts the content of the next message of a link in place.
///
/// # Errors
/// The peer has not sent this message, or not at this place in the order.
pub(super) fn open<'c>(
    unsealer: &mut Unsealer,
    prefix: &[u8],
    content: &'c mut [u8],
) -> Result<&'c mut [u8], String> {
    unsealer.open_next(prefix, content).ok_or_else(|| {
        "has lost its link: a message was changed on its way, or another host sent it (who can write to this \
         network?); its data is not used"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opening::Opened;

    /// Both directions of both sides of a link.
    fn link() -> [(Sealer, Unsealer); 2] {
        Opened::encrypted([4, 5]).map(|side| side.directions().expect("it is encrypted"))
    }

    /// Encrypts a message with this content.
    fn message(sealer: &mut Sealer, content: &[u8]) -> Vec<u8> {
        let mut bytes = [&[9; PREFIX], content, &[0; TAG]].concat();
        let len = seal(sealer, &mut bytes, PREFIX + content.len()).expect("the first of 2^64");
        assert_eq!(len, bytes.len());
        bytes
    }

    /// The content of a message, if it is accepted.
    fn opened(unsealer: &mut Unsealer, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        let (prefix, content) = bytes.split_at_mut(PREFIX);
        open(unsealer, prefix, content).ok().map(|content| content.to_vec())
    }

    #[test]
    fn messages_open_in_the_order_in_which_they_were_sent() {
        let [(mut sealer, mut own), (_, mut peers)] = link();
        let all = [&b"the first text"[..], b"", b"another"].map(|text| (text, message(&mut sealer, text)));
        assert!(!all[0].1.windows(4).any(|some| some == b"text"), "in the clear");
        assert_eq!(opened(&mut own, &all[0].1), None, "reflected");
        for (text, bytes) in &all {
            assert_eq!(opened(&mut peers, bytes).as_deref(), Some(*text));
        }
        assert_eq!(opened(&mut peers, &all[0].1), None, "repeated");
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
        let [(mut sealer, _), _] = link();
        let (first, second) = (message(&mut sealer, b"one"), message(&mut sealer, b"two"));
        for changed in changes(&first).iter().chain([&second]) {
            let [_, (_, mut peers)] = link();
            assert_eq!(opened(&mut peers, changed), None);
        }
    }
}
