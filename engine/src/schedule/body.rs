//! The body of a large message while it is handed out to rails in chunks.

use super::strategy::Shares;
use crate::packet::RailId;
use crate::packet::RequestId;
use alloc::vec::Vec;

/// Who carries a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// Whoever is idle first carries all of it.
    First,
    /// Whoever is idle carries the next chunk of it.
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

/// What is not yet on a rail of one large message.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) request: RequestId,
    pub(crate) priority: i8,
    /// The application's wish; the strategy is not asked then.
    rail: Option<RailId>,
    /// It goes ahead of any answer, on the link that carried its request to send.
    pub(crate) push: bool,
    /// Where what is not shared out yet begins, and how many bytes that are.
    begin: u64,
    undecided: u64,
    parts: Vec<Part>,
}

impl Body {
    /// A body of `len` bytes from `begin` on that is yet to be shared out.
    pub(crate) fn new(request: RequestId, priority: i8, begin: u64, len: u64, rail: Option<RailId>) -> Body {
        Body { request, priority, rail, push: false, begin, undecided: len, parts: Vec::new() }
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
        Body::new(request, priority, 0, 0, None)
    }

    /// Whether it is shared out.
    pub(crate) fn is_decided(&self) -> bool {
        self.undecided == 0
    }

    /// The rail that the application wishes.
    pub(crate) fn wish(&self) -> Option<RailId> {
        self.rail
    }

    /// Shares it out as the strategy decided. Shares of rails that cannot carry them, or that do not add up,
    /// are cut or completed: a mistake of a strategy must not lose bytes.
    pub(crate) fn decide(&mut self, shares: &Shares, is_open: impl Fn(RailId) -> bool) {
        let mut start = self.begin;
        let last = start + core::mem::take(&mut self.undecided);
        if let Shares::Fixed(shares) = shares {
            for &(rail, share) in shares.iter().filter(|(rail, _)| is_open(*rail)) {
                let end = start + share.min(last - start);
                if end > start {
                    self.parts.push(Part { carrier: Carrier::Rail(rail), start, end });
                }
                start = end;
            }
        }
        if start < last {
            self.parts.push(Part { carrier: Carrier::First, start, end: last });
        }
    }

    /// The next chunk for `rail`: offset and length, at most `max` bytes.
    pub(crate) fn next_chunk(&mut self, rail: RailId, max: u64) -> Option<(u64, u64)> {
        let index = self.parts.iter().position(|part| match part.carrier {
            Carrier::Rail(r) => r == rail,
            Carrier::First | Carrier::Any => true,
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
        self.parts.is_empty() && self.undecided == 0
    }

    /// What was meant for a rail that is gone may go anywhere.
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
        self.undecided + self.parts.iter().map(|part| part.end - part.start).sum::<u64>()
    }
}
