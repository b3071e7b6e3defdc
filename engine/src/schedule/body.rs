//! The body of a large message while it is handed out to rails in chunks.

use super::strategy::Shares;
use crate::clock::{Duration, Instant};
use crate::packet::{RailId, RequestId, StrategyId};
use alloc::vec::Vec;

/// Who carries a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// Not shared out yet.
    Nobody,
    /// The rail that is idle first carries all of it.
    First,
    /// A rail that is idle carries the next chunk of it.
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

/// The part of one large message that is not yet on a rail.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) request: RequestId,
    pub(crate) priority: i8,
    /// The strategy that the message has chosen; none: that of its peer.
    pub(crate) strategy: Option<StrategyId>,
    /// The application's wish; the strategy is not asked then.
    rail: Option<RailId>,
    /// It goes ahead of any answer, whole, on the link that carried its request to send.
    pub(crate) push: bool,
    parts: Vec<Part>,
    /// When it was last considered whether to share it out anew.
    considered: Instant,
    /// Given to one rail although all were idle: an idle rail is no reason to share it out anew.
    pub(crate) settled: bool,
}

impl Body {
    /// A body of `len` bytes from `begin` on that is yet to be shared out.
    pub(crate) fn new(
        request: RequestId,
        (priority, strategy): (i8, Option<StrategyId>),
        (begin, len): (u64, u64),
        rail: Option<RailId>,
    ) -> Body {
        let mut parts = Vec::new();
        if len > 0 {
            parts.push(Part { carrier: Carrier::Nobody, start: begin, end: begin + len });
        }
        let (push, considered, settled) = (false, Instant::default(), false);
        Body { request, priority, strategy, rail, push, parts, considered, settled }
    }

    /// The first `len` bytes, which go ahead.
    pub(crate) fn pushed(request: RequestId, priority: i8, len: u64) -> Body {
        let mut body = Body::rest(request, priority);
        body.push = true;
        body.put_back(0, len);
        body
    }

    /// A body of which only lost chunks are left, to be put back one by one.
    pub(crate) fn rest(request: RequestId, priority: i8) -> Body {
        Body::new(request, (priority, None), (0, 0), None)
    }

    /// Whether it is shared out.
    pub(crate) fn is_decided(&self) -> bool {
        self.parts.iter().all(|part| part.carrier != Carrier::Nobody)
    }

    /// The rail that the application wishes.
    pub(crate) fn wish(&self) -> Option<RailId> {
        self.rail
    }

    /// Shares it out as the strategy decided. Shares of rails that cannot carry them, or that do not add up,
    /// are cut or completed: a mistake of a strategy must not lose bytes.
    pub(crate) fn decide(&mut self, shares: &Shares, is_open: impl Fn(RailId) -> bool) {
        let shares: &[(RailId, u64)] = if let Shares::Fixed(list) = shares { list } else { &[] };
        let mut shares = shares.iter().filter(|(rail, _)| is_open(*rail)).copied();
        let mut share = shares.next();
        for mut part in core::mem::take(&mut self.parts) {
            if part.carrier != Carrier::Nobody {
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

    /// Takes all that is meant for certain rails back, to be shared out anew.
    pub(crate) fn recall(&mut self) {
        for part in self.parts.iter_mut().filter(|part| matches!(part.carrier, Carrier::Rail(_))) {
            part.carrier = Carrier::Nobody;
        }
    }

    /// Bytes that are meant for a rail and not yet on it.
    pub(crate) fn meant_for(&self, rail: RailId) -> u64 {
        let mine = self.parts.iter().filter(|part| part.carrier == Carrier::Rail(rail));
        mine.map(|part| part.end - part.start).sum()
    }

    /// Adds the bytes that are meant for each rail.
    pub(crate) fn count_meant(&self, meant: &mut [u64; nmad_wire::MAX_RAILS]) {
        for part in &self.parts {
            if let Carrier::Rail(rail) = part.carrier {
                meant[rail.index()] += part.end - part.start;
            }
        }
    }

    /// Whether it is worth thinking about other shares: not if that was done less than `pause` ago.
    pub(crate) fn consider(&mut self, now: Instant, pause: Duration) -> bool {
        let due = now.since(self.considered) >= pause;
        if due {
            self.considered = now;
        }
        due
    }

    /// The next chunk for `rail`: offset and length, at most `max` bytes. If it `is_first` for so many bytes,
    /// also of what is meant for whoever is idle first.
    pub(crate) fn next_chunk(
        &mut self,
        rail: RailId,
        is_first: impl Fn(u64) -> bool,
        max: u64,
    ) -> Option<(u64, u64)> {
        let index = self.parts.iter().position(|part| match part.carrier {
            Carrier::Rail(r) => r == rail,
            Carrier::First | Carrier::Any => is_first(part.end - part.start),
            Carrier::Nobody => false,
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

    /// Whether everything is on rails.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The share of a rail that is gone may go over any other one.
    pub(crate) fn release(&mut self, rail: RailId) {
        for part in self.parts.iter_mut().filter(|part| part.carrier == Carrier::Rail(rail)) {
            part.carrier = Carrier::Any;
        }
    }

    /// A chunk has to be sent again, by any rail.
    pub(crate) fn put_back(&mut self, offset: u64, len: u64) {
        self.parts.push(Part { carrier: Carrier::Any, start: offset, end: offset + len });
    }

    /// Bytes not yet on a rail.
    pub(crate) fn remaining(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum::<u64>()
    }
}
