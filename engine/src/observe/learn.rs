//! Sampling while messages go (P4's future work): some transfers are timed, and correct the profile of their
//! rail by size. Thresholds follow.
//!
//! A packet with one entry that finds its rail idle also asks which packets have arrived
//! ([`nmad_wire::Ask`]), a large message over one rail asks for a Fin, and several rails acknowledge their
//! shares anyway. The peer answers at once, on the same rail. A transfer that waits behind others tells the
//! rate, one that does not the time of its length. When a link opens of which nothing is known, a few
//! questions about nothing go first: their round trips tell the way of an answer. While something is to be
//! learnt, messages pass the window instead of the short way, and those of lengths of which too little is
//! known are carried in one way after the other. Afterwards the peer is looked at again from time to time.

use crate::clock::{Duration, Instant};
use crate::collect::request::Hints;
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::peer::Peer;
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

/// What a rail may still hold when something is given to it that is timed: a request to send.
const HELD_MAX: u64 = 256;
/// After this number of messages of which enough was known, nothing more is to be learnt for now.
const SETTLED: u32 = 2;
/// Packets, and chunks, to a peer after which it is looked at again.
const PACKETS: u32 = 1024;
const CHUNKS: u32 = 64;
/// Such looks at a peer of which one asks how long answers take, where all profiles are measured ones.
const LOOKS: u32 = 4;
/// Shortest message of which several rails acknowledge shares that tell how fast they are.
const SHARED_FROM: u64 = 128 << 10;
/// Longest message by which the latencies of rails are compared.
const COMPARED_MAX: u64 = 1 << 10;
/// Bytes of an [`Ask`].
const ASK_LEN: usize = 6;
/// A rail counts as idle if its clock says so within this time, or this part of what a message takes: posting
/// a request to send takes no longer.
const POSTED_NS: u64 = 20_000;
const PAUSE: u64 = 8;
/// If more packets and chunks than one message takes were sent before the answer to nothing came, nobody was
/// looking for it. With half of it a message with several chunks counts as many; twice changes nothing for
/// streams.
const MEANWHILE: u32 = 4;
/// Messages wait no longer than this for answers to nothing when a link opens.
const GREETING: Duration = Duration::from_ms(1);

/// Whether a rail has nothing to do for any peer when something leaves that takes `ns` nanoseconds. What was
/// posted just before, a request to send or an answer, makes its clock say that the core pauses, which the
/// wire does not.
fn is_idle(now: Instant, ns: u64, link: &Link, rail: &Rail) -> bool {
    let pause = Duration::from_ns(POSTED_NS.max(ns / PAUSE));
    rail.idle_at <= now + pause && link.tx.bytes_at_rail() < HELD_MAX
}

impl Peer {
    /// Whether something is to be learnt, now that links came, went or opened.
    pub(crate) fn is_new(&self) -> bool {
        let is_unknown = |link: &Link| link.is_up() && !link.forecast.is_measured();
        self.fixed.adapts() && !self.way.injects && self.links.iter().any(is_unknown)
    }

    /// Whether its messages may teach anything.
    fn may_learn(&self) -> bool {
        self.fixed.adapts() && !self.way.injects && self.only.is_none()
    }

    /// Whether the receiver looks at its rails, if that counts: `wait_ns` is the time that a large message
    /// has waited for its answer, beyond a handshake.
    pub(crate) fn is_prompt(&self, wait_ns: u64) -> bool {
        let learning = self.lone().and_then(|(_, link)| link.learning.as_ref());
        wait_ns < POSTED_NS || !learning.is_some_and(|learning| learning.learned.is_trusted())
    }

    /// Whether the receiver of a large message shall say when it has it, so that the only rail is timed.
    pub(crate) fn times_large(&self, hints: Hints) -> bool {
        if !self.learning.is_curious || self.way.keeps {
            return false;
        }
        let asks = hints.probe == Some(Method::Rendezvous);
        let learning = self.lone().and_then(|(_, link)| link.learning.as_deref());
        learning.is_some_and(|learning| asks || !learning.learned.is_trusted())
    }

    /// Whether a large message shall ask because the only rail is timed and seems slower than it was
    /// measured: the answer tells whether the receiver is there, and only then it is the rail that is
    /// timed.
    pub(crate) fn doubts_its_rail(&self, hints: Hints) -> bool {
        let learning = || self.lone().and_then(|(_, link)| link.learning.as_deref());
        self.times_large(hints) && learning().is_some_and(|learning| learning.learned.seems_slow())
    }

    /// What the other rails take longer than by their profiles: that is the receiver's doing. As long as they
    /// have carried nothing, nothing is blamed on one rail.
    fn delayed_in_common(&self, rail: RailId) -> f64 {
        let others = self.links.iter().filter(|link| link.rail != rail && link.is_up());
        let latest = |link: &Link| link.learning.as_ref().and_then(|learning| learning.learned.latest());
        let factors = others.map(|link| latest(link).unwrap_or(f64::INFINITY));
        factors.reduce(f64::min).map_or(1.0, |least| least.max(1.0))
    }

    /// How a message goes while something is to be learnt.
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
        let waits = self.ask_nothing(rails, watched) | self.awaits_answer(len);
        let wish = if waits { None } else { self.wish(rails, len).or_else(|| self.wish_of_others(len)) };
        self.learning.settled = if wish.is_none() && !waits { self.learning.settled + 1 } else { 0 };
        if self.learning.settled > SETTLED {
            (self.learning.is_curious, self.learning.settled) = (false, 0);
        }
        let (probe, rail) = wish.unzip();
        Hints { probe, rail: hints.rail.or(rail.flatten()), ..hints }
    }

    /// Whether the answer to something that is timed has not come yet, or a rate is being observed, of which
    /// a message of this length may tell more.
    fn awaits_answer(&mut self, len: u64) -> bool {
        let all = self.links.iter_mut().filter_map(|link| link.learning.as_mut());
        all.fold(false, |waits, learning| waits | learning.is_busy() | learning.learned.pursues_rate(len))
    }

    /// In which way a message should go so that more is known of the rail that usually carries it.
    fn wish(&mut self, rails: &[Rail], len: u64) -> Option<(Method, Option<RailId>)> {
        let (longest, limit, fastest) =
            (self.longest_eager() as u64, self.way.eager_max as u64, self.way.fastest);
        // A send that is announced waits for its receiver: programs may rely on short ones that do not.
        let large_from = match self.way.push {
            Some(_) => 0,
            None if self.way.keeps => SHARED_FROM.max(limit / 4),
            None => limit / 4,
        };
        let gathers = rails[fastest.index()].limits.gather > 0;
        let is_fixed = len <= longest && self.fixed.has_eager_max();
        let asks = self.way.push.is_some() && len > limit;
        let link = self.link_mut(fastest).filter(|link| link.is_up())?;
        let learned = &mut link.learning.as_mut()?.learned;
        if learned.is_trusted() {
            // One that asks tells whether its receiver looks.
            let is_timed = asks && learned.wants(Way::Body, len);
            return is_timed.then(|| {
                learned.attempt(Some(Way::Body), len);
                (Method::Rendezvous, None)
            });
        }
        let way = learned.wish(len, (longest, large_from), gathers)?;
        learned.attempt(Some(way), len);
        let method = match way {
            Way::Copy => Method::Copy,
            Way::InPlace => Method::InPlace,
            Way::Body if self.way.push.is_some() => Method::Pushed,
            Way::Body => Method::Rendezvous,
        };
        let is_free = if way == Way::Body { !is_fixed } else { !self.fixed.has_in_place_min() };
        Some((method, None)).filter(|_| is_free)
    }

    /// The same of a short message and the other rails, whose latencies are compared with that of the usual
    /// one.
    fn wish_of_others(&mut self, len: u64) -> Option<(Method, Option<RailId>)> {
        let fastest = self.way.fastest;
        let mut others = self.links.iter_mut().filter(|link| link.is_up() && link.rail != fastest);
        others.find_map(|link| {
            let learned = &mut link.learning.as_mut()?.learned;
            let way = learned.wish(len, (COMPARED_MAX, u64::MAX), false)?;
            learned.attempt(Some(way), len);
            Some((Method::Copy, Some(link.rail)))
        })
    }

    /// Asks over the links of which that is unknown how long an answer takes, one link after the other, since
    /// questions over several delay each other; whether there are any.
    fn ask_nothing(&mut self, rails: &[Rail], watched: &mut Watched) -> bool {
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
                // What counts is when it leaves.
                learning.learned.attempt(None, 0);
                let question = learning.ask(0, None, Instant::default());
                watched.ask_timed(self.id, rail, question);
                may_ask = false;
            }
        }
        waits
    }

    /// A link has opened: if nothing is known of its rail it is asked about first.
    pub(crate) fn greet(&mut self, now: Instant, rails: &[Rail], watched: &mut Watched) {
        let is_reliable = self.links.iter().all(|link| !link.lossy);
        if self.learning.is_curious && self.ask_nothing(rails, watched) && is_reliable {
            self.learning.greets_until = now + GREETING;
        }
    }

    /// A packet with one entry is about to leave: the question that it carries if it is timed.
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
    /// A question without anything before it leaves.
    pub(crate) fn asked_nothing(&mut self, now: Instant, to: PeerId, rail: RailId, question: u32) {
        let Engine { peers, rails, .. } = self;
        let link = peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut()?.link_mut(rail));
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

    /// The first chunk of a large message is about to leave.
    #[cold]
    pub(crate) fn time_large(&mut self, now: Instant, rail: RailId, to: PeerId, request: RequestId) {
        let Engine { peers, rails, requests, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return };
        let peer = peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut());
        let Some(peer) = peer.filter(|_| send.timing.is_timed) else { return };
        let Some(link) = peer.link_mut(rail) else { return };
        let len = send.envelope.len;
        let is_idle = is_idle(now, link.forecast.body_ns(len), link, &rails[rail.index()]);
        let learning = link.learning.as_mut();
        learning.into_iter().for_each(|learning| learning.leaves(now, request.0, len, is_idle));
    }

    /// The receiver has a large message.
    pub(crate) fn timed_large(&mut self, now: Instant, from: PeerId, request: u64) {
        let peer = self.peer_mut(from).filter(|peer| !peer.way.keeps);
        let link = peer.and_then(|peer| peer.links.iter_mut().find(|link| link.learning.is_some()));
        let Some((rail, learning)) = link.and_then(|link| Some((link.rail, link.learning.as_mut()?))) else {
            return;
        };
        let learnt = learning.arrived(now, request);
        self.relearn(now, (from, rail), learnt);
    }

    /// Several rails share messages, and one has carried `len` bytes of them; `is_alone`: it had nothing to
    /// do before.
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
        let learnt = match is_alone {
            true if learned.wants(Way::Body, len) => learned.note(Way::Body, len, ns, common),
            true => Learnt::Nothing,
            false => learned.note_behind(len, ns, common),
        };
        self.relearn(now, (from, rail), learnt);
    }

    /// The answer about what was timed; false: the question was another one.
    pub(crate) fn on_timed(&mut self, now: Instant, from: PeerId, seen: &Seen) -> bool {
        if seen.question & TIMED == 0 {
            return false;
        }
        let rail = RailId(seen.rail);
        let Engine { peers, rails, observers, .. } = self;
        let watched = &mut observers.watched;
        let peer = peers.get_mut(from.0 as usize).and_then(|p| p.as_deref_mut());
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
            // The asker went on sending and did not look for the answer.
            None if learning.learned.is_trusted() && number.wrapping_sub(pending.number) > MEANWHILE => {
                Learnt::Nothing
            }
            None => learning.learned.note_empty(ns),
            Some(_) if pending.number.wrapping_sub(seen.below) < 1 << 31 => Learnt::Nothing,
            Some((way, len)) => learning.learned.note(way, len, ns, 1.0),
        };
        if pending.what.is_none() && !peer.ask_nothing(rails, watched) {
            peer.learning.greets_until = Instant::default();
        }
        self.relearn(now, (from, rail), learnt);
        true
    }

    /// Makes the profile of a link anew.
    fn relearn(&mut self, now: Instant, (id, rail): (PeerId, RailId), learnt: Learnt) {
        if learnt == Learnt::Nothing {
            return;
        }
        let Engine { peers, rails, .. } = self;
        let Some(peer) = peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let Some(link) = peer.link_mut(rail) else { return };
        let Some(learning) = &mut link.learning else { return };
        let profile = learning.learned.profile();
        let refuted = learning.learned.refuted().filter(|_| !learning.is_told && profile.is_some());
        learning.is_told |= refuted.is_some();
        let when = link.forecast.profile().provenance().when.clone();
        if let Some(profile) = profile {
            link.forecast.rebase(Arc::new(profile));
            let is_other = !learning.learned.is_as_measured();
            learning.used_since = is_other.then(|| learning.used_since.unwrap_or(now));
        }
        if learnt == Learnt::Change {
            learning.learned.begin_anew();
            (peer.learning.is_curious, peer.learning.settled) = (true, 0);
            peer.strategies.relearnt();
        }
        peer.derive_way(rails);
        if let Some(refuted) = refuted {
            let then = "from now on what transfers take counts instead, and the next job measures again";
            self.tell(rail, id, &format!("{} ({when}); {then}", refuted.why()));
        }
    }

    /// What transfers have made of what was known of a rail to a peer; none: they have changed nothing, or
    /// the rail does not lead there.
    pub fn learnt(&self, rail: RailId, peer: PeerId) -> Option<Taught> {
        let link = self.peer(peer)?.link(rail)?;
        let (since, count) = link.learning.as_ref()?.taught()?;
        Some(Taught { profile: link.forecast.profile().clone(), since, count })
    }

    /// What transfers say against the profile that was measured of a rail to a peer, if that is clear.
    pub fn refutation(&self, rail: RailId, peer: PeerId) -> Option<Doubt> {
        let learning = self.peer(peer)?.link(rail)?.learning.as_ref()?;
        Some(learning.learned.refuted()?.doubt())
    }

    /// A packet with this number leaves: now and then the peer is looked at again.
    #[inline(always)]
    pub(crate) fn note_number(&mut self, to: PeerId, number: u32) {
        if number % PACKETS == PACKETS - 1 {
            self.look(to);
        }
    }

    /// After many packets: where something was learnt it is learnt again; measured profiles are checked.
    #[cold]
    fn look(&mut self, to: PeerId) {
        let is_learnt = |link: &Link| link.learning.as_ref().is_some_and(|l| !l.learned.is_trusted());
        let Engine { peers, rails, observers, .. } = self;
        let watched = &mut observers.watched;
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        if peer.links.iter().any(is_learnt) {
            return self.look_again(to, |_| true);
        }
        if !peer.may_learn() {
            return;
        }
        peer.learning.looks = peer.learning.looks.wrapping_add(1);
        if peer.learning.looks % LOOKS == 0 {
            let learning = peer.links.iter_mut().filter_map(|link| link.learning.as_mut());
            learning.for_each(|learning| learning.learned.look_at_latency());
        }
        peer.ask_nothing(rails, watched);
    }

    /// The same of a chunk, which a measured profile is checked by, too; the rail has counted it.
    pub(crate) fn note_chunk(&mut self, to: PeerId, rail: RailId) {
        if self.rails[rail.index()].counters.chunks.is_multiple_of(u64::from(CHUNKS)) {
            self.look_again(to, |_| true);
        }
    }

    #[cold]
    fn look_again(&mut self, to: PeerId, is_worth_it: impl Fn(&Link) -> bool) {
        let Engine { peers, .. } = self;
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        if !peer.may_learn() || peer.learning.is_curious || !peer.links.iter().any(is_worth_it) {
            return;
        }
        let learning = peer.links.iter_mut().filter_map(|link| link.learning.as_mut());
        learning.for_each(|learning| learning.learned.look_again());
        (peer.learning.is_curious, peer.learning.settled) = (true, 0);
    }
}
