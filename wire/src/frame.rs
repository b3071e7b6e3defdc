//! Frames: the units inside a packet, and their encoding.
//!
//! One byte tells the frame, one its flags; the other fields have fixed places. Only eager data, the keys
//! of a receive region and a replayed packet have a length of their own, and it is checked against the
//! packet.

use crate::code::*;
use crate::cursor::{Cursor, Malformed, put};
use crate::part::part;
use crate::rts::rts;
use crate::silence::{Ask, LinkDown, Seen, rail};
use crate::{Blocks, MAX_RAILS, Part, Rts, flags};
use alloc::vec::Vec;

/// A whole small message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eager {
    /// See [`flags`].
    pub flags: u8,
    /// Communication context: messages of different contexts never match each other.
    pub context: u32,
    /// Tag to match.
    pub tag: u64,
    /// Place in the order of its flow (peer and context).
    pub seq: u32,
    /// Bytes of data that follow the header.
    pub len: u32,
    /// The sender's request, for [`flags::FIN`]; not on the wire otherwise.
    pub request: u64,
}

/// Keys of one receive region, at most one for each of the receiver's rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keys {
    count: u8,
    entries: [(u8, u64); MAX_RAILS],
}

impl Keys {
    /// Adds the key of a rail; a full list or a rail number out of range is ignored.
    pub fn push(&mut self, rail: u8, key: u64) {
        if usize::from(rail) < MAX_RAILS && usize::from(self.count) < MAX_RAILS {
            self.entries[usize::from(self.count)] = (rail, key);
            self.count += 1;
        }
    }

    /// The key of the receiver's rail `rail`.
    pub fn get(&self, rail: u8) -> Option<u64> {
        self.iter().find(|&(r, _)| r == rail).map(|(_, key)| key)
    }

    /// Rails and their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.entries[..usize::from(self.count)].iter().copied()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.count);
        for (rail, key) in self.iter() {
            out.push(rail);
            out.extend_from_slice(&key.to_le_bytes());
        }
    }

    fn decode(c: &mut Cursor<'_>) -> Result<Keys, Malformed> {
        let count = c.u8("keys cut short")?;
        if usize::from(count) > MAX_RAILS {
            return Err(Malformed("more keys than rails"));
        }
        let mut keys = Keys::default();
        for _ in 0..count {
            let rail = c.u8("keys cut short")?;
            let key = c.u64("keys cut short")?;
            if usize::from(rail) >= MAX_RAILS || keys.get(rail).is_some() {
                return Err(Malformed("key of an impossible or repeated rail"));
            }
            keys.push(rail, key);
        }
        Ok(keys)
    }
}

/// A rendezvous is granted: the receive region is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cts {
    /// The sender's request, from its [`Rts`].
    pub request: u64,
    /// The receiver's receive region.
    pub region: u64,
    /// Bytes that the receive region takes; less than announced when the receive buffer is shorter.
    pub len: u64,
    /// How each of the receiver's rails finds the receive region.
    pub keys: Keys,
    /// Whether the receiver was waiting when the request arrived. If so, it did not compute, and a late
    /// answer has another cause.
    pub prompt: bool,
}

/// A receive region is open before anybody asked: the next message of this flow and tag needs no handshake
/// (receiver-initiated rendezvous, P5 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtr {
    /// Communication context.
    pub context: u32,
    /// The tag that the posted receive names.
    pub tag: u64,
    /// The receiver has matched everything of this flow before this sequence number.
    pub seq: u32,
    /// The receiver's receive region.
    pub region: u64,
    /// Bytes that the receive region takes.
    pub len: u64,
    /// How each of the receiver's rails finds the receive region.
    pub keys: Keys,
}

/// A send request is complete on the receiver's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fin {
    /// The sender's request.
    pub request: u64,
    /// Whether the receiver was waiting when the last byte of the message arrived, see [`Cts::prompt`].
    pub prompt: bool,
}

/// The numbers that arrived on this link beyond the cumulative acknowledgement of the packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Bit i: the number `ack + 1 + i` has arrived too.
    pub beyond: u64,
}

/// How many eager bytes the receiver has room for, counted since the peers met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// The sum of all eager charges may reach this, in bytes; never goes down.
    pub limit: u64,
}

/// A packet of a dead link, sent again on another; known by the link and number it first had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay<'a> {
    /// The sender's rail that died.
    pub rail: u8,
    /// Number on the dead link.
    pub number: u32,
    /// Its frames.
    pub frames: &'a [u8],
}

/// An Rtr is to be taken back, because its receive was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdraw {
    /// The invited region.
    pub region: u64,
}

/// Answer to [`Withdraw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdrawn {
    /// The invited region.
    pub region: u64,
    /// A message already uses it: the receive will complete.
    pub used: bool,
}

/// The memory of a message that was offered for reading, asked back by its sender, or given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaim {
    /// The sender's request, from its [`Rts`].
    pub request: u64,
    /// The receiver's answer: it does not read that memory, and asks with a [`Cts`] instead.
    pub is_free: bool,
}

/// One unit inside a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole small message and its data.
    Eager(Eager, &'a [u8]),
    /// See [`Rts`], and the blocks with it.
    Rts(Rts, Blocks<'a>),
    /// See [`Part`], and its data.
    Part(Part, &'a [u8]),
    /// See [`Cts`].
    Cts(Cts),
    /// See [`Rtr`].
    Rtr(Rtr),
    /// See [`Fin`].
    Fin(Fin),
    /// See [`Ack`].
    Ack(Ack),
    /// See [`Credit`].
    Credit(Credit),
    /// See [`Replay`].
    Replay(Replay<'a>),
    /// See [`LinkDown`].
    LinkDown(LinkDown),
    /// See [`Withdraw`].
    Withdraw(Withdraw),
    /// See [`Withdrawn`].
    Withdrawn(Withdrawn),
    /// The sender leaves in good order; the end of its links is not a failure.
    Bye,
    /// See [`Ask`].
    Ask(Ask),
    /// See [`Seen`].
    Seen(Seen),
    /// See [`Reclaim`].
    Reclaim(Reclaim),
}

impl Eager {
    /// Longest encoding of the header in bytes, data not included.
    pub const MAX_LEN: usize = 32;
    /// Encoding of the header without a request, for which nobody waits.
    pub const PLAIN_LEN: usize = 24;

    /// Bytes of the header on the wire, data not included.
    #[inline]
    pub fn header_len(&self) -> usize {
        if self.flags & flags::FIN == 0 { Self::PLAIN_LEN } else { Self::MAX_LEN }
    }

    /// Appends the header; the `len` bytes of data must follow.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode_plain());
        if self.flags & flags::FIN != 0 {
            out.extend_from_slice(&self.request.to_le_bytes());
        }
    }

    /// The header without a request; the `len` bytes of data must follow.
    #[inline]
    pub fn encode_plain(&self) -> [u8; Self::PLAIN_LEN] {
        let mut bytes = [0; Self::PLAIN_LEN];
        let at = &mut 0;
        put(&mut bytes, at, &[EAGER, self.flags, 0, 0]);
        put(&mut bytes, at, &self.context.to_le_bytes());
        put(&mut bytes, at, &self.tag.to_le_bytes());
        put(&mut bytes, at, &self.seq.to_le_bytes());
        put(&mut bytes, at, &self.len.to_le_bytes());
        bytes
    }
}

impl Replay<'_> {
    /// Bytes of the header on the wire, frames not included.
    pub const LEN: usize = 12;
}

impl Frame<'_> {
    /// Bytes of any frame without keys and data.
    const USUAL_LEN: usize = 64;

    /// The frame, with its data.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::USUAL_LEN);
        self.encode(&mut bytes);
        bytes
    }

    /// Appends the frame, with its data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Eager(eager, data) => {
                eager.encode(out);
                out.extend_from_slice(data);
            }
            Frame::Rts(rts, blocks) => {
                rts.encode(out);
                if rts.flags & flags::BLOCKS != 0 {
                    blocks.encode(out);
                }
            }
            Frame::Part(part, data) => {
                part.encode(out);
                out.extend_from_slice(data);
            }
            Frame::Cts(cts) => {
                fields(out, CTS, u8::from(cts.prompt), &[cts.request, cts.region, cts.len]);
                cts.keys.encode(out);
            }
            Frame::Rtr(p) => {
                out.extend_from_slice(&[RTR, 0]);
                out.extend_from_slice(&p.context.to_le_bytes());
                out.extend_from_slice(&p.seq.to_le_bytes());
                for field in [p.tag, p.region, p.len] {
                    out.extend_from_slice(&field.to_le_bytes());
                }
                p.keys.encode(out);
            }
            Frame::Fin(fin) => fields(out, FIN, u8::from(fin.prompt), &[fin.request]),
            Frame::Ack(ack) => fields(out, ACK, 0, &[ack.beyond]),
            Frame::Credit(credit) => fields(out, CREDIT, 0, &[credit.limit]),
            Frame::Replay(replay) => {
                out.extend_from_slice(&[REPLAY, replay.rail, 0, 0]);
                out.extend_from_slice(&replay.number.to_le_bytes());
                out.extend_from_slice(&(replay.frames.len() as u32).to_le_bytes());
                out.extend_from_slice(replay.frames);
            }
            Frame::LinkDown(down) => out.extend_from_slice(&[LINK_DOWN, down.rail]),
            Frame::Withdraw(w) => fields(out, WITHDRAW, 0, &[w.region]),
            Frame::Withdrawn(w) => fields(out, WITHDRAWN, u8::from(w.used), &[w.region]),
            Frame::Bye => out.extend_from_slice(&[BYE, 0]),
            Frame::Ask(ask) => ask.encode(out),
            Frame::Seen(seen) => seen.encode(out),
            Frame::Reclaim(r) => fields(out, RECLAIM, u8::from(r.is_free), &[r.request]),
        }
    }
}

fn fields(out: &mut Vec<u8>, kind: u8, flags: u8, fields: &[u64]) {
    out.extend_from_slice(&[kind, flags]);
    for field in fields {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

/// The frames in `bytes` (a packet behind its header), one after the other; ends after the first error.
pub fn frames(bytes: &[u8]) -> Frames<'_> {
    Frames { rest: bytes }
}

/// Whether the first frame in `bytes` (a packet behind its header) is a whole small message.
pub fn begins_eager(bytes: &[u8]) -> bool {
    bytes.first() == Some(&EAGER)
}

/// Iterator over the frames of a packet, see [`frames`].
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    // Inlined wherever frames are read: an eager frame is never written to memory then.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut c = Cursor::new(self.rest);
        let frame = decode(&mut c);
        self.rest = if frame.is_ok() { c.rest() } else { &[] };
        Some(frame)
    }
}

#[inline]
fn decode<'a>(c: &mut Cursor<'a>) -> Result<Frame<'a>, Malformed> {
    let [kind, bits] = c.array::<2>("frame cut short")?;
    if kind == EAGER { eager(c, bits) } else { other(c, kind, bits) }
}

#[inline]
fn eager<'a>(c: &mut Cursor<'a>, bits: u8) -> Result<Frame<'a>, Malformed> {
    const SHORT: &str = "eager frame cut short";
    if bits & !(flags::FIN | flags::UNORDERED) != 0 || c.u16(SHORT)? != 0 {
        return Err(Malformed("unknown flags of an eager frame"));
    }
    let mut eager = Eager {
        flags: bits,
        context: c.u32(SHORT)?,
        tag: c.u64(SHORT)?,
        seq: c.u32(SHORT)?,
        len: c.u32(SHORT)?,
        request: 0,
    };
    if bits & flags::FIN != 0 {
        eager.request = c.u64(SHORT)?;
    }
    let data = c.take(eager.len as usize, "eager data longer than its packet")?;
    Ok(Frame::Eager(eager, data))
}

fn other<'a>(c: &mut Cursor<'a>, kind: u8, bits: u8) -> Result<Frame<'a>, Malformed> {
    if bits != 0 && !matches!(kind, RTS | CTS | FIN | REPLAY | LINK_DOWN | WITHDRAWN | ASK | SEEN | RECLAIM) {
        return Err(Malformed("unknown flags of a frame"));
    }
    Ok(match kind {
        RTS => {
            let (rts, blocks) = rts(c, bits)?;
            Frame::Rts(rts, blocks)
        }
        CTS => {
            const SHORT: &str = "Cts cut short";
            let prompt = flag(bits)?;
            let (request, region, len) = (c.u64(SHORT)?, c.u64(SHORT)?, c.u64(SHORT)?);
            Frame::Cts(Cts { request, region, len, keys: Keys::decode(c)?, prompt })
        }
        RTR => Frame::Rtr(rtr(c)?),
        FIN => Frame::Fin(Fin { prompt: flag(bits)?, request: c.u64("Fin cut short")? }),
        ACK => Frame::Ack(Ack { beyond: c.u64("Ack cut short")? }),
        CREDIT => Frame::Credit(Credit { limit: c.u64("Credit cut short")? }),
        REPLAY => {
            const SHORT: &str = "Replay cut short";
            let rail = rail(bits)?;
            if c.u16(SHORT)? != 0 {
                return Err(Malformed("reserved bits of a Replay are set"));
            }
            let (number, len) = (c.u32(SHORT)?, c.u32(SHORT)?);
            Frame::Replay(Replay {
                rail,
                number,
                frames: c.take(len as usize, "Replay longer than its packet")?,
            })
        }
        LINK_DOWN => Frame::LinkDown(LinkDown { rail: rail(bits)? }),
        WITHDRAW => Frame::Withdraw(Withdraw { region: c.u64("Withdraw cut short")? }),
        WITHDRAWN => Frame::Withdrawn(Withdrawn { used: flag(bits)?, region: c.u64("Withdrawn cut short")? }),
        BYE => Frame::Bye,
        PART => {
            let (part, data) = part(c)?;
            Frame::Part(part, data)
        }
        ASK => Frame::Ask(Ask::decode(c, rail(bits)?)?),
        SEEN => Frame::Seen(Seen::decode(c, rail(bits)?)?),
        RECLAIM => Frame::Reclaim(Reclaim { is_free: flag(bits)?, request: c.u64("Reclaim cut short")? }),
        _ => return Err(Malformed("unknown frame")),
    })
}

/// Decodes the flags of a frame that has one flag.
fn flag(bits: u8) -> Result<bool, Malformed> {
    if bits <= 1 { Ok(bits == 1) } else { Err(Malformed("unknown flags of a frame")) }
}

fn rtr(c: &mut Cursor<'_>) -> Result<Rtr, Malformed> {
    const SHORT: &str = "Rtr cut short";
    let (context, seq) = (c.u32(SHORT)?, c.u32(SHORT)?);
    let (tag, region, len) = (c.u64(SHORT)?, c.u64(SHORT)?, c.u64(SHORT)?);
    Ok(Rtr { context, tag, seq, region, len, keys: Keys::decode(c)? })
}
