//! What the three layers keep for one peer.

use crate::clock::{Duration, Instant};
use crate::collect::request::Envelope;
use crate::collect::sequence::Flows;
use crate::collect::window::{Entry, Window};
use crate::engine::fixed::Fixed;
use crate::engine::lane::{Heard, Lane};
use crate::observe::lateness::Lateness;
use crate::packet::{PeerId, RailId, RegionId, RequestId, StrategyId};
use crate::schedule::body::Body;
use crate::schedule::registry::Registry;
use crate::schedule::strategy::{RailView, Strategy};
use crate::transfer::credit::Credit;
use crate::transfer::driver::{Limits, Reads};
use crate::transfer::link::{Arrivals, IN_FLIGHT_MAX, Link, State};
use crate::transfer::rail::{Rail, busy_until};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use nmad_wire::{Eager, Header, Replay, Rtr};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Here,
    /// It said goodbye; the end of its links is no failure.
    Leaving,
    Gone(Arc<str>),
}

/// All links are lost, and some may come back.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Until when that is waited for.
    pub(crate) until: Instant,
    /// What ended the last one.
    pub(crate) why: String,
}

/// A rail of the peer of which the peer told before our own rail did: packets that were replayed elsewhere
/// may still arrive on it, and it may be down already.
#[derive(Debug, Default)]
pub(crate) struct Orphan {
    pub(crate) remote: u8,
    pub(crate) rx: Arrivals,
    pub(crate) down: bool,
}

/// No message is read.
pub(crate) const NO_READS: (u64, u64) = (u64::MAX, 0);

/// Bytes of a short message, by which latencies are compared.
const SHORT: u64 = 64;

/// A chunk of a body whose shares may be revised is what the rail carries in this time, and no shorter than
/// the next figure: long enough that its header and system call do not count, short enough to be an answer
/// to a change.
const CHUNK_TIME: Duration = Duration::from_us(250);
const CHUNK_FLOOR: u64 = 64 << 10;
/// Such chunks that a rail holds at most: one under way, one waiting, so that the rail never starves and the
/// rest can still go elsewhere.
const AHEAD: u64 = 2;

/// How long a request to send waits for an Rtr that usually comes. One that comes later has cost a
/// system call and an answer; a receiver that posts while the last message is still arriving is this fast.
pub(crate) const PATIENCE: Duration = Duration::from_us(5);

/// How long a large send has waited for an Rtr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    New,
    Seen,
    Since(Instant),
}

/// A chunk that goes ahead of any answer, before it has begun to arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Push {
    /// The sender's request.
    pub(crate) request: u64,
    pub(crate) region: RegionId,
    pub(crate) len: u64,
}

/// A message of which parts come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// The sender's request.
    pub(crate) request: u64,
    pub(crate) region: RegionId,
    pub(crate) len: u64,
    /// Its request to send has come.
    pub(crate) named: bool,
}

pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) standing: Standing,
    // collect
    pub(crate) flows: Flows,
    pub(crate) window: Window,
    // schedule
    pub(crate) strategy: Box<dyn Strategy>,
    /// Strategies that messages have chosen for themselves.
    pub(crate) chosen: Vec<(StrategyId, Box<dyn Strategy>)>,
    pub(crate) bodies: VecDeque<Body>,
    // transfer
    pub(crate) links: Vec<Link>,
    pub(crate) credit: Credit,
    /// Receive regions that the peer has open for messages we have not sent yet.
    pub(crate) rtrs: Vec<Rtr>,
    /// Receive regions that it asked back before it was heard that they are open: packets overtake each
    /// other. The latest few; a later one still finds a receive region that is closed.
    pub(crate) asked_back: VecDeque<RegionId>,
    /// Large sends that wait for their Cts, by context and sequence number: there may be millions.
    pub(crate) requested: BTreeMap<(u32, u32), u64>,
    /// The peer's rails whose links have not opened on this side.
    pub(crate) orphans: Vec<Orphan>,
    /// Notices of lost links, for the time when it is clear that the peer is not about to end.
    pub(crate) unsaid: Vec<String>,
    /// No link is there.
    pub(crate) lost: Option<Lost>,
    /// What the peer has announced to push and has not begun to.
    pub(crate) pushes: Vec<Push>,
    /// Packets that a dead link has not given back: rail, number, and the requests whose memory they refer
    /// to.
    pub(crate) late: Vec<(RailId, u32, Vec<RequestId>)>,
    /// Messages of which parts have come, or will.
    pub(crate) parts: Vec<Parts>,
    /// Messages that were announced with a request to send.
    pub(crate) announced: u64,
    /// Large sends that wait a little for an Rtr, and since when.
    pub(crate) held: Vec<(RequestId, Patience)>,
    /// The only rail that is left, if its link is open.
    pub(crate) lane: Option<Lane>,
    /// Several rails are left: messages shorter than this may go past the window over one of them.
    pub(crate) several: Option<u64>,
    /// On which of several rails packets came last, and how many one after the other.
    pub(crate) heard: Heard,
    /// Messages may leave without being remembered: one reliable rail is left, whose driver takes them so.
    pub(crate) may_inject: bool,
    /// Longest message of which a chunk may go ahead of any answer, and longest chunk: one reliable rail is
    /// left, whose driver can hold it.
    pub(crate) may_push: Option<(u64, u64)>,
    /// The peer can read messages from our memory: one reliable rail is left, whose driver does that, and
    /// the peer has not asked for a message that it could have read.
    pub(crate) may_read: Option<Reads>,
    /// Lengths of messages that it does read, from the first number on and below the second.
    pub(crate) reads: (u64, u64),
    /// Messages that it has been offered to read, and has not.
    pub(crate) unread: u32,
    /// When it has read the last one, and how long that had waited, in nanoseconds.
    pub(crate) read_at: Instant,
    pub(crate) read_wait_ns: u64,
    /// It has asked for a message that it could have read: the system does not let it.
    pub(crate) declines_reads: bool,
    /// Packets have to be kept until acknowledged: another rail could carry them, or the rail is lossy.
    pub(crate) keeps: bool,
    pub(crate) primary: RailId,
    pub(crate) fastest: RailId,
    /// Longest packet that every rail to this peer carries, with room for what a replay adds.
    pub(crate) packet_max: usize,
    /// The rail that is measured: it carries everything.
    pub(crate) only: Option<RailId>,
    /// Thresholds that the user has set; they overrule the measured ones.
    pub(crate) fixed: Fixed,
    /// Longest message that is sent without asking, unless the receiver is late.
    pub(crate) eager_max: usize,
    pub(crate) lateness: Lateness,
    /// Shortest eager message, or sum of them, of which other cores may post a part.
    pub(crate) parallel_min: u64,
    /// Something is to be learnt of its rails.
    pub(crate) is_curious: bool,
    /// Messages one after the other of which enough was known.
    pub(crate) bored: u32,
    /// Looks at its measured profiles.
    pub(crate) looks: u32,
    /// Its new rails are asked how long an answer takes, and nothing else goes before.
    pub(crate) greets_until: Instant,
    pub(crate) is_ready: bool,
    /// Its links were asked for.
    pub(crate) is_met: bool,
}

impl Peer {
    pub(crate) fn new(id: PeerId, mut strategy: Box<dyn Strategy>, credit: u64, fixed: Fixed) -> Self {
        strategy.meet(id);
        Peer {
            id,
            standing: Standing::Here,
            flows: Flows::default(),
            window: Window::new(id),
            strategy,
            chosen: Vec::new(),
            bodies: VecDeque::new(),
            links: Vec::new(),
            credit: Credit::new(credit),
            rtrs: Vec::new(),
            asked_back: VecDeque::new(),
            requested: BTreeMap::new(),
            orphans: Vec::new(),
            unsaid: Vec::new(),
            lost: None,
            pushes: Vec::new(),
            parts: Vec::new(),
            late: Vec::new(),
            lane: None,
            several: None,
            heard: Heard::default(),
            may_inject: false,
            may_push: None,
            may_read: None,
            reads: NO_READS,
            unread: 0,
            read_at: Instant::default(),
            read_wait_ns: 0,
            declines_reads: false,
            announced: 0,
            held: Vec::new(),
            keeps: false,
            primary: RailId(0),
            fastest: RailId(0),
            packet_max: 0,
            only: None,
            fixed,
            eager_max: 0,
            lateness: Lateness::default(),
            parallel_min: u64::MAX,
            is_curious: false,
            bored: 0,
            looks: 0,
            greets_until: Instant::default(),
            is_ready: false,
            is_met: false,
        }
    }

    #[inline]
    pub(crate) fn link(&self, rail: RailId) -> Option<&Link> {
        self.links.iter().find(|link| link.rail == rail)
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, rail: RailId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.rail == rail)
    }

    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.standing, Standing::Gone(_))
    }

    /// Most data that fits into a packet.
    pub(crate) fn longest_eager(&self) -> usize {
        self.packet_max.saturating_sub(Header::LEN + Eager::MAX_LEN)
    }

    /// Links came, went, or opened: what depends on them is derived anew.
    pub(crate) fn topology_changed(&mut self, rails: &[Rail]) {
        let limits = |link: &Link| rails[link.rail.index()].limits;
        // One that was left may come back, and then the one that is there may be left.
        let kept = || self.used().map(|(_, link)| link).chain(self.left());
        self.keeps = kept().count() > 1 || kept().any(|link| link.lossy);
        let lone = self.lone().map(|(_, link)| limits(link));
        self.may_push =
            lone.filter(|limits| limits.push > 0 && !self.keeps).map(|limits| (limits.push, limits.chunk));
        let may_read = |limits: &Limits| limits.reads != Reads::Never && !self.keeps && !self.declines_reads;
        self.may_read = lone.filter(may_read).map(|limits| limits.reads);
        self.may_inject = !self.keeps && self.lone().is_some_and(|(_, link)| limits(link).inject);
        let overhead = nmad_wire::MAX_RAILS * Replay::LEN;
        self.forecast_anew(rails);
        let alive = || self.links.iter().filter(|link| link.state != State::Dead);
        let shortest = alive().map(|link| limits(link).packet).min().unwrap_or(0);
        self.packet_max = shortest.saturating_sub(overhead).max(Header::LEN);
        let up = || alive().filter(|link| link.state == State::Up);
        if let Some(first) = up().next() {
            self.primary = first.rail;
            let latency = |link: &&Link| match limits(link).latency_ns {
                _ if link.forecast.is_measured() => link.forecast.eager_ns(SHORT),
                0 => u64::MAX,
                known => known,
            };
            self.fastest = up().min_by_key(latency).map_or(first.rail, |link| link.rail);
        }
        for link in &mut self.links {
            link.forecast.staged = self.keeps && rails[link.rail.index()].limits.gather == 0;
        }
        self.derive_thresholds(rails);
    }

    /// Whether some rail that is left, or still to open, may carry chunks to a receive region with these
    /// keys.
    pub(crate) fn can_use(&self, keys: &nmad_wire::Keys) -> bool {
        let usable = |link: &Link| link.remote.is_none_or(|remote| keys.get(remote).is_some());
        self.links.iter().any(|link| link.state != State::Dead && usable(link))
            && keys.iter().next().is_some()
    }

    /// Submits control frames to the common list.
    pub(crate) fn control(&mut self, frame: &nmad_wire::Frame<'_>) {
        if self.is_gone() {
            return;
        }
        let rail = self.wished(None);
        self.window.submit(rail, Entry::control(frame.to_vec()));
    }

    /// Takes the Rtr for this context and tag, if there is one.
    pub(crate) fn take_rtr(&mut self, context: u32, tag: u64) -> Option<Rtr> {
        let index = self.rtrs.iter().position(|p| p.context == context && p.tag == tag)?;
        Some(self.rtrs.swap_remove(index))
    }

    /// A large send does not wait for its Cts, or not any more.
    pub(crate) fn asks_no_more(&mut self, envelope: &Envelope, request: RequestId) {
        let names = (envelope.context.0, envelope.seq);
        if self.requested.get(&names) == Some(&request.0) {
            self.requested.remove(&names);
        }
    }

    /// Whether there is an Rtr for this context and tag.
    pub(crate) fn has_rtr(&self, context: u32, tag: u64) -> bool {
        self.rtrs.iter().any(|p| p.context == context && p.tag == tag)
    }

    /// Takes back an Rtr by its receive region; false if it was used or never kept.
    pub(crate) fn drop_rtr(&mut self, region: RegionId) -> bool {
        let before = self.rtrs.len();
        self.rtrs.retain(|p| p.region != region.0);
        self.rtrs.len() < before
    }

    /// A receive region is asked back of which nothing is known: if its Rtr comes, it comes too late.
    pub(crate) fn expect_no_rtr(&mut self, region: RegionId) {
        if self.asked_back.len() >= IN_FLIGHT_MAX {
            self.asked_back.pop_front();
        }
        self.asked_back.push_back(region);
    }

    /// A rail of the peer whose link has not opened on this side.
    pub(crate) fn orphan(&mut self, remote: u8) -> &mut Orphan {
        let known = self.orphans.iter().position(|orphan| orphan.remote == remote);
        let index = known.unwrap_or_else(|| {
            self.orphans.push(Orphan { remote, ..Orphan::default() });
            self.orphans.len() - 1
        });
        &mut self.orphans[index]
    }

    /// The rail that the application wishes, or the one that is measured, if it may still carry something to
    /// this peer.
    #[inline]
    pub(crate) fn wished(&self, rail: Option<RailId>) -> Option<RailId> {
        rail.or(self.only).filter(|&rail| self.link(rail).is_some_and(Link::is_there))
    }

    /// Whether there is nothing but large sends that wait for an Rtr, and for how long they will.
    pub(crate) fn only_waits(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && self.patient_until().is_some()
    }

    /// When the first of the sends that wait for an Rtr will wait no longer.
    pub(crate) fn patient_until(&self) -> Option<Instant> {
        let until = self.held.iter().map(|(_, patience)| match patience {
            Patience::New | Patience::Seen => None,
            Patience::Since(since) => Some(*since + PATIENCE),
        });
        until.min().flatten()
    }

    /// A message has chosen a strategy of its own.
    #[cold]
    pub(crate) fn know(&mut self, chosen: StrategyId, registry: &Registry) {
        if self.chosen.iter().all(|(id, _)| *id != chosen)
            && let Some(mut made) = registry.make_at(chosen)
        {
            made.meet(self.id);
            self.chosen.push((chosen, made));
        }
    }

    /// The strategy that decides about a message.
    #[inline]
    pub(crate) fn strategy_of(&mut self, chosen: Option<StrategyId>) -> &mut dyn Strategy {
        strategy_of(&mut self.strategy, &mut self.chosen, chosen)
    }

    /// Whether shares of bodies may be revised, so that a rail gets no more than it needs to be busy.
    pub(crate) fn revises(&self) -> bool {
        self.links.len() > 1 && self.strategy.revises()
    }

    /// Whether a rail has enough of bodies, and there is nothing else for it.
    pub(crate) fn holds_back(&self, link: &Link) -> bool {
        self.window.is_empty() && self.revises() && has_enough(link)
    }

    /// Whether a message would be alone, and would not be needed for an Rtr.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.has_nothing() && self.rtrs.is_empty()
    }

    /// Whether no rail would get anything.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && self.held.is_empty()
    }
}

/// The strategy that decides about a message: its own, or that of the peer.
#[inline]
pub(crate) fn strategy_of<'a>(
    usual: &'a mut Box<dyn Strategy>,
    chosen: &'a mut [(StrategyId, Box<dyn Strategy>)],
    own: Option<StrategyId>,
) -> &'a mut dyn Strategy {
    let found = own.and_then(|own| chosen.iter_mut().find(|(id, _)| *id == own));
    &mut **found.map_or(usual, |(_, strategy)| strategy)
}

/// Longest chunk of a body whose shares may be revised.
pub(crate) fn brisk(link: &Link) -> u64 {
    let carried = (link.forecast.bandwidth() * CHUNK_TIME.as_ns() as f64) as u64;
    carried.max(CHUNK_FLOOR)
}

/// Whether a rail holds as much as it needs to be busy.
pub(crate) fn has_enough(link: &Link) -> bool {
    link.at_rail() > 1 && link.tx.bytes_at_rail() >= AHEAD * brisk(link)
}

/// A rail to this peer as a strategy sees it.
#[inline]
pub(crate) fn view<'a>(
    now: Instant,
    link: &'a Link,
    rails: &[Rail],
    primary: RailId,
    fastest: RailId,
) -> RailView<'a> {
    let rail = &rails[link.rail.index()];
    RailView {
        rail: link.rail,
        wire: rail.wire,
        idle_at: busy_until(rails, link.rail, now),
        bandwidth: rail.limits.bandwidth,
        latency_ns: rail.limits.latency_ns,
        primary: link.rail == primary,
        fastest: link.rail == fastest,
        forecast: &link.forecast,
        rivals: &[],
    }
}

/// The same of one that may be full, and is busy then, whatever its clock says.
#[inline]
pub(crate) fn view_of_any<'a>(
    now: Instant,
    link: &'a Link,
    rails: &[Rail],
    primary: RailId,
    fastest: RailId,
) -> RailView<'a> {
    let mut view = view(now, link, rails, primary, fastest);
    if !link.accepts(rails[link.rail.index()].limits.depth) {
        let rest = link.forecast.busy_ns(link.tx.bytes_at_rail());
        view.idle_at = view.idle_at.max(now + Duration::from_ns(rest));
    }
    view
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("standing", &self.standing)
            .field("strategy", &self.strategy.name())
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
