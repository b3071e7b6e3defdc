//! Links that fall silent while their peer does not: asked about, left, and tried again.
//!
//! [`Suspicion`](crate::transfer::suspicion::Suspicion) decides, this file carries out. Only peers with
//! several links are watched, once in a millisecond. Questions and answers are packets without a number, and
//! leave whatever the strategy does.

use crate::clock::{Duration, Instant};
use crate::engine::Engine;
use crate::engine::peer::{Peer, Standing};
use crate::observe::watched::{About, Query};
use crate::packet::{PeerId, RailId};
use crate::schedule::builder::{Bounds, PacketBuilder, seal};
use crate::transfer::driver::Order;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Rail, RailCounters};
use crate::transfer::suspicion::{Duty, Try};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use nmad_wire::{Ask, Frame, Kind, Seen};

/// From one look at the links of all watched peers to the next, and more for each peer: of a thousand peers
/// the looks take a hundredth of the core.
const LOOK_EVERY: Duration = Duration::from_ms(1);
const LOOK_EVERY_PEER_NS: u64 = 10_000;

/// Bytes of data in a datagram, for an estimate of how many an order has.
const DATAGRAM: u64 = 1400;

impl Engine {
    /// Looks at the links of peers that have several, if it is time. True: there is something for a rail.
    #[cold]
    pub(crate) fn watch(&mut self, now: Instant) -> bool {
        if now >= self.observers.watched.look_at {
            let more_ns = LOOK_EVERY_PEER_NS * self.observers.watched.peers.len() as u64;
            self.observers.watched.look_at = now + Duration::from_ns(LOOK_EVERY.as_ns() + more_ns);
            for place in 0..self.observers.watched.peers.len() {
                self.watch_peer(now, self.observers.watched.peers[place]);
            }
        }
        let leaves = self.a_query_leaves();
        self.observers.watched.due_at =
            if leaves { Instant::default() } else { self.observers.watched.look_at };
        leaves
    }

    /// Whether a rail would take a query now. For those whose rail is full the report of what it has sent is
    /// the time to look again.
    fn a_query_leaves(&self) -> bool {
        self.observers.watched.queries.iter().any(|query| {
            let link = self.peer(query.to).and_then(|peer| peer.link(query.over));
            let depth = self.rails[query.over.index()].limits.depth;
            link.is_none_or(|link| !link.is_up() || link.at_rail() < depth)
        })
    }

    fn watch_peer(&mut self, now: Instant, id: PeerId) {
        let is_watched = |peer: &&Peer| peer.standing == Standing::Here && peer.only.is_none();
        let count = self.peer(id).filter(is_watched).map_or(0, |peer| peer.links.len());
        if count > 0 {
            self.note_stall(now, id);
            self.look_at_last(now, id);
        }
        for place in 0..count {
            let Some(peer) = self.peers[id.0 as usize].as_deref_mut() else { return };
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
                    let sight = link.sight();
                    match link.notes_mut().suspicion.look(now, sight) {
                        Duty::Nothing => {}
                        Duty::Ask(question) => self.ask_about(rail, id, question, |link| link.rail != rail),
                        Duty::Leave(silent) => self.leave_link(rail, id, &silence(silent)),
                    }
                }
                State::Left => match link.notes_mut().suspicion.look_away(now) {
                    Try::Nothing => {}
                    Try::Begin => self.try_again(rail, id),
                    Try::End => self.close_link(rail, id),
                },
                State::Cold | State::Connecting | State::Dead => {}
            }
        }
    }

    /// If no link carries, or the last one has no answer to what is asked over it, those that were left are
    /// tried soon. A peer without any link is waited for a while.
    fn look_at_last(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers[id.0 as usize].as_deref_mut() else { return };
        if let Some(lost) = peer.failover.lost.as_ref().filter(|lost| now >= lost.until) {
            let why = lost.why.clone();
            return self.fail_peer(id, &why);
        }
        if peer.left().next().is_none() || peer.links.iter().filter(|link| carries(link)).count() > 1 {
            return;
        }
        let last = peer.links.iter_mut().find(|link| carries(link));
        let looked = last.map(|last| {
            let (rail, sight) = (last.rail, last.sight());
            let suspicion = &mut last.notes_mut().suspicion;
            let duty = suspicion.look(now, sight);
            let is_bad = matches!(duty, Duty::Leave(_));
            if is_bad {
                suspicion.stays(now);
            }
            (rail, duty, is_bad || suspicion.has_no_answer())
        });
        if looked.is_none_or(|looked| looked.2) {
            let left = peer.links.iter_mut().filter(|link| link.state == State::Left);
            left.for_each(|link| link.notes_mut().suspicion.hurry());
        }
        if let Some((rail, Duty::Ask(question), _)) = looked {
            self.ask_about(rail, id, question, |link| link.rail == rail);
        }
    }

    /// Since when nothing of what is under way to a peer was acknowledged, over all its links.
    fn note_stall(&mut self, now: Instant, id: PeerId) {
        let links = self.peer(id).map_or(&[][..], |peer| &peer.links);
        let waits = links.iter().filter(|link| link.is_up() && link.tx.first().is_some());
        let since = waits.clone().filter_map(|link| link.notes.as_ref()?.suspicion.quiet_since(link.sight()));
        // One link that goes on is enough.
        let silent =
            since.max().filter(|_| waits.count() > 0).map_or(Duration::ZERO, |since| now.since(since));
        self.observers.watched.longest_stall = self.observers.watched.longest_stall.max(silent);
    }

    /// Longest time for which a peer with several rails acknowledged nothing of what was under way to it.
    pub fn longest_stall(&self) -> Duration {
        self.observers.watched.longest_stall
    }

    /// Has a link opened again that was left.
    fn try_again(&mut self, rail: RailId, id: PeerId) {
        self.rails[rail.index()].errands.push_back(Order::Connect { to: id });
        self.has_errands = true;
    }

    /// The other side has opened a link that this side was about to stop trying.
    pub(crate) fn forget_closing(&mut self, rail: RailId, id: PeerId) {
        let errands = &mut self.rails[rail.index()].errands;
        let before = errands.len();
        errands.retain(|order| !matches!(order, Order::Close { to } if *to == id));
        self.closing -= before - errands.len();
    }

    /// Asks over some links what has arrived from one.
    fn ask_about(&mut self, rail: RailId, id: PeerId, question: u32, over: impl Fn(&Link) -> bool) {
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let others = peer.links.iter().filter(|link| carries(link) && over(link));
        let queries =
            others.map(|link| Query { to: id, over: link.rail, about: About::Ours(rail, question) });
        self.observers.watched.queries.extend(queries);
    }

    fn leave_link(&mut self, rail: RailId, id: PeerId, why: &str) {
        let why = format!("left, {why}; the other rails carry its traffic until it carries again");
        self.give_up(rail, id, &why);
    }

    /// The peer asks what has arrived from one of its rails.
    pub(crate) fn on_ask(&mut self, over: RailId, from: PeerId, ask: Ask) {
        let Ask { rail, question } = ask;
        // One answer to all questions that came together.
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

    /// The peer tells what has arrived from one of our rails.
    pub(crate) fn on_seen(&mut self, now: Instant, from: PeerId, seen: Seen) {
        if self.on_timed(now, from, &seen) {
            return;
        }
        let Some(peer) = self.peers.get_mut(from.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let Some(link) = peer.link_mut(RailId(seen.rail)) else { return };
        let was_asked = link.notes.is_some() && may_be_left(link, &self.rails);
        if !link.is_up() || !was_asked || !link.tx.is_plausible(seen.below) {
            return;
        }
        let news = link.tx.acknowledge(seen.below, seen.beyond, &mut drop);
        if news.any {
            link.reconsider();
            link.rtt.progress();
            link.vain.restart(now);
        }
        let late = news.any && link.lossy;
        link.notes_mut().suspicion.answered(seen.question, (seen.below, seen.beyond, seen.moved), late);
        self.make_ready(from);
    }

    /// A link has opened, for the first time or again.
    pub(crate) fn on_up(&mut self, now: Instant, rail: RailId, id: PeerId, remote: u8) {
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let (gone, is_here) = (peer.is_gone(), peer.standing == Standing::Here);
        let Some(link) = peer.link_mut(rail) else { return };
        if gone || link.state == State::Dead {
            return self.close_link(rail, id);
        }
        let was_up = link.was_up();
        let absent = (link.state == State::Left)
            .then(|| link.begin_anew(now, self.config.congestion).as_ns() / 1_000_000);
        (link.state, link.remote) = (State::Up, Some(remote));
        link.vain.restart(now);
        peer.failover.lost = None;
        let orphan = peer.failover.orphans.iter().position(|orphan| orphan.remote == remote);
        let orphan = orphan.map(|index| peer.failover.orphans.swap_remove(index));
        let down = orphan.as_ref().is_some_and(|orphan| orphan.is_down);
        if let (Some(orphan), Some(link)) = (orphan, peer.link_mut(rail)) {
            link.rx = orphan.rx;
        }
        peer.derive_way(&self.rails);
        peer.greet(now, &self.rails, &mut self.observers.watched);
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

    /// The interface of a rail carries nothing any more, or carries again.
    pub(crate) fn on_carrier(&mut self, now: Instant, rail: RailId, id: PeerId, lost: Option<String>) {
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let is_alone = !peer.links.iter().any(|link| link.rail != rail && carries(link));
        let is_here = peer.standing == Standing::Here;
        let Some(link) = peer.link_mut(rail) else { return };
        let is_news = link.unplugged().is_some() != lost.is_some();
        link.notes_mut().unplugged = lost.clone();
        match (link.state, lost) {
            (State::Left, None) => link.notes_mut().suspicion.hasten(now),
            (State::Up, Some(why)) if is_alone && is_here && is_news => {
                let text = format!("{why}; there is no other rail to peer {}, which waits for it", id.0);
                self.tell(rail, id, &text);
            }
            (State::Up, None) if is_alone && is_here && is_news => self.tell(rail, id, "carries again"),
            _ => {}
        }
        // What else follows is for the next look.
        self.observers.watched.look_now();
    }

    /// Tells the user something of a rail.
    pub(crate) fn tell(&mut self, rail: RailId, id: PeerId, text: &str) {
        let text = match &self.rails[rail.index()].name {
            name if name.is_empty() => format!("rail {} to peer {}: {text}", rail.0, id.0),
            name => format!("rail {name} to peer {}: {text}", id.0),
        };
        self.notices.push_back(crate::engine::Notice { peer: id, text, is_end: false });
    }

    /// A question or answer that waits for this rail.
    #[cold]
    pub(crate) fn query_for(&mut self, now: Instant, rail: RailId) -> Option<Order> {
        let depth = self.rails[rail.index()].limits.depth;
        let mut place = 0;
        while let Some(&Query { to, over, about }) = self.observers.watched.queries.get(place) {
            let peer = self.peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut());
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
                self.asked_nothing(now, to, about, question);
            }
            return self.say(rail, to, about);
        }
        None
    }

    fn say(&mut self, rail: RailId, to: PeerId, about: About) -> Option<Order> {
        let buffer = self.buffers.pop().unwrap_or_default();
        let peer = self.peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let frame = match about {
            About::Ours(rail, question) => Frame::Ask(Ask { rail: rail.0, question }),
            About::Theirs(remote, question) => Frame::Seen(seen(peer, remote, question)),
        };
        let link = peer.link_mut(rail)?;
        let bounds = Bounds { len: usize::MAX, in_place_min: 0, block_min: 0, aggregate_max: 0, gather: 0 };
        let mut packet = PacketBuilder::new(buffer, bounds, Vec::new()).finish().packet;
        frame.encode(&mut packet.bytes);
        seal(&mut packet, Kind::Notice, 0, link.rx.below());
        link.notices += 1;
        self.rails[rail.index()].counters.packets += 1;
        Some(Order::Packet { to, number: 0, packet })
    }

    /// When links that are watched want to be looked at, though nothing happens.
    pub(crate) fn watch_due_at(&self) -> Option<Instant> {
        if self.a_query_leaves() {
            return Some(Instant::default());
        }
        let due = self
            .observers
            .watched
            .peers
            .iter()
            .filter_map(|&id| self.peer(id)?.watch_due_at(&self.rails))
            .min()?;
        Some(due.max(self.observers.watched.look_at))
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
                State::Up => suspicion.due_at(link.sight()),
                State::Left => Some(suspicion.away_until()),
                State::Cold | State::Connecting | State::Dead => None,
            }
        };
        let given_up_at = self.failover.lost.as_ref().map(|lost| lost.until);
        self.links.iter().filter_map(due_at).chain(given_up_at).min()
    }
}

/// Whether a link carries something, as far as is known.
fn carries(link: &Link) -> bool {
    link.is_up() && !link.closing && link.unplugged().is_none()
}

/// Whether a link that falls silent is left: its rail may come back, and it is not being closed already.
fn may_be_left(link: &Link, rails: &[Rail]) -> bool {
    rails[link.rail.index()].limits.returns && !link.closing
}

/// How much is lost on a lossy link, in percent, if that is too much.
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

/// Packets that have arrived from a rail of the peer.
fn seen(peer: &Peer, remote: u8, question: u32) -> Seen {
    let link = peer.links.iter().find(|link| link.remote == Some(remote));
    let orphan = peer.failover.orphans.iter().find(|orphan| orphan.remote == remote);
    let rx = link.map(|link| &link.rx).or(orphan.map(|orphan| &orphan.rx));
    let (below, beyond) = rx.map_or((0, 0), |rx| (rx.below(), rx.beyond()));
    Seen { rail: remote, question, below, beyond, moved: link.map_or(0, |link| link.sight().moved) }
}

fn silence(silent: Duration) -> String {
    match silent.as_ns() / 1_000_000 {
        0 => String::from("since only the other rails say what arrives there"),
        ms => format!("since nothing has come through for {ms} ms while the peer answers on others"),
    }
}
