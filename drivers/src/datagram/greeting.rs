//! The datagrams of the handshake: the control messages of all drivers, with additional fields.
//!
//! Behind the message follow the longest datagram that its sender expects to pass (4 B), the bytes that the
//! sender buffers (4 B), a MAC over all of it with the secret of the job (16 B), and, behind hello and
//! welcome, zeroes up to that length: a hello that is answered by a welcome has proved the length in both
//! directions. A sender that does not know the secret gets no answer and leaves no state.

use nmad_wire::{Control, Header, Kind};

const EXTRA: usize = 8;
const MAC: usize = 16;
/// Longest message: a refusal with its text. Longer ones are invalid.
const LONGEST: usize = 544;

/// The terms behind a control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Longest datagram that passes, in bytes of UDP data.
    pub datagram: u32,
    /// Bytes that the sender buffers for the link.
    pub buffer: u32,
}

/// Result of decoding a datagram of the handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A message of a sender that knows the secret.
    Message(Control<'a>, Terms),
    /// A message of a sender that knows the secret, in this other version of the protocol.
    OtherVersion(u8),
    /// A datagram of a sender that does not know the secret.
    Stranger,
}

/// Encodes a message with its terms, padded to the datagram length of the terms.
pub fn padded(message: &Control<'_>, terms: Terms, secret: &[u8; 32]) -> Vec<u8> {
    let mut out = encode(message, terms, secret);
    let len = out.len().max(terms.datagram as usize);
    out.resize(len, 0);
    out
}

/// Encodes a message with its terms.
pub fn encode(message: &Control<'_>, terms: Terms, secret: &[u8; 32]) -> Vec<u8> {
    let mut out = message.encode();
    out.extend_from_slice(&terms.datagram.to_le_bytes());
    out.extend_from_slice(&terms.buffer.to_le_bytes());
    let mac = mac(&out, secret);
    out.extend_from_slice(&mac.as_bytes()[..MAC]);
    out
}

/// Returns whether a datagram looks like one of a handshake; those of open links begin with a tag instead.
pub fn is_one(bytes: &[u8]) -> bool {
    bytes.get(4) == Some(&(Kind::Control as u8)) && bytes.get(Header::LEN..Header::LEN + 4) == Some(b"NMAD")
}

/// Decodes a datagram of a handshake.
pub fn decode<'a>(bytes: &'a [u8], secret: &[u8; 32]) -> Decoded<'a> {
    let Some(len) = bytes.first_chunk().map(|len| u32::from_le_bytes(*len) as usize) else {
        return Decoded::Stranger;
    };
    let Some(whole) = bytes.get(..len.saturating_add(EXTRA + MAC)).filter(|_| len <= LONGEST) else {
        return Decoded::Stranger;
    };
    let (content, found) = whole.split_at(len + EXTRA);
    if !is_one(bytes) || !same(&mac(content, secret), found) {
        return Decoded::Stranger;
    }
    if bytes[5] != nmad_wire::VERSION {
        return Decoded::OtherVersion(bytes[5]);
    }
    let word = |at: usize| content[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let terms = Terms { datagram: word(len), buffer: word(len + 4) };
    match Control::decode(&content[..len]) {
        Ok(message) => Decoded::Message(message, terms),
        Err(_) => Decoded::Stranger,
    }
}

fn mac(bytes: &[u8], secret: &[u8; 32]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"NewMadeleine greeting");
    hasher.update(bytes);
    hasher.finalize()
}

/// Compares in constant time.
fn same(mac: &blake3::Hash, found: &[u8]) -> bool {
    mac.as_bytes().iter().zip(found).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_wire::Hello;

    const TERMS: Terms = Terms { datagram: 1472, buffer: 200_000 };

    fn hello() -> Control<'static> {
        Control::Hello(Hello { from: 1, to: 0, rail: 2, nonce: [4; 32], offer: None, mac: [0; 32] })
    }

    #[test]
    fn a_greeting_is_as_long_as_its_terms_say_and_is_understood() {
        let bytes = padded(&hello(), TERMS, &[1; 32]);
        assert_eq!(bytes.len(), 1472);
        assert_eq!(decode(&bytes, &[1; 32]), Decoded::Message(hello(), TERMS));
        assert!(is_one(&bytes) && !is_one(&[7; 100]) && !is_one(&[]));
    }

    #[test]
    fn strangers_are_strangers_whatever_they_say() {
        let bytes = padded(&hello(), TERMS, &[1; 32]);
        assert_eq!(decode(&bytes, &[2; 32]), Decoded::Stranger, "another secret");
        let message = hello().encode().len() + EXTRA + MAC;
        for at in 0..message {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert_eq!(decode(&changed, &[1; 32]), Decoded::Stranger, "byte {at} changed");
            assert_eq!(decode(&bytes[..at], &[1; 32]), Decoded::Stranger, "cut at {at}");
        }
        let mut other = hello().encode();
        other[5] = 9;
        other.extend_from_slice(&[0; EXTRA]);
        let mac = mac(&other, &[1; 32]);
        other.extend_from_slice(&mac.as_bytes()[..MAC]);
        assert_eq!(decode(&other, &[1; 32]), Decoded::OtherVersion(9));
    }
}
