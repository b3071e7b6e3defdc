//! Ways that are blocked or narrow for a while, as the scenario says, and links that are opened again.

use super::{Happening, Inbound, Key, Network, Standing};
use crate::outage::{How, Outage};

/// A link may be left within this time after its way was blocked: answers were under way.
const AFTERMATH_NS: u64 = 100_000_000;

impl Network {
    /// Enters what will fail.
    pub fn set_outages(&mut self, outages: Vec<Outage>) {
        for (number, outage) in outages.iter().enumerate().filter(|(_, o)| o.how == How::Unplugged) {
            self.agenda.enter(outage.from, Happening::Carrier(number, false));
            self.agenda.enter(outage.until, Happening::Carrier(number, true));
        }
        self.outages = outages;
    }

    /// Whether links that were lost may be opened again.
    pub fn returns(&self) -> bool {
        !self.outages.is_empty()
    }

    /// Whether both directions of a way let something pass.
    pub fn carries(&self, key: Key, at: u64) -> bool {
        [key, key.reverse()].iter().all(|&key| self.blocked_until(key, at).is_none())
    }

    /// Until when nothing passes from this side that is under way at `at`; none: it passes.
    pub(super) fn blocked_until(&self, key: Key, at: u64) -> Option<u64> {
        let Key { fabric, me, peer } = key;

        let mut until = None;
        while let Some(outage) = self.outages.iter().find(|outage| {
            let at = until.unwrap_or(at);
            outage.blocks() && outage.hits(fabric, me, peer) && outage.covers(at)
        }) {
            until = Some(outage.until);
        }
        until
    }

    /// How many times as long as usual everything takes from this side.
    pub(super) fn narrowness(&self, key: Key, at: u64) -> u64 {
        let Key { fabric, me, peer } = key;
        let now = |outage: &&Outage| outage.hits(fabric, me, peer) && outage.covers(at);
        self.outages.iter().filter(now).map(Outage::narrowness).max().unwrap_or(1)
    }

    /// By how much everything from this side is later than usual, in nanoseconds.
    pub(super) fn lateness_ns(&self, key: Key, at: u64) -> u64 {
        let Key { fabric, me, peer } = key;
        let now = |outage: &&Outage| outage.hits(fabric, me, peer) && outage.covers(at);
        self.outages.iter().filter(now).map(Outage::lateness_ns).max().unwrap_or(0)
    }

    /// Whether there was reason to leave a link.
    pub(super) fn may_leave(&self, key: Key, now: u64) -> bool {
        let Key { fabric, me, peer } = key;
        // A host without a core hears late of the others.
        let starved_ns = self.doing[me].starved_ns + self.doing[peer].starved_ns;
        self.outages.iter().any(|outage| {
            let hits = outage.hits(fabric, me, peer) || outage.hits(fabric, peer, me);
            outage.blocks() && hits && outage.from <= now && now <= outage.until + AFTERMATH_NS + starved_ns
        })
    }

    /// The system tells both hosts of a carrier.
    pub fn carrier(&mut self, now: u64, number: usize, is_back: bool) {
        let Outage { fabric, a, b, .. } = self.outages[number];
        for (me, peer) in [(a, b), (b, a)] {
            let lost = (!is_back).then(|| format!("net{fabric} has lost its carrier (simulated)"));
            self.arrive(now, fabric, me, Inbound::Carrier { peer, lost });
        }
    }

    /// Part of something has arrived at the other side.
    pub fn part(&mut self, now: u64, key: Key) {
        if self.side(key.reverse()).standing == Standing::Up && self.blocked_until(key, now).is_none() {
            self.arrive(now, key.fabric, key.peer, Inbound::Moved { from: key.me });
        }
    }

    /// What takes this long on a narrow way arrives in parts.
    pub(super) fn in_parts(&mut self, key: Key, begin: u64, end: u64) {
        const PART_NS: u64 = 1_500_000;
        let mut at = begin + PART_NS;
        while self.returns() && at < end {
            self.agenda.enter(at, Happening::Part(key));
            at += PART_NS;
        }
    }

    /// A side wants a link again that it has lost or given up.
    pub(super) fn reconnect(&mut self, key: Key, now: u64) {
        let latency = self.fabrics[key.fabric].model.latency_ns();
        self.side(key).standing = Standing::Opening;
        let blocked = [key, key.reverse()].iter().any(|&key| self.blocked_until(key, now).is_some());
        self.side(key).asks_again = blocked;
        if blocked {
            return; // Nobody answers, until the engine has waited for long enough.
        }
        if self.side(key.reverse()).standing == Standing::Up {
            // The other side has not noticed that the old link is gone.
            self.noticed(now, key.reverse());
        }
        let epoch = self.side(key).epoch.max(self.side(key.reverse()).epoch) + 1;
        for (key, at) in [(key.reverse(), now + latency), (key, now + 2 * latency)] {
            let not_before = self.side(key).last_reach;
            let side = self.side(key);
            (side.standing, side.cut, side.doomed, side.epoch) = (Standing::Opening, false, false, epoch);
            side.asks_again = false;
            side.not_before = side.not_before.max(not_before);
            side.way_free = 0;
            self.oracle.anew(key);
            self.agenda.enter(at, Happening::Open(key));
        }
    }
}

impl Outage {
    fn covers(&self, at: u64) -> bool {
        (self.from..self.until).contains(&at)
    }
}
