//! The driver: opens and closes links, and serves the traffic of open ones.

use super::config::PacketConfig;
use super::digest::Digest;
use super::frame::{self, PORTS, Place, Way};
use super::link::Link;
use super::opening::{self, Opening};
use super::read::read;
use super::sys::Socket;
use super::wakes::{Wakes, death_probe};
use crate::carrier::Carrier;
use crate::error::DriverError;
use crate::news::News;
use crate::opening::RETRY_MS;
use crate::regions::Regions;
use crate::tcp::address::Address;
use crate::tcp::now_ms;
use crate::timer::Timer;
use crate::udp::datagram::Signal;
use crate::udp::greeters::{Greeted, Outcome};
use crate::udp::silence::{self, Silence};
use crate::udp::strays::{Stray, Strays};
use crate::udp::write::LEAST;
use crate::udp::{CHUNK, PACKET};
use crate::watch::{Token, Watch};
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Scope, Sent, Statistics,
};
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 4;
/// Segments of a packet that may stay in user memory.
const GATHER: usize = 16;
/// Frames read per poll, so that a flood of them does not keep the caller from returning.
const FRAMES: usize = 64;
/// Polls between two checks of the timer: a check is a system call, a poll is not.
const LOOK_EVERY: u32 = 1024;

/// A rail of raw Ethernet on one interface.
#[derive(Debug)]
pub struct PacketRail {
    name: String,
    config: PacketConfig,
    place: Place,
    socket: Socket,
    digest: Digest,
    /// Reserves the port: no other process on this network has it, and the kernel answers there after our
    /// end.
    port: UdpSocket,
    wakes: Wakes,
    carrier: Carrier,
    timer: Timer,
    opening: Opening,
    outcome: Vec<Outcome<Way>>,
    known: HashMap<PeerId, Vec<(u8, Place)>>,
    links: Vec<Option<Box<Link>>>,
    by_peer: HashMap<PeerId, usize>,
    by_way: HashMap<Way, usize>,
    /// The link from which the last frame came.
    latest: Option<(Way, usize)>,
    regions: Regions,
    strays: Strays,
    touched: Vec<usize>,
    blocked: Vec<usize>,
    news: News,
    polls: u32,
}

/// Why a process may not open such a rail, with the remedy.
const FORBIDDEN: &str = "raw Ethernet needs the capability CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or a \
                         user namespace of one's own); udp does without";

impl PacketRail {
    /// Returns why this process cannot open such a rail on any interface; none if it can.
    pub fn hindrance() -> Option<String> {
        let error = super::sys::socket().err()?;
        Some(match error.kind() {
            io::ErrorKind::PermissionDenied => FORBIDDEN.into(),
            _ => format!("cannot open a packet socket: {error}"),
        })
    }

    /// Opens a rail on the interface.
    ///
    /// # Errors
    /// This process has no permission, or the interface is gone or is not Ethernet.
    pub fn open(config: PacketConfig) -> Result<PacketRail, DriverError> {
        let name = config.name();
        let fail = |what: &'static str| {
            let name = name.clone();
            move |e: io::Error| DriverError::new(&name, what, e)
        };
        let port = UdpSocket::bind(SocketAddr::new(config.interface.address, 0))
            .and_then(|port| port.set_nonblocking(true).map(|()| port))
            .map_err(fail("cannot use the address of the interface (is it still one of this machine?)"))?;
        let number = port.local_addr().map_err(fail("cannot query its port"))?.port();
        let socket = Socket::open(&config.interface.name, number).map_err(|e| {
            let what = match e.kind() {
                io::ErrorKind::PermissionDenied => FORBIDDEN,
                _ => "cannot open a packet socket",
            };
            DriverError::new(&name, what, e)
        })?;
        let watch = Watch::new().map_err(io::Error::from).map_err(fail("cannot make an epoll"))?;
        let timer = Timer::new().map_err(io::Error::from).map_err(fail("cannot make a timer"))?;
        let watched = watch.add(&socket, Token::Opening, false);
        let watched = watched.and_then(|()| watch.add(timer.descriptor(), Token::Wakeup, false));
        watched.map_err(io::Error::from).map_err(fail("cannot watch a socket"))?;
        let here = SocketAddr::new(config.interface.address, number);
        let address = Address { socket: here, prefix: config.interface.prefix };
        Ok(PacketRail {
            name,
            place: Place { mac: socket.mac(), address },
            digest: Digest::new(&config.secret, socket.data_max()),
            opening: Opening::new(&config),
            carrier: Carrier::new(&config.interface, &watch),
            config,
            socket,
            port,
            wakes: Wakes::new(watch),
            timer,
            outcome: Vec::new(),
            known: HashMap::new(),
            links: Vec::new(),
            by_peer: HashMap::new(),
            by_way: HashMap::new(),
            latest: None,
            regions: Regions::default(),
            strays: Strays::default(),
            touched: Vec::new(),
            blocked: Vec::new(),
            news: News::default(),
            polls: 0,
        })
    }

    fn connect(&mut self, to: PeerId) {
        let linked = self.by_peer.get(&to).and_then(|&index| self.links[index].as_deref());
        match linked.map(|link| link.remote) {
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
        if let Some(link) = &mut link {
            link.signal(&self.socket, Signal::Close);
        }
        let unsent = link.map(|mut link| link.out.take_unsent()).unwrap_or_default();
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
        let gone = self.by_peer.remove(&peer)?;
        let link = self.links[gone].take()?;
        self.by_way.remove(&link.way);
        self.latest = None;
        self.touched.retain(|index| *index != gone);
        self.blocked.retain(|index| *index != gone);
        Some(link)
    }

    fn write(&mut self, index: usize) {
        let Some(link) = self.links[index].as_deref_mut() else { return };
        let seal = (&mut link.seal, &self.digest);
        if let Err(e) = link.out.write(&self.socket, seal, &mut self.news.sent) {
            let mtu = || self.socket.data_now(&self.config.interface.name).saturating_sub(PORTS);
            if e != Errno::MSGSIZE || !link.out.shorten(mtu()) {
                let peer = link.peer;
                return self.lose(peer, &failed(e));
            }
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
        let links = &self.links;
        self.blocked.retain(|index| links[*index].as_ref().is_some_and(|link| link.blocked));
    }

    /// Reads the frames that have arrived.
    #[inline]
    fn take_frames(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for _ in 0..FRAMES {
            let PacketRail { socket, digest, wakes, by_way, latest, links, regions, strays, .. } = self;
            let Some(frame) = socket.frame() else { return };
            wakes.found(socket);
            if let Some((way, bytes)) = frame::open(frame) {
                if latest.is_none_or(|(known, _)| known != way) {
                    *latest = by_way.get(&way).map(|index| (way, *index));
                }
                let Some(link) = latest.and_then(|(_, index)| links[index].as_deref_mut()) else {
                    self.handle_unlinked(way, report);
                    self.socket.release();
                    continue;
                };
                if !read(link, bytes, (socket, digest, strays), regions, report) {
                    let peer = link.peer;
                    self.lose(peer, "closed the link (has it ended?)");
                }
            } else {
                strays.count(Stray::Truncated);
            }
            self.socket.release();
        }
    }

    /// Handles a frame of a sender without a link.
    #[cold]
    fn handle_unlinked(&mut self, from: Way, report: &mut dyn FnMut(Event<'_>)) {
        let bytes = self.socket.frame().and_then(frame::open).map(|(_, bytes)| bytes.to_vec());
        let bytes = bytes.unwrap_or_default();
        if !self.with_opening(|opening, rail, outcome| opening.handle(from, &bytes, rail, outcome)) {
            let is_known = self.known.values().flatten().any(|(_, place)| place.way() == from);
            self.strays.count(if is_known { Stray::Untimely } else { Stray::Stranger });
        }
        self.report_outcomes(report);
    }

    /// Calls `what` with the state of links that are not open yet, and the parts of the rail that it uses.
    fn with_opening<R>(
        &mut self,
        what: impl FnOnce(&mut Opening, opening::Rail<'_>, &mut Vec<Outcome<Way>>) -> R,
    ) -> R {
        let PacketRail { config, socket, place, known, links, by_peer, opening, outcome, .. } = self;
        let linked = |peer: PeerId| links[*by_peer.get(&peer)?].as_deref();
        // Half of the ring is advertised, because a short packet occupies a slot like a long one.
        let buffer = (socket.slots() / 2 * socket.data_max()) as u32;
        let (linked, ours) = (&linked, place.way());
        let rail = opening::Rail { config, socket, ours, buffer, known, linked, now_ms: now_ms() };
        what(opening, rail, outcome)
    }

    /// Reports the results of attempts to open links.
    fn report_outcomes(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(greeted) => self.opened(greeted, report),
                Outcome::Failed(peer, why) => self.lost(peer, &why, Vec::new()),
            }
        }
        self.set_timer();
    }

    fn opened(&mut self, greeted: Greeted<Way>, report: &mut dyn FnMut(Event<'_>)) {
        let (peer, remote, buffer) = (greeted.opened.peer, greeted.opened.remote, greeted.buffer);
        self.lose(peer, "opened another link in its place");
        self.news.report(report);
        log::debug!("rail {}: link to peer {}, {} B a frame", self.name, peer.0, greeted.opened.len);
        let answers = !greeted.opened.is_attempt;
        let host = self.known.get(&peer).into_iter().flatten().find(|(_, place)| place.way() == greeted.way);
        let death_probe = host.and_then(|(_, place)| death_probe(&self.config, place.address.socket).ok());
        let silence = Silence::new(self.config.silence, now_ms());
        let mut link = Link::new(greeted, self.place.way(), death_probe, &self.config.secret, silence);
        if answers {
            link.signal(&self.socket, Signal::Alive);
        }
        let index = self.links.iter().position(Option::is_none).unwrap_or(self.links.len());
        if index == self.links.len() {
            self.links.push(None);
        }
        self.by_peer.insert(peer, index);
        self.by_way.insert(link.way, index);
        self.links[index] = Some(Box::new(link));
        report(Event::Up { peer, remote });
        report(Event::Buffers { peer, len: u64::from(buffer) });
    }

    /// If the timer has expired, does the periodic work; continues attempts to open links.
    #[cold]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.polls = 0;
        let mut has_expired = false;
        let PacketRail { wakes, carrier, known, news, .. } = self;
        wakes.watch.look(|token, _| match token {
            Token::Carrier => carrier.read_notifications(known.keys().copied(), news),
            token => has_expired |= token == Token::Wakeup,
        });
        if has_expired || !self.opening.machine.is_idle() {
            self.with_opening(|opening, rail, outcome| opening.step(rail, outcome));
            self.report_outcomes(report);
        }
        if has_expired {
            self.timer.acknowledge();
            self.maintain();
            self.set_timer();
        }
    }

    /// Probes inactive links, and logs dropped frames.
    fn maintain(&mut self) {
        let now_ms = now_ms();
        for index in 0..self.links.len() {
            let Some(link) = self.links[index].as_deref_mut() else { continue };
            if let Err(broken) = link.maintain(&self.socket, now_ms) {
                let peer = link.peer;
                self.lose(peer, &broken.describe(&self.config));
            }
        }
        // Datagrams by which peers test this port have no content, but fill the buffer.
        while self.port.recv(&mut [0; 8]).is_ok() {}
        if let Some((level, text)) = self.strays.news(now_ms) {
            log::log!(level, "rail {}: {text}", self.name);
        }
    }

    /// Sets the timer for pending periodic work.
    fn set_timer(&mut self) {
        let is_urgent =
            !self.opening.machine.is_idle() || self.links.iter().flatten().any(|link| link.is_unproved());
        self.timer.start(if is_urgent { RETRY_MS } else { silence::ASK_MS });
    }

    #[inline]
    fn send_now(&mut self, to: PeerId, number: u32, packet: (&[u64], &Segments)) -> Sent {
        // An answer goes to the sender of the last frame, so try that link first.
        let answers = |index: &usize| self.links[*index].as_deref().is_some_and(|link| link.peer == to);
        let latest = self.latest.map(|(_, index)| index).filter(answers);
        let Some(index) = latest.or_else(|| self.by_peer.get(&to).copied()) else { return Sent::Retry };
        let Some(link) = self.links[index].as_deref_mut() else { return Sent::Retry };
        link.out.send_now(&self.socket, (&mut link.seal, &self.digest), number, packet).into()
    }

    #[inline]
    fn post(&mut self, order: Order) {
        let to = match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => to,
            Order::Connect { to } => return self.connect(to),
            Order::Close { to } => return self.leave(to),
            Order::Accept { .. } => return,
        };
        let found = self.by_peer.get(&to).copied();
        let link = found.and_then(|index| Some((index, self.links[index].as_deref_mut()?)));
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

impl Driver for PacketRail {
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
            if let Some(link) = self.links[index].as_deref_mut() {
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
        self.take_frames(report);
        self.polls += 1;
        if self.polls >= LOOK_EVERY || self.opening.machine.is_urgent() {
            self.look(report);
        }
        if !self.news.found.is_empty() {
            self.news.report(report);
        }
        true
    }

    /// Interest watches the socket, which also receives requests for links.
    fn wakeup(&mut self, _: Interest) -> Option<i32> {
        self.wakes.watch_socket(&self.socket);
        Some(self.wakes.watch.descriptor())
    }

    fn statistics(&self) -> Statistics {
        Statistics { dropped: self.strays.all(), ..Statistics::default() }
    }

    fn address(&self) -> String {
        self.place.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let place = address.parse::<Place>().ok();
        let place = place.filter(|place| self.place.address.same_subnet(&place.address));
        let Some(place) = place else { return false };
        // The rail of the same number at the other side is preferred, so that two rails on one network pair
        // up in order.
        let known = self.known.entry(peer).or_default();
        known.retain(|old| old.1 != place && old.0 != rail);
        known.push((rail, place));
        known.sort_by_key(|known| (known.0 != self.config.rail, known.0));
        true
    }
}

impl Drop for PacketRail {
    /// Notifies the peers, which would otherwise need a timeout to notice.
    fn drop(&mut self) {
        for link in self.links.iter_mut().flatten() {
            link.signal(&self.socket, Signal::Close);
        }
    }
}

fn failed(e: Errno) -> String {
    match e {
        Errno::MSGSIZE => format!(
            "cannot be reached: the MTU of the interface was lowered while the link was open, to less than \
             {LEAST} B of data need (raise it, and start the job anew)"
        ),
        e => format!("cannot be reached: {e} (is the interface down?)"),
    }
}
