//! Failure detection: silent links whose peer answers on others are queried, given up, and retried.
//!
//! [`Suspicion`](crate::transfer::suspicion::Suspicion) decides; this file carries its decisions out. Only
//! peers with several links are watched, once per millisecond. Queries and answers are packets without a
//! number, sent independently of the strategy.

use crate::clock::{Duration, Instant};
use crate::engine::peer::{Peer, Standing};
use crate::engine::{Engine, Inspect, Notice, NoticeKind};
use crate::observe::watched::{About, Query};
use crate::packet::{PeerId, RailId};
use crate::transfer::driver::Order;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Rail, RailCounters};
use crate::transfer::suspicion::{Action, Try};
use alloc::format;
use alloc::string::String;
use nmad_wire::{Ask, Frame, Seen};

/// Time between two checks of all watched peers, and addition per peer: with a thousand peers the checks
/// take a hundredth of the core.
const CHECK_EVERY: Duration = Duration::from_ms(1);
const CHECK_EVERY_PEER_NS: u64 = 10_000;

/// Bytes of data in a datagram, to estimate the number of datagrams per order.
const DATAGRAM: u64 = 1400;

impl Engine {
    /// Checks the links of peers with several links, if it is time. True: there is an order for a rail.
    #[cold]
    pub(crate) fn watch(&mut self, now: Instant) -> bool {
        if now >= self.observers.watched.check_at {
            let more_ns = CHECK_EVERY_PEER_NS * self.observers.watched.peers.len() as u64;
            self.observers.watched.check_at = now + Duration::from_ns(CHECK_EVERY.as_ns() + more_ns);
            for place in 0..self.observers.watched.peers.len() {
                self.watch_peer(now, self.observers.watched.peers[place]);
            }
        }
        let leaves = self.can_send_query();
        self.observers.watched.due_at =
            if leaves { Instant::default() } else { self.observers.watched.check_at };
        leaves
    }

    /// Whether a rail accepts a query now. A full rail is checked again when it reports what it has sent.
    fn can_send_query(&self) -> bool {
        self.observers.watched.queries.iter().any(|query| {
            let link = self.peers.link(query.to, query.over);
            let depth = self.rails[query.over.index()].limits.depth;
            link.is_none_or(|link| !link.is_up() || link.at_rail() < depth)
        })
    }

    fn watch_peer(&mut self, now: Instant, id: PeerId) {
        let is_watched = |peer: &&Peer| peer.standing == Standing::Here && peer.only.is_none();
        let count = self.peer(id).filter(is_watched).map_or(0, |peer| peer.links.len());
        if count > 0 {
            self.note_stall(now, id);
            self.check_last(now, id);
        }
        for place in 0..count {
            let Some(peer) = self.peers.get_mut(id) else { return };
            let rail = peer.links[place].rail;
            let is_last = !peer.links.iter().any(|link| link.rail != rail && carries(link));
            let is_left_alone = is_last || !may_be_left(&peer.links[place], &self.rails);
            let link = &mut peer.links[place];
            match link.state {
                State::Up if is_left_alone => {}
                State::Up => {
                    if let Some(why) = link.unplugged().map(String::from) {
                        self.leave_link(rail, id, &why);
                        continue;
                    }
                    if let Some(percent) = losses(link, &self.rails[rail.index()].counters) {
                        let why = format!("since {percent} % of what is sent there is lost");
                        self.leave_link(rail, id, &why);
                        continue;
                    }
                    let snapshot = link.snapshot();
                    match link.notes_mut().suspicion.check(now, snapshot) {
                        Action::Nothing => {}
                        Action::Ask(question) => self.ask_about(rail, id, question, |link| link.rail != rail),
                        Action::Leave(silent) => self.leave_link(rail, id, &silence(silent)),
                    }
                }
                State::Left => match link.notes_mut().suspicion.check_down(now) {
                    Try::Nothing => {}
                    Try::Begin => self.reopen(rail, id),
                    Try::End => self.close_link(rail, id),
                },
                State::Cold | State::Connecting | State::Dead => {}
            }
        }
    }

    /// If no link carries traffic, or the last one gets no answer to its queries, links that were given up
    /// are retried soon. A peer without any link is kept for a while.
    fn check_last(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        if let Some(lost) = peer.failover.lost.as_ref().filter(|lost| now >= lost.until) {
            let why = lost.why.clone();
            return self.fail_peer(id, &why);
        }
        if peer.left().next().is_none() || peer.links.iter().filter(|link| carries(link)).count() > 1 {
            return;
        }
        let last = peer.links.iter_mut().find(|link| carries(link));
        let checked = last.map(|last| {
            let (rail, snapshot) = (last.rail, last.snapshot());
            let suspicion = &mut last.notes_mut().suspicion;
            let action = suspicion.check(now, snapshot);
            let is_bad = matches!(action, Action::Leave(_));
            if is_bad {
                suspicion.keep_last(now);
            }
            (rail, action, is_bad || suspicion.has_no_answer())
        });
        if checked.is_none_or(|checked| checked.2) {
            let left = peer.links.iter_mut().filter(|link| link.state == State::Left);
            left.for_each(|link| link.notes_mut().suspicion.retry_soon());
        }
        if let Some((rail, Action::Ask(question), _)) = checked {
            self.ask_about(rail, id, question, |link| link.rail == rail);
        }
    }

    /// Records how long nothing in flight to a peer was acknowledged, over all its links.
    fn note_stall(&mut self, now: Instant, id: PeerId) {
        let links = self.peer(id).map_or(&[][..], |peer| &peer.links);
        let waits = links.iter().filter(|link| link.is_up() && link.tx.first().is_some());
        let since =
            waits.clone().filter_map(|link| link.notes.as_ref()?.suspicion.quiet_since(link.snapshot()));
        // One link with progress is enough.
        let silent =
            since.max().filter(|_| waits.count() > 0).map_or(Duration::ZERO, |since| now.since(since));
        self.observers.watched.longest_stall = self.observers.watched.longest_stall.max(silent);
    }

    /// Opens a link again that was given up.
    fn reopen(&mut self, rail: RailId, id: PeerId) {
        self.rails[rail.index()].errands.push_back(Order::Connect { to: id });
        self.has_errands = true;
    }

    /// Cancels the order to close a link after the other side has opened it.
    pub(crate) fn forget_closing(&mut self, rail: RailId, id: PeerId) {
        let errands = &mut self.rails[rail.index()].errands;
        let before = errands.len();
        errands.retain(|order| !matches!(order, Order::Close { to } if *to == id));
        self.closing -= before - errands.len();
    }

    /// Queries over some links what has arrived from one.
    fn ask_about(&mut self, rail: RailId, id: PeerId, question: u32, over: impl Fn(&Link) -> bool) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let others = peer.links.iter().filter(|link| carries(link) && over(link));
        let queries =
            others.map(|link| Query { to: id, over: link.rail, about: About::Ours(rail, question) });
        self.observers.watched.queries.extend(queries);
    }

    fn leave_link(&mut self, rail: RailId, id: PeerId, why: &str) {
        let why = format!("left, {why}; the other rails carry its traffic until it carries again");
        self.give_up(rail, id, &why);
    }

    /// Handles a query of the peer which packets of one of its rails have arrived.
    pub(crate) fn on_ask(&mut self, over: RailId, from: PeerId, ask: Ask) {
        let Ask { rail, question } = ask;
        // Send one answer to all queries that arrived together.
        let is_about = |query: &Query| matches!(query.about, About::Theirs(other, _) if other == rail);
        let same = |query: &Query| query.to == from && query.over == over && is_about(query);
        self.observers.watched.queries.retain(|query| !same(query));
        self.observers.watched.queries.push_back(Query {
            to: from,
            over,
            about: About::Theirs(rail, question),
        });
        self.observers.watched.due_at = Instant::default();
    }

    /// Handles an answer of the peer which packets of one of our rails have arrived.
    pub(crate) fn on_seen(&mut self, now: Instant, from: PeerId, seen: Seen) {
        if self.on_timed(now, from, &seen) {
            return;
        }
        let Some(peer) = self.peers.get_mut(from) else { return };
        let Some(link) = peer.link_mut(RailId(seen.rail)) else { return };
        let was_asked = link.notes.is_some() && may_be_left(link, &self.rails);
        if !link.is_up() || !was_asked || !link.tx.is_plausible(seen.below) {
            return;
        }
        let news = link.acknowledge(now, seen.below, seen.beyond, &mut drop);
        let late = news.any && link.lossy;
        link.notes_mut().suspicion.answered(seen.question, (seen.below, seen.beyond, seen.moved), late);
        self.make_ready(from);
    }

    /// Handles the opening of a link, for the first time or again.
    pub(crate) fn on_up(&mut self, now: Instant, rail: RailId, id: PeerId, remote: u8) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let (gone, is_here) = (peer.is_gone(), peer.standing == Standing::Here);
        let Some(link) = peer.link_mut(rail) else { return };
        if gone || link.state == State::Dead {
            return self.close_link(rail, id);
        }
        let was_up = link.was_up();
        let absent =
            (link.state == State::Left).then(|| link.reset(now, self.config.congestion).as_ns() / 1_000_000);
        (link.state, link.remote) = (State::Up, Some(remote));
        link.silence.restart(now);
        peer.failover.lost = None;
        let orphan = peer.failover.orphans.iter().position(|orphan| orphan.remote == remote);
        let orphan = orphan.map(|index| peer.failover.orphans.swap_remove(index));
        let down = orphan.as_ref().is_some_and(|orphan| orphan.is_down);
        if let (Some(orphan), Some(link)) = (orphan, peer.link_mut(rail)) {
            link.rx = orphan.rx;
        }
        peer.derive_way(&self.rails);
        peer.query_new_link(now, &self.rails, &mut self.observers.watched);
        if down {
            self.give_up(rail, id, "the peer gave it up");
        }
        if absent.is_some() {
            self.forget_closing(rail, id);
        }
        if let Some(ms) = absent.filter(|_| is_here && was_up) {
            self.rails[rail.index()].counters.returned += 1;
            self.tell(rail, id, &format!("carries again after {ms} ms, and is used"));
        }
        self.make_ready(id);
    }

    /// Handles the loss or return of the carrier of a rail's interface. Peers without state are skipped:
    /// they have no link, and in a large job a pulled cable would allocate the state of all peers.
    pub(crate) fn on_carrier(&mut self, now: Instant, rail: RailId, id: PeerId, lost: Option<String>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let is_alone = !peer.links.iter().any(|link| link.rail != rail && carries(link));
        let is_here = peer.standing == Standing::Here;
        let Some(link) = peer.link_mut(rail) else { return };
        let is_new = link.unplugged().is_some() != lost.is_some();
        link.notes_mut().unplugged = lost.clone();
        match (link.state, lost) {
            (State::Left, None) => link.notes_mut().suspicion.retry_now(now),
            (State::Up, Some(why)) if is_alone && is_here && is_new => {
                let text = format!("{why}; there is no other rail to peer {}, which waits for it", id.0);
                self.tell(rail, id, &text);
            }
            (State::Up, None) if is_alone && is_here && is_new => self.tell(rail, id, "carries again"),
            _ => {}
        }
        // The next check handles other consequences.
        self.observers.watched.look_now();
    }

    /// Notifies the user of trouble with a rail.
    pub(crate) fn tell(&mut self, rail: RailId, id: PeerId, text: &str) {
        self.tell_of(rail, id, text, NoticeKind::Trouble);
    }

    /// Notifies the user of an event of a rail, with this kind.
    pub(crate) fn tell_of(&mut self, rail: RailId, id: PeerId, text: &str, kind: NoticeKind) {
        let text = match &self.rails[rail.index()].name {
            name if name.is_empty() => format!("rail {} to peer {}: {text}", rail.0, id.0),
            name => format!("rail {name} to peer {}: {text}", id.0),
        };
        self.notices.push_back(Notice { peer: id, text, kind });
    }

    /// Returns a query or answer that waits for this rail.
    #[cold]
    pub(crate) fn query_for(&mut self, now: Instant, rail: RailId) -> Option<Order> {
        let depth = self.rails[rail.index()].limits.depth;
        let mut place = 0;
        while let Some(&Query { to, over, about }) = self.observers.watched.queries.get(place) {
            let peer = self.peers.get_mut(to);
            let link = peer.and_then(|peer| peer.link_mut(over)).filter(|link| link.is_up());
            let Some(link) = link else {
                self.observers.watched.queries.remove(place);
                continue;
            };
            if over != rail || link.at_rail() >= depth {
                place += 1;
                continue;
            }
            self.observers.watched.queries.remove(place);
            if let About::Ours(about, question) = about {
                self.empty_query_sent(now, to, about, question);
            }
            return self.say(rail, to, about);
        }
        None
    }

    fn say(&mut self, rail: RailId, to: PeerId, about: About) -> Option<Order> {
        let frame = match about {
            About::Ours(rail, question) => Frame::Ask(Ask { rail: rail.0, question }),
            About::Theirs(remote, question) => Frame::Seen(seen(self.peer(to)?, remote, question)),
        };
        self.notice(rail, to, Some(frame))
    }

    /// Returns when watched links have to be checked again, if nothing happens.
    pub(crate) fn watch_due_at(&self) -> Option<Instant> {
        if self.can_send_query() {
            return Some(Instant::default());
        }
        let due = self
            .observers
            .watched
            .peers
            .iter()
            .filter_map(|&id| self.peer(id)?.watch_due_at(&self.rails))
            .min()?;
        Some(due.max(self.observers.watched.check_at))
    }
}

impl Inspect<'_> {
    /// Returns the longest time during which a peer with several rails acknowledged nothing in flight.
    pub fn longest_stall(self) -> Duration {
        self.0.observers.watched.longest_stall
    }
}

impl Peer {
    fn watch_due_at(&self, rails: &[Rail]) -> Option<Instant> {
        if self.standing != Standing::Here || self.only.is_some() {
            return None;
        }
        let has_left = self.left().next().is_some();
        let due_at = |link: &Link| {
            let suspicion = &link.notes.as_ref()?.suspicion;
            let is_last = || !self.links.iter().any(|other| other.rail != link.rail && carries(other));
            match link.state {
                State::Up if is_last() && !(has_left && carries(link)) => None,
                State::Up if !is_last() && !may_be_left(link, rails) => None,
                State::Up if link.unplugged().is_some() => Some(Instant::default()),
                State::Up => suspicion.due_at(link.snapshot()),
                State::Left => Some(suspicion.retry_at()),
                State::Cold | State::Connecting | State::Dead => None,
            }
        };
        let given_up_at = self.failover.lost.as_ref().map(|lost| lost.until);
        self.links.iter().filter_map(due_at).chain(given_up_at).min()
    }
}

/// Whether a link carries traffic, as far as is known.
fn carries(link: &Link) -> bool {
    link.is_up() && !link.closing && link.unplugged().is_none()
}

/// Whether a silent link may be given up: its rail may come back, and it is not being closed already.
fn may_be_left(link: &Link, rails: &[Rail]) -> bool {
    rails[link.rail.index()].limits.returns && !link.closing
}

/// Returns the loss rate of a lossy link in percent if it is too high.
fn losses(link: &mut Link, counters: &RailCounters) -> Option<u32> {
    if !link.lossy {
        return None;
    }
    let orders = (counters.packets + counters.chunks).max(1);
    let datagrams = (counters.packet_bytes + counters.chunk_bytes) / orders / DATAGRAM + 1;
    let numbers = link.tx.next_number();
    let notes = link.notes_mut();
    notes.suspicion.loses(numbers, notes.overtaken, datagrams.min(64) as u32)
}

/// Returns which packets have arrived from a rail of the peer.
fn seen(peer: &Peer, remote: u8, question: u32) -> Seen {
    let link = peer.links.iter().find(|link| link.remote == Some(remote));
    let orphan = peer.failover.orphans.iter().find(|orphan| orphan.remote == remote);
    let rx = link.map(|link| &link.rx).or(orphan.map(|orphan| &orphan.rx));
    let (below, beyond) = rx.map_or((0, 0), |rx| (rx.below(), rx.beyond()));
    Seen { rail: remote, question, below, beyond, moved: link.map_or(0, |link| link.snapshot().moved) }
}

fn silence(silent: Duration) -> String {
    match silent.as_ns() / 1_000_000 {
        0 => String::from("since only the other rails say what arrives there"),
        ms => format!("since nothing has come through for {ms} ms while the peer answers on others"),
    }
}
