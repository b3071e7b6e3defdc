//! The driver itself: links that open and close, and the traffic on those that are open.

use super::barrier;
use super::board::{self, List};
use super::config::ShmConfig;
use super::home::Home;
use super::lend;
use super::link::{Link, Opened, ring_bell};
use super::opening::{self, Handover, Opening};
use super::peers::Peers;
use super::read::Found;
use super::write::Impossible;
use super::{PACKET, PUSH, claim, now_ms};
use crate::connections::Outcome;
use crate::error::DriverError;
use crate::landings::Landings;
use crate::news::News;
use crate::watch::{Token, Watch};
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, LandingId, PeerId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Interest, Limits, Order, Scope, Sent};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Orders taken at once; each link has its own, smaller depth.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 8;
/// Pieces that a packet may leave in place.
const GATHER: usize = 16;
/// Polls from one look at the sockets to the next: it costs a system call, and they only tell of links that
/// open and end.
const LOOK_EVERY: u32 = 256;
/// The same while a link is being opened.
const LOOK_OFTEN: u32 = 8;

/// What is said of a peer that tells an impossible number of cells.
pub(super) const IMPOSSIBLE: &str = "broke the protocol: took cells that were not there";

/// A rail in the memory that processes of one node share.
#[derive(Debug)]
pub struct ShmRail {
    pub(super) config: ShmConfig,
    home: Home,
    watch: Watch,
    opening: Opening,
    outcome: Vec<Outcome<Handover>>,
    pub(super) peers: Peers,
    landings: Landings,
    /// Landings that peers may push into.
    shown: HashMap<LandingId, (PeerId, Key, List)>,
    /// Peers to whom something was posted since the last flush.
    touched: Vec<PeerId>,
    news: News,
    polls: u32,
    /// The peers were told that this side sleeps.
    dozing: Cell<bool>,
    /// Links with long messages under way: at the last poll, and so far at this one.
    copying: [usize; 2],
}

impl ShmRail {
    /// Name of the rail for the user.
    pub const NAME: &str = "shm";

    /// Opens a door for the peers.
    ///
    /// # Errors
    /// The system gives no socket, eventfd or epoll.
    pub fn open(config: ShmConfig) -> Result<ShmRail, DriverError> {
        let watch = Watch::new().map_err(|e| DriverError::new(Self::NAME, "cannot make an epoll", e))?;
        let home = Home::open(Self::NAME, config.cross_memory, &watch)?;
        Ok(ShmRail {
            opening: Opening::new(&config),
            config,
            home,
            watch,
            outcome: Vec::new(),
            peers: Peers::default(),
            landings: Landings::default(),
            shown: HashMap::new(),
            touched: Vec::new(),
            news: News::default(),
            polls: 0,
            dozing: Cell::new(false),
            copying: [0; 2],
        })
    }

    /// Whether there are more processes than cores.
    #[inline]
    fn is_crowded(&self) -> bool {
        self.config.oversubscribed.load(Ordering::Relaxed)
    }

    fn connect(&mut self, to: PeerId) {
        match self.peers.link(to).map(|link| link.remote) {
            Some(remote) => self.news.found.push(Event::Up { peer: to, remote }),
            None if to == self.config.rank => {
                self.lost(to, "is this process itself, which needs no other", Vec::new());
            }
            None => {
                self.opening.machine.connect(to, now_ms());
                self.polls = LOOK_EVERY;
            }
        }
    }

    #[inline]
    fn post(&mut self, to: PeerId, order: Order) {
        let Some(link) = self.peers.link_mut(to) else {
            return self.lost(to, "has no open link", vec![order]);
        };
        if link.post(order, &mut self.news.sent).is_err() {
            return self.lose(to, IMPOSSIBLE);
        }
        if self.touched.last() != Some(&to) {
            self.touched.push(to);
        }
    }

    /// What goes to a peer past the queue.
    #[inline(always)]
    fn at_once<R: Into<Sent>>(
        &mut self,
        to: PeerId,
        give: impl FnOnce(&mut Link, &mut Vec<Order>) -> Result<R, Impossible>,
    ) -> Sent {
        let Some(link) = self.peers.link_mut(to) else { return Sent::Retry };
        match give(link, &mut self.news.sent) {
            Ok(sent) => sent.into(),
            Err(Impossible) => {
                self.lose(to, IMPOSSIBLE);
                Sent::Retry
            }
        }
    }

    /// The pushed chunk that a link holds goes to this landing.
    fn accept(&mut self, from: PeerId, landing: LandingId) {
        let key = self.landings.key(from, landing);
        if let Some(link) = self.peers.link_mut(from) {
            // Who is sent something at the same time pulls that.
            let helps = link.pushing.is_empty();
            link.pulling.accept(&link.shared, landing, key, helps);
        }
    }

    /// Something that is queued, or about links.
    #[inline]
    fn order(&mut self, order: Order) {
        match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => self.post(to, order),
            Order::Accept { from, landing } => self.accept(from, landing),
            Order::Connect { to } => self.connect(to),
            Order::Close { to } => {
                self.opening.machine.forget(to);
                let unsent = self.peers.remove(to).map(|mut link| link.give_up()).unwrap_or_default();
                self.lost(to, "was given up", unsent);
            }
        }
    }

    /// Reads what a peer has left, writes what waits for it, copies.
    #[inline(never)]
    fn serve(&mut self, rank: usize, report: &mut dyn FnMut(Event<'_>)) {
        let peer = PeerId(rank as u32);
        let crowded = self.is_crowded();
        let Some(link) = self.peers.link_mut(peer) else { return };
        if crowded && link.is_copying() {
            link.be_patient(self.copying[0] > 1);
            self.copying[1] += 1;
        }
        match advance(link, peer, &self.landings, &mut self.news.sent, report) {
            Ok(true) => {}
            // Where it goes is said between two polls.
            Ok(false) if link.pulling.is_held() => {}
            Ok(false) => {
                if let Some(why) = link.ended.take() {
                    self.lose(peer, &why);
                }
            }
            Err(why) => self.lose(peer, &why),
        }
    }

    /// Looks at the sockets: who wants a link, and whose link has ended.
    #[cold]
    #[inline(never)]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let mut knock = false;
        let mut ended = Vec::new();
        self.watch.look(|token, _| match token {
            Token::Opening => knock = true,
            Token::Link(rank) => ended.push(PeerId(rank as u32)),
            Token::Bell => {}
        });
        for peer in ended {
            if let Some(link) = self.peers.link_mut(peer)
                && let Some(why) = link.check()
            {
                // What it has left is read first.
                link.end(why);
                self.serve(peer.0 as usize, report);
            }
        }
        if knock || !self.opening.machine.is_idle() {
            self.open_links(report);
        }
        self.polls = if self.opening.machine.is_idle() { 0 } else { LOOK_EVERY - LOOK_OFTEN };
    }

    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let ShmRail { config, home, watch, peers, opening, outcome, .. } = self;
        let rail = opening::Rail { config, home, watch, peers, now_ms: now_ms() };
        opening.step(rail, outcome);
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(opened, socket, Handover { memory: Some(memory), bell: Some(bell) }) => {
                    let opened = self.home.open_link(opened.peer, opened.remote, memory, socket, bell);
                    self.opened(opened, report);
                }
                // Not complete, and so not reported by the opening.
                Outcome::Open(..) => {}
                Outcome::Failed(peer, why) => self.lost(peer, &why, Vec::new()),
            }
        }
    }

    fn opened(&mut self, opened: Opened, report: &mut dyn FnMut(Event<'_>)) {
        let (peer, remote) = (opened.peer, opened.remote);
        self.lose(peer, "opened another link in its place");
        self.news.report(report);
        let mut link = Box::new(Link::new(opened));
        link.shared.is_crowded = self.is_crowded();
        let token = Token::Link(peer.0 as usize);
        let process = link.process().map_or(Ok(()), |process| self.watch.add(process, token, false));
        if let Err(e) = self.watch.change(&link.socket, token, false).and(process) {
            return self.lost(peer, &format!("cannot be watched: {e}"), Vec::new());
        }
        log::debug!("rail shm: link to peer {} is open", peer.0);
        self.peers.insert(peer, link);
        report(Event::Up { peer, remote });
    }

    /// Reports the end of a link or of the attempt to open one.
    #[cold]
    fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(Self::NAME, peer, why, unsent);
    }

    /// Gives up a link, if there is one, and reports that.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some(mut link) = self.peers.remove(peer) {
            let unsent = link.give_up();
            self.lost(peer, why, unsent);
        }
    }

    /// Awake again after a sleep, or what should have been one.
    #[cold]
    #[inline(never)]
    fn rise(&mut self) {
        self.dozing.set(false);
        self.peers.links().for_each(Link::rise);
        let _ = rustix::io::read(&self.home.bell, &mut [0u8; 8]);
        self.polls = LOOK_EVERY;
    }
}

/// One pass over a link; whether anything moved.
#[inline]
fn advance(
    link: &mut Link,
    peer: PeerId,
    landings: &Landings,
    sent: &mut Vec<Order>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<bool, String> {
    let found = link.read(peer, landings, report)?;
    let mut moved = found != Found::Nothing;
    if !link.queue.is_empty() {
        let before = link.producer.next();
        link.write(sent).map_err(|_| IMPOSSIBLE)?;
        moved |= link.producer.next() != before;
    }
    // News are answered first: the peer waits for that while this side copies.
    if found != Found::News && (!link.pushing.is_empty() || !link.pulling.is_empty()) {
        let copied = link.copy(peer, landings, sent, report)?;
        moved |= copied;
        if copied {
            report(Event::Moved { peer });
        }
    }
    link.wake();
    Ok(moved)
}

impl Driver for ShmRail {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: claim::LONGEST.min(1 << 30),
            gather: GATHER,
            depth: DEPTH,
            lossy: false,
            push: if self.is_crowded() && self.config.cross_memory { 0 } else { PUSH },
            inject: true,
            single_copy: if self.config.cross_memory && !self.is_crowded() { lend::LENDS } else { (0, 0) },
            looks: true,
            bandwidth: 10_000_000_000,
            latency_ns: 200,
        }
    }

    fn open(&mut self, landing: LandingId, from: PeerId, into: Segments) -> Key {
        let (address, pieces, list) = board::describe(&into);
        let len = into.len();
        let key = self.landings.open(landing, from, into);
        if let Some(link) = self.peers.link(from).filter(|_| self.config.cross_memory)
            && link.show(key, (address, pieces, &list), len)
        {
            self.shown.insert(landing, (from, key, list));
        }
        key
    }

    fn close(&mut self, landing: LandingId) {
        self.landings.close(landing);
        if let Some((from, key, _list)) = self.shown.remove(&landing)
            && let Some(link) = self.peers.link(from)
        {
            link.hide(key);
        }
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, head, data, how: How::Inject, .. } => {
                self.at_once(to, |link, _| link.pass(head, data))
            }
            Departure::Message { to, head, data, how: How::SingleCopy, .. } => {
                self.at_once(to, |link, _| link.lend(head, data))
            }
            Departure::Pushed { packet, chunk: chunk @ Order::Chunk { to, .. } } => {
                self.at_once(to, |link, sent| link.push_now(packet, chunk, sent))
            }
            // Whatever could be sent could be injected.
            Departure::Message { how: How::Send, .. } | Departure::Pushed { .. } => Sent::Retry,
            Departure::Order(order) => {
                self.order(order);
                Sent::Posted
            }
        }
    }

    #[inline]
    fn flush(&mut self) {
        while let Some(peer) = self.touched.pop() {
            if let Some(link) = self.peers.link_mut(peer) {
                link.wake();
            }
        }
    }

    #[inline]
    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Scope::Peer(from) = scope {
            return match self.peers.link_mut(from) {
                Some(link) if !self.dozing.get() => link.look_for(from, report),
                _ => false,
            };
        }
        if self.dozing.get() {
            self.rise();
        }
        for place in (0..self.peers.open().len()).rev() {
            // Most looks find nothing: that is decided with a few loads.
            if let Some(&rank) = self.peers.open().get(place)
                && self.peers.link_mut(PeerId(rank as u32)).is_some_and(|link| !link.is_silent())
            {
                self.serve(rank, report);
            }
        }
        if self.is_crowded() {
            self.copying = [self.copying[1], 0];
        }
        self.polls += 1;
        if self.polls > LOOK_EVERY {
            self.look(report);
        }
        if !self.news.is_empty() {
            self.news.report(report);
        }
        true
    }

    /// Asking for traffic tells the peers to ring.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        if interest == Interest::Links {
            if !self.dozing.get() {
                // Somebody may have rung after the last sleep was over.
                let _ = rustix::io::read(&self.home.bell, &mut [0u8; 8]);
            }
            self.polls = LOOK_EVERY;
            return Some(self.watch.descriptor());
        }
        self.dozing.set(true);
        self.peers.links().for_each(Link::doze);
        barrier::make();
        let busy = self.peers.links().any(Link::is_busy);
        if busy || !self.news.is_empty() {
            ring_bell(&self.home.bell);
        }
        Some(self.watch.descriptor())
    }

    fn address(&self) -> String {
        self.home.address.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let Ok(address) = address.parse::<super::address::Address>() else { return false };
        let here = address.place == self.home.address.place;
        if here {
            self.peers.learn(peer, rail, address);
        }
        here
    }
}
