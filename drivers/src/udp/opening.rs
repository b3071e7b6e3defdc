//! UDP's part of opening a link: a listening socket on which peers say hello, and a socket of its own for
//! each conversation that has begun.

use super::config::UdpConfig;
use super::greeters::{Greeters, Heard, Network, Outcome, Step};
use super::link::Link;
use super::peers::Peers;
use super::socket;
use super::strays::{Stray, Strays};
use crate::connections::Setback;
use crate::opening::{self, Around, Linked, Local, Medium, Origin, Said, Trouble};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::net::SocketAddr;

/// Datagrams read from the listening socket per turn, so that a flood of them does not starve the links.
const AT_ONCE: usize = 64;
/// What the common obstacles let pass, in bytes of UDP data: jumbo frames, Ethernet, tunnels, the least of
/// IPv6 and of IPv4.
const LENGTHS: &[usize] = &[8952, 1452, 1352, 1232, 528];

/// Everything about links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    /// The machine: it receives the wanted links.
    pub machine: opening::Opening,
    greeters: Greeters<Way>,
    listener: OwnedFd,
    port: u16,
}

/// The way to the other side of a conversation.
#[derive(Debug)]
pub struct Way {
    /// The socket, tied to the other side; a stranger has none before it gets an answer.
    pub fd: Option<OwnedFd>,
    to: SocketAddr,
}

/// The parts of the rail that opening looks at.
pub struct Rail<'a> {
    /// Its configuration.
    pub config: &'a UdpConfig,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Its peers and their links.
    pub peers: &'a Peers,
    /// The counts of dropped datagrams.
    pub strays: &'a mut Strays,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Opening {
    /// Behind this socket, on this port.
    pub fn new(listener: OwnedFd, port: u16, config: &UdpConfig) -> Self {
        let UdpConfig { rank, rail, secret, bound, .. } = *config;
        let local = Local { name: config.name(), rank, rail, secret, bound };
        let machine = opening::Opening::new(local, Medium::Datagrams(LENGTHS));
        Opening { machine, greeters: Greeters::default(), listener, port }
    }

    /// Listens to everyone and goes on with every attempt.
    pub fn step(&mut self, rail: Rail<'_>, scratch: &mut [u8], outcome: &mut Vec<Outcome<Way>>) {
        let Opening { machine, greeters, listener, port } = self;
        let Rail { config, watch, peers, strays, now_ms } = rail;
        let network = Udp { config, watch, peers, listener, port: *port };
        let mut step = Step { greeters, opening: machine, network, now_ms, outcome };
        knocks(&mut step, scratch, strays);
        step.act();
        for at in (0..step.greeters.list.len()).rev() {
            listen(at, &mut step, scratch, strays);
        }
        step.go_on();
    }
}

/// Reads the socket on which peers say hello.
fn knocks(step: &mut Step<'_, Udp<'_>>, scratch: &mut [u8], strays: &mut Strays) {
    for _ in 0..AT_ONCE {
        let (len, from) = match net::recvfrom(step.network.listener, &mut *scratch, RecvFlags::empty()) {
            Ok((_, len, Some(from))) => (len, from),
            Ok((_, _, None)) | Err(Errno::INTR) => continue,
            Err(_) => return,
        };
        let Ok(from) = SocketAddr::try_from(from) else { continue };
        match heard(&scratch[..len], step) {
            // Else the answer of a link that is open, or was, from a peer that does not know.
            Some(heard) => {
                if !matches!(
                    heard.said,
                    Said::Message(Control::Welcome(_) | Control::Proof(_) | Control::Refuse(_))
                ) {
                    // It knows the secret, or repeats what one has said that does.
                    let (text, host) = (from.to_string(), Some(from.ip()));
                    step.knock(Way { fd: None, to: from }, Origin { text, host, is_known: true }, heard);
                }
            }
            // For a link that is not open yet, or not any more.
            None if step.network.peers.is_one_at(from) => strays.count(Stray::Untimely),
            None => strays.count(Stray::Stranger),
        }
    }
}

/// Reads the socket of a conversation, up to a message after which the socket may belong to a link.
fn listen(at: usize, step: &mut Step<'_, Udp<'_>>, scratch: &mut [u8], strays: &mut Strays) {
    loop {
        let greeter = &step.greeters.list[at];
        let (is_attempt, Some(fd)) = (greeter.is_attempt, &greeter.way.fd) else { return };
        let len = match net::recv(fd, &mut *scratch, RecvFlags::empty()) {
            Ok((_, len)) => len,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return,
            Err(e) => return step.broke(at, e),
        };
        match heard(&scratch[..len], step) {
            Some(Heard { said: Said::OtherVersion(_), .. }) if !is_attempt => {}
            Some(heard) => {
                let goes_on = matches!(heard.said, Said::Message(Control::Hello(_)));
                step.hear(at, heard);
                if !goes_on {
                    return;
                }
            }
            None => strays.count(if is_attempt { Stray::Stranger } else { Stray::Untimely }),
        }
    }
}

/// A greeting of a sender that knows the secret.
fn heard<'a>(bytes: &'a [u8], step: &Step<'_, Udp<'_>>) -> Option<Heard<'a>> {
    Heard::of(bytes, &step.network.config.secret, usize::from(u16::MAX))
}

struct Udp<'a> {
    config: &'a UdpConfig,
    watch: &'a Watch,
    peers: &'a Peers,
    listener: &'a OwnedFd,
    port: u16,
}

impl Around for Udp<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.peers.known(peer).iter().map(|(rail, _)| *rail).collect()
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        let linked = |link: &Link| Linked { remote: link.remote, is_unproved: link.is_unproved() };
        self.peers.link(peer).map(linked)
    }

    fn homeless(&self) -> &'static str {
        "has no address on the subnet of this rail"
    }

    fn silent(&self, peer: PeerId) -> String {
        let (bound, here) = (self.config.bound, self.config.address());
        let first = self.peers.known(peer).first();
        let there = first.map_or("it".into(), |(_, address)| address.socket.to_string());
        format!(
            "did not answer any datagram within {bound:?} (does a firewall swallow UDP from {here} to \
             {there}, or has it the secret of another job?)"
        )
    }
}

impl Network for Udp<'_> {
    type Way = Way;

    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Way, usize), Setback> {
        let to = self.peers.known(peer)[address].1.socket;
        let fd = socket::connect(self.config, 0, to)
            .and_then(|fd| self.watch.add(&fd, Token::Opening, false).map(|()| fd))
            .map_err(|e| self.setback(&Way { fd: None, to }, e))?;
        let longest = socket::longest(&fd);
        Ok((Way { fd: Some(fd), to }, longest))
    }

    fn welcome(&mut self, way: &mut Way) -> Result<(), Errno> {
        if way.fd.is_none() {
            let fd = socket::connect(self.config, self.port, way.to)?;
            self.watch.add(&fd, Token::Opening, false)?;
            way.fd = Some(fd);
        }
        Ok(())
    }

    fn send(&mut self, way: &Way, bytes: &[u8]) -> Result<(), Errno> {
        match &way.fd {
            Some(fd) => net::send(fd, bytes, SendFlags::NOSIGNAL).map(drop),
            None => net::sendto(self.listener, bytes, SendFlags::NOSIGNAL, &way.to).map(drop),
        }
    }

    fn buffer(&self, way: &Way) -> u32 {
        way.fd.as_ref().map_or(0, socket::buffer)
    }

    fn setback(&self, way: &Way, e: Errno) -> Setback {
        let to = way.to;
        let why = match e {
            Errno::CONNREFUSED => format!("is gone: no process listens at UDP {to} (has it died?)"),
            e => format!("cannot be reached at UDP {to} from {}: {e}", self.config.address()),
        };
        Setback { trouble: Trouble::Unreachable, why }
    }
}
