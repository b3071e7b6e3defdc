//! The state of a link: one peer over one rail.

use super::arrivals::{Arrivals, SERVICE_MIN};
use super::congestion::{Congestion, Scheme};
use super::retention::{Cargo, News, Retention, Served};
use super::rtt::Rtt;
use super::silence::Silence;
use super::suspicion::{Snapshot, Suspicion};
use crate::clock::{Duration, Instant};
use crate::packet::{Packet, RailId, RequestId};
use crate::profile::forecast::Forecast;
use crate::profile::learning::Learning;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// On a reliable link, acknowledge after this many packets and chunks if no other traffic carries the
/// acknowledgement.
const LAZY_COUNT: u32 = 64;
/// On a lossy link, acknowledge after this many packets and chunks, or after a while.
const EAGER_COUNT: u32 = 4;
/// Orders that a lossy link may have in flight; the receiver can record this many numbers beyond the first
/// gap.
pub(crate) const IN_FLIGHT_MAX: usize = 64;
/// An order is retransmitted when this many later numbers were acknowledged (RFC 5681 section 3.2).
const OVERTAKEN_MIN: usize = 3;
/// Shorter orders are short messages or parts of them; the sender's pauses between them would be counted as
/// time of the rail.
const PIECE_MIN: u64 = 24 << 10;
/// Longest time that is one sample of a link that carries data in both directions. Found with messages in
/// both directions at once over simulated rails of 4 and 1 Gbit/s (`Stage::both_ways`, asserted by
/// `sim/tests/all/adapt.rs`). With half, where nothing was sampled, messages of 1 MiB take 3.7 times as
/// long as by the rates instead of 1.03, and of 4 and 16 MiB 1.2 instead of 1.01. With twice, those of
/// 4 MiB take 1.05 in the second after a rail was halved instead of 1.03; others differ by up to 3 %.
const POOLED_NS: u64 = 40_000_000;
/// The peer's data explain a time if they take all but this part of it: a rail that others slow down by a
/// third, in both directions, is still seen. In the same simulation, half and twice the value change times
/// by up to 2 %, and by up to 6 % after a rail was halved. Without this limit, messages of 16 MiB take 1.23
/// times as long as by the rates where nothing was sampled.
const EXPLAINED: u64 = 4;

/// What newly acknowledged data say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Service {
    /// The peer sends large data, too.
    pub(crate) is_two_way: bool,
    /// If there was enough data for a bandwidth sample: its length, how many nanoseconds it took, and
    /// whether the link was idle before.
    pub(crate) sample: Option<(u64, u64, bool)>,
}

/// Acknowledged data that are no sample yet.
#[derive(Debug, Default)]
struct Pool {
    len: u64,
    count: u64,
    /// Bytes that the peer has sent meanwhile.
    peers: u64,
    /// The link was idle before.
    idle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The link was never opened.
    Cold,
    Connecting,
    Up,
    /// The link was up and may come up again; the engine retries it from time to time.
    Left,
    /// The link never comes up again.
    Dead,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rail: RailId,
    /// Number of this rail on the peer's side; known once the link is up.
    pub(crate) remote: Option<u8>,
    pub(crate) state: State,
    pub(crate) lossy: bool,
    pub(crate) tx: Retention,
    pub(crate) rx: Arrivals,
    pub(crate) rtt: Rtt,
    /// The congestion window; used only if the link is lossy.
    pub(crate) congestion: Box<dyn Congestion>,
    pub(crate) forecast: Forecast,
    /// Measurements of transfers on this link, if the engine learns from them.
    pub(crate) learning: Option<Box<Learning>>,
    /// Data of at least this many bytes is cheaper to send in place than to copy.
    pub(crate) in_place_min: usize,
    /// Non-contiguous data is sent in place if its blocks have at least this many bytes on average.
    pub(crate) block_min: usize,
    /// Two entries share a packet only if the smaller one has at most this many bytes.
    pub(crate) aggregate_max: usize,
    /// Time spent waiting for acknowledgements that did not come.
    pub(crate) silence: Silence,
    /// When an acknowledgement last reported new data.
    served_at: Instant,
    /// The data acknowledged since then, if they are no sample yet.
    pool: Pool,
    /// No retransmission on a lossy link is due before this time, unless something happens on the link.
    quiet_until: Instant,
    /// Bytes in flight on a lossy link that the peer can buffer.
    pub(crate) buffers: u64,
    /// Unnumbered packets that the rail holds.
    pub(crate) notices: usize,
    /// The peer reported that it has closed the link.
    pub(crate) told: bool,
    /// The rail has received the order to close the link.
    pub(crate) closing: bool,
    /// State for failure detection; present if the peer has several links or the interface has reported an
    /// event.
    pub(crate) notes: Option<Box<Notes>>,
}

/// State for detecting that a link carries no traffic any more.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) suspicion: Suspicion,
    /// Counts parts of packets and chunks that were sent or received.
    pub(crate) moved: u32,
    /// Orders retransmitted because later ones had arrived: the peer is alive and the network lost them.
    pub(crate) overtaken: u32,
    /// The link must not be opened again.
    pub(crate) is_abandoned: bool,
    /// Notifications still expected from the peer that it closed a link which this side has lost.
    pub(crate) downs_due: u32,
    /// Why the interface carries no traffic; `None`: it does, according to the system.
    pub(crate) unplugged: Option<String>,
}

impl Link {
    pub(crate) fn new(rail: RailId, lossy: bool, forecast: Forecast, scheme: Scheme) -> Self {
        Link {
            rail,
            remote: None,
            state: State::Cold,
            lossy,
            tx: Retention::default(),
            rx: Arrivals::default(),
            rtt: Rtt::default(),
            congestion: scheme.window(),
            forecast,
            learning: None,
            in_place_min: usize::MAX,
            block_min: 0,
            aggregate_max: usize::MAX,
            silence: Silence::default(),
            served_at: Instant::default(),
            pool: Pool::default(),
            quiet_until: Instant::default(),
            buffers: u64::MAX,
            notices: 0,
            told: false,
            closing: false,
            notes: None,
        }
    }

    /// Returns the number of orders that the rail holds.
    #[inline]
    pub(crate) fn at_rail(&self) -> usize {
        self.tx.at_rail() + self.notices
    }

    /// Whether the link is up or may still come up for the first time.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.state, State::Left | State::Dead)
    }

    /// Whether the link is down now but carried traffic before.
    pub(crate) fn was_up(&self) -> bool {
        self.state == State::Left && self.remote.is_some()
    }

    /// Returns the state that failure detection looks at.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let first = self.tx.first();
        Snapshot {
            first: first.map(|entry| (entry.number, entry.first_at)),
            moved: self.notes.as_ref().map_or(0, |notes| notes.moved),
            round_trip: self.rtt.usual(),
            carries: Duration::from_ns(first.map_or(0, |entry| self.forecast.busy_ns(entry.len))),
        }
    }

    /// Resets the measurements of a link that came up again; returns how long it was down.
    pub(crate) fn reset(&mut self, now: Instant, scheme: Scheme) -> Duration {
        (self.told, self.closing, self.notices) = (false, false, 0);
        (self.rtt, self.congestion) = (Rtt::default(), scheme.window());
        self.forecast.doubt();
        let notes = self.notes_mut();
        notes.unplugged = None;
        notes.suspicion.back(now)
    }

    /// Returns the state for failure detection and creates it if necessary.
    pub(crate) fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// Counts an order that is retransmitted because later ones were acknowledged.
    pub(crate) fn note_resend(&mut self) {
        if self.tx.has_overtaken(OVERTAKEN_MIN) {
            self.notes.iter_mut().for_each(|notes| notes.overtaken = notes.overtaken.wrapping_add(1));
        }
    }

    /// Counts a part of a packet or chunk that was sent or received.
    pub(crate) fn moved(&mut self) {
        self.notes.iter_mut().for_each(|notes| notes.moved = notes.moved.wrapping_add(1));
    }

    /// Returns why the interface carries no traffic.
    pub(crate) fn unplugged(&self) -> Option<&str> {
        self.notes.as_ref()?.unplugged.as_deref()
    }

    /// Whether the link carries traffic.
    #[inline]
    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether the rail may take another order for this link.
    #[inline]
    pub(crate) fn accepts(&self, depth: usize) -> bool {
        self.state == State::Up && self.at_rail() < depth && (!self.lossy || self.has_space())
    }

    /// Whether a lossy link may have more in flight: by numbers, by the congestion window, and by the
    /// peer's buffers.
    fn has_space(&self) -> bool {
        self.tx.len() < IN_FLIGHT_MAX && self.tx.pending() < self.buffers.min(self.congestion.window())
    }

    /// Predicts how long a link that accepts no order now stays so: until the data in flight is carried, or
    /// until the next retransmission.
    pub(crate) fn stall(&self) -> Duration {
        let carried = Duration::from_ns(self.forecast.busy_ns(self.tx.pending()));
        if self.lossy && self.rtt.backoff() > 0 { carried.max(self.rtt.timeout()) } else { carried }
    }

    /// Whether an acknowledgement should be sent now, without waiting for other traffic to carry it.
    #[inline(always)]
    pub(crate) fn ack_is_due(&self, now: Instant) -> bool {
        if self.state != State::Up {
            return false;
        }
        match self.lossy {
            true => self.rx.due_at(EAGER_COUNT).is_some_and(|at| now >= at),
            false => self.rx.unacknowledged >= LAZY_COUNT || self.rx.wanted,
        }
    }

    /// Records that the peer has everything below `below` and the numbers whose bits are set in `beyond`
    /// ([`Retention::acknowledge`]).
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        below: u32,
        beyond: u64,
        free: &mut impl FnMut(Packet),
    ) -> News {
        let news = self.tx.acknowledge(below, beyond, free);
        if news.any {
            self.recheck_timers();
            self.rtt.progress();
            self.silence.restart(now);
        }
        news
    }

    /// Corrects the forecast by newly acknowledged data. A link carries data in order, so the rail was free
    /// for this data when it was sent, or when the data before it had arrived, whichever was later.
    ///
    /// If the peer sends large data on this link, too, acknowledgements say little: they travel behind those
    /// data, and the peer reads while it writes. Then all that is in flight is one sample, and none if the
    /// peer's data explain the time.
    #[inline]
    pub(crate) fn served(&mut self, now: Instant, served: Served) -> Service {
        let idle = served.first >= self.served_at && self.pool.len == 0;
        if idle {
            self.pool = Pool { idle, ..Pool::default() };
            self.served_at = served.first;
        }
        self.pool.len += served.len;
        self.pool.count += served.count;
        self.pool.peers += core::mem::take(&mut self.rx.in_between);
        let ns = now.since(self.served_at).as_ns();
        let is_two_way = self.pool.peers >= SERVICE_MIN;
        if is_two_way && self.tx.pending() > 0 && ns < POOLED_NS {
            return Service { is_two_way, sample: None };
        }
        let Pool { len, count, peers, idle } = core::mem::take(&mut self.pool);
        self.served_at = now;
        let is_explained = self.forecast.quiet_ns(peers) > ns - ns / EXPLAINED;
        let tells = len >= SERVICE_MIN && len / count >= PIECE_MIN && !self.lossy && !is_explained;
        if tells {
            self.forecast.observe(now, len, ns, idle);
        }
        Service { is_two_way, sample: tells.then_some((len, ns, idle)) }
    }

    /// Returns when a lossy link has to send an acknowledgement or a retransmission.
    pub(crate) fn timer(&self) -> Option<Instant> {
        if !self.lossy || self.state != State::Up {
            return None;
        }
        let resend = self.tx.oldest().map(|sent_at| self.rtt.due_at(sent_at));
        self.rx.due_at(EAGER_COUNT).into_iter().chain(resend).min()
    }

    /// After the clock went back: unacknowledged packets count as sent now.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.recheck_timers();
        self.tx.restart_timers(now);
        self.rx.restart_timers(now);
        self.rtt.restart_timers(now);
        self.silence.restart_timers(now);
        self.congestion.restart_timers(now);
        self.notes.iter_mut().for_each(|notes| notes.suspicion.restart_timers(now));
    }

    /// Makes the next check recompute which retransmission is due; called when an order was sent or
    /// acknowledged.
    #[inline]
    pub(crate) fn recheck_timers(&mut self) {
        self.quiet_until = Instant::default();
    }

    /// Whether a lossy link has nothing to do. A waiting thread calls this in its polling loop.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        now < self.quiet_until && self.rx.unacknowledged == 0
    }

    /// Returns until when a lossy link has nothing to do, unless something happens on it; `None`: something
    /// may be due now.
    pub(crate) fn idle_until(&self, now: Instant) -> Option<Instant> {
        let until = self.rx.due_at(EAGER_COUNT).map_or(self.quiet_until, |due| due.min(self.quiet_until));
        (now < until).then_some(until)
    }

    /// Returns the number to retransmit: the oldest one after a timeout, or one that several later ones
    /// have overtaken (fast retransmit).
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<u32> {
        let oldest = self.tx.oldest();
        let due_at = oldest.map(|sent_at| self.rtt.due_at(sent_at));
        let round_trip = self.rtt.smoothed();
        let overtaken = self.tx.overtaken(OVERTAKEN_MIN, |sent_at| now.since(sent_at) > round_trip);
        if let Some(number) = overtaken {
            self.congestion.lost(now, number, self.tx.next_number());
            return overtaken;
        }
        if due_at.is_none_or(|due_at| now < due_at) {
            let quiet_until = due_at.unwrap_or(Instant::from_ns(u64::MAX));
            self.quiet_until = if self.tx.has_overtaken(OVERTAKEN_MIN) { now } else { quiet_until };
            return None;
        }
        let number = self.tx.oldest_number()?;
        let len = self.tx.entry(number).map_or(0, |entry| entry.len);
        if oldest.is_some_and(|sent_at| self.rtt.is_of_round(sent_at)) {
            self.rtt.spend(len);
        } else {
            self.begin_round(now, len);
        }
        Some(number)
    }

    /// Records that nothing was acknowledged for a timeout and that `len` bytes are retransmitted.
    fn begin_round(&mut self, now: Instant, len: u64) {
        // The first timeout may be a lost tail, which no later order overtakes (RFC 8985, section 7.2), or
        // a peer that has no core. From the second timeout on the path is blocked, or so lossy that another
        // window of data is worth sending again.
        let allowed = match self.rtt.backoff() {
            0 => 0,
            _ => {
                self.congestion.stalled(now, self.tx.next_number());
                self.congestion.window().saturating_sub(len)
            }
        };
        self.silence.waited(now, self.rtt.timeout());
        self.rtt.back_off(now, allowed);
    }

    /// Keeps an order that is sent now until it is acknowledged. If nothing else is in flight, the wait for
    /// an acknowledgement begins here: a link that had nothing to send is not counted as silent.
    #[inline(never)]
    pub(crate) fn hold(&mut self, now: Instant, cargo: Cargo, len: u64, in_place: Vec<RequestId>) {
        if self.tx.len() == 0 {
            self.silence.restart(now);
            // Observations of a link that died are over, too.
            (self.pool, self.rx.in_between) = (Pool::default(), 0);
        }
        self.tx.push(now, cargo, len, in_place);
    }

    /// Whether the peer has acknowledged nothing for so long that the link counts as dead. `alone`: the
    /// peer has no other link.
    pub(crate) fn is_timed_out(&self, alone: bool) -> bool {
        self.silence.is_timed_out(self.rtt.backoff(), alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 1_000_000;
    const NS: u64 = 1_000_000;

    /// A link of 1 GB/s.
    fn link() -> Link {
        let forecast = Forecast::nominal(1_000, 1_000_000_000, 0);
        Link::new(RailId(0), false, forecast, Scheme::default())
    }

    /// Data in flight, half of which is acknowledged at this time, and the other half at another one.
    fn halves(link: &mut Link, at: Instant, first: Instant) -> [Service; 2] {
        link.hold(first, Cargo::Packet(None), LEN, Vec::new());
        let half = link.served(at, Served { len: LEN / 2, count: 4, first });
        link.tx.acknowledge(1, 0, &mut |_| {});
        [half, link.served(at, Served { len: LEN / 2, count: 4, first })]
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    fn one_way(len: u64, us: u64, idle: bool) -> Service {
        Service { is_two_way: false, sample: Some((len, us * 1_000, idle)) }
    }

    #[test]
    fn data_one_way_are_samples_as_they_are_acknowledged() {
        let mut link = link();
        let [first, second] = halves(&mut link, at(700), at(100));
        assert_eq!(first, one_way(LEN / 2, 600, true));
        assert_eq!(second, one_way(LEN / 2, 0, false));
    }

    #[test]
    fn acknowledgements_behind_the_peers_data_are_no_samples() {
        let mut link = link();
        link.hold(at(100), Cargo::Packet(None), LEN, Vec::new());
        link.rx.note(2 * LEN);
        let none = Service { is_two_way: true, sample: None };
        assert_eq!(
            link.served(at(2_200), Served { len: LEN / 2, count: 4, first: at(100) }),
            none,
            "not all"
        );
        link.tx.acknowledge(1, 0, &mut |_| {});
        assert_eq!(link.served(at(2_200), Served { len: LEN / 2, count: 4, first: at(100) }), none);
        // What has come before this side sends does not count.
        link.rx.note(LEN);
        link.tx.sent(0, None, false);
        let [first, _] = halves(&mut link, at(4_000), at(3_000));
        assert_eq!(first, one_way(LEN / 2, 1_000, true));
    }

    #[test]
    fn a_link_that_returns_begins_anew() {
        let mut link = link();
        link.hold(at(100), Cargo::Packet(None), LEN, Vec::new());
        link.rx.note(2 * LEN);
        let half = link.served(at(600), Served { len: LEN / 2, count: 4, first: at(100) });
        assert_eq!(half, Service { is_two_way: true, sample: None });
        drop(link.tx.take_all());
        let [first, _] = halves(&mut link, at(90_000), at(89_400));
        assert_eq!(first, one_way(LEN / 2, 600, true));
    }

    #[test]
    fn a_slow_rail_is_seen_in_both_directions() {
        let mut link = link();
        link.hold(at(100), Cargo::Packet(None), LEN, Vec::new());
        link.rx.note(LEN);
        link.tx.acknowledge(1, 0, &mut |_| {});
        let all = link.served(at(2_100), Served { len: LEN, count: 8, first: at(100) });
        assert_eq!(
            all,
            Service { is_two_way: true, sample: Some((LEN, 2 * NS, true)) },
            "both take twice as long"
        );
    }
}
