//! The short ways: a lone message passes the window, out ([`crate::protocol::plan`]) and in ([`crate::engine::plain`]).
//! Where one rail is left there is nothing to choose, and most is decided when its link opens; of several
//! the strategy chooses one for each message.

use crate::clock::Instant;
use crate::engine::lane::Lane;
use crate::engine::peer::{Peer, view_of_any};
use crate::packet::RailId;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::Rail;
use nmad_wire::MAX_RAILS;

/// After this number of packets in a row over the same one of several rails, a thread that waits looks at
/// that rail more often than at the others.
const STEADY: u8 = 4;
/// More than this on its way to the peer, and the time of its acknowledgement tells how fast the rail is.
const UNTIMED: u64 = 16 << 10;

impl Peer {
    /// The links that may carry something, and their places.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, &Link)> {
        let used = |link: &Link| self.only.is_none_or(|only| only == link.rail);
        self.links.iter().enumerate().filter(move |(_, link)| link.is_there() && used(link))
    }

    /// The links that were left and may come back.
    pub(crate) fn left(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.state == State::Left && self.only.is_none())
    }

    /// The only one of them, if there is but one.
    pub(crate) fn lone(&self) -> Option<(usize, &Link)> {
        let mut used = self.used();
        used.next().filter(|_| used.next().is_none())
    }

    /// Derives the lane anew: links came, went or opened, or thresholds changed.
    pub(crate) fn mark_lane(&mut self, rails: &[Rail]) {
        // Control frames that are due leave on the long way, and so does what is timed.
        let usual = !self.is_gone() && self.unsaid.is_empty() && !self.is_curious;
        let open = self.lone().filter(|(_, link)| usual && link.is_up());
        let chosen = self.choose(rails, Instant::default(), 0);
        let below = chosen.map_or(0, |_| self.eager_max.min(self.longest_eager()) as u64 + 1);
        let below = below.min(self.reads.0);
        let injects = self.may_inject;
        self.lane = open.map(|(place, link)| Lane { rail: link.rail, place, below, injects });
        self.several = (usual && self.used().nth(1).is_some()).then_some(below);
    }

    /// Over which of the open rails a message of `len` bytes leaves that is alone in the window: the place of
    /// its link. None: the strategy wants to see it.
    pub(crate) fn choose(&self, rails: &[Rail], now: Instant, len: u64) -> Option<usize> {
        let mut open = self.used().filter(|(_, link)| link.is_up());
        let view = |link| view_of_any(now, link, rails, self.primary, self.fastest);
        let mut views = [view(open.next()?.1); MAX_RAILS];
        let further = views[1..].iter_mut().zip(open).map(|(place, (_, link))| *place = view(link)).count();
        let rail = self.strategy.lone(now, len, &views[..=further])?;
        self.links.iter().position(|link| link.rail == rail)
    }

    /// On which rail to look for the next packet, for a thread that waits for it and looks at all of them now
    /// and then. None: on all, because it may come over any, or because it may acknowledge something, and
    /// when that came would have to be known.
    #[inline]
    pub(crate) fn awaited_on(&self) -> Option<RailId> {
        if let Some(lane) = self.lane {
            return (self.links[lane.place].tx.len() == 0).then_some(lane.rail);
        }
        self.several?;
        let link = self.links.get(self.heard.place).filter(|_| self.heard.times >= STEADY)?;
        (link.is_up() && !link.lossy && link.tx.pending() < UNTIMED).then_some(link.rail)
    }
}
