//! Sending, receiving, probing: arguments of C into those of the session.

use crate::code::{ARGUMENT, Answer, Failure, OK, PENDING};
use crate::handle::Handle;
use crate::live::SessionPointer;
use crate::raw::{In, Out};
use newmadeleine::engine::{Context, Envelope, Error, RequestId};
use newmadeleine::progress::Outcome;
use newmadeleine::{Channel, Hints, Prefer, RailId, Segments, SessionError, Source, StrategyId, TagMatch};

const SYNCHRONOUS: u32 = 1;
const UNORDERED: u32 = 2;
const RAIL: u32 = 4;
const DEPENDS: u32 = 8;
const LATENCY: u32 = 16;
const BANDWIDTH: u32 = 32;
const ANY_TAG: u32 = 1;
/// `NMAD_ANY_RANK`
pub const ANY_RANK: u32 = u32::MAX;

/// `nmad_hints_t`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CHints {
    flags: u32,
    priority: i32,
    rail: u32,
    strategy: u32,
}

impl In<CHints> {
    pub fn hints(self, handle: &Handle) -> Result<Hints, Failure> {
        let Some(CHints { flags, priority, rail, strategy }) = self.get() else {
            return Ok(Hints::default());
        };
        let wrong = |text: String| Err(Failure::new(ARGUMENT, text));
        let has = |flag: u32| flags & flag != 0;
        if has(!(SYNCHRONOUS | UNORDERED | RAIL | DEPENDS | LATENCY | BANDWIDTH)) {
            return wrong(format!("unknown flags in the hints: {flags:#x}"));
        }
        let Ok(priority) = i8::try_from(priority) else {
            return wrong(format!("priority {priority} is not within -128 and 127"));
        };
        if has(RAIL) && rail >= handle.rails {
            return wrong(format!("there is no rail {rail}: there are {}, from 0 on", handle.rails));
        }
        if strategy > handle.strategies {
            let known = handle.strategies;
            return wrong(format!("no strategy {strategy}: nmad_strategy_number() tells 1 to {known}"));
        }
        let prefer = match (has(LATENCY), has(BANDWIDTH)) {
            (true, true) => return wrong("hints prefer latency and bandwidth: one of them at most".into()),
            (true, false) => Prefer::Latency,
            (false, true) => Prefer::Bandwidth,
            (false, false) => Prefer::Either,
        };
        Ok(Hints {
            priority,
            rail: has(RAIL).then_some(RailId(rail as u8)),
            synchronous: has(SYNCHRONOUS),
            unordered: has(UNORDERED),
            depends: has(DEPENDS),
            prefer,
            strategy: (strategy as usize).checked_sub(1).and_then(StrategyId::at),
            ..Hints::default()
        })
    }
}

/// `nmad_message_t`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CMessage {
    rank: u32,
    context: u32,
    tag: u64,
    len: u64,
    received: u64,
}

impl CMessage {
    fn new(envelope: &Envelope, received: u64) -> CMessage {
        let Envelope { peer, context, tag, len, .. } = *envelope;
        // Further pieces of a message travel in the other half of the contexts, under their numbers.
        let is_piece = context.0 >= Context::LIMIT;
        let tag = if is_piece { tag.0 & u64::from(u32::MAX) } else { tag.0 };
        CMessage { rank: peer.0, context: context.0 % Context::LIMIT, tag, len, received }
    }

    /// The message, as far as `outcome` tells it.
    pub fn of(outcome: &Outcome) -> Option<CMessage> {
        match outcome {
            Ok(envelope) => Some(CMessage::new(envelope, envelope.len)),
            Err(Error::Truncated { envelope, capacity }) => Some(CMessage::new(envelope, *capacity)),
            Err(_) => None,
        }
    }
}

/// Tells how a request has ended.
pub fn tell(handle: &Handle, outcome: Outcome, message: Out<CMessage>, index: usize) -> Answer {
    if let Some(told) = CMessage::of(&outcome) {
        message.set_at(index, told);
    }
    handle.session.outcome(outcome)?;
    Ok(OK)
}

/// Whom a receive names, and where.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub from: u32,
    pub context: u32,
    pub tag: u64,
    pub flags: u32,
}

impl Wanted {
    pub fn channel<'h>(&self, handle: &'h Handle) -> Result<Channel<'h>, Failure> {
        handle.channel(self.context)
    }

    pub fn names(&self) -> Result<(Source, TagMatch), Failure> {
        if self.flags & !ANY_TAG != 0 {
            return Err(Failure::new(ARGUMENT, format!("unknown flags of a receive: {:#x}", self.flags)));
        }
        let from = if self.from == ANY_RANK { Source::Any } else { Source::Rank(self.from) };
        Ok((from, if self.flags == ANY_TAG { TagMatch::Any } else { TagMatch::Exact(self.tag) }))
    }
}

/// Where a message goes.
#[derive(Clone, Copy)]
pub struct Address {
    pub to: u32,
    pub context: u32,
    pub tag: u64,
}

pub fn send(
    session: SessionPointer,
    to: Address,
    data: Result<Segments, Failure>,
    hints: In<CHints>,
) -> Answer {
    let handle = session.get()?;
    let hints = hints.hints(handle)?;
    handle.channel(to.context)?.send_segments(to.to, to.tag, data?, hints)?;
    Ok(OK)
}

pub fn isend(
    session: SessionPointer,
    to: Address,
    data: Result<Segments, Failure>,
    hints: In<CHints>,
    request: Out<u64>,
) -> Answer {
    let (handle, request) = (session.get()?, request.required("request")?);
    let hints = hints.hints(handle)?;
    let RequestId(name) = handle.channel(to.context)?.submit_send(to.to, to.tag, data?, hints)?;
    request.set(name);
    Ok(OK)
}

pub fn recv(
    session: SessionPointer,
    wanted: Wanted,
    into: Result<Segments, Failure>,
    message: Out<CMessage>,
) -> Answer {
    let handle = session.get()?;
    let (from, tag) = wanted.names()?;
    let outcome = wanted.channel(handle)?.recv_segments(from, tag, into?)?;
    tell(handle, outcome, message, 0)
}

pub fn irecv(
    session: SessionPointer,
    wanted: Wanted,
    into: Result<Segments, Failure>,
    request: Out<u64>,
) -> Answer {
    let (handle, request) = (session.get()?, request.required("request")?);
    let (from, tag) = wanted.names()?;
    let RequestId(name) = wanted.channel(handle)?.submit_recv(from, tag, into?)?;
    request.set(name);
    Ok(OK)
}

pub fn probe(session: SessionPointer, wanted: Wanted, message: Out<CMessage>) -> Answer {
    let handle = session.get()?;
    let (from, tag) = wanted.names()?;
    check_rank(handle, wanted.from)?;
    let Some(found) = wanted.channel(handle)?.probe(from, tag) else { return Ok(PENDING) };
    let (tag, len) = (found.tag, found.len as u64);
    message.set(CMessage { rank: found.from, context: wanted.context, tag, len, received: 0 });
    Ok(OK)
}

/// Turns ranks away that the job has not; any rank will do.
pub fn check_rank(handle: &Handle, rank: u32) -> Result<(), Failure> {
    let size = handle.session.size();
    if rank >= size && rank != ANY_RANK {
        return Err(SessionError::NoSuchRank { rank, size }.into());
    }
    Ok(())
}
