//! The only rail that is left to a peer, where there is but one and its link is open: there is nothing to
//! choose, so what is alone goes the short way over it, out ([`super::direct`]) and in ([`super::plain`]).

use super::peer::Peer;
use crate::collect::request::{Context, Tag};
use crate::packet::RailId;
use crate::transfer::link::{Link, State};
use nmad_wire::{AloneHead, Eager, Header, Kind};

/// The only rail to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) rail: RailId,
    /// Place of its link among those of the peer.
    pub(super) place: usize,
    /// Messages shorter than this may go past the window; none, if the strategy wants to see them all.
    pub(super) below: u64,
    /// The rail takes a message that nothing has to be remembered of, without a system call.
    pub(super) passes: bool,
}

/// What goes before the data of a message that is alone in the next packet of a link.
#[inline]
pub(super) fn alone_head(link: &Link, (context, tag): (Context, Tag), seq: u32, len: u64) -> AloneHead {
    let frame = Eager { flags: 0, context: context.0, tag: tag.0, seq, len: len as u32, request: 0 };
    let (number, ack) = (link.tx.next_number(), link.rx.below());
    frame.alone_head(&Header { kind: Kind::Packet, len: Eager::ALONE_LEN as u32 + len as u32, number, ack })
}

impl Peer {
    /// The links that may carry something, and their places.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, &Link)> {
        let used = |link: &Link| self.only.is_none_or(|only| only == link.rail);
        self.links.iter().enumerate().filter(move |(_, link)| link.state != State::Dead && used(link))
    }

    /// The only one of them, if there is but one.
    pub(super) fn lone(&self) -> Option<(usize, &Link)> {
        let mut used = self.used();
        used.next().filter(|_| used.next().is_none())
    }

    /// Derives the lane anew: links came, went or opened, or thresholds changed.
    pub(super) fn mark_lane(&mut self) {
        // What is still to be said is said on the long way.
        let usual = !self.is_gone() && self.unsaid.is_empty();
        let open = self.lone().filter(|(_, link)| usual && link.is_up());
        let below = if self.strategy.passes() { self.eager_max as u64 + 1 } else { 0 };
        let passes = self.may_pass;
        self.lane = open.map(|(place, link)| Lane { rail: link.rail, place, below, passes });
    }
}
