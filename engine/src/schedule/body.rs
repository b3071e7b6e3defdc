//! The body of a message while it is given to rails: in chunks, or in parts that packets carry.

use super::strategy::Shares;
use crate::clock::{Duration, Instant};
use crate::collect::request::Hints;
use crate::memory::Segments;
use crate::packet::{RailId, RequestId, StrategyId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nmad_wire::Rts;

/// The rail that carries a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// Not decided yet.
    Undecided,
    /// The rail that is idle first carries the whole part.
    First,
    /// Any idle rail carries the next chunk.
    Any,
    /// This rail.
    Rail(RailId),
}

#[derive(Debug, Clone, Copy)]
struct Part {
    carrier: Carrier,
    start: u64,
    end: u64,
}

/// How a body is carried.
#[derive(Debug)]
pub(crate) enum Carry {
    /// In chunks, into a receive region that the receiver has granted.
    Chunks,
    /// Pushed as a whole before the receiver answers, on the link that carried its request to send.
    Pushed,
    /// As eager data in parts, each in its own packet; no answer is awaited.
    Parts(Box<Eager>),
}

/// Data of an eager message that is carried in parts.
#[derive(Debug)]
pub(crate) struct Eager {
    /// The request to send, until it is sent with the first part or before it.
    pub(crate) names: Option<Rts>,
    pub(crate) data: Segments,
    pub(crate) hints: Hints,
}

/// The part of one message that is not yet on a rail.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) request: RequestId,
    pub(crate) priority: i8,
    /// The strategy that the message has chosen; `None`: that of its peer.
    pub(crate) strategy: Option<StrategyId>,
    /// The rail that the application has chosen; the strategy is then not asked.
    rail: Option<RailId>,
    pub(crate) carry: Carry,
    parts: Vec<Part>,
    /// When another split was last considered.
    considered: Instant,
    /// One rail was chosen although all were idle: an idle rail is no reason for another split.
    pub(crate) settled: bool,
}

impl Body {
    /// Creates an undecided body of `len` bytes from `begin` on.
    pub(crate) fn new(
        request: RequestId,
        (priority, strategy): (i8, Option<StrategyId>),
        (begin, len): (u64, u64),
        rail: Option<RailId>,
    ) -> Body {
        let mut parts = Vec::new();
        if len > 0 {
            parts.push(Part { carrier: Carrier::Undecided, start: begin, end: begin + len });
        }
        let (carry, considered, settled) = (Carry::Chunks, Instant::default(), false);
        Body { request, priority, strategy, rail, carry, parts, considered, settled }
    }

    /// Creates the undecided body of an eager message that is carried in parts.
    pub(crate) fn in_parts(request: RequestId, names: Rts, data: Segments, hints: Hints) -> Body {
        let mut body = Body::new(request, (hints.priority, hints.strategy), (0, data.len()), hints.rail);
        body.carry = Carry::Parts(Box::new(Eager { names: Some(names), data, hints }));
        body
    }

    /// Returns whether the body is pushed.
    pub(crate) fn is_pushed(&self) -> bool {
        matches!(self.carry, Carry::Pushed)
    }

    /// Creates a body of the first `len` bytes, which are pushed.
    pub(crate) fn pushed(request: RequestId, priority: i8, len: u64) -> Body {
        let mut body = Body::rest(request, priority);
        body.carry = Carry::Pushed;
        body.put_back(0, len);
        body
    }

    /// Creates an empty body, to which lost chunks are added with [`Body::put_back`].
    pub(crate) fn rest(request: RequestId, priority: i8) -> Body {
        Body::new(request, (priority, None), (0, 0), None)
    }

    /// Whether rails are decided for all parts.
    pub(crate) fn is_decided(&self) -> bool {
        self.parts.iter().all(|part| part.carrier != Carrier::Undecided)
    }

    /// Returns the rail that the application has chosen.
    pub(crate) fn wish(&self) -> Option<RailId> {
        self.rail
    }

    /// Assigns the parts to rails as the strategy decided. Shares of rails that cannot carry them, or that
    /// do not add up, are cut or completed: an error of a strategy must not lose bytes.
    pub(crate) fn decide(&mut self, shares: &Shares, is_open: impl Fn(RailId) -> bool) {
        let shares: &[(RailId, u64)] = if let Shares::Fixed(list) = shares { list } else { &[] };
        let mut shares = shares.iter().filter(|(rail, _)| is_open(*rail)).copied();
        let mut share = shares.next();
        for mut part in core::mem::take(&mut self.parts) {
            if part.carrier != Carrier::Undecided {
                self.parts.push(part);
                continue;
            }
            while let Some((rail, left)) = &mut share
                && part.start < part.end
            {
                let end = part.start + (*left).min(part.end - part.start);
                if end > part.start {
                    self.parts.push(Part { carrier: Carrier::Rail(*rail), end, ..part });
                }
                *left -= end - part.start;
                part.start = end;
                if *left == 0 {
                    share = shares.next();
                }
            }
            if part.start < part.end {
                self.parts.push(Part { carrier: Carrier::First, ..part });
            }
        }
    }

    /// Makes all parts assigned to particular rails undecided again.
    pub(crate) fn recall(&mut self) {
        for part in self.parts.iter_mut().filter(|part| matches!(part.carrier, Carrier::Rail(_))) {
            part.carrier = Carrier::Undecided;
        }
    }

    /// Returns the bytes assigned to a rail and not yet given to it.
    pub(crate) fn assigned_to(&self, rail: RailId) -> u64 {
        let mine = self.parts.iter().filter(|part| part.carrier == Carrier::Rail(rail));
        mine.map(|part| part.end - part.start).sum()
    }

    /// Adds the bytes assigned to each rail.
    pub(crate) fn count_assigned(&self, assigned: &mut [u64; nmad_wire::MAX_RAILS]) {
        for part in &self.parts {
            if let Carrier::Rail(rail) = part.carrier {
                assigned[rail.index()] += part.end - part.start;
            }
        }
    }

    /// Whether another split should be considered: not within `pause` after the last time.
    pub(crate) fn consider(&mut self, now: Instant, pause: Duration) -> bool {
        let due = now.since(self.considered) >= pause;
        if due {
            self.considered = now;
        }
        due
    }

    /// Takes the next chunk for `rail`: offset and length, at most `max` bytes. Parts for the rail that is
    /// idle first are included if `is_first` is true for their length.
    pub(crate) fn next_chunk(
        &mut self,
        rail: RailId,
        is_first: impl Fn(u64) -> bool,
        max: u64,
    ) -> Option<(u64, u64)> {
        let index = self.parts.iter().position(|part| match part.carrier {
            Carrier::Rail(r) => r == rail,
            Carrier::First | Carrier::Any => is_first(part.end - part.start),
            Carrier::Undecided => false,
        })?;
        let part = &mut self.parts[index];
        if part.carrier == Carrier::First {
            part.carrier = Carrier::Rail(rail);
        }
        let (offset, len) = (part.start, (part.end - part.start).min(max.max(1)));
        part.start += len;
        if part.start == part.end {
            self.parts.remove(index);
        }
        Some((offset, len))
    }

    /// Whether all parts were given to rails.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Lets any rail carry the share of a lost rail.
    pub(crate) fn release(&mut self, rail: RailId) {
        for part in self.parts.iter_mut().filter(|part| part.carrier == Carrier::Rail(rail)) {
            part.carrier = Carrier::Any;
        }
    }

    /// Adds a chunk that any rail has to send again.
    pub(crate) fn put_back(&mut self, offset: u64, len: u64) {
        self.parts.push(Part { carrier: Carrier::Any, start: offset, end: offset + len });
    }

    /// Returns the bytes not yet given to a rail.
    pub(crate) fn remaining(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum::<u64>()
    }
}
