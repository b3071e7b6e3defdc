//! The driver: opens and closes links, and serves the traffic of open ones.

use super::cma::regions;
use super::config::{self, ShmConfig};
use super::home::Home;
use super::layout::{CHUNKS, PACKET, PUSH};
use super::link::{Link, Opened, wake};
use super::opening::{self, Handover, Opening};
use super::peers::Peers;
use super::selector::Selector;
use super::turn::Turn;
use super::wakeup;
use crate::connections::Outcome;
use crate::error::DriverError;
use crate::news::News;
use crate::node::claim;
use crate::regions::Regions;
use crate::tcp::now_ms;
use crate::watch::{Token, Watch};
use hashbrown::HashMap;
use nmad_engine::InPlace;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Came, RemoteAccess};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Reads, Scope, Sent, Statistics,
};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent: one per place for a chunk.
const DEPTH: usize = CHUNKS;
/// Segments of a packet that may stay in user memory. A packet is copied anyway; more segments only make
/// longer lists.
const GATHER: usize = 16;
/// Polls between two checks of the sockets: a check costs a system call, and sockets only report links that
/// open and end. Zen 4: half and twice are within the spread.
const LOOK_EVERY: u32 = 256;
/// Polls between two checks while a link is being opened, which takes tens of microseconds: half and twice
/// change that by a few polls, and no message.
const LOOK_OFTEN: u32 = 8;

/// A rail over memory shared by processes of one node.
#[derive(Debug)]
pub struct ShmRail {
    pub(super) config: ShmConfig,
    home: Home,
    watch: Watch,
    opening: Opening,
    outcome: Vec<Outcome<Handover>>,
    pub(super) peers: Peers,
    selector: Selector,
    regions: Regions,
    /// Regions that peers may push into.
    published: HashMap<RegionId, (PeerId, Key, regions::List)>,
    /// Peers to which something was posted since the last flush.
    touched: Vec<PeerId>,
    news: News,
    polls: u32,
    /// The sleep flags of all links are set.
    is_sleep_flag_set: Cell<bool>,
}

impl ShmRail {
    /// Name of the rail in messages to the user.
    pub const NAME: &str = config::NAME;

    /// Opens a rail; peers can connect to it from now on.
    ///
    /// # Errors
    /// The system creates no socket, eventfd or epoll.
    pub fn open(config: ShmConfig) -> Result<ShmRail, DriverError> {
        let watch = Watch::new().map_err(|e| DriverError::new(Self::NAME, "cannot make an epoll", e))?;
        let home = Home::open(Self::NAME, config.cross_memory, &watch)?;
        // The system registers a process of one thread at once, and others after a grace period of some ms.
        wakeup::shares_fences();
        let mut selector = Selector::default();
        selector.recall(&config.learnt);
        Ok(ShmRail {
            opening: Opening::new(&config, &watch)?,
            config,
            home,
            watch,
            outcome: Vec::new(),
            peers: Peers::default(),
            selector,
            regions: Regions::default(),
            published: HashMap::new(),
            touched: Vec::new(),
            news: News::default(),
            polls: 0,
            is_sleep_flag_set: Cell::new(false),
        })
    }

    /// Returns whether there are more processes than cores.
    #[inline]
    fn is_oversubscribed(&self) -> bool {
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
        if let Err(why) = link.post(order, &mut self.news.sent, &mut self.selector) {
            return self.lose(to, why);
        }
        if self.touched.last() != Some(&to) {
            self.touched.push(to);
        }
    }

    /// Calls `give` on a link directly, without its queue; an error closes the link.
    #[inline(always)]
    fn at_once<R: Into<Sent>>(
        &mut self,
        to: PeerId,
        give: impl FnOnce(&mut Link, &mut Vec<Order>, &mut Selector) -> Result<R, &'static str>,
    ) -> Sent {
        let Some(link) = self.peers.link_mut(to) else { return Sent::Retry };
        match give(link, &mut self.news.sent, &mut self.selector) {
            Ok(sent) => sent.into(),
            Err(why) => {
                self.lose(to, why);
                Sent::Retry
            }
        }
    }

    /// Assigns a receive region to the pushed chunk that a link holds.
    fn accept(&mut self, from: PeerId, region: RegionId) {
        let key = self.regions.key(from, region);
        if let Some(link) = self.peers.link_mut(from) {
            // If this side also sends to the peer, the peer is busy pulling that, and this side copies
            // alone.
            let helps = link.outgoing.is_empty();
            link.incoming.accept(&link.shared, region, key, helps);
        }
    }

    /// Reads from a peer, writes the orders queued for it, and copies.
    #[inline(never)]
    fn serve(&mut self, rank: usize, report: &mut dyn FnMut(Event<'_>)) {
        let peer = PeerId(rank as u32);
        let Some(link) = self.peers.link_mut(peer) else { return };
        let (sent, selector) = (&mut self.news.sent, &mut self.selector);
        match link.advance(&mut Turn { peer, regions: &self.regions, sent, selector, report }) {
            Ok(true) => {}
            // The engine assigns the region of a held chunk between two polls.
            Ok(false) if link.incoming.is_held() => {}
            Ok(false) => _ = link.ended.take().map(|why| self.lose(peer, &why)),
            Err(why) => self.lose(peer, &why),
        }
    }

    /// Checks the sockets: connection requests, and links that have ended.
    #[cold]
    #[inline(never)]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let mut is_wanted = false;
        let mut ended = Vec::new();
        self.watch.look(|token, _| match token {
            Token::Opening => is_wanted = true,
            Token::Link(rank) => ended.push(PeerId(rank as u32)),
            Token::Wakeup | Token::Carrier => {}
        });
        for peer in ended {
            if let Some(link) = self.peers.link_mut(peer)
                && let Some(why) = link.check()
            {
                // Its last cells are read first.
                link.end(why);
                self.serve(peer.0 as usize, report);
            }
        }
        if is_wanted || !self.opening.machine.is_idle() {
            self.open_links(report);
        }
        self.polls = if self.opening.machine.is_idle() { 0 } else { LOOK_EVERY - LOOK_OFTEN };
    }

    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let ShmRail { config, home, peers, opening, outcome, .. } = self;
        let rail = opening::Rail { config, home, peers, now_ms: now_ms() };
        opening.step(rail, outcome);
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(opened, socket, Handover { memory: Some(memory), wakeup: Some(wakeup) }) => {
                    let opened = self.home.open_link(opened.peer, opened.remote, memory, socket, wakeup);
                    self.opened(opened, report);
                }
                // The handover is incomplete; the opening does not report such links.
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
        link.shared.is_oversubscribed = self.is_oversubscribed();
        let token = Token::Link(peer.0 as usize);
        let process = link.process.as_ref().map_or(Ok(()), |process| self.watch.add(process, token, false));
        if let Err(e) = self.watch.add(&link.socket, token, false).and(process) {
            return self.lost(peer, &format!("cannot be watched: {e}"), Vec::new());
        }
        log::debug!("rail shm: link to peer {} is open", peer.0);
        self.peers.insert(peer, link);
        report(Event::Up { peer, remote });
    }

    /// Reports the end of a link, or of the attempt to open one.
    #[cold]
    fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(Self::NAME, peer, why, unsent);
    }

    /// Closes a link, if there is one, and reports that.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some(link) = self.peers.remove(peer) {
            self.end(peer, Some(link), why);
        }
    }

    /// Ends a link, and reports its unsent orders.
    fn end(&mut self, peer: PeerId, link: Option<Box<Link>>, why: &str) {
        let Some(mut link) = link else { return self.lost(peer, why, Vec::new()) };
        let unsent = link.give_up();
        self.lost(peer, why, unsent);
    }

    /// Clears the sleep flags after a sleep, or after one that was cancelled.
    #[cold]
    #[inline(never)]
    fn clear_sleep_flag(&mut self) {
        self.is_sleep_flag_set.set(false);
        self.peers.links().for_each(Link::clear_sleep_flag);
        let _ = rustix::io::read(&self.home.wakeup, &mut [0u8; 8]);
        self.polls = LOOK_EVERY;
    }
}

impl Driver for ShmRail {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn limits(&self) -> Limits {
        let copies = self.config.cross_memory;
        let is_oversubscribed = self.is_oversubscribed();
        Limits {
            packet: PACKET,
            chunk: claim::LONGEST.min(1 << 30),
            gather: GATHER,
            depth: DEPTH,
            push: if copies && is_oversubscribed { 0 } else { PUSH },
            inject: true,
            reads: match copies {
                false => Reads::Never,
                true if is_oversubscribed => Reads::From(PACKET as u64),
                true => Reads::Measured,
            },
            // If the system refuses access after all, the layer above finds out at the first access.
            remote: if copies { RemoteAccess::Copies } else { RemoteAccess::None },
            looks: true,
            blocks: copies,
            bandwidth: 10_000_000_000,
            latency_ns: 200,
            ..Limits::default()
        }
    }

    fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.selector.piece_min = from.and_then(|from| from.block).unwrap_or_else(regions::nominal);
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        let (address, pieces, list) = regions::describe(&into, self.selector.piece_min);
        let len = into.len();
        let key = self.regions.open(region, from, into);
        if let Some(link) = self.peers.link(from).filter(|_| self.config.cross_memory)
            && link.publish(key, (address, pieces), len)
        {
            self.published.insert(region, (from, key, list));
        }
        key
    }

    fn close(&mut self, region: RegionId) {
        self.regions.close(region);
        if let Some((from, key, _list)) = self.published.remove(&region)
            && let Some(link) = self.peers.link(from)
        {
            link.close(key);
        }
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        let Access { to, at, here, .. } = access;
        let link = self.peers.link_mut(to);
        Some(link.map_or(Came::Undone, |link| link.read_message(at, &here)))
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, head, data, how: How::Inject, .. } => {
                self.at_once(to, |link, _, selector| link.inject(head, data, selector))
            }
            Departure::Pushed { packet, chunk: chunk @ Order::Chunk { to, .. } } => {
                self.at_once(to, |link, sent, selector| link.push_now((packet, chunk), sent, selector))
            }
            // The link is open, and whatever fits into the ring could be injected.
            Departure::Message { how: How::Send, .. } | Departure::Pushed { .. } => Sent::Retry,
            Departure::Order(order) => {
                match order {
                    Order::Packet { to, .. } | Order::Chunk { to, .. } => self.post(to, order),
                    Order::Accept { from, region } => self.accept(from, region),
                    Order::Connect { to } => self.connect(to),
                    Order::Close { to } => {
                        self.opening.machine.forget(to);
                        let link = self.peers.remove(to);
                        self.end(to, link, "has no link any more: this side closed it");
                    }
                }
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
                Some(link) if !self.is_sleep_flag_set.get() => link.poll_packet(from, report),
                _ => false,
            };
        }
        if self.is_sleep_flag_set.get() {
            self.clear_sleep_flag();
        }
        for place in (0..self.peers.open().len()).rev() {
            // Most checks find nothing; a few loads decide that.
            if let Some(&rank) = self.peers.open().get(place)
                && self.peers.link_mut(PeerId(rank as u32)).is_some_and(|link| !link.is_silent())
            {
                self.serve(rank, report);
            }
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

    /// Interest in traffic sets the sleep flags, so that peers wake this side.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        if interest == Interest::Links {
            if !self.is_sleep_flag_set.get() {
                // Discards a wakeup that arrived after the last sleep was over.
                let _ = rustix::io::read(&self.home.wakeup, &mut [0u8; 8]);
            }
            self.polls = LOOK_EVERY;
            return Some(self.watch.descriptor());
        }
        self.is_sleep_flag_set.set(true);
        self.peers.links().for_each(Link::set_sleep_flag);
        wakeup::fence_all();
        let busy = self.peers.links().any(Link::is_busy);
        if busy || !self.news.is_empty() {
            wake(&self.home.wakeup);
        }
        Some(self.watch.descriptor())
    }

    fn statistics(&self) -> Statistics {
        Statistics { learnt: self.selector.learnt(), ..Statistics::default() }
    }

    fn address(&self) -> String {
        self.home.address.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let Ok(address) = address.parse::<crate::shm::address::Address>() else { return false };
        let here = address.place == self.home.address.place;
        if here {
            self.peers.learn(peer, rail, address);
        }
        here
    }
}
