//! TCP's part of opening a link: a listening socket, connections to addresses, messages for the user.
//!
//! The time limit applies to connecting. Once a connection is established, the peer's system reports when
//! the peer dies; a peer that does not answer is busy or has too little CPU time on an oversubscribed node,
//! so this side keeps waiting.

use super::address::Address;
use super::config::TcpConfig;
use super::leave::Leaving;
use super::peers::{Peers, Remote};
use super::socket::{self, Exit};
use crate::connections::{Accepted, Connections, Failure, Network, Outcome, Step};
use crate::error::DriverError;
use crate::opening::{self, Facts, FailureKind, Linked, Local, Medium, Opened, Origin};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// Closed links that still drain their input, at most.
const LEAVING: usize = 64;
/// Refused connections whose peer still reads the reason, at most. They have a list of their own, so that
/// they do not displace closed links.
const REFUSED: usize = 16;

/// The exchange by which a driver completes a link, once both sides have proved their identity.
pub(crate) trait Exchange {
    /// Progress of the exchange.
    type State;
    /// Begins the exchange.
    fn begin(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<Self::State, Failure>;
    /// Continues the exchange; returns whether it is complete.
    fn proceed(&mut self, socket: &OwnedFd, state: &mut Self::State) -> Result<bool, Failure>;
}

/// A TCP link needs only its connection.
impl Exchange for () {
    type State = ();

    fn begin(&mut self, _: &OwnedFd, _: &Opened) -> Result<(), Failure> {
        Ok(())
    }

    fn proceed(&mut self, _: &OwnedFd, (): &mut ()) -> Result<bool, Failure> {
        Ok(true)
    }
}

/// State of the links that are not open yet.
#[derive(Debug)]
pub(crate) struct Opening<S> {
    /// The state machine, which also receives orders to open links.
    pub machine: opening::Opening,
    connections: Connections<S>,
    listener: OwnedFd,
    exit: Exit,
    leaving: Leaving,
    refused: Leaving,
}

/// The parts of the rail that opening uses.
pub(crate) struct Rail<'a, L, E> {
    pub config: &'a TcpConfig,
    /// The rail's peers and their links.
    pub peers: &'a Peers<L>,
    /// The driver's own exchange.
    pub exchange: &'a mut E,
    /// Milliseconds.
    pub now_ms: u64,
}

impl<S> Opening<S> {
    /// Listens on the address of the interface. Returns also the set of watched sockets, and the address
    /// for peers.
    ///
    /// # Errors
    /// The address is not one of this machine, or the requested congestion control is not permitted.
    pub fn listen(config: &TcpConfig) -> Result<(Self, Watch, Address), DriverError> {
        let TcpConfig { rank, rail, secret, bound, encrypt, .. } = *config;
        let name = config.name();
        let watch = Watch::new().map_err(|e| DriverError::new(&name, "cannot make an epoll", e))?;
        let (listener, port) = socket::listen(&name, config)?;
        watch
            .add(&listener, Token::Opening, false)
            .map_err(|e| DriverError::new(&name, "cannot watch a socket", e))?;
        let address = Address::at(&config.interface, port);
        let connections =
            Connections::new(&watch).map_err(|e| DriverError::new(&name, "cannot make an epoll", e))?;
        let machine = opening::Opening::new(
            Local { name, rank, rail, secret, bound, encrypt, within_host: false },
            Medium::Connections,
        );
        let (exit, leaving, refused) = (Exit::new(config), Leaving::new(LEAVING), Leaving::new(REFUSED));
        Ok((Opening { machine, connections, listener, exit, leaving, refused }, watch, address))
    }

    /// Returns whether no attempt is in progress, so that only a new connection causes work.
    pub fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.leaving.is_empty() && self.refused.is_empty()
    }

    /// Closes a link such that data already sent still arrives.
    pub fn leave(&mut self, fd: OwnedFd, now_ms: u64) {
        self.leaving.add(fd, now_ms);
    }

    /// Closes the last links, and waits until data already sent have arrived, before the rail is dropped.
    pub fn finish(&mut self, last: impl IntoIterator<Item = OwnedFd>, scratch: &mut [u8]) {
        self.leaving.finish(last, scratch);
    }

    /// Accepts waiting connections, reads from all of them, and continues every attempt.
    pub fn step<L: Remote, E: Exchange<State = S>>(
        &mut self,
        rail: Rail<'_, L, E>,
        scratch: &mut [u8],
        outcome: &mut Vec<Outcome<S>>,
    ) {
        let Opening { machine, connections, listener, exit, leaving, refused } = self;
        leaving.step(scratch, rail.now_ms);
        refused.step(scratch, rail.now_ms);
        let now_ms = rail.now_ms;
        let network = Tcp { rail, listener, exit, refused };
        Step { connections, opening: machine, network, now_ms, outcome }.run();
    }
}

struct Tcp<'a, L, E> {
    rail: Rail<'a, L, E>,
    listener: &'a OwnedFd,
    exit: &'a Exit,
    refused: &'a mut Leaving,
}

impl<L: Remote, E: Exchange> Facts for Tcp<'_, L, E> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.rail.peers.known().remotes(peer)
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        self.rail.peers.link(peer).map(|link| Linked { remote: link.remote(), is_unproved: false })
    }

    fn is_far(&self, peer: PeerId) -> bool {
        let own = Address::at(&self.rail.config.interface, 0);
        self.rail.peers.known().of(peer).iter().any(|known| own.is_far(&known.address))
    }

    fn no_address(&self) -> &'static str {
        "has no address on the subnet of this rail"
    }

    fn no_answer(&self, peer: PeerId) -> String {
        let (bound, here) = (self.rail.config.bound, self.rail.config.address());
        let first = self.rail.peers.known().of(peer).first();
        let there = first.map_or("it".into(), |known| known.address.ip.to_string());
        format!("did not answer within {bound:?} (is {there} reachable from {here}?)")
    }
}

impl<L: Remote, E: Exchange> Network for Tcp<'_, L, E> {
    type Handover = E::State;

    fn connect(&mut self, peer: PeerId, address: usize) -> Result<OwnedFd, Failure> {
        let known = self.rail.peers.known().of(peer)[address];
        socket::connect(self.rail.config, self.exit, known.address.socket())
            .map_err(|e| self.failure(peer, address, false, e))
    }

    fn accept(&mut self) -> Option<Accepted> {
        let (fd, from) = socket::accept(self.listener, self.rail.config, self.exit)?;
        let (host, is_known) = (Some(from.ip()), self.rail.peers.is_one_at(from.ip()));
        Some(Accepted::Stranger(fd, Origin { text: from.to_string(), host, is_known }))
    }

    fn failure(&self, peer: PeerId, address: usize, stood: bool, e: Errno) -> Failure {
        let known = self.rail.peers.known().of(peer).get(address);
        let at = known.map_or("its address".into(), |known| known.address.socket().to_string());
        let why = match e {
            Errno::CONNREFUSED => format!("is gone: no process listens at {at} (has it died?)"),
            e => format!("cannot be reached at {at} from {}: {e}", self.rail.config.address()),
        };
        let has_ended = stood && matches!(e, Errno::CONNRESET | Errno::PIPE);
        Failure { kind: if has_ended { FailureKind::Ended } else { FailureKind::Unreachable }, why }
    }

    fn hand_over(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<E::State, Failure> {
        self.rail.exchange.begin(socket, opened)
    }

    fn proceed(&mut self, socket: &OwnedFd, state: &mut E::State) -> Result<bool, Failure> {
        self.rail.exchange.proceed(socket, state)
    }

    fn leave(&mut self, socket: OwnedFd) {
        self.refused.add(socket, self.rail.now_ms);
    }
}
