//! The driver itself: which link does what when.

use super::address::Address;
use super::config::TcpConfig;
use super::health::Verdict;
use super::hot::Hot;
use super::link::Link;
use super::opening::{self, Opening, Outcome};
use super::peers::{Known, Peers};
use super::read::{Brought, Ended, read};
use super::socket;
use super::stream::{Broken, Place};
use super::watch::{Token, Watch};
use crate::error::DriverError;
use crate::landings::Landings;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, LandingId, PeerId};
use nmad_engine::transfer::driver::{Driver, Event, Limits, Order};
use nmad_wire::ChunkHeader;
use rustix::fd::AsFd;
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;

/// Longest packet in bytes: 64 KiB of data and its headers.
const PACKET: usize = 72 << 10;
/// Bytes read at once between two packets.
const SCRATCH: usize = 128 << 10;
/// While some link is hot, the others are looked at once in so many polls.
const LOOK_EVERY: u32 = 16;
/// Reads per link and poll, so that one busy link does not starve the others.
const READS: usize = 32;
/// Polls with a blocked link after which it is watched, though nobody asked for the descriptor.
const ARM_AFTER: u32 = 256;
/// Orders taken at once; each link has its own, smaller depth.
const ROOM: usize = 1024;

/// A rail over TCP on one interface.
#[derive(Debug)]
pub struct TcpRail {
    name: String,
    config: TcpConfig,
    address: Address,
    watch: Watch,
    opening: Opening,
    peers: Peers,
    landings: Landings,
    hot: Hot,
    lists: Lists,
    /// Taken by the kernel, not yet reported.
    sent: Vec<Order>,
    /// To be reported at the next poll.
    news: Vec<Event<'static>>,
    polls: u32,
    /// Polls in a row in which no blocked link came free.
    vain: u32,
    buffers: Buffers,
}

/// Links, by the index of the peer, that wait for something.
#[derive(Debug, Default)]
struct Lists {
    touched: Vec<usize>,
    blocked: Vec<usize>,
    unproven: Vec<usize>,
}

/// Memory that all links share.
#[derive(Debug)]
struct Buffers {
    scratch: Box<[u8]>,
    staging: Vec<u8>,
    pool: Vec<Vec<u8>>,
    outcome: Vec<Outcome>,
    looked: Vec<(Token, bool)>,
}

impl TcpRail {
    /// Listens on the address of the interface.
    ///
    /// # Errors
    /// The address is not one of this machine, or the congestion control asked for is not permitted.
    pub fn open(config: TcpConfig) -> Result<TcpRail, DriverError> {
        let name = format!("tcp/{}", config.interface.name);
        let watch = Watch::new().map_err(|e| DriverError::new(&name, "cannot make an epoll", e))?;
        let (listener, port) = socket::listen(&name, &config)?;
        let socket = SocketAddr::new(config.address(), port);
        let address = Address { socket, prefix: config.interface.prefix };
        let opening = Opening::new(listener, &config);
        watch
            .add(opening.listener(), Token::Opening, false)
            .map_err(|e| DriverError::new(&name, "cannot watch a socket", e))?;
        let buffers = Buffers {
            scratch: vec![0; SCRATCH].into(),
            staging: Vec::new(),
            pool: Vec::new(),
            outcome: Vec::new(),
            looked: Vec::new(),
        };
        Ok(TcpRail {
            name,
            config,
            address,
            watch,
            opening,
            peers: Peers::default(),
            landings: Landings::default(),
            hot: Hot::default(),
            lists: Lists::default(),
            sent: Vec::new(),
            news: Vec::new(),
            polls: 0,
            vain: 0,
            buffers,
        })
    }

    /// Gives the kernel what it takes of what is queued for a peer.
    #[inline]
    fn write(&mut self, index: usize) {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        let written = link.out.write(link.socket.as_fd(), &mut self.buffers.staging, &mut self.sent);
        if !link.lists.unproven {
            link.lists.unproven = true;
            self.lists.unproven.push(index);
        }
        if let Err(e) = written {
            return self.lose(index, &format!("failed: {e} (has it died?)"));
        }
        if link.out.is_empty() {
            link.lists.blocked = false;
        } else {
            if !link.lists.blocked {
                link.lists.blocked = true;
                self.lists.blocked.push(index);
            }
        }
    }

    fn write_blocked(&mut self) {
        let before = self.lists.blocked.len();
        for place in (0..self.lists.blocked.len()).rev() {
            let Some(&index) = self.lists.blocked.get(place) else { continue };
            self.write(index);
        }
        let peers = &self.peers;
        self.lists.blocked.retain(|index| peers[*index].link.as_ref().is_some_and(|l| l.lists.blocked));
        self.vain = if self.lists.blocked.len() < before { 0 } else { self.vain + 1 };
        // For those who sleep without asking for the descriptor again.
        if self.vain == ARM_AFTER {
            self.arm();
        }
    }

    /// Reads what has come from a peer; whether anything has.
    #[inline]
    fn read(&mut self, index: usize, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let peer = &mut self.peers[index];
        let Some(link) = peer.link.as_deref_mut() else { return false };
        let expecting = peer.landings > 0;
        let mut place =
            Place { peer: peer.id, landings: &self.landings, pool: &mut self.buffers.pool, longest: PACKET };
        let fd = link.socket.as_fd();
        for round in 0..READS {
            match read(fd, &mut link.stream, expecting, &mut self.buffers.scratch, &mut place, report) {
                Ok(Brought::Nothing) => return round > 0,
                Ok(Brought::All) => return true,
                Ok(Brought::Full) => {}
                Err(ended) => {
                    self.lose(index, &describe(&ended));
                    return true;
                }
            }
        }
        true
    }

    /// Looks at everything that is not looked at in every poll.
    #[cold]
    #[inline(never)]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let mut looked = std::mem::take(&mut self.buffers.looked);
        self.watch.look(|token, output| looked.push((token, output)));
        let mut knock = !self.opening.is_idle();
        for (token, output) in looked.drain(..) {
            match token {
                Token::Opening => knock = true,
                Token::Link(index) => {
                    self.disarm(index, output);
                    if self.read(index, report) {
                        self.hot.heat(index);
                    }
                }
            }
        }
        self.buffers.looked = looked;
        if knock {
            self.open_links(report);
        }
        if !self.lists.unproven.is_empty() {
            self.check_health();
        }
    }

    /// There is room to write and nothing to be written: a sleeper shall not wake for that.
    fn disarm(&mut self, index: usize, output: bool) {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        if output && link.armed.get() && link.out.is_empty() {
            link.armed.set(self.watch.change(&link.socket, Token::Link(index), false).is_err());
        }
    }

    /// Watches the links that wait for room to write, so that a sleeper wakes for them. Not done sooner:
    /// with it the kernel calls back for each acknowledgement, which halves the bandwidth.
    fn arm(&self) {
        for index in &self.lists.blocked {
            let Some(link) = self.peers[*index].link.as_deref().filter(|link| !link.armed.get()) else {
                continue;
            };
            link.armed.set(self.watch.change(&link.socket, Token::Link(*index), true).is_ok());
        }
    }

    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let mut outcome = std::mem::take(&mut self.buffers.outcome);
        let now_ms = now_ms();
        let (name, config, watch, peers) = (&*self.name, &self.config, &self.watch, &self.peers);
        let rail = opening::Rail { name, config, watch, peers, now_ms };
        self.opening.step(&rail, &mut self.buffers.scratch, &mut outcome);
        for outcome in outcome.drain(..) {
            match outcome {
                Outcome::Open(peer, remote, fd) => {
                    let index = self.peers.find_or_add(peer);
                    self.lose(index, "opened another link in its place");
                    self.report_all(report);
                    if let Err(e) = self.watch.change(&fd, Token::Link(index), false) {
                        self.report_lost(index, &format!("cannot be watched: {e}"), Vec::new());
                        continue;
                    }
                    log::debug!("rail {}: link to peer {} is open", self.name, peer.0);
                    self.peers[index].link = Some(Box::new(Link::new(remote, fd)));
                    report(Event::Up { peer, remote });
                }
                Outcome::Failed(peer, why) => {
                    let index = self.peers.find_or_add(peer);
                    self.report_lost(index, &why, Vec::new());
                }
            }
        }
        self.buffers.outcome = outcome;
    }

    fn check_health(&mut self) {
        let now_ms = now_ms();
        for place in (0..self.lists.unproven.len()).rev() {
            let Some(&index) = self.lists.unproven.get(place) else { continue };
            let Some(link) = self.peers[index].link.as_deref_mut() else { continue };
            match link.health.check(link.socket.as_fd(), now_ms) {
                Some(Verdict::Quiet) if link.out.is_empty() => {
                    link.lists.unproven = false;
                    self.lists.unproven.swap_remove(place);
                }
                Some(Verdict::Dead(silent_ms)) => {
                    let seconds = silent_ms as f32 / 1000.0;
                    let why = format!("has not answered for {seconds:.1} s (is its interface down?)");
                    self.lose(index, &why);
                }
                _ => {}
            }
        }
    }

    /// Gives up a link, if there is one, and reports that with the next events.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, index: usize, why: &str) {
        if let Some(mut link) = self.remove(index) {
            let unsent = link.out.take_unsent();
            self.report_lost(index, why, unsent);
        }
    }

    fn report_lost(&mut self, index: usize, why: &str, unsent: Vec<Order>) {
        let peer = self.peers[index].id;
        let why = format!("rail {}: peer {} {why}", self.name, peer.0);
        log::info!("{why}");
        self.news.push(Event::Lost { peer, why, unsent });
    }

    fn remove(&mut self, index: usize) -> Option<Box<Link>> {
        let link = self.peers[index].link.take()?;
        self.hot.forget(index);
        for list in [&mut self.lists.touched, &mut self.lists.blocked, &mut self.lists.unproven] {
            list.retain(|listed| *listed != index);
        }
        Some(link)
    }

    /// Ends a link in silence: nothing is reported for the peer any more.
    fn leave(&mut self, to: PeerId) {
        self.opening.forget(to);
        self.sent.retain(|order| addressee(order) != to);
        self.news.retain(|event| !matches!(event, Event::Lost { peer, .. } if *peer == to));
        if let Some(link) = self.peers.find(to).and_then(|index| self.remove(index)) {
            self.opening.leave(link.socket, &self.watch, now_ms());
        }
    }

    #[inline]
    fn report_all(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for order in self.sent.drain(..) {
            match order {
                Order::Packet { to, number, packet } => {
                    report(Event::Sent { to, number, packet: Some(packet) });
                }
                Order::Chunk { to, number, .. } => report(Event::Sent { to, number, packet: None }),
                Order::Connect { .. } | Order::Close { .. } => {}
            }
        }
        self.news.drain(..).for_each(report);
    }

    fn connect(&mut self, to: PeerId) {
        match self.peers.link(to) {
            Some(link) => self.news.push(Event::Up { peer: to, remote: link.remote }),
            None if to == self.config.rank => {
                let index = self.peers.find_or_add(to);
                self.report_lost(index, "is this process itself, which needs no network", Vec::new());
            }
            None => self.opening.connect(to, &self.config, now_ms()),
        }
    }

    #[inline]
    fn queue(&mut self, to: PeerId, order: Order) {
        let found = self.peers.find(to);
        let link = found.and_then(|index| Some((index, self.peers[index].link.as_deref_mut()?)));
        let Some((index, link)) = link else {
            let index = self.peers.find_or_add(to);
            return self.report_lost(index, "has no open link", vec![order]);
        };
        link.out.push(order);
        if !link.lists.touched {
            link.lists.touched = true;
            self.lists.touched.push(index);
        }
    }
}

impl Driver for TcpRail {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: u64::from(nmad_wire::MAX_LEN) - ChunkHeader::LEN as u64,
            gather: 16,
            depth: 4,
            lossy: false,
            bandwidth: self.config.interface.bandwidth,
            latency_ns: 0,
        }
    }

    fn open(&mut self, landing: LandingId, from: PeerId, into: Segments) -> Key {
        let index = self.peers.find_or_add(from);
        self.peers[index].landings += 1;
        self.landings.open(landing, from, into)
    }

    fn close(&mut self, landing: LandingId) {
        if let Some(index) = self.landings.close(landing).and_then(|from| self.peers.find(from)) {
            self.peers[index].landings -= 1;
        }
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn post(&mut self, order: Order) {
        match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => self.queue(to, order),
            Order::Connect { to } => self.connect(to),
            Order::Close { to } => self.leave(to),
        }
    }

    #[inline]
    fn flush(&mut self) {
        while let Some(index) = self.lists.touched.pop() {
            if let Some(link) = self.peers[index].link.as_deref_mut() {
                link.lists.touched = false;
                self.write(index);
            }
        }
    }

    #[inline]
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        if !self.sent.is_empty() {
            self.report_all(report);
        }
        self.polls = self.polls.wrapping_add(1);
        if !self.lists.blocked.is_empty() {
            self.write_blocked();
        }
        for place in (0..self.hot.count()).rev() {
            let Some(index) = self.hot.at(place) else { continue };
            if self.read(index, report) {
                self.hot.heat(index);
            } else {
                self.hot.cool(place);
            }
        }
        if self.hot.count() == 0 || self.polls.is_multiple_of(LOOK_EVERY) || self.opening.is_urgent() {
            self.look(report);
        }
        if !self.sent.is_empty() || !self.news.is_empty() {
            self.report_all(report);
        }
    }

    /// To be asked for before each sleep: asking is what arms it for links that wait for room to write.
    fn descriptor(&self) -> Option<i32> {
        self.arm();
        Some(self.watch.descriptor())
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let Ok(address) = address.parse::<Address>() else { return false };
        let reachable = self.address.same_subnet(&address) || self.config.routed;
        if reachable {
            let index = self.peers.find_or_add(peer);
            self.peers[index].learn(Known { rail, address }, self.config.rail);
        }
        reachable
    }
}

impl Drop for TcpRail {
    /// Without unread input the kernel delivers what was sent, instead of resetting the connection.
    fn drop(&mut self) {
        let now_ms = now_ms();
        for peer in self.peers.iter_mut() {
            if let Some(link) = peer.link.take() {
                self.opening.leave(link.socket, &self.watch, now_ms);
            }
        }
    }
}

fn addressee(order: &Order) -> PeerId {
    match order {
        Order::Connect { to } | Order::Close { to } | Order::Packet { to, .. } | Order::Chunk { to, .. } => {
            *to
        }
    }
}

fn describe(ended: &Ended) -> String {
    match ended {
        Ended::Closed => "closed the link (has it ended?)".into(),
        Ended::Failed(e) => format!("failed: {e} (has it died?)"),
        Ended::Broken(Broken::Refused(text)) => format!("gave the link up: {text}"),
        Ended::Broken(Broken::Malformed(e)) => format!("broke the protocol: {e}"),
    }
}

/// Milliseconds of a clock that is cheap to read; it steps with the timer tick, which is good enough for
/// bounds of seconds.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
