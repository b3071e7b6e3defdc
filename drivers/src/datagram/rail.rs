//! A rail of datagrams: opens and closes links, and queues the orders of open ones. Its network sends and
//! reads datagrams.

use super::greeters::{Greeted, Outcome};
use super::header::Signal;
use super::link::Link;
use super::silence::{ASK_MS, Silence};
use super::strays::{Stray, Strays};
use super::{CHUNK, PACKET};
use crate::carrier::Carrier;
use crate::news::News;
use crate::opening::{Opening, RETRY_MS};
use crate::regions::Regions;
use crate::tcp::now_ms;
use crate::timer::Timer;
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Scope, Sent, Statistics,
};
use std::fmt::Debug;
use std::time::Duration;

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 4;
/// Segments of a packet that may stay in user memory.
const GATHER: usize = 16;

/// A network of datagrams.
pub trait Net: Debug + Send + Sized {
    /// The route of an open link.
    type Route: Debug + Send;
    /// The route of a handshake.
    type Way: Debug + Send;

    /// Sends queued orders; orders that were sent go to `sent`.
    ///
    /// # Errors
    /// Why the link has ended.
    fn write(&mut self, link: &mut Link<Self::Route>, sent: &mut Vec<Order>) -> Result<(), String>;
    /// Sends a packet in one datagram; false: it was not sent.
    fn send_now(&self, link: &mut Link<Self::Route>, number: u32, packet: (&[u64], &Segments)) -> bool;
    /// Sends a signal.
    fn signal(&self, link: &mut Link<Self::Route>, signal: Signal);
    /// Sends probes and repetitions that are due.
    ///
    /// # Errors
    /// Why the link has ended.
    fn maintain(&self, link: &mut Link<Self::Route>, now_ms: u64) -> Result<(), String>;
    /// Makes the route of an open link, which gets this index.
    ///
    /// # Errors
    /// The system does not allow it.
    fn route(&mut self, greeted: &mut Greeted<Self::Way>, index: usize) -> Result<Self::Route, String>;
    /// Forgets a link that has ended.
    fn forget(&mut self, index: usize, link: &Link<Self::Route>);
    /// Returns the link from which the last datagram came, if that is known.
    fn latest(&self) -> Option<usize> {
        None
    }
    /// Reads datagrams, and looks for requests and for periodic work that is due.
    fn read(rail: &mut Rail<Self>, report: &mut dyn FnMut(Event<'_>));
    /// Continues all handshakes.
    fn open_links(rail: &mut Rail<Self>);
    /// Does the network's own periodic work.
    fn tend(&mut self) {}
    /// See [`Driver::wakeup`].
    fn wakeup(rail: &mut Rail<Self>, interest: Interest) -> i32;
    /// See [`Driver::address`].
    fn address(&self) -> String;
    /// See [`Driver::know`].
    fn know(&mut self, peer: PeerId, remote: u8, address: &str) -> bool;
}

/// The parameters that every network has.
#[derive(Debug)]
pub struct Terms {
    /// Name of the rail in messages to the user.
    pub name: String,
    /// Rank of this process.
    pub rank: PeerId,
    /// Bandwidth of the interface.
    pub bandwidth: u64,
    /// Secret of the job.
    pub secret: [u8; 32],
    /// Whether the policy of this side encrypts the links of the rail.
    pub encrypts: bool,
    /// Time without any answer after which a peer counts as gone.
    pub silence: Duration,
}

/// A rail over a network of datagrams.
#[derive(Debug)]
pub struct Rail<N: Net> {
    pub(crate) terms: Terms,
    pub(crate) net: N,
    /// The state machine that opens links.
    pub(crate) machine: Opening,
    pub(crate) outcome: Vec<Outcome<N::Way>>,
    pub(crate) links: Links<N::Route>,
    pub(crate) regions: Regions,
    pub(crate) strays: Strays,
    pub(crate) carrier: Carrier,
    pub(crate) news: News,
    /// Polls since the last look at what is not read in each poll.
    pub(crate) polls: u32,
    /// The cipher of the latest encrypted link.
    cipher: Option<&'static str>,
    timer: Timer,
    touched: Vec<usize>,
    blocked: Vec<usize>,
}

/// The open links of a rail.
#[derive(Debug)]
pub struct Links<R> {
    list: Vec<Option<Box<Link<R>>>>,
    by_peer: HashMap<PeerId, usize>,
}

impl<R> Links<R> {
    /// Returns the link at this index.
    #[inline]
    pub fn at(&mut self, index: usize) -> Option<&mut Link<R>> {
        self.list.get_mut(index)?.as_deref_mut()
    }

    /// Returns the link at this index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Link<R>> {
        self.list.get(index)?.as_deref()
    }

    /// Returns the link to a peer.
    pub fn to(&self, peer: PeerId) -> Option<&Link<R>> {
        self.get(self.find(peer)?)
    }

    /// Returns the index of the link to a peer.
    #[inline]
    fn find(&self, peer: PeerId) -> Option<usize> {
        self.by_peer.get(&peer).copied()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link<R>> {
        self.list.iter_mut().flatten().map(|link| &mut **link)
    }

    /// Returns the index of the next link.
    fn vacant(&mut self) -> usize {
        let index = self.list.iter().position(Option::is_none).unwrap_or(self.list.len());
        if index == self.list.len() {
            self.list.push(None);
        }
        index
    }
}

impl<N: Net> Rail<N> {
    /// Makes a rail without links.
    pub(crate) fn new(terms: Terms, net: N, machine: Opening, timer: Timer, carrier: Carrier) -> Rail<N> {
        Rail {
            terms,
            net,
            machine,
            outcome: Vec::new(),
            links: Links { list: Vec::new(), by_peer: HashMap::new() },
            regions: Regions::default(),
            strays: Strays::default(),
            carrier,
            news: News::default(),
            polls: 0,
            cipher: None,
            timer,
            touched: Vec::new(),
            blocked: Vec::new(),
        }
    }

    /// Number of datagrams dropped so far for this reason.
    pub fn dropped_as(&self, stray: Stray) -> u64 {
        self.strays.counted(stray)
    }

    fn connect(&mut self, to: PeerId) {
        match self.links.to(to).map(|link| link.remote) {
            Some(remote) => self.news.found.push(Event::Up { peer: to, remote }),
            None if to == self.terms.rank => {
                self.lost(to, "is this process itself, which needs no network", Vec::new());
            }
            None => {
                self.machine.connect(to, now_ms());
                self.set_timer();
            }
        }
    }

    /// Closes a link on behalf of the engine.
    fn leave(&mut self, to: PeerId) {
        self.machine.forget(to);
        let mut link = self.remove(to);
        if let Some(link) = &mut link {
            self.net.signal(link, Signal::Close);
        }
        let unsent = link.map(|mut link| link.queue.take_unsent()).unwrap_or_default();
        self.lost(to, "has no link any more: this side closed it", unsent);
    }

    /// Reports the end of a link, or of the attempt to open one.
    #[cold]
    fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(&self.terms.name, peer, why, unsent);
    }

    /// Ends a link.
    #[cold]
    pub(crate) fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some(mut link) = self.remove(peer) {
            self.lost(peer, why, link.queue.take_unsent());
        }
    }

    fn remove(&mut self, peer: PeerId) -> Option<Box<Link<N::Route>>> {
        let gone = self.links.by_peer.remove(&peer)?;
        let link = self.links.list[gone].take()?;
        self.net.forget(gone, &link);
        self.touched.retain(|index| *index != gone);
        self.blocked.retain(|index| *index != gone);
        Some(link)
    }

    fn write(&mut self, index: usize) {
        let Some(link) = self.links.at(index) else { return };
        if let Err(why) = self.net.write(link, &mut self.news.sent) {
            let peer = link.peer;
            return self.lose(peer, &why);
        }
        let blocked = !link.queue.is_empty();
        if blocked && !link.blocked {
            self.blocked.push(index);
        }
        link.blocked = blocked;
    }

    #[cold]
    fn write_blocked(&mut self) {
        for index in self.blocked.clone() {
            self.write(index);
        }
        let links = &self.links;
        self.blocked.retain(|index| links.get(*index).is_some_and(|link| link.blocked));
    }

    /// Reports the results of attempts to open links.
    pub(crate) fn report_outcomes(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(greeted) => self.opened(*greeted, report),
                Outcome::Failed(peer, why) => self.lost(peer, &why, Vec::new()),
            }
        }
        self.set_timer();
    }

    fn opened(&mut self, mut greeted: Greeted<N::Way>, report: &mut dyn FnMut(Event<'_>)) {
        let (peer, remote) = (greeted.opened.peer, greeted.opened.remote);
        self.lose(peer, "opened another link in its place");
        self.news.report(report);
        let index = self.links.vacant();
        let route = match self.net.route(&mut greeted, index) {
            Ok(route) => route,
            Err(why) => return self.lost(peer, &why, Vec::new()),
        };
        let Greeted { opened, proof, buffer, .. } = greeted;
        self.cipher = opened.cipher().or(self.cipher);
        let (cipher, name) = (opened.cipher().unwrap_or("not encrypted"), &self.terms.name);
        log::debug!("rail {name}: link to peer {}, {} B a datagram, {cipher}", peer.0, opened.len);
        let silence = Silence::new(self.terms.silence, now_ms());
        let mut link = Box::new(Link::new(&opened, route, proof, &self.terms.secret, silence));
        if !opened.is_attempt {
            self.net.signal(&mut link, Signal::Alive);
        }
        self.links.by_peer.insert(peer, index);
        self.links.list[index] = Some(link);
        report(Event::Up { peer, remote });
        report(Event::Buffers { peer, len: u64::from(buffer) });
    }

    /// Continues attempts to open links, if something has arrived for them, or their time has come; does the
    /// periodic work if the timer has expired.
    pub(crate) fn go_on(&mut self, has_request: bool, has_expired: bool, report: &mut dyn FnMut(Event<'_>)) {
        if has_request || has_expired || !self.machine.is_idle() {
            N::open_links(self);
            self.report_outcomes(report);
        }
        if has_expired {
            self.timer.acknowledge();
            self.maintain();
            self.set_timer();
        }
    }

    /// Probes inactive links, and logs dropped datagrams.
    fn maintain(&mut self) {
        let now_ms = now_ms();
        for index in 0..self.links.list.len() {
            let Some(link) = self.links.at(index) else { continue };
            if let Err(why) = self.net.maintain(link, now_ms) {
                let peer = link.peer;
                self.lose(peer, &why);
            }
        }
        self.net.tend();
        if let Some((level, text)) = self.strays.news(now_ms) {
            log::log!(level, "rail {}: {text}", self.terms.name);
        }
    }

    /// Sets the timer for pending periodic work.
    fn set_timer(&mut self) {
        let is_urgent = !self.machine.is_idle() || self.links.iter_mut().any(|link| link.is_unproved());
        self.timer.start(if is_urgent { RETRY_MS } else { ASK_MS });
    }

    #[inline]
    fn send_now(&mut self, to: PeerId, number: u32, packet: (&[u64], &Segments)) -> Sent {
        // An answer goes to the sender of the last datagram, so try that link first.
        let answers = |index: &usize| self.links.get(*index).is_some_and(|link| link.peer == to);
        let latest = self.net.latest().filter(answers);
        let Some(index) = latest.or_else(|| self.links.find(to)) else { return Sent::Retry };
        let link = self.links.at(index).filter(|link| link.queue.is_empty());
        let Some(link) = link else { return Sent::Retry };
        self.net.send_now(link, number, packet).into()
    }

    #[inline]
    fn post(&mut self, order: Order) {
        let to = match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => to,
            Order::Connect { to } => return self.connect(to),
            Order::Close { to } => return self.leave(to),
            Order::Accept { .. } => return,
        };
        let found = self.links.find(to);
        let link = found.and_then(|index| Some((index, self.links.at(index)?)));
        let Some((index, link)) = link else {
            return self.lost(to, "has no open link", vec![order]);
        };
        link.queue.push(order);
        if !link.touched {
            link.touched = true;
            self.touched.push(index);
        }
    }
}

impl<N: Net> Driver for Rail<N> {
    fn name(&self) -> &str {
        &self.terms.name
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: CHUNK as u64,
            gather: GATHER,
            depth: DEPTH,
            lossy: true,
            returns: true,
            encrypts: self.terms.encrypts,
            bandwidth: self.terms.bandwidth,
            latency_ns: 0,
            ..Limits::default()
        }
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.regions.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.regions.close(region);
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Order(order) => self.post(order),
            Departure::Message { to, number, head, data, how: How::Send } => {
                return self.send_now(to, number, (head, data));
            }
            Departure::Message { .. } | Departure::Pushed { .. } => return Sent::Retry,
        }
        Sent::Posted
    }

    #[inline]
    fn flush(&mut self) {
        while let Some(index) = self.touched.pop() {
            if let Some(link) = self.links.at(index) {
                link.touched = false;
                self.write(index);
            }
        }
    }

    #[inline]
    fn poll(&mut self, _: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if !self.news.sent.is_empty() {
            self.news.report(report);
        }
        if !self.blocked.is_empty() {
            self.write_blocked();
        }
        N::read(self, report);
        if !self.news.is_empty() {
            self.news.report(report);
        }
        true
    }

    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        Some(N::wakeup(self, interest))
    }

    fn statistics(&self) -> Statistics {
        Statistics { dropped: self.strays.all(), ..Statistics::default() }
    }

    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        peer.map_or(self.cipher, |peer| self.links.to(peer)?.cipher)
    }

    fn address(&self) -> String {
        self.net.address()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        self.net.know(peer, rail, address)
    }
}

impl<N: Net> Drop for Rail<N> {
    /// Notifies the peers, which would otherwise need a timeout to notice.
    fn drop(&mut self) {
        let Rail { links, net, .. } = self;
        links.iter_mut().for_each(|link| net.signal(link, Signal::Close));
    }
}
