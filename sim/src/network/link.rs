//! Links: how they open, die, are noticed to be dead, and are closed. Each side has its own view.

use super::{Happening, Inbound, Network};
use crate::key::Key;
use nmad_engine::transfer::driver::Order;
use std::collections::VecDeque;

/// The state of a link as the driver of one side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Nothing yet.
    #[default]
    Unopened,
    /// A connect is under way.
    Opening,
    /// It is up.
    Up,
    /// It is lost, or was closed by this side.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) standing: Standing,
    /// The engine has been told of the standing: `Up` or `Lost` was polled.
    pub(super) told: Standing,
    /// Posted orders that have not left, in order, by number of flight.
    pub(super) waiting: VecDeque<u64>,
    /// Nothing that leaves from this side arrives any more.
    pub(super) cut: bool,
    /// The loss was already put on the agenda of this side.
    pub(super) doomed: bool,
    /// Nothing of this direction arrives before the other side is open.
    pub(super) not_before: u64,
    /// When the last cargo of this direction reaches the other side: reliable links keep their order.
    pub(super) last_reach: u64,
    /// When all that was posted has passed a way that may be narrower than the port.
    pub(super) way_free: u64,
    /// This side has asked for the link again, and nobody answers: what was sent over the old one is lost.
    pub(super) asks_again: bool,
    /// How many times the link was opened again.
    pub(super) epoch: u64,
    /// The last of these times that the engine knows of.
    pub(super) told_epoch: u64,
}

impl Side {
    /// Whether it takes orders: the link is up, and the engine means this one.
    pub(super) fn takes(&self) -> bool {
        self.standing == Standing::Up && self.told_epoch == self.epoch
    }
}

impl Network {
    pub(super) fn side(&mut self, key: Key) -> &mut Side {
        let place = self.place(key.fabric, key.me);
        let sides = &mut self.sides[place];
        if sides.len() <= key.peer {
            sides.resize_with(key.peer + 1, Side::default);
        }
        &mut sides[key.peer]
    }

    /// A side that was used already.
    pub(super) fn seen(&self, key: Key) -> Option<&Side> {
        self.sides[self.place(key.fabric, key.me)].get(key.peer)
    }

    /// The state of the link as last reported to the engine of this side.
    pub fn told(&mut self, key: Key) -> Standing {
        self.side(key).told
    }

    /// The engine of this side receives the report now.
    pub fn tell(&mut self, key: Key, standing: Standing) {
        let side = self.side(key);
        side.told = standing;
        if standing == Standing::Up {
            side.told_epoch = side.epoch;
        }
    }

    /// One side wants the link to be open.
    pub fn connect(&mut self, key: Key) {
        let now = self.local_ns(key.me);
        let latency = self.fabrics[key.fabric].model.latency_ns();
        if self.returns() && self.side(key).standing == Standing::Gone {
            return self.reconnect(key, now);
        }
        if self.side(key).standing != Standing::Unopened {
            return;
        }
        self.side(key).standing = Standing::Opening;
        if self.side(key).cut || self.side(key.reverse()).cut || self.doing[key.peer].dead {
            return self.doom(key, now + 5_000_000);
        }
        self.agenda.enter(now + 2 * latency, Happening::Open(key));
        if self.side(key.reverse()).standing == Standing::Unopened {
            self.side(key.reverse()).standing = Standing::Opening;
            self.agenda.enter(now + latency, Happening::Open(key.reverse()));
        }
    }

    /// A side of a link is open from now on.
    pub fn opened(&mut self, now: u64, key: Key) {
        if self.side(key).standing != Standing::Opening || self.side(key).cut {
            return;
        }
        let latency = self.fabrics[key.fabric].model.latency_ns();
        self.side(key).standing = Standing::Up;
        // What the other side sent as soon as it was open must not overtake this.
        let other = self.side(key.reverse());
        other.not_before = now + 1;
        if other.standing == Standing::Unopened {
            other.standing = Standing::Opening;
            self.agenda.enter(now + latency, Happening::Open(key.reverse()));
        }
        let remote = self.port(key.fabric, key.peer).number;
        self.trace.note(now, key.me, &[1, key.fabric as u64, key.peer as u64], || {
            format!("net{} link to h{} is up", key.fabric, key.peer)
        });
        self.arrive(now, key.fabric, key.me, Inbound::Up { peer: key.peer, remote });
    }

    /// A fault ends a link: cargo on its way is lost, and each side notices after its own time.
    pub fn kill_link(&mut self, key: Key, now: u64, notice_ns: [u64; 2]) {
        self.strike(key);
        self.trace.note(now, key.me, &[2, key.fabric as u64, key.peer as u64], || {
            format!("net{} link to h{} dies", key.fabric, key.peer)
        });
        for (key, notice_ns) in [(key, notice_ns[0]), (key.reverse(), notice_ns[1])] {
            self.side(key).cut = true;
            if matches!(self.side(key).standing, Standing::Opening | Standing::Up) {
                self.doom(key, now + notice_ns);
            }
        }
    }

    /// A fault ends all links of one port.
    pub fn kill_port(&mut self, fabric: usize, host: usize, now: u64, notice_ns: [u64; 2]) {
        for peer in 0..self.doing.len() {
            if peer != host && self.has_port(fabric, peer) {
                self.kill_link(Key { fabric, me: host, peer }, now, notice_ns);
            }
        }
    }

    /// Only what leaves this side is lost at first, as with a transmitter that fails; then both notice.
    pub fn kill_direction(&mut self, key: Key, now: u64, notice_ns: [u64; 2]) {
        self.strike(key);
        self.trace.note(now, key.me, &[3, key.fabric as u64, key.peer as u64], || {
            format!("net{} nothing reaches h{} any more", key.fabric, key.peer)
        });
        self.side(key).cut = true;
        for (key, notice_ns) in [(key, notice_ns[0]), (key.reverse(), notice_ns[1])] {
            if matches!(self.side(key).standing, Standing::Opening | Standing::Up) {
                self.doom(key, now + notice_ns);
            }
        }
    }

    /// Whether a fault has hit the link.
    fn is_struck(&self, key: Key) -> bool {
        self.struck.contains(&(key.fabric, key.me.min(key.peer), key.me.max(key.peer)))
    }

    fn strike(&mut self, key: Key) {
        let new = self.struck.insert((key.fabric, key.me.min(key.peer), key.me.max(key.peer)));
        self.traffic.killed += u64::from(new);
    }

    fn doom(&mut self, key: Key, at: u64) {
        let side = self.side(key);
        if !std::mem::replace(&mut side.doomed, true) {
            let epoch = side.epoch;
            self.agenda.enter(at, Happening::Notice(key, epoch));
        }
    }

    /// A side may learn that its link, opened `epoch` times, is gone.
    pub fn noticed_of(&mut self, now: u64, key: Key, epoch: u64) {
        if self.side(key).epoch == epoch {
            self.noticed(now, key);
        }
    }

    /// A side learns that its link is gone; orders that have not left are given back.
    pub fn noticed(&mut self, now: u64, key: Key) {
        if self.side(key).standing == Standing::Gone || self.doing[key.me].dead {
            return;
        }
        self.side(key).standing = Standing::Gone;
        self.side(key).cut = true;
        let unsent = self.take_waiting(key);
        self.trace.note(now, key.me, &[4, key.fabric as u64, key.peer as u64, unsent.len() as u64], || {
            format!("net{} link to h{} is lost, {} orders given back", key.fabric, key.peer, unsent.len())
        });
        let why = format!("net{}: h{} does not answer (simulated fault)", key.fabric, key.peer);
        self.arrive(now, key.fabric, key.me, Inbound::Lost { peer: key.peer, why, unsent });
    }

    /// The engine of one side gives the link up: from now on none of its memory is touched, and the loss is
    /// reported with what has not left. The other side notices once everything that left before has arrived.
    pub fn close_link(&mut self, key: Key) {
        let now = self.local_ns(key.me);
        let latency = self.fabrics[key.fabric].model.latency_ns();
        self.trace.note(now, key.me, &[5, key.fabric as u64, key.peer as u64], || {
            format!("net{} closes its link to h{}", key.fabric, key.peer)
        });
        let arrived = |inbound: &Inbound| matches!(inbound, Inbound::Packet { .. } | Inbound::Chunk { .. });
        let inbox = &mut self.port(key.fabric, key.me).inbox;
        inbox.retain(|inbound| inbound.peer() != key.peer || !arrived(inbound));
        if self.side(key).standing == Standing::Gone {
            return;
        }
        let opening = self.returns() && self.side(key).standing == Standing::Opening;
        let is_told = self.doing[key.me].told_dead.contains(&key.peer);
        if !self.is_struck(key) && !opening && !is_told && !self.may_leave(key, now) {
            let Key { fabric, me, peer } = key;
            self.oracle.object(format!("h{me} gives up its link to h{peer} on net{fabric}, which is whole"));
        }
        self.side(key).standing = Standing::Gone;
        let unsent = self.take_waiting(key);
        let why = format!("net{}: link to h{} closed", key.fabric, key.peer);
        self.arrive(now, key.fabric, key.me, Inbound::Lost { peer: key.peer, why, unsent });
        if self.blocked_until(key, now).is_some() {
            return; // The other side has to be told in another way.
        }
        let at = self.side(key).last_reach.max(now) + latency;
        if matches!(self.side(key.reverse()).standing, Standing::Opening | Standing::Up) {
            self.doom(key.reverse(), at);
        }
    }

    /// Takes back all orders of this side that have not left.
    fn take_waiting(&mut self, key: Key) -> Vec<Order> {
        let waiting = std::mem::take(&mut self.side(key).waiting);
        self.port(key.fabric, key.me).outstanding -= waiting.len();
        let flights = waiting.into_iter().filter_map(|id| self.flights.remove(&id));
        flights.map(|flight| flight.into_order()).collect()
    }
}

impl Inbound {
    fn peer(&self) -> usize {
        match self {
            Inbound::Up { peer, .. } | Inbound::Lost { peer, .. } => *peer,
            Inbound::Packet { from, .. } | Inbound::Chunk { from, .. } => *from,
            Inbound::Sent { to, .. } => *to,
            Inbound::Carrier { peer, .. } => *peer,
            Inbound::Moved { from } => *from,
        }
    }
}
