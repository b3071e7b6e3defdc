//! The driver: opens and closes links, and serves the traffic of open ones.

use super::access::Accesses;
use super::adapter::{Abilities, Adapter, Purpose};
use super::link::Link;
use super::opening::{Greeter, Handover};
use super::read::Inbox;
use super::slots::SLOT;
use super::traffic::Traffic;
use super::write::Outbox;
use super::{PACKET, message};
use crate::connections::Outcome;
use crate::error::DriverError;
use crate::network::Place;
use crate::opening::Opened;
use crate::tcp::address::Address;
use crate::tcp::config::TcpConfig;
use crate::tcp::now_ms;
use crate::tcp::opening::{Opening, Rail};
use crate::watch::Token;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Came, RemoteAccess};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Interest, Limits, Order, Scope, Sent};
use nmad_seal::Policy;
use nmad_wire::ChunkHeader;

/// Orders taken at once; the limit in practice is the smaller depth of each link.
const ROOM: usize = 1024;
/// Orders to one peer that are taken before the first is reported as sent.
const DEPTH: usize = 4;
/// Segments of a packet that may stay in user memory. Each packet is copied into a slot anyway.
const GATHER: usize = 16;
const _: () = assert!(PACKET + message::PREFIX + nmad_seal::TAG == SLOT);

/// A rail over a fabric.
pub(crate) struct FabricRail<A: Adapter> {
    config: TcpConfig,
    address: Address,
    opening: Opening<Handover<A::Endpoint>>,
    outcome: Vec<Outcome<Handover<A::Endpoint>>>,
    traffic: Traffic<A>,
    abilities: Abilities,
    bandwidth: u64,
    /// Whether a known peer is in another subnet or at a public address, so that its link is encrypted under
    /// [`Policy::Auto`].
    has_far: bool,
    /// The cipher of the latest encrypted link.
    cipher: Option<&'static str>,
}

impl<A: Adapter> FabricRail<A> {
    /// Opens a rail over this adapter, which is open on the interface of `place`. Links open over TCP on
    /// its address.
    ///
    /// # Errors
    /// The address is not one of this machine, or the fabric refuses memory.
    pub(crate) fn open(driver: &'static str, place: Place, adapter: A) -> Result<Self, DriverError> {
        let Place { rank, rail, interface, secret, encrypt } = place;
        let config = TcpConfig { driver, encrypt, ..TcpConfig::new(rank, rail, interface, secret) };
        let (opening, watch, address) = Opening::listen(&config)?;
        let mut abilities = adapter.abilities();
        if config.encrypt.covers(config.address()) {
            abilities.remote = RemoteAccess::None;
        }
        let bandwidth = match config.interface.bandwidth {
            0 => abilities.bandwidth,
            known => known,
        };
        let name = config.name();
        let failed = |what| DriverError { rail: name.clone(), what, cause: None };
        let traffic = Traffic::new(name.clone(), &config.interface, watch, adapter).map_err(failed)?;
        Ok(FabricRail {
            config,
            address,
            opening,
            outcome: Vec::new(),
            traffic,
            abilities,
            bandwidth,
            has_far: false,
            cipher: None,
        })
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

    #[cold]
    #[inline(never)]
    fn open_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let Traffic { peers, adapter, names, awaited, .. } = &mut self.traffic;
        let (config, secret) = (&self.config, self.config.secret);
        let exchange = &mut Greeter { adapter, driver: config.driver, secret, names, awaited };
        let rail = Rail { config, peers, exchange, now_ms: now_ms() };
        self.opening.step(rail, &mut [0; 512], &mut self.outcome);
        for outcome in std::mem::take(&mut self.outcome) {
            match outcome {
                Outcome::Open(opened, fd, handover) => self.opened(opened, fd, handover, report),
                Outcome::Failed(peer, why) => self.traffic.lost(peer, &why, Vec::new()),
            }
        }
        if self.opening.machine.is_idle() {
            self.traffic.forget_early();
        }
    }

    fn opened(
        &mut self,
        opened: Opened,
        socket: rustix::fd::OwnedFd,
        handover: Handover<A::Endpoint>,
        report: &mut dyn FnMut(Event<'_>),
    ) {
        let Opened { peer, remote, .. } = opened;
        self.traffic.lose(peer, "opened another link in its place");
        self.traffic.report(report);
        let index = self.traffic.peers.find_or_add(peer);
        if let Err(e) = self.traffic.watch.add(&socket, Token::Link(index), false) {
            return self.traffic.lost(peer, &format!("cannot be watched: {e}"), Vec::new());
        }
        let cipher = opened.cipher();
        self.cipher = cipher.or(self.cipher);
        let words = cipher.unwrap_or("not encrypted");
        log::debug!("rail {}: link to peer {} is open, {words}", self.traffic.name(), peer.0);
        let Handover { endpoint, name, token, theirs, .. } = handover;
        let (sealer, unsealer) = opened.directions().unzip();
        let (out, inbox) = (Outbox::new(theirs, sealer), Inbox::default());
        let link = Link {
            remote,
            name,
            token,
            socket,
            cipher,
            unsealer: unsealer.map(Box::new),
            out,
            accesses: Accesses::default(),
            inbox,
            is_listed: false,
            is_stuck: false,
            ends_ms: None,
            endpoint,
        };
        report(Event::Up { peer, remote });
        self.traffic.add(index, link, report);
    }
}

impl<A: Adapter> Driver for FabricRail<A> {
    fn name(&self) -> &str {
        self.traffic.name()
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET,
            chunk: u64::from(nmad_wire::MAX_LEN) - ChunkHeader::LEN as u64,
            gather: GATHER,
            depth: DEPTH,
            push: u64::MAX,
            inject: self.abilities.is_direct,
            remote: self.abilities.remote,
            returns: true,
            encrypts: self.config.encrypt.covers(self.config.address()),
            bandwidth: self.bandwidth,
            ..Limits::default()
        }
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.traffic.regions.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.traffic.close(region);
    }

    fn expose(&mut self, memory: Segments) -> Option<Key> {
        let Traffic { adapter, exposed, .. } = &mut self.traffic;
        let mut pieces = memory.iter();
        // The processor takes no part in accesses of peers, so it cannot encrypt them.
        let is_refused = self.abilities.remote == RemoteAccess::None || self.has_far;
        let piece = pieces.next().filter(|_| !is_refused)?;
        if pieces.next().is_some() {
            return None;
        }
        let region = adapter.register(piece, Purpose::Exposed);
        let region = region
            .inspect_err(|why| log::info!("cannot expose memory, so peers access it by messages: {why}"))
            .ok()?;
        let key = adapter.place(&region).key;
        exposed.insert(key, region);
        Some(Key(key))
    }

    fn conceal(&mut self, key: Key) {
        self.traffic.exposed.remove(&key.0);
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        self.traffic.access(access)
    }

    fn room(&self) -> usize {
        ROOM
    }

    #[inline]
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, head, data, .. } => {
                return self.traffic.send_now(to, head, data).into();
            }
            Departure::Pushed { .. } => return Sent::Retry,
            Departure::Order(order) => match order {
                Order::Packet { to, .. } | Order::Chunk { to, .. } => self.traffic.post(to, order),
                Order::Accept { from, region } => self.traffic.accept(from, region),
                Order::Connect { to } => self.connect(to),
                Order::Close { to } => {
                    self.opening.machine.forget(to);
                    if let Some(socket) = self.traffic.leave(to) {
                        self.opening.leave(socket, now_ms());
                    }
                }
            },
        }
        Sent::Posted
    }

    #[inline]
    fn flush(&mut self) {
        self.traffic.flush();
    }

    #[inline]
    fn poll(&mut self, _: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if self.traffic.poll(report) || self.opening.machine.is_urgent() {
            let has_request = self.traffic.look();
            if has_request || !self.opening.is_idle() {
                self.open_links(report);
            }
        }
        self.traffic.report(report);
        true
    }

    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        match interest {
            Interest::Links => {
                self.traffic.look_soon();
                Some(self.traffic.watch.descriptor())
            }
            Interest::Traffic => self.traffic.prepare_sleep(),
        }
    }

    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        peer.map_or(self.cipher, |peer| self.traffic.peers.link(peer)?.cipher)
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let is_far = address.parse().is_ok_and(|there| self.address.is_far(&there));
        self.has_far |= is_far && self.config.encrypt == Policy::Auto;
        self.traffic.peers.know(&self.config, &self.address, (peer, rail, address))
    }
}

impl<A: Adapter> Drop for FabricRail<A> {
    /// Delivers sent messages before the rail ends.
    fn drop(&mut self) {
        self.opening.finish(self.traffic.end(), &mut [0; 512]);
    }
}
