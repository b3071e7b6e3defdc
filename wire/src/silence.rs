//! Frames about a rail that has fallen silent. They travel on another one, in packets without a number.

use crate::MAX_RAILS;
use crate::code::{ASK, SEEN};
use crate::cursor::{Cursor, Malformed};
use alloc::vec::Vec;

/// The sender of this frame gave up one of its rails to this peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkDown {
    /// Number of the rail at the side that gives it up.
    pub rail: u8,
}

/// The sender of this frame hears nothing on one of its rails, and asks what has arrived from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Number of the rail at the side that asks.
    pub rail: u8,
    /// Number of the question, which the answer repeats: it may come late.
    pub question: u32,
}

impl Ask {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[ASK, self.rail]);
        out.extend_from_slice(&self.question.to_le_bytes());
    }

    pub(crate) fn decode(c: &mut Cursor<'_>, rail: u8) -> Result<Ask, Malformed> {
        Ok(Ask { rail, question: c.u32("Ask cut short")? })
    }
}

/// Answer to [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number of the rail at the side that has asked.
    pub rail: u8,
    /// Number of the question.
    pub question: u32,
    /// Everything below this number has arrived from there.
    pub below: u32,
    /// Bit i: the number `below + 1 + i` has arrived too.
    pub beyond: u64,
    /// Changes when part of a packet or chunk arrives from there.
    pub moved: u32,
}

impl Seen {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[SEEN, self.rail]);
        out.extend_from_slice(&self.question.to_le_bytes());
        out.extend_from_slice(&self.below.to_le_bytes());
        out.extend_from_slice(&self.moved.to_le_bytes());
        out.extend_from_slice(&self.beyond.to_le_bytes());
    }

    pub(crate) fn decode(c: &mut Cursor<'_>, rail: u8) -> Result<Seen, Malformed> {
        const SHORT: &str = "Seen cut short";
        let (question, below, moved) = (c.u32(SHORT)?, c.u32(SHORT)?, c.u32(SHORT)?);
        Ok(Seen { rail, question, below, beyond: c.u64(SHORT)?, moved })
    }
}

/// The number of a rail.
pub(crate) fn rail(number: u8) -> Result<u8, Malformed> {
    if usize::from(number) < MAX_RAILS { Ok(number) } else { Err(Malformed("rail number out of range")) }
}
