//! Parts of a message that is sent without asking and is longer than a packet.

use crate::code::PART;
use crate::cursor::{Cursor, Malformed};
use alloc::vec::Vec;

/// Some bytes of a message that is sent without asking and is longer than a packet. Its names are in the
/// [`Rts`] with [`flags::PARTS`], which may come later: each part says how long the message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The sender's request, as in the [`Rts`].
    pub request: u64,
    /// Where in the message the bytes begin.
    pub offset: u64,
    /// Length of the whole message in bytes.
    pub total: u64,
    /// Bytes of data that follow the header.
    pub len: u32,
}

impl Part {
    /// Bytes of the header on the wire, data not included.
    pub const LEN: usize = 32;

    /// The header; the `len` bytes of data must follow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[PART, 0, 0, 0]);
        out.extend_from_slice(&self.len.to_le_bytes());
        for field in [self.request, self.offset, self.total] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }
}

/// The header and the data behind the first two bytes of the frame.
pub(crate) fn part<'a>(c: &mut Cursor<'a>) -> Result<(Part, &'a [u8]), Malformed> {
    const SHORT: &str = "Part cut short";
    if c.u16(SHORT)? != 0 {
        return Err(Malformed("reserved bits of a Part are set"));
    }
    let len = c.u32(SHORT)?;
    let part = Part { request: c.u64(SHORT)?, offset: c.u64(SHORT)?, total: c.u64(SHORT)?, len };
    if part.offset.checked_add(len.into()).is_none_or(|end| end > part.total) {
        return Err(Malformed("a Part outside of its message"));
    }
    Ok((part, c.take(len as usize, "Part longer than its packet")?))
}
