//! Opening a link: hello, welcome, proof, or a refusal that says why.
//!
//! The side that connects says hello with a nonce and a MAC over it; the other answers welcome with its own
//! nonce and a MAC over both; the first proves with a MAC of its own. All MACs are keyed with the secret of
//! the job, so neither side talks to a stranger. The drivers make them: these are only the bytes.

use crate::cursor::{Cursor, Malformed};
use crate::{Header, Kind, VERSION};
use alloc::vec::Vec;

const MAGIC: [u8; 4] = *b"NMAD";
/// Longest text of a refusal, in bytes.
const REFUSAL_MAX: usize = 512;

/// A cipher for the data of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cipher {
    /// AES-256 in Galois/counter mode.
    Aes256Gcm = 1,
    /// ChaCha20 with Poly1305 (RFC 8439).
    ChaCha20Poly1305 = 2,
}

/// One side's part of the key exchange of an encrypted link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// In a hello the faster cipher on the sender's host, in a welcome the cipher of the link.
    pub cipher: Cipher,
    /// Public key of X25519 (RFC 7748), used for this link only.
    pub key: [u8; 32],
}

/// First message, from the side that connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Rank that connects.
    pub from: u32,
    /// Rank that it wants to reach.
    pub to: u32,
    /// Number of the connecting side's rail.
    pub rail: u8,
    /// Fresh random bytes.
    pub nonce: [u8; 32],
    /// The connecting side's cipher and key; `None` if it does not encrypt the link.
    pub offer: Option<Offer>,
    /// Keyed MAC over the other fields.
    pub mac: [u8; 32],
}

/// Answer of the side that was connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Number of the answering side's rail.
    pub rail: u8,
    /// Fresh random bytes.
    pub nonce: [u8; 32],
    /// The cipher of the link and the answering side's key; `None` if the hello has no offer.
    pub offer: Option<Offer>,
    /// Keyed MAC over both sides' fields.
    pub mac: [u8; 32],
}

/// Last message of the opening, from the side that connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Keyed MAC over both nonces.
    pub mac: [u8; 32],
}

/// Why a link is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalCode {
    /// The other side speaks another version of this format.
    Version = 1,
    /// The MAC does not verify: another job, or a stranger.
    Secret = 2,
    /// The hello was meant for another rank.
    Rank = 3,
    /// Both sides connected at once; the connection of the lower rank stays.
    Crossed = 4,
    /// One side encrypts the link and the other does not.
    Encryption = 5,
}

/// A link is not opened, and why, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Kind of reason.
    pub code: RefusalCode,
    /// One line for the user on the other side.
    pub text: &'a str,
}

/// A message of a link that is being opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control<'a> {
    /// See [`Hello`].
    Hello(Hello),
    /// See [`Welcome`].
    Welcome(Welcome),
    /// See [`Proof`].
    Proof(Proof),
    /// See [`Refusal`].
    Refuse(Refusal<'a>),
}

impl<'a> Control<'a> {
    /// The whole packet, header included.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        body.extend_from_slice(&MAGIC);
        match self {
            Control::Hello(h) => {
                body.extend_from_slice(&[1, VERSION, h.rail, cipher(h.offer)]);
                body.extend_from_slice(&h.from.to_le_bytes());
                body.extend_from_slice(&h.to.to_le_bytes());
                body.extend_from_slice(&h.nonce);
                h.offer.iter().for_each(|offer| body.extend_from_slice(&offer.key));
                body.extend_from_slice(&h.mac);
            }
            Control::Welcome(w) => {
                body.extend_from_slice(&[2, VERSION, w.rail, cipher(w.offer)]);
                body.extend_from_slice(&w.nonce);
                w.offer.iter().for_each(|offer| body.extend_from_slice(&offer.key));
                body.extend_from_slice(&w.mac);
            }
            Control::Proof(p) => {
                body.extend_from_slice(&[3, VERSION, 0, 0]);
                body.extend_from_slice(&p.mac);
            }
            Control::Refuse(r) => {
                body.extend_from_slice(&[4, VERSION, r.code as u8, 0]);
                let mut len = r.text.len().min(REFUSAL_MAX);
                while !r.text.is_char_boundary(len) {
                    len -= 1;
                }
                body.extend_from_slice(&r.text.as_bytes()[..len]);
            }
        }
        let len = (Header::LEN + body.len()) as u32;
        let mut out = Vec::from(Header { kind: Kind::Control, len, number: 0, ack: 0 }.encode());
        out.append(&mut body);
        out
    }

    /// Reads one whole control packet. [`Header::decode`] checks the version first, so that a job of mixed
    /// versions gets an error that says so.
    ///
    /// # Errors
    /// Wrong magic, unknown message, missing or surplus bytes, a refusal that is not UTF-8.
    pub fn decode(packet: &'a [u8]) -> Result<Control<'a>, Malformed> {
        let header = Header::decode(packet)?;
        if header.kind != Kind::Control || header.len as usize != packet.len() {
            return Err(Malformed("not a whole control message"));
        }
        if (header.number, header.ack) != (0, 0) {
            return Err(Malformed("control message with a number"));
        }
        let mut c = Cursor::new(packet);
        c.take(Header::LEN, "control message cut short")?;
        if c.array::<4>("control message cut short")? != MAGIC {
            return Err(Malformed("not a NewMadeleine link (wrong magic)"));
        }
        let [what, version, detail, cipher] = c.array::<4>("control message cut short")?;
        if version != VERSION {
            return Err(Malformed("unknown version"));
        }
        let cipher = match (what, cipher) {
            (_, 0) => None,
            (1 | 2, 1) => Some(Cipher::Aes256Gcm),
            (1 | 2, 2) => Some(Cipher::ChaCha20Poly1305),
            (1 | 2, _) => return Err(Malformed("unknown cipher")),
            _ => return Err(Malformed("reserved bits of a control message are set")),
        };
        let message = match what {
            1 => Control::Hello(Hello {
                rail: detail,
                from: c.u32("hello cut short")?,
                to: c.u32("hello cut short")?,
                nonce: c.array("hello cut short")?,
                offer: offer(cipher, &mut c, "hello cut short")?,
                mac: c.array("hello cut short")?,
            }),
            2 => Control::Welcome(Welcome {
                rail: detail,
                nonce: c.array("welcome cut short")?,
                offer: offer(cipher, &mut c, "welcome cut short")?,
                mac: c.array("welcome cut short")?,
            }),
            3 if detail == 0 => Control::Proof(Proof { mac: c.array("proof cut short")? }),
            4 => return refusal(detail, c.rest()).map(Control::Refuse),
            _ => return Err(Malformed("unknown control message")),
        };
        if c.rest().is_empty() {
            Ok(message)
        } else {
            Err(Malformed("surplus bytes after a control message"))
        }
    }
}

fn cipher(offer: Option<Offer>) -> u8 {
    offer.map_or(0, |offer| offer.cipher as u8)
}

fn offer(
    cipher: Option<Cipher>,
    from: &mut Cursor<'_>,
    short: &'static str,
) -> Result<Option<Offer>, Malformed> {
    cipher.map(|cipher| Ok(Offer { cipher, key: from.array(short)? })).transpose()
}

fn refusal(code: u8, text: &[u8]) -> Result<Refusal<'_>, Malformed> {
    let code = match code {
        1 => RefusalCode::Version,
        2 => RefusalCode::Secret,
        3 => RefusalCode::Rank,
        4 => RefusalCode::Crossed,
        5 => RefusalCode::Encryption,
        _ => return Err(Malformed("unknown reason of a refusal")),
    };
    if text.len() > REFUSAL_MAX {
        return Err(Malformed("refusal too long"));
    }
    let text = core::str::from_utf8(text).map_err(|_| Malformed("refusal is not text"))?;
    Ok(Refusal { code, text })
}
