//! The driver: opens and closes links, and serves the traffic of open ones.

use super::address::Address;
use super::config::TcpConfig;
use super::link::Link;
use super::opening::{self, Opening};
use super::room::Room;
use super::traffic::Traffic;
use super::{PACKET, now_ms};
use crate::connections::Outcome;
use crate::error::DriverError;
use crate::opening::Opened;
use crate::watch::Token;
use nmad_engine::InPlace;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Interest, Limits, Order, Scope, Sent};
use nmad_wire::ChunkHeader;

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 4;
/// Segments of a packet that may stay in user memory.
const GATHER: usize = 16;

/// A rail over TCP on one interface.
#[derive(Debug)]
pub struct TcpRail {
    config: TcpConfig,
    address: Address,
    opening: Opening<()>,
    outcome: Vec<Outcome<()>>,
    traffic: Traffic,
    /// The cipher of the latest encrypted link.
    cipher: Option<&'static str>,
}

impl TcpRail {
    /// Listens on the address of the interface.
    ///
    /// # Errors
    /// The address is not one of this machine, or the requested congestion control is not permitted.
    pub fn open(config: TcpConfig) -> Result<TcpRail, DriverError> {
        let (opening, watch, address) = Opening::listen(&config)?;
        let traffic = Traffic::new(config.name(), &config.interface, watch);
        Ok(TcpRail { config, address, opening, outcome: Vec::new(), traffic, cipher: None })
    }

    fn connect(&mut self, to: PeerId) {
        match self.traffic.peers.link(to).map(|link| link.remote) {
            Some(remote) => self.traffic.queue_event(Event::Up { peer: to, remote }),
            None if to == self.config.rank => {
                self.traffic.lost(to, "is this process itself, which needs no network", Vec::new());
            }
            None => self.opening.machine.connect(to, now_ms()),
        }
    }

    /// Closes a link on behalf of the engine.
    fn leave(&mut self, to: PeerId) {
        self.opening.machine.forget(to);
        if let Some(link) = self.traffic.leave(to) {
            self.opening.leave(link.socket, now_ms());
        }
    }

    #[cold]
    #[inline(never)]
    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let Traffic { peers, scratch, .. } = &mut self.traffic;
        let (config, exchange) = (&self.config, &mut ());
        let rail = opening::Rail { config, peers, exchange, now_ms: now_ms() };
        self.opening.step(rail, scratch, &mut self.outcome);
        for outcome in self.outcome.drain(..) {
            match outcome {
                Outcome::Open(opened, fd, ()) => {
                    let Opened { peer, remote, .. } = opened;
                    self.traffic.lose(peer, "opened another link in its place");
                    self.traffic.report(report);
                    let index = self.traffic.peers.find_or_add(peer);
                    if let Err(e) = self.traffic.watch.add(&fd, Token::Link(index), false) {
                        self.traffic.lost(peer, &format!("cannot be watched: {e}"), Vec::new());
                        continue;
                    }
                    let cipher = opened.cipher();
                    self.cipher = cipher.or(self.cipher);
                    let cipher = cipher.unwrap_or("not encrypted");
                    log::debug!("rail {}: link to peer {} is open, {cipher}", self.traffic.name(), peer.0);
                    let link = Link::new(&opened, fd, Room::new(self.config.send_buffer));
                    self.traffic.peers[index].link = Some(Box::new(link));
                    report(Event::Up { peer, remote });
                }
                Outcome::Failed(peer, why) => self.traffic.lost(peer, &why, Vec::new()),
            }
        }
    }
}

impl Driver for TcpRail {
    fn name(&self) -> &str {
        self.traffic.name()
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: u64::from(nmad_wire::MAX_LEN) - ChunkHeader::LEN as u64,
            gather: GATHER,
            depth: DEPTH,
            lossy: false,
            push: u64::MAX,
            looks: true,
            returns: true,
            blocks: true,
            encrypts: self.config.encrypt.covers(self.config.address()),
            bandwidth: self.config.interface.bandwidth,
            latency_ns: 0,
            ..Limits::default()
        }
    }

    fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.traffic.leave_in_place(from);
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.traffic.regions.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.traffic.close(region);
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, number, head, data, how: How::Send } => {
                return self.traffic.send_now(to, number, (head, data));
            }
            Departure::Pushed { packet, chunk: chunk @ Order::Chunk { to, .. } } => {
                return self.traffic.push_now(to, packet, chunk);
            }
            Departure::Message { .. } | Departure::Pushed { .. } => return Sent::Retry,
            Departure::Order(order) => match order {
                Order::Packet { to, .. } | Order::Chunk { to, .. } => self.traffic.post(to, order),
                Order::Accept { from, region } => self.traffic.accept(from, region),
                Order::Connect { to } => self.connect(to),
                Order::Close { to } => self.leave(to),
            },
        }
        Sent::Posted
    }

    #[inline]
    fn flush(&mut self) {
        self.traffic.flush();
    }

    #[inline]
    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Scope::Peer(from) = scope {
            return self.traffic.poll_packet(from, report);
        }
        if self.traffic.poll(report) || self.opening.machine.is_urgent() {
            let has_request = self.traffic.look(report);
            if has_request || !self.opening.is_idle() {
                self.open_links(report);
            }
        }
        self.traffic.report(report);
        true
    }

    /// Interest in traffic watches all links, including those that are otherwise polled directly. After a
    /// flush, the caller polls once more first, because completed orders are reported there.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        let descriptor = self.traffic.watch.descriptor();
        if interest == Interest::Links {
            return Some(descriptor);
        }
        self.traffic.watch_all();
        // Bytes that were read already make no descriptor readable.
        (!self.traffic.has_pending()).then_some(descriptor)
    }

    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        peer.map_or(self.cipher, |peer| self.traffic.peers.link(peer)?.cipher)
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        self.traffic.peers.know(&self.config, &self.address, (peer, rail, address))
    }
}

impl Drop for TcpRail {
    /// Closes the links such that data already sent still arrive.
    fn drop(&mut self) {
        let Traffic { peers, scratch, .. } = &mut self.traffic;
        let links = peers.iter_mut().filter_map(|peer| peer.link.take());
        self.opening.finish(links.map(|link| link.socket), scratch);
    }
}
