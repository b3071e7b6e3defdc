//! Timers of lossy links: due acknowledgements and retransmissions.

use crate::clock::{Duration, Instant};
use crate::engine::Engine;
use crate::engine::peer::Peer;
use crate::packet::{PeerId, RailId};
use crate::protocol::Request;
use crate::transfer::driver::Order;
use crate::transfer::retention::{Cargo, ChunkCargo};

/// If the time is earlier than that of the last pass by more than this, the clock went back. A smaller
/// difference is normal: a thread reads the clock and then waits for the engine. A clock that goes back by
/// less delays each timer by at most this, which is the longest retransmission timeout; half or twice the
/// value halves or doubles that delay.
const BACK_MIN: Duration = Duration::from_ms(500);

impl Engine {
    /// Whether a timer of a lossy link may be due. Resets all timers if the clock went back: they would wait
    /// until it shows their time again.
    #[inline]
    pub(crate) fn has_timer(&mut self, now: Instant) -> bool {
        if now + BACK_MIN < self.passed_at {
            self.restart_timers(now);
        }
        self.passed_at = now;
        now >= self.rests_until && !self.timers_rest(now)
    }

    /// Restarts all timers, so that each expires after at most its whole duration from now.
    #[cold]
    fn restart_timers(&mut self, now: Instant) {
        self.reset_timers();
        self.observers.watched.look_now();
        self.rails.iter_mut().for_each(|rail| rail.restart_timers(now));
        let keep = self.config.return_within;
        self.peers.iter_mut().for_each(|peer| peer.restart_timers(now, keep));
        (0..self.ready.len()).for_each(|place| self.ask_all_held(self.ready[place]));
    }

    /// Makes the next pass check the timers, after an event.
    #[inline]
    pub(crate) fn reset_timers(&mut self) {
        self.rests_until = Instant::default();
        self.busy_until = Instant::default();
    }

    /// Whether no timer of a lossy link is due now and no peer is ready; records until when.
    pub(crate) fn timers_rest(&mut self, now: Instant) -> bool {
        self.book_deferred_ack();
        if !self.ready.is_empty() {
            return false;
        }
        let mut until = Instant::from_ns(u64::MAX);
        for &(peer, rail) in &self.timed {
            let link = self.peers.link(peer, rail).filter(|link| link.is_up());
            let Some(link) = link else { continue };
            let Some(rests) = link.idle_until(now) else { return false };
            until = until.min(rests);
        }
        self.rests_until = until;
        true
    }

    /// Returns an acknowledgement or a retransmission that is due on a lossy rail.
    pub(crate) fn timed_order(&mut self, now: Instant, rail: RailId) -> Option<Order> {
        self.book_deferred_ack();
        let depth = self.rails[rail.index()].limits.depth;
        for index in 0..self.timed.len() {
            let (id, on) = self.timed[index];
            if on != rail {
                continue;
            }
            let Some(link) = self.peers.link(id, rail).filter(|l| l.is_up()) else { continue };
            if link.is_quiet(now) || link.at_rail() >= depth {
                continue;
            }
            if link.ack_is_due(now) {
                return self.notice_for(rail, id);
            }
            if let Some(order) = self.resend(now, rail, id) {
                return Some(order);
            }
        }
        None
    }

    fn resend(&mut self, now: Instant, rail: RailId, id: PeerId) -> Option<Order> {
        let peer = self.peers.get_mut(id)?;
        let alone = peer.links.iter().filter(|link| link.is_up()).count() == 1;
        let link = peer.link_mut(rail)?;
        let number = link.overdue(now)?;
        if link.is_timed_out(alone) {
            self.give_up(rail, id, "no acknowledgement although everything was sent again and again");
            return None;
        }
        let ack = link.rx.below();
        link.note_resend();
        link.tx.resend(number, now);
        let order = match &mut link.tx.entry(number)?.cargo {
            Cargo::Packet(packet) => Order::Packet { to: id, number, packet: packet.take()? },
            Cargo::Chunk(ChunkCargo { request, region, key, offset, from }) => {
                match self.requests.get_mut(request.0) {
                    Some(Request::Large(send)) => send.at_rails += 1,
                    // The request has ended and its memory may be reused; only the number has to be sent.
                    _ => *from = from.slice(0, 0),
                }
                Order::Chunk {
                    to: id,
                    number,
                    ack,
                    region: *region,
                    key: *key,
                    offset: *offset,
                    from: from.clone(),
                }
            }
        };
        let len = match &order {
            Order::Packet { packet, .. } => packet.len() as u64,
            Order::Chunk { from, .. } => from.len(),
            _ => 0,
        };
        let state = &mut self.rails[rail.index()];
        state.counters.resent += 1;
        state.counters.again_bytes += len;
        state.give(now, id, link.forecast.busy_ns(len));
        Some(order)
    }
}

impl Peer {
    /// Begins anew what is awaited of this peer; `keep`: how long it is kept when all links are lost.
    fn restart_timers(&mut self, now: Instant, keep: Duration) {
        self.learning.waits_until = Instant::default();
        self.failover.lost.iter_mut().for_each(|lost| lost.until = lost.until.min(now + keep));
        self.links.iter_mut().for_each(|link| link.restart_timers(now));
    }
}
