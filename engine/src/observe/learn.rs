//! Learning from messages (P4's future work): some transfers are timed and correct the profile of their
//! rail by size. Thresholds follow.
//!
//! A packet with one entry on an idle rail also carries a query which packets have arrived
//! ([`nmad_wire::Ask`]); a large message over a single rail requests a Fin; several rails acknowledge their
//! shares anyway. The peer answers at once, on the same rail. A transfer that waits behind others gives the
//! rate, one that does not the time of its length. When a link opens on an unknown rail, a few empty
//! queries are sent first: their round trips give the time of an answer. While there is something to learn,
//! messages use the window instead of the short path, and those of insufficiently known lengths use one
//! method after the other. Later the peer is checked again from time to time.

use crate::clock::{Duration, Instant};
use crate::collect::request::Hints;
use crate::config::Config;
use crate::engine::peer::Peer;
use crate::engine::{Engine, Inspect, NoticeKind};
use crate::observe::observation::{Observation, Observed};
use crate::observe::watched::Watched;
use crate::packet::{PeerId, RailId, RequestId};
use crate::profile::doubt::Doubt;
use crate::profile::learning::{Learning, TIMED, Taught};
use crate::profile::origin::Way;
use crate::profile::recent::Learnt;
use crate::profile::sample::Method;
use crate::protocol::Request;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;
use alloc::format;
use alloc::sync::Arc;
use nmad_wire::{Ask, Eager, Frame, Header, Seen};

/// Bytes that a rail may hold when a timed transfer is given to it: a request to send.
const HELD_MAX: u64 = 256;
/// Number of messages in a row without anything to learn, after which learning pauses.
const SETTLED: u32 = 2;
/// Packets, and chunks, after which a peer is checked again.
const PACKETS: u32 = 1024;
const CHUNKS: u32 = 64;
/// Checks of a peer, one of which measures the time of answers, if all profiles are measured ones.
const CHECKS: u32 = 4;
/// Shortest message whose shares, acknowledged by several rails, give the rails' speed.
const SHARED_FROM: u64 = 128 << 10;
/// Longest message used to compare the latencies of rails.
const COMPARED_MAX: u64 = 1 << 10;
/// Length of an [`Ask`] in bytes.
const ASK_LEN: usize = 6;
/// A rail counts as idle if it is predicted to be idle within this time, or this fraction of the message's
/// time: posting a request to send takes no longer.
const POSTED_NS: u64 = 20_000;
const PAUSE: u64 = 8;
/// If more packets and chunks than one message has were sent before the answer to an empty query arrived,
/// the sender did not poll for it. With half of it a message with several chunks counts as many; twice
/// changes nothing for streams.
const MEANWHILE: u32 = 4;
/// Longest time that messages wait for answers to empty queries when a link opens.
const GREETING: Duration = Duration::from_ms(1);

/// Whether a rail is idle when a transfer of `ns` nanoseconds begins. After posting a request to send or an
/// answer the predicted idle time includes the pause of the core, during which the wire is idle.
fn is_idle(now: Instant, ns: u64, link: &Link, rail: &Rail) -> bool {
    let pause = Duration::from_ns(POSTED_NS.max(ns / PAUSE));
    rail.idle_at <= now + pause && link.tx.bytes_at_rail() < HELD_MAX
}

impl Peer {
    /// Whether there is something to learn after links were added, lost or opened.
    pub(crate) fn is_new(&self) -> bool {
        let is_unknown = |link: &Link| link.is_up() && !link.forecast.is_measured();
        self.fixed.adapts && !self.way.injects && self.links.iter().any(is_unknown)
    }

    /// Whether its messages may be used for learning.
    fn may_learn(&self) -> bool {
        self.fixed.adapts && !self.way.injects && self.only.is_none()
    }

    /// Whether the receiver polls its rails, if that matters: `wait_ns` is the time that a large message
    /// has waited for its answer, beyond a handshake.
    pub(crate) fn is_prompt(&self, wait_ns: u64) -> bool {
        let learning = self.lone().and_then(|(_, link)| link.learning.as_ref());
        wait_ns < POSTED_NS || !learning.is_some_and(|learning| learning.learned.is_trusted())
    }

    /// Whether the receiver of a large message should report its arrival, so that the single rail is timed.
    pub(crate) fn times_large(&self, hints: Hints) -> bool {
        if !self.learning.is_active || self.way.keeps {
            return false;
        }
        let asks = hints.probe == Some(Method::Rendezvous);
        let learning = self.lone().and_then(|(_, link)| link.learning.as_deref());
        learning.is_some_and(|learning| asks || !learning.learned.is_trusted())
    }

    /// Whether the single rail is timed and seems slower than measured.
    fn seems_slow(&self, hints: Hints) -> bool {
        let learning = || self.lone().and_then(|(_, link)| link.learning.as_deref());
        self.times_large(hints) && learning().is_some_and(|learning| learning.learned.seems_slow())
    }

    /// Whether a large message uses rendezvous because the rail seems slow: the answer shows whether the
    /// receiver polls; only then the time is the rail's.
    pub(crate) fn doubts_rail(&self, len: u64, hints: Hints) -> bool {
        self.seems_slow(hints) && !self.answers_late(len)
    }

    /// Whether the receiver is known to be late, and no probe is due: its answers would not show how long the
    /// rail takes, and each message that asks would wait for one.
    fn answers_late(&self, len: u64) -> bool {
        self.waits_longer(false, || self.copies_ns(len))
    }

    /// Whether a large message over the single rail would use rendezvous, to time the rail, if its receiver
    /// were timely.
    pub(crate) fn asks_for_time(&self, len: u64) -> bool {
        if !self.learning.is_active || self.way.keeps {
            return false;
        }
        let learned = self.lone().and_then(|(_, link)| Some(&link.learning.as_deref()?.learned));
        learned.is_some_and(|learned| match learned.is_trusted() {
            true => learned.wants(Way::Body, len),
            false => learned.seems_slow(),
        })
    }

    /// Returns the factor by which the other rails are slower than by their profiles, which is caused by
    /// the receiver. Until they have carried data, no delay is attributed to one rail.
    fn delayed_in_common(&self, rail: RailId) -> f64 {
        let others = self.links.iter().filter(|link| link.rail != rail && link.is_up());
        let latest = |link: &Link| link.learning.as_ref().and_then(|learning| learning.learned.latest());
        let factors = others.map(|link| latest(link).unwrap_or(f64::INFINITY));
        factors.reduce(f64::min).map_or(1.0, |least| least.max(1.0))
    }

    /// Chooses the method and rail of a message while there is something to learn.
    #[cold]
    pub(crate) fn choose_probe(
        &mut self,
        rails: &[Rail],
        watched: &mut Watched,
        len: u64,
        hints: Hints,
    ) -> Hints {
        if self.only.is_some() || hints.probe.is_some() {
            return hints;
        }
        let waits = self.send_empty_queries(rails, watched) | self.awaits_answer(len);
        let next_method = if waits {
            None
        } else {
            self.next_method(rails, len).or_else(|| self.next_method_of_others(len))
        };
        self.learning.settled = if next_method.is_none() && !waits { self.learning.settled + 1 } else { 0 };
        if self.learning.settled > SETTLED {
            (self.learning.is_active, self.learning.settled) = (false, 0);
        }
        let (probe, rail) = next_method.unzip();
        Hints { probe, rail: hints.rail.or(rail.flatten()), ..hints }
    }

    /// Whether the answer to a timed transfer is awaited, or a rate is being observed to which a message of
    /// this length contributes.
    fn awaits_answer(&mut self, len: u64) -> bool {
        let all = self.links.iter_mut().filter_map(|link| link.learning.as_mut());
        all.fold(false, |waits, learning| waits | learning.is_busy() | learning.learned.wants_rate(len))
    }

    /// Returns the method that a message should use to learn about the rail that usually carries it.
    fn next_method(&mut self, rails: &[Rail], len: u64) -> Option<(Method, Option<RailId>)> {
        let (longest, limit, fastest) =
            (self.longest_eager() as u64, self.way.eager_max as u64, self.way.fastest);
        // A send by rendezvous waits for its receiver; programs may rely on short sends not to wait.
        let large_from = match self.way.push {
            Some(_) => 0,
            None if self.way.keeps => SHARED_FROM.max(limit / 4),
            None => limit / 4,
        };
        let gathers = rails[fastest.index()].limits.gather > 0;
        let is_fixed = len <= longest && self.fixed.eager_max.is_some();
        let asks = self.way.push.is_some() && len > limit && !self.answers_late(len);
        let link = self.link_mut(fastest).filter(|link| link.is_up())?;
        let learned = &mut link.learning.as_mut()?.learned;
        if learned.is_trusted() {
            // By its answer, a message by rendezvous shows whether its receiver polls.
            let is_timed = asks && learned.wants(Way::Body, len);
            return is_timed.then(|| {
                learned.attempt(Some(Way::Body), len);
                (Method::Rendezvous, None)
            });
        }
        let way = learned.next_method(len, (longest, large_from), gathers)?;
        learned.attempt(Some(way), len);
        let method = match way {
            Way::Copy => Method::Copy,
            Way::InPlace => Method::InPlace,
            Way::Body if self.way.push.is_some() => Method::Pushed,
            Way::Body => Method::Rendezvous,
        };
        let is_free = if way == Way::Body { !is_fixed } else { self.fixed.in_place_min.is_none() };
        Some((method, None)).filter(|_| is_free)
    }

    /// Returns the method and rail for a short message to learn about the other rails, whose latencies are
    /// compared with that of the usual one.
    fn next_method_of_others(&mut self, len: u64) -> Option<(Method, Option<RailId>)> {
        let fastest = self.way.fastest;
        let mut others = self.links.iter_mut().filter(|link| link.is_up() && link.rail != fastest);
        others.find_map(|link| {
            let learned = &mut link.learning.as_mut()?.learned;
            let way = learned.next_method(len, (COMPARED_MAX, u64::MAX), false)?;
            learned.attempt(Some(way), len);
            Some((Method::Copy, Some(link.rail)))
        })
    }

    /// Sends empty queries over links whose answer time is unknown, one link after the other, since queries
    /// over several delay each other; returns whether there are such links.
    fn send_empty_queries(&mut self, rails: &[Rail], watched: &mut Watched) -> bool {
        let is_asking = |link: &Link| {
            let pending = link.learning.as_ref().and_then(|learning| learning.pending);
            pending.is_some_and(|pending| pending.what.is_none())
        };
        let (mut waits, mut may_ask) = (false, !self.links.iter().any(is_asking));
        for link in self.links.iter_mut().filter(|link| link.is_up()) {
            let rail = link.rail;
            if link.learning.is_none() {
                let (in_place_min, pushes) =
                    (Config::IN_PLACE_MIN as u64, rails[rail.index()].limits.push > 0);
                link.learning = Some(Learning::new(link.forecast.profile(), in_place_min, pushes));
            }
            let Some(learning) = link.learning.as_mut().filter(|l| l.learned.wants_empty()) else { continue };
            waits = true;
            if may_ask && learning.pending.is_none() {
                // Timing starts when the query is sent.
                learning.learned.attempt(None, 0);
                let question = learning.ask(0, None, Instant::default());
                watched.ask_timed(self.id, rail, question);
                may_ask = false;
            }
        }
        waits
    }

    /// After a link has opened: sends empty queries first if its rail is unknown.
    pub(crate) fn query_new_link(&mut self, now: Instant, rails: &[Rail], watched: &mut Watched) {
        let is_reliable = self.links.iter().all(|link| !link.lossy);
        if self.learning.is_active && self.send_empty_queries(rails, watched) && is_reliable {
            self.learning.waits_until = now + GREETING;
        }
    }

    /// Returns the query that a packet with one entry carries if it is timed.
    #[cold]
    pub(crate) fn time_packet(
        &mut self,
        now: Instant,
        (rail, at): (RailId, &Rail),
        (len, in_place): (usize, bool),
    ) -> Option<Frame<'static>> {
        if len + ASK_LEN > self.way.packet_max {
            return None;
        }
        let link = self.link_mut(rail)?;
        let (is_idle, number) = (is_idle(now, 0, link, at), link.tx.next_number());
        let learning = link.learning.as_mut().filter(|_| is_idle)?;
        let way = if in_place { Way::InPlace } else { Way::Copy };
        let len = len.saturating_sub(Header::LEN + Eager::PLAIN_LEN) as u64;
        if !learning.learned.wants(way, len) {
            return None;
        }
        let question = learning.begin(now, number, (way, len))?;
        Some(Frame::Ask(Ask { rail: rail.0, question }))
    }
}

impl Engine {
    /// Records that an empty query is sent.
    pub(crate) fn empty_query_sent(&mut self, now: Instant, to: PeerId, rail: RailId, question: u32) {
        let Engine { peers, rails, .. } = self;
        let link = peers.link_mut(to, rail);
        let Some(link) = link else { return };
        let (is_idle, number) = (is_idle(now, 0, link, &rails[rail.index()]), link.tx.next_number());
        let Some(learning) = &mut link.learning else { return };
        match &mut learning.pending {
            Some(pending) if pending.question == question && pending.what.is_none() => {
                (pending.from, pending.number) = (now, number);
                learning.pending = learning.pending.filter(|_| is_idle);
            }
            _ => {}
        }
    }

    /// Begins to time a large message when its first chunk is about to be sent.
    #[cold]
    pub(crate) fn time_large(&mut self, now: Instant, rail: RailId, to: PeerId, request: RequestId) {
        let Engine { peers, rails, requests, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return };
        let peer = peers.get_mut(to);
        let Some(peer) = peer.filter(|_| send.timing.is_timed) else { return };
        let Some(link) = peer.link_mut(rail) else { return };
        let len = send.data.len();
        let is_idle = is_idle(now, link.forecast.body_ns(len), link, &rails[rail.index()]);
        let learning = link.learning.as_mut();
        learning.into_iter().for_each(|learning| learning.started(now, request.0, len, is_idle));
    }

    /// Records that the receiver has a large message.
    pub(crate) fn timed_large(&mut self, now: Instant, from: PeerId, request: u64) {
        let peer = self.peer_mut(from).filter(|peer| !peer.way.keeps);
        let link = peer.and_then(|peer| peer.links.iter_mut().find(|link| link.learning.is_some()));
        let Some((rail, learning)) = link.and_then(|link| Some((link.rail, link.learning.as_mut()?))) else {
            return;
        };
        let learnt = learning.arrived(now, request);
        self.relearn(now, (from, rail), learnt);
    }

    /// Records that one of several rails that share messages has carried `len` bytes of them; `is_alone`:
    /// it was idle before.
    #[cold]
    pub(crate) fn timed_share(
        &mut self,
        now: Instant,
        (from, rail): (PeerId, RailId),
        (len, ns): (u64, u64),
        is_alone: bool,
    ) {
        let Some(peer) = self.peer_mut(from) else { return };
        let common = peer.delayed_in_common(rail);
        let Some(learning) = peer.link_mut(rail).and_then(|link| link.learning.as_deref_mut()) else {
            return;
        };
        let learned = &mut learning.learned;
        if is_alone {
            learned.note_pause();
        }
        let learnt = match is_alone {
            true if learned.wants(Way::Body, len) => learned.note(Way::Body, len, ns, common),
            true => Learnt::Nothing,
            false => learned.note_behind(len, ns, common),
        };
        self.relearn(now, (from, rail), learnt);
    }

    /// Handles the answer to a timed query; false: the query was another one.
    pub(crate) fn on_timed(&mut self, now: Instant, from: PeerId, seen: &Seen) -> bool {
        if seen.question & TIMED == 0 {
            return false;
        }
        let rail = RailId(seen.rail);
        let Engine { peers, rails, observers, .. } = self;
        let watched = &mut observers.watched;
        let peer = peers.get_mut(from);
        let Some(peer) = peer else { return true };
        let Some(link) = peer.link_mut(rail) else { return true };
        let number = link.tx.next_number();
        let Some(learning) = link.learning.as_mut() else { return true };
        let Some(pending) = learning.pending.take_if(|pending| pending.question == seen.question) else {
            return true;
        };
        let ns = now.since(pending.from).as_ns();
        let learnt = match pending.what {
            _ if pending.from == Instant::default() => Learnt::Nothing,
            // The sender continued to send and did not poll for the answer.
            None if learning.learned.is_trusted() && number.wrapping_sub(pending.number) > MEANWHILE => {
                Learnt::Nothing
            }
            None => learning.learned.note_empty(ns),
            Some(_) if pending.number.wrapping_sub(seen.below) < 1 << 31 => Learnt::Nothing,
            Some((way, len)) => learning.learned.note(way, len, ns, 1.0),
        };
        let is_empty = pending.what.is_none();
        if is_empty && !peer.send_empty_queries(rails, watched) {
            peer.learning.waits_until = Instant::default();
        }
        if is_empty && self.observers.observations.is_some() {
            let what = Observed::Answered;
            self.note_observation(
                from,
                Observation { at: now, what, which: rail.0, len: 0, ns, other_ns: 0 },
            );
        }
        self.relearn(now, (from, rail), learnt);
        true
    }

    /// Derives the profile of a link again.
    fn relearn(&mut self, now: Instant, (id, rail): (PeerId, RailId), learnt: Learnt) {
        if learnt == Learnt::Nothing {
            return;
        }
        let Engine { peers, rails, has_errands, .. } = self;
        let Some(peer) = peers.get_mut(id) else { return };
        let Some(link) = peer.link_mut(rail) else { return };
        let Some(learning) = &mut link.learning else { return };
        let profile = learning.learned.profile();
        let refuted = learning.learned.refuted().filter(|_| !learning.is_reported && profile.is_some());
        learning.is_reported |= refuted.is_some();
        let when = link.forecast.profile().provenance().when.clone();
        if let Some(profile) = profile {
            link.forecast.rebase(Arc::new(profile));
            let is_other = !learning.learned.is_as_measured();
            learning.used_since = is_other.then(|| learning.used_since.unwrap_or(now));
            let Rail { limits, in_place, .. } = &mut rails[rail.index()];
            // The rail has one such length for all peers: that of the latest correction.
            *in_place = link.forecast.profile().in_place().filter(|_| limits.blocks).or(*in_place);
            *has_errands |= in_place.is_some();
        }
        if learnt == Learnt::Change {
            learning.learned.restart();
            (peer.learning.is_active, peer.learning.settled) = (true, 0);
            peer.strategies.relearnt();
        }
        peer.derive_way(rails);
        if let Some(refuted) = refuted {
            let then = "transfers correct the profile from now on, and the next job measures again";
            self.tell_of(rail, id, &format!("{} ({when}); {then}", refuted.why()), NoticeKind::Detail);
        }
    }

    /// Called for each packet with its number: checks the peer again now and then.
    #[inline(always)]
    pub(crate) fn note_number(&mut self, to: PeerId, number: u32) {
        if number % PACKETS == PACKETS - 1 {
            self.check_peer(to);
        }
    }

    /// After many packets: learns again where something was learnt, and checks measured profiles.
    #[cold]
    fn check_peer(&mut self, to: PeerId) {
        let is_learnt = |link: &Link| link.learning.as_ref().is_some_and(|l| !l.learned.is_trusted());
        let Engine { peers, rails, observers, .. } = self;
        let watched = &mut observers.watched;
        let Some(peer) = peers.get_mut(to) else { return };
        if peer.links.iter().any(is_learnt) {
            return self.restart_learning(to, |_| true);
        }
        if !peer.may_learn() {
            return;
        }
        peer.learning.checks = peer.learning.checks.wrapping_add(1);
        if peer.learning.checks % CHECKS == 0 {
            let learning = peer.links.iter_mut().filter_map(|link| link.learning.as_mut());
            learning.for_each(|learning| learning.learned.recheck_latency());
        }
        peer.send_empty_queries(rails, watched);
    }

    /// Called for each chunk, after the rail has counted it: checks the peer again now and then.
    pub(crate) fn note_chunk(&mut self, to: PeerId, rail: RailId) {
        if self.rails[rail.index()].counters.chunks.is_multiple_of(u64::from(CHUNKS)) {
            self.restart_learning(to, |_| true);
        }
    }

    #[cold]
    fn restart_learning(&mut self, to: PeerId, is_worth_it: impl Fn(&Link) -> bool) {
        let Engine { peers, .. } = self;
        let Some(peer) = peers.get_mut(to) else { return };
        if !peer.may_learn() || peer.learning.is_active || !peer.links.iter().any(is_worth_it) {
            return;
        }
        let learning = peer.links.iter_mut().filter_map(|link| link.learning.as_mut());
        learning.for_each(|learning| learning.learned.recheck());
        (peer.learning.is_active, peer.learning.settled) = (true, 0);
    }
}

impl Inspect<'_> {
    /// Returns the profile of a rail to a peer as corrected by transfers; `None`: it is unchanged, or the
    /// rail has no link to the peer.
    pub fn learnt(self, rail: RailId, peer: PeerId) -> Option<Taught> {
        let link = self.0.peer(peer)?.link(rail)?;
        let (since, count) = link.learning.as_ref()?.taught()?;
        Some(Taught { profile: link.forecast.profile().clone(), since, count })
    }

    /// Returns the doubt about the measured profile of a rail to a peer if transfers clearly contradict it.
    pub fn refutation(self, rail: RailId, peer: PeerId) -> Option<Doubt> {
        let learning = self.0.peer(peer)?.link(rail)?.learning.as_ref()?;
        Some(learning.learned.refuted()?.doubt())
    }
}
