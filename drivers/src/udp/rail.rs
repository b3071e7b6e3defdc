//! The driver: opens and closes links, and serves the traffic of open ones.

use super::assembly::Place;
use super::config::UdpConfig;
use super::datagram::Signal;
use super::greeters::{Greeted, Outcome};
use super::link::{Broken, Link};
use super::opening::{self, Opening, Way};
use super::peers::Peers;
use super::read::{Closed, read};
use super::silence::{self, Silence};
use super::strays::{Stray, Strays};
use super::write::LEAST;
use super::{CHUNK, PACKET, socket};
use crate::carrier::Carrier;
use crate::error::DriverError;
use crate::hot::Hot;
use crate::news::News;
use crate::opening::RETRY_MS;
use crate::regions::Regions;
use crate::tcp::address::Address;
use crate::timer::Timer;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Scope, Sent, Statistics,
};
use rustix::io::Errno;
use std::net::SocketAddr;

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 4;
/// Segments of a packet that may stay in user memory.
const GATHER: usize = 16;
/// Bytes read at once: more than any datagram, also of several that the kernel has joined.
const SCRATCH: usize = 128 << 10;
/// Reads per link and poll, so that one busy link does not starve the others.
const READS: usize = 8;
/// While some link is hot, polls between two checks of the others.
const LOOK_EVERY: u32 = 32;
/// Prefix of the address of a UDP rail, which distinguishes it from that of a TCP rail.
const SCHEME: &str = "udp:";

/// A rail over UDP on one interface.
#[derive(Debug)]
pub struct UdpRail {
    name: String,
    config: UdpConfig,
    address: Address,
    watch: Watch,
    carrier: Carrier,
    timer: Timer,
    opening: Opening,
    outcome: Vec<Outcome<Way>>,
    peers: Peers,
    regions: Regions,
    strays: Strays,
    scratch: Box<[u8]>,
    hot: Hot,
    touched: Vec<usize>,
    blocked: Vec<usize>,
    news: News,
    looked: Vec<Token>,
    polls: u32,
}

impl UdpRail {
    /// Listens on the address of the interface.
    ///
    /// # Errors
    /// The address is not one of this machine.
    pub fn open(config: UdpConfig) -> Result<UdpRail, DriverError> {
        let name = config.name();
        let fail = |what: &'static str| {
            let name = name.clone();
            move |e: Errno| DriverError::new(&name, what, e)
        };
        let watch = Watch::new().map_err(fail("cannot make an epoll"))?;
        let timer = Timer::new().map_err(fail("cannot make a timer"))?;
        let (listener, port) = socket::listen(&name, &config)?;
        let address =
            Address { socket: SocketAddr::new(config.address(), port), prefix: config.interface.prefix };
        watch.add(&listener, Token::Opening, false).map_err(fail("cannot watch a socket"))?;
        watch.add(timer.descriptor(), Token::Wakeup, false).map_err(fail("cannot watch a timer"))?;
        let opening = Opening::new(listener, port, &config);
        Ok(UdpRail {
            name: name.clone(),
            carrier: Carrier::new(&config.interface, &watch),
            config,
            address,
            watch,
            timer,
            opening,
            outcome: Vec::new(),
            peers: Peers::default(),
            regions: Regions::default(),
            strays: Strays::default(),
            scratch: vec![0; SCRATCH].into(),
            hot: Hot::default(),
            touched: Vec::new(),
            blocked: Vec::new(),
            news: News::default(),
            looked: Vec::new(),
            polls: 0,
        })
    }

    /// Number of datagrams dropped so far for this reason.
    pub fn dropped_as(&self, stray: Stray) -> u64 {
        self.strays.counted(stray)
    }

    fn connect(&mut self, to: PeerId) {
        match self.peers.link(to).map(|link| link.remote) {
            Some(remote) => self.news.found.push(Event::Up { peer: to, remote }),
            None if to == self.config.rank => {
                self.lost(to, "is this process itself, which needs no network", Vec::new());
            }
            None => {
                self.opening.machine.connect(to, now_ms());
                self.set_timer();
            }
        }
    }

    /// Closes a link on behalf of the engine.
    fn leave(&mut self, to: PeerId) {
        self.opening.machine.forget(to);
        let mut link = self.remove(to);
        let unsent = link.as_mut().map(|link| link.out.take_unsent()).unwrap_or_default();
        if let Some(mut link) = link {
            link.signal(Signal::Close);
        }
        self.lost(to, "has no link any more: this side closed it", unsent);
    }

    /// Reports the end of a link, or of the attempt to open one.
    #[cold]
    fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(&self.name, peer, why, unsent);
    }

    #[cold]
    fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some(mut link) = self.remove(peer) {
            self.lost(peer, why, link.out.take_unsent());
        }
    }

    fn remove(&mut self, peer: PeerId) -> Option<Box<Link>> {
        let gone = self.peers.find(peer)?;
        let link = self.peers[gone].link.take()?;
        self.hot.forget(gone);
        self.touched.retain(|index| *index != gone);
        self.blocked.retain(|index| *index != gone);
        Some(link)
    }

    fn write(&mut self, index: usize) {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        let Link { out, socket, seal, cut, .. } = link;
        if let Err(e) = out.write(socket, seal, *cut, &mut self.news.sent) {
            link.refused(e);
        }
        let blocked = !link.out.is_empty();
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
        let peers = &self.peers;
        self.blocked.retain(|index| peers[*index].link.as_ref().is_some_and(|link| link.blocked));
    }

    /// Reads from a peer; returns whether anything arrived.
    #[inline]
    fn read(&mut self, index: usize, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let peer = &mut self.peers[index];
        let Some(link) = peer.link.as_deref_mut() else { return false };
        let (id, regions) = (peer.id, &self.regions);
        let mut place = Place { peer: id, regions, last: None };
        for round in 0..READS {
            match read(link, &mut self.scratch, &mut place, &mut self.strays, report) {
                Ok(true) => {}
                Ok(false) if round == 0 => return false,
                Ok(false) => break,
                Err(Closed) => {
                    self.lose(id, "closed the link (has it ended?)");
                    return true;
                }
            }
            if !link.assemblies.is_expecting() {
                break;
            }
        }
        if link.assemblies.is_expecting() {
            report(Event::Moved { peer: id });
        }
        link.reads.set(link.reads.get().wrapping_add(1));
        if link.reads.get() == TRUSTED_AFTER && self.watch.remove(&link.socket).is_ok() {
            link.is_watched.set(false);
        }
        true
    }

    /// Watches the socket of a link.
    fn watch_link(&self, index: usize) {
        if let Some(link) = self.peers[index].link.as_deref()
            && !link.is_watched.get()
            && self.watch.add(&link.socket, Token::Link(index), false).is_ok()
        {
            link.is_watched.set(true);
            // A watched socket makes the kernel check for sleepers at each datagram, so it is soon
            // unwatched again.
            link.reads.set(0);
        }
    }

    /// Watches a link that is not hot any more.
    #[inline]
    fn watch_cold(&mut self, cold: Option<usize>) {
        if let Some(index) = cold {
            self.watch_link(index);
        }
    }

    /// Checks the links that are not hot, and the periodic work that is due.
    #[cold]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.polls = 0;
        let (mut has_request, mut has_expired) = (false, false);
        let mut looked = std::mem::take(&mut self.looked);
        self.watch.look(|token, _| looked.push(token));
        for token in looked.drain(..) {
            match token {
                Token::Opening => has_request = true,
                Token::Wakeup => has_expired = true,
                Token::Carrier => self.carrier.read_notifications(self.peers.ids(), &mut self.news),
                Token::Link(index) => {
                    if self.read(index, report) {
                        let cold = self.hot.heat(index);
                        self.watch_cold(cold);
                    }
                }
            }
        }
        self.looked = looked;
        if has_request || has_expired || !self.opening.machine.is_idle() {
            self.open_links(report);
        }
        if has_expired {
            self.timer.acknowledge();
            self.maintain();
            self.set_timer();
        }
    }

    #[cold]
    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let UdpRail { config, watch, peers, strays, opening, scratch, outcome, .. } = self;
        let rail = opening::Rail { config, watch, peers, strays, now_ms: now_ms() };
        opening.step(rail, scratch, outcome);
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(greeted) => self.opened(greeted, report),
                Outcome::Failed(peer, why) => self.lost(peer, &why, Vec::new()),
            }
        }
        self.set_timer();
    }

    fn opened(&mut self, greeted: Greeted<Way>, report: &mut dyn FnMut(Event<'_>)) {
        let Greeted { opened, way: Way { fd: Some(fd), .. }, proof, buffer } = greeted else { return };
        let (peer, remote) = (opened.peer, opened.remote);
        self.lose(peer, "opened another link in its place");
        self.news.report(report);
        let index = self.peers.find_or_add(peer);
        if let Err(e) = self.watch.change(&fd, Token::Link(index), false) {
            return self.lost(peer, &format!("cannot be watched: {e}"), Vec::new());
        }
        log::debug!("rail {}: link to peer {}, {} B a datagram", self.name, peer.0, opened.len);
        let silence = Silence::new(self.config.silence, now_ms());
        self.peers[index].link = Some(Box::new(Link::new(&opened, fd, proof, &self.config.secret, silence)));
        report(Event::Up { peer, remote });
        report(Event::Buffers { peer, len: u64::from(buffer) });
    }

    /// Probes inactive links, and logs dropped datagrams.
    fn maintain(&mut self) {
        let now_ms = now_ms();
        let linked: Vec<usize> = self.peers.linked().collect();
        for index in linked {
            let peer = self.peers[index].id;
            let kept = self.peers[index].link.as_deref_mut().map_or(Ok(()), |link| link.maintain(now_ms));
            match kept {
                Ok(()) => {}
                Err(Broken::System(e)) => self.lose(peer, &failed(e)),
                Err(Broken::Silent) => self.lose(peer, &self.silent()),
            }
        }
        if let Some((level, text)) = self.strays.news(now_ms) {
            log::log!(level, "rail {}: {text}", self.name);
        }
    }

    fn silent(&self) -> String {
        format!(
            "has not answered for {:?} (is its host gone, is an interface down, or has a firewall begun to \
             swallow UDP to {}?)",
            self.config.silence,
            self.config.address()
        )
    }

    /// Sets the timer for pending periodic work.
    fn set_timer(&mut self) {
        let unproved = |index: usize| self.peers[index].link.as_ref().is_some_and(|link| link.is_unproved());
        let is_urgent = !self.opening.machine.is_idle() || self.peers.linked().any(unproved);
        self.timer.start(if is_urgent { RETRY_MS } else { silence::ASK_MS });
    }

    #[inline]
    fn send_now(&mut self, to: PeerId, number: u32, packet: (&[u64], &Segments)) -> Sent {
        let found = self.peers.find(to).and_then(|index| self.peers[index].link.as_deref_mut());
        let Some(Link { out, socket, seal, cut, .. }) = found else { return Sent::Retry };
        out.send_now(socket, seal, *cut, number, packet).into()
    }

    #[inline]
    fn post(&mut self, order: Order) {
        let to = match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => to,
            Order::Connect { to } => return self.connect(to),
            Order::Close { to } => return self.leave(to),
            Order::Accept { .. } => return,
        };
        let found = self.peers.find(to);
        let link = found.and_then(|index| Some((index, self.peers[index].link.as_deref_mut()?)));
        let Some((index, link)) = link else {
            return self.lost(to, "has no open link", vec![order]);
        };
        link.out.push(order);
        if !link.touched {
            link.touched = true;
            self.touched.push(index);
        }
    }
}

impl Driver for UdpRail {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: CHUNK as u64,
            gather: GATHER,
            depth: DEPTH,
            lossy: true,
            returns: true,
            bandwidth: self.config.interface.bandwidth,
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
            if let Some(link) = self.peers[index].link.as_deref_mut() {
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
        for place in (0..self.hot.count()).rev() {
            let Some(index) = self.hot.at(place) else { continue };
            let cold = if self.read(index, report) { self.hot.heat(index) } else { self.hot.cool(place) };
            self.watch_cold(cold);
        }
        self.polls += 1;
        if self.polls >= LOOK_EVERY || self.hot.count() == 0 || self.opening.machine.is_urgent() {
            self.look(report);
        }
        self.news.report(report);
        true
    }

    /// Interest in traffic watches all links, including those that are otherwise polled directly.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        if interest == Interest::Traffic {
            self.hot.iter().for_each(|index| self.watch_link(index));
        }
        Some(self.watch.descriptor())
    }

    fn statistics(&self) -> Statistics {
        Statistics { dropped: self.strays.all(), ..Statistics::default() }
    }

    fn address(&self) -> String {
        format!("{SCHEME}{}", self.address)
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let address = address.strip_prefix(SCHEME).and_then(|rest| rest.parse::<Address>().ok());
        let Some(address) = address.filter(|address| self.address.same_subnet(address)) else { return false };
        let index = self.peers.find_or_add(peer);
        self.peers[index].learn(rail, address, self.config.rail);
        true
    }
}

impl Drop for UdpRail {
    /// Notifies the peers, which would otherwise need a timeout to notice.
    fn drop(&mut self) {
        let linked: Vec<usize> = self.peers.linked().collect();
        for index in linked {
            if let Some(link) = self.peers[index].link.as_deref_mut() {
                link.signal(Signal::Close);
            }
        }
    }
}

/// Milliseconds of a clock that is cheap to read.
fn now_ms() -> u64 {
    crate::tcp::now_ms()
}

fn failed(e: Errno) -> String {
    match e {
        Errno::CONNREFUSED => "is gone: no process listens there any more (has it died?)".into(),
        Errno::MSGSIZE => format!(
            "is behind an interface or a path whose MTU was lowered while the link was open, to less than \
             {LEAST} B of data need (raise it, and start the job anew)"
        ),
        Errno::PERM => "cannot be sent to: the system forbids it (does a firewall?)".into(),
        e => format!("cannot be reached: {e} (is an interface down?)"),
    }
}
