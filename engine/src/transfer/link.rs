//! A link: one peer over one rail. Its state, and which numbers have arrived on it.

use super::congestion::{Congestion, Scheme};
use super::retention::{Cargo, Retention, Served};
use super::rtt::Rtt;
use super::suspicion::{Sight, Suspicion};
use super::vain::Vain;
use crate::clock::{Duration, Instant};
use crate::packet::{RailId, RequestId};
use crate::profile::forecast::Forecast;
use crate::profile::learning::Learning;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// On a reliable link, acknowledge after this many packets and chunks if no other traffic does it.
const LAZY_COUNT: u32 = 64;
/// On a lossy link, acknowledge after this many, or after [`EAGER_DELAY`].
const EAGER_COUNT: u32 = 4;
const EAGER_DELAY: Duration = Duration::from_us(50);
/// Numbers beyond the first gap that a link remembers; a sender has no more in flight on a lossy link.
pub(crate) const IN_FLIGHT_MAX: usize = 64;
/// Sent again when this many later numbers were acknowledged (RFC 5681 section 3.2).
const OVERTAKEN_MIN: usize = 3;
/// Fewer bytes say nothing of a rail's service: their time is latency and the age of the clock.
const SERVICE_MIN: u64 = 48 << 10;
/// Shorter pieces are short messages or their shares, and the time between those is not the rail's.
const PIECE_MIN: u64 = 24 << 10;
/// No number can be further ahead than this.
const FAR_MAX: u32 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody has tried yet.
    Cold,
    Connecting,
    Up,
    /// It was up, and may be so again: it is tried from time to time.
    Left,
    /// It will not be up any more.
    Dead,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rail: RailId,
    /// Number of this rail at the peer's side, once the link is up.
    pub(crate) remote: Option<u8>,
    pub(crate) state: State,
    pub(crate) lossy: bool,
    pub(crate) tx: Retention,
    pub(crate) rx: Arrivals,
    pub(crate) rtt: Rtt,
    /// How much may be in flight, if it is lossy.
    pub(crate) congestion: Box<dyn Congestion>,
    /// Its forecast.
    pub(crate) forecast: Forecast,
    /// What transfers say of it, if that is observed.
    pub(crate) learning: Option<Box<Learning>>,
    /// Data of at least this many bytes is cheaper left in place than copied.
    pub(crate) in_place_min: usize,
    /// Blocks of non-contiguous data stay in place if they have at least this many bytes, on average.
    pub(crate) block_min: usize,
    /// Of two things that share a packet, the smaller has at most this many bytes.
    pub(crate) aggregate_max: usize,
    /// How long it has waited for acknowledgements that did not come.
    pub(crate) vain: Vain,
    /// When the peer was last known to have more.
    served_at: Instant,
    /// Nothing of a lossy link has to be sent again before, unless something happens on it.
    calm_until: Instant,
    /// Bytes that the peer's side buffers of what is in flight on a lossy link.
    pub(crate) buffers: u64,
    /// Unnumbered packets that the rail holds.
    pub(crate) notices: usize,
    /// The peer said that it gave it up.
    pub(crate) told: bool,
    /// The rail has the order to close it.
    pub(crate) closing: bool,
    /// Notes, if it is one of several or its interface has reported something.
    pub(crate) notes: Option<Box<Notes>>,
}

/// Whether a link still carries anything.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) suspicion: Suspicion,
    /// Parts of packets and chunks that came or went.
    pub(crate) moved: u32,
    /// Orders sent again because later ones had arrived: the peer is there, and they were lost.
    pub(crate) overtaken: u32,
    /// It shall not be opened again.
    pub(crate) is_abandoned: bool,
    /// How often the peer has not yet said that it gave up a link that this side has lost.
    pub(crate) downs_due: u32,
    /// Why its interface does not carry anything now; none: it does, as far as the system tells.
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
            vain: Vain::default(),
            served_at: Instant::default(),
            calm_until: Instant::default(),
            buffers: u64::MAX,
            notices: 0,
            told: false,
            closing: false,
            notes: None,
        }
    }

    /// Orders that the rail holds.
    #[inline]
    pub(crate) fn at_rail(&self) -> usize {
        self.tx.at_rail() + self.notices
    }

    /// Whether it is there, or about to be for the first time.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.state, State::Left | State::Dead)
    }

    /// Whether it carried traffic before it was left.
    pub(crate) fn was_up(&self) -> bool {
        self.state == State::Left && self.remote.is_some()
    }

    /// Its state, for the watch on silent links.
    pub(crate) fn sight(&self) -> Sight {
        let first = self.tx.first();
        Sight {
            first: first.map(|entry| (entry.number, entry.first_at)),
            moved: self.notes.as_ref().map_or(0, |notes| notes.moved),
            round_trip: self.rtt.usual(),
            carries: Duration::from_ns(first.map_or(0, |entry| self.forecast.busy_ns(entry.len))),
        }
    }

    /// It is up again: measurements of its way are dropped.
    pub(crate) fn begin_anew(&mut self, now: Instant, scheme: Scheme) -> Duration {
        (self.told, self.closing, self.notices) = (false, false, 0);
        (self.rtt, self.congestion) = (Rtt::default(), scheme.window());
        self.forecast.doubt();
        let notes = self.notes_mut();
        notes.unplugged = None;
        notes.suspicion.back(now)
    }

    /// Its notes, which may be the first.
    pub(crate) fn notes_mut(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// An order is to be sent again.
    pub(crate) fn note_resend(&mut self) {
        if self.tx.has_overtaken(OVERTAKEN_MIN) {
            self.notes.iter_mut().for_each(|notes| notes.overtaken = notes.overtaken.wrapping_add(1));
        }
    }

    /// Part of a packet or chunk came or went.
    pub(crate) fn moved(&mut self) {
        self.notes.iter_mut().for_each(|notes| notes.moved = notes.moved.wrapping_add(1));
    }

    /// Why its interface carries nothing.
    pub(crate) fn unplugged(&self) -> Option<&str> {
        self.notes.as_ref()?.unplugged.as_deref()
    }

    /// Whether it carries traffic.
    #[inline]
    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether another order may go to the rail.
    #[inline]
    pub(crate) fn accepts(&self, depth: usize) -> bool {
        self.state == State::Up && self.at_rail() < depth && (!self.lossy || self.has_space())
    }

    /// Whether more may be in flight on a lossy link: numbers, and bytes that the way and the peer hold.
    fn has_space(&self) -> bool {
        self.tx.len() < IN_FLIGHT_MAX && self.tx.pending() < self.buffers.min(self.congestion.window())
    }

    /// How long one that takes no more will take no more, as far as it is known: until what is in flight has
    /// been carried, or until something is sent again.
    pub(crate) fn stands_still(&self) -> Duration {
        let carried = Duration::from_ns(self.forecast.busy_ns(self.tx.pending()));
        if self.lossy && self.rtt.backoff() > 0 { carried.max(self.rtt.timeout()) } else { carried }
    }

    /// Whether an acknowledgement should leave now, without waiting for other traffic.
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

    /// The peer has more than before: corrects the forecast. A link serves in order, so the rail was free for
    /// this when it left, or when what went before had arrived, whichever was later. If there was enough of
    /// it to say how long the rest will take: how many nanoseconds it took, and whether the link was idle
    /// before.
    #[inline]
    pub(crate) fn served(&mut self, now: Instant, served: Served) -> Option<(u64, bool)> {
        let Served { len, count, first } = served;
        let (idle, free_at) = (first >= self.served_at, first.max(self.served_at));
        self.served_at = now;
        let tells = len >= SERVICE_MIN && len / count >= PIECE_MIN && !self.lossy;
        let ns = now.since(free_at).as_ns();
        if tells {
            self.forecast.observe(now, len, ns, idle);
        }
        tells.then_some((ns, idle))
    }

    /// When a lossy link needs attention: an acknowledgement or something to send again.
    pub(crate) fn timer(&self) -> Option<Instant> {
        if !self.lossy || self.state != State::Up {
            return None;
        }
        let resend = self.tx.oldest().map(|sent_at| self.rtt.due_at(sent_at));
        self.rx.due_at(EAGER_COUNT).into_iter().chain(resend).min()
    }

    /// An order has left, or was acknowledged: retransmission is decided anew.
    #[inline]
    pub(crate) fn reconsider(&mut self) {
        self.calm_until = Instant::default();
    }

    /// Whether nothing is to be done on a lossy link: a thread that waits asks this all the time.
    #[inline]
    pub(crate) fn is_calm(&self, now: Instant) -> bool {
        now < self.calm_until && self.rx.unacknowledged == 0
    }

    /// Until when nothing is to be done on a lossy link, unless something happens on it; none: something may
    /// be to be done now.
    pub(crate) fn rests_until(&self, now: Instant) -> Option<Instant> {
        let until = self.rx.due_at(EAGER_COUNT).map_or(self.calm_until, |due| due.min(self.calm_until));
        (now < until).then_some(until)
    }

    /// The number that should be sent again: the oldest after a timeout, or one that several later ones
    /// have overtaken (fast resend).
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<u32> {
        let oldest = self.tx.oldest();
        let due_at = oldest.map(|sent_at| self.rtt.due_at(sent_at));
        let patience = self.rtt.smoothed();
        let overtaken = self.tx.overtaken(OVERTAKEN_MIN, |sent_at| now.since(sent_at) > patience);
        if let Some(number) = overtaken {
            self.congestion.lost(now, number, self.tx.next_number());
            return overtaken;
        }
        if due_at.is_none_or(|due_at| now < due_at) {
            let calm_until = due_at.unwrap_or(Instant::from_ns(u64::MAX));
            self.calm_until = if self.tx.has_overtaken(OVERTAKEN_MIN) { now } else { calm_until };
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

    /// Nothing was acknowledged for a timeout, and `len` bytes are sent again.
    fn begin_round(&mut self, now: Instant, len: u64) {
        // The first time it may be the last of a message that was lost, which nothing overtakes (RFC 8985,
        // section 7.2), or the peer has no core; from the second time on the way is blocked, or loses so much
        // that a window of it is worth another try.
        let allowed = match self.rtt.backoff() {
            0 => 0,
            _ => {
                self.congestion.stalled(now, self.tx.next_number());
                self.congestion.window().saturating_sub(len)
            }
        };
        self.vain.waited(now, self.rtt.timeout());
        self.rtt.back_off(now, allowed);
    }

    /// Remembers what leaves now until it is acknowledged. With nothing else under way the wait begins here:
    /// what was silent because nobody had anything to say is not hopeless.
    #[inline]
    pub(crate) fn hold(&mut self, now: Instant, cargo: Cargo, len: u64, in_place: Vec<RequestId>) {
        if self.tx.len() == 0 {
            self.vain.restart(now);
        }
        self.tx.push(now, cargo, len, in_place);
    }

    /// Whether the peer has acknowledged nothing for so long that the link counts as dead; `alone`: there is
    /// no other one to the peer.
    pub(crate) fn is_hopeless(&self, alone: bool) -> bool {
        self.vain.is_hopeless(self.rtt.backoff(), alone)
    }
}

/// Which numbers of the peer's packets and chunks have arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    below: u32,
    beyond: u64,
    /// Numbers further ahead; only replays of a dead link come that far out of order.
    far: BTreeSet<u32>,
    /// Arrived since the last acknowledgement left.
    unacknowledged: u32,
    /// Something arrived twice or out of order: tell at once.
    hasty: bool,
    /// The peer wants to know when this arrived.
    wanted: bool,
    /// Arrived since the last acknowledgement left, where that is counted.
    bytes: u64,
    since: Instant,
}

impl Arrivals {
    /// Takes note of a number; false if it was there already or is impossibly far ahead.
    #[inline]
    pub(crate) fn accept(&mut self, now: Instant, number: u32) -> bool {
        if self.unacknowledged == 0 {
            self.since = now;
        }
        self.unacknowledged += 1;
        match number.wrapping_sub(self.below) {
            0 => {
                self.advance();
                true
            }
            ahead => {
                self.hasty = true;
                self.accept_ahead(number, ahead)
            }
        }
    }

    /// `len` bytes have arrived of what other rails share: how long they took says how the next ones should
    /// be shared out, so they are acknowledged at once when there are enough of them for that.
    #[inline]
    pub(crate) fn note(&mut self, len: u64) {
        self.bytes += len;
        self.wanted |= self.bytes >= SERVICE_MIN;
    }

    /// Whether no sender can have come to this number yet.
    pub(crate) fn is_impossible(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.below);
        (FAR_MAX..1 << 31).contains(&ahead)
    }

    fn accept_ahead(&mut self, number: u32, ahead: u32) -> bool {
        if ahead >= FAR_MAX {
            return false;
        }
        if ahead > 64 {
            return self.far.insert(number);
        }
        let bit = 1 << (ahead - 1);
        let new = self.beyond & bit == 0;
        self.beyond |= bit;
        new
    }

    /// `below` has arrived: move on over everything that was there already.
    #[inline]
    fn advance(&mut self) {
        loop {
            self.below = self.below.wrapping_add(1);
            let seen = self.beyond & 1 != 0;
            self.beyond >>= 1;
            if !self.far.is_empty() && self.far.remove(&self.below.wrapping_add(64)) {
                self.beyond |= 1 << 63;
            }
            if !seen {
                return;
            }
        }
    }

    /// Everything below this has arrived.
    #[inline]
    pub(crate) fn below(&self) -> u32 {
        self.below
    }

    /// Numbers that have arrived beyond the first gap.
    #[inline]
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// An acknowledgement has left.
    #[inline]
    pub(crate) fn acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.hasty = false;
        self.wanted = false;
        self.bytes = 0;
    }

    fn due_at(&self, count: u32) -> Option<Instant> {
        match self.unacknowledged {
            0 => None,
            n if n >= count || self.hasty => Some(self.since),
            _ => Some(self.since + EAGER_DELAY),
        }
    }
}
