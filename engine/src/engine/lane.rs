//! The only rail that is left to a peer, where there is but one and its link is open: there is nothing to
//! choose, so what is alone goes the short way over it, out ([`super::direct`]) and in ([`super::plain`]).

use super::peer::Peer;
use crate::packet::RailId;
use crate::transfer::link::{Link, State};
use nmad_wire::{Eager, Header};

/// Bytes of header and frame of a packet with one message, whose data follows.
pub(super) const HEAD: usize = Header::LEN + Eager::PLAIN_LEN;

/// The only rail to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) rail: RailId,
    /// Place of its link among those of the peer.
    pub(super) place: usize,
    /// Messages shorter than this may go past the window; none, if the strategy wants to see them all.
    pub(super) below: u64,
}

impl Peer {
    /// Derives the lane anew: links came, went or opened, or thresholds changed.
    pub(super) fn mark_lane(&mut self) {
        let used = |rail| self.only.is_none_or(|only| only == rail);
        let left = |link: &Link| link.state != State::Dead && used(link.rail);
        let mut places = (0..self.links.len()).filter(|&place| left(&self.links[place]));
        let lone = places.next().filter(|_| places.next().is_none());
        // What is still to be said is said on the long way.
        let usual = !self.is_gone() && self.unsaid.is_empty();
        let open = lone.filter(|&place| usual && self.links[place].is_up());
        let longest = self.eager_max.min(self.packet_max.saturating_sub(HEAD)) as u64;
        let below = if self.strategy.passes() { longest + 1 } else { 0 };
        self.lane = open.map(|place| Lane { rail: self.links[place].rail, place, below });
    }
}
