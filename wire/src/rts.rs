//! The request to send a large message.

use crate::code::RTS;
use crate::cursor::{Cursor, Malformed, put};
use crate::{Blocks, Header, Kind, flags};
use alloc::vec::Vec;

/// A request to send a large message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rts {
    /// See [`flags`].
    pub flags: u8,
    /// Communication context.
    pub context: u32,
    /// Tag to match.
    pub tag: u64,
    /// Place in the order of its flow.
    pub seq: u32,
    /// Length of the whole message in bytes.
    pub len: u64,
    /// The sender's request, which [`Cts`] and [`Fin`] name.
    pub request: u64,
    /// The invited region with [`flags::INVITED`]; not on the wire otherwise.
    pub region: u64,
    /// How many bytes of the message are pushed, with [`flags::PUSHED`]; not on the wire otherwise.
    pub pushed: u64,
    /// Where the message begins in the sender's process, with [`flags::READ`]; not on the wire otherwise.
    pub address: u64,
}

impl Rts {
    /// Bytes on the wire of one with [`flags::PUSHED`].
    const PUSHED_LEN: usize = 42;
    /// The same with [`flags::READ`], and a pad behind it: a packet that holds nothing else is whole words.
    const READ_PAD: usize = 6;
    /// Longest encoding in bytes, blocks not included.
    pub const MAX_LEN: usize = Self::PUSHED_LEN + Self::READ_PAD;
    /// Bytes of a packet that holds nothing else.
    pub const ALONE_LEN: usize = Header::LEN + Self::PUSHED_LEN;

    /// The whole packet of one with [`flags::PUSHED`] that has nothing beside it.
    #[inline]
    pub fn alone(&self, number: u32, ack: u32) -> [u8; Self::ALONE_LEN] {
        debug_assert!(self.flags & (flags::PUSHED | flags::INVITED) == flags::PUSHED);
        let header = Header { kind: Kind::Packet, len: Self::ALONE_LEN as u32, number, ack };
        let mut packet = [0; Self::ALONE_LEN];
        let at = &mut 0;
        put(&mut packet, at, &header.encode());
        put(&mut packet, at, &[RTS, self.flags]);
        put(&mut packet, at, &self.context.to_le_bytes());
        put(&mut packet, at, &self.seq.to_le_bytes());
        for field in [self.tag, self.len, self.request, self.pushed] {
            put(&mut packet, at, &field.to_le_bytes());
        }
        packet
    }

    /// The whole packet of one with [`flags::READ`] that has nothing beside it, in words.
    #[inline]
    pub fn alone_to_read(&self, number: u32, ack: u32) -> [u64; (Self::ALONE_LEN + Self::READ_PAD) / 8] {
        debug_assert!(self.flags & (flags::READ | flags::INVITED | flags::PUSHED) == flags::READ);
        let bytes = Self::ALONE_LEN + Self::READ_PAD;
        let header = Header { kind: Kind::Packet, len: bytes as u32, number, ack }.encode();
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| header[at + byte]));
        // Behind the two bytes of the frame everything is shifted by them.
        let fields = [
            u64::from(self.context) | u64::from(self.seq) << 32,
            self.tag,
            self.len,
            self.request,
            self.address,
            0,
        ];
        let begin = u64::from(RTS) | u64::from(self.flags) << 8;
        let shifted = core::array::from_fn::<u64, 6, _>(|at| {
            let before = if at == 0 { begin } else { fields[at - 1] >> 48 };
            (before | fields[at] << 16).to_le()
        });
        [word(0), word(8), shifted[0], shifted[1], shifted[2], shifted[3], shifted[4], shifted[5]]
    }

    /// Appends the request to send; with [`flags::BLOCKS`] the blocks must follow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[RTS, self.flags]);
        out.extend_from_slice(&self.context.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        for field in [self.tag, self.len, self.request] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        if self.flags & flags::INVITED != 0 {
            out.extend_from_slice(&self.region.to_le_bytes());
        }
        if self.flags & flags::PUSHED != 0 {
            out.extend_from_slice(&self.pushed.to_le_bytes());
        }
        if self.flags & flags::READ != 0 {
            out.extend_from_slice(&self.address.to_le_bytes());
            out.extend_from_slice(&[0; Self::READ_PAD]);
        }
    }
}

/// Returns the request to send that a frame begins with; the data of its blocks may be missing.
pub fn rts_of(frame: &[u8]) -> Option<Rts> {
    let mut c = Cursor::new(frame);
    let [kind, bits] = c.array::<2>("frame cut short").ok()?;
    if kind == RTS { head(&mut c, bits).ok() } else { None }
}

/// The frame behind its first two bytes.
pub(crate) fn rts<'a>(c: &mut Cursor<'a>, bits: u8) -> Result<(Rts, Blocks<'a>), Malformed> {
    let rts = head(c, bits)?;
    let has_blocks = bits & flags::BLOCKS != 0;
    let blocks = if has_blocks { Blocks::decode(c, rts.len, rts.pushed)? } else { Blocks::NONE };
    Ok((rts, blocks))
}

/// What is before the blocks.
fn head(c: &mut Cursor<'_>, bits: u8) -> Result<Rts, Malformed> {
    const SHORT: &str = "Rts cut short";
    const WAYS: u8 = flags::INVITED | flags::PUSHED | flags::PARTS | flags::READ;
    if bits & !(flags::FIN | flags::UNORDERED | flags::BLOCKS | WAYS) != 0 {
        return Err(Malformed("unknown flags of an Rts"));
    }
    let is_whole = flags::INVITED | flags::PARTS;
    if (bits & WAYS).count_ones() > 1 || (bits & flags::BLOCKS != 0 && bits & is_whole != 0) {
        return Err(Malformed("an Rts whose bytes come in several ways"));
    }
    let (context, seq) = (c.u32(SHORT)?, c.u32(SHORT)?);
    let (tag, len, request) = (c.u64(SHORT)?, c.u64(SHORT)?, c.u64(SHORT)?);
    let region = if bits & flags::INVITED != 0 { c.u64(SHORT)? } else { 0 };
    let pushed = if bits & flags::PUSHED != 0 { c.u64(SHORT)? } else { 0 };
    let reads = bits & flags::READ != 0;
    let address = if reads { c.u64(SHORT)? } else { 0 };
    let pad = c.take(if reads { Rts::READ_PAD } else { 0 }, SHORT)?;
    if pad.iter().any(|&byte| byte != 0) {
        return Err(Malformed("an Rts with something in its pad"));
    }
    if pushed > len {
        return Err(Malformed("an Rts that pushes more than its message"));
    }
    Ok(Rts { flags: bits, context, tag, seq, len, request, region, pushed, address })
}
