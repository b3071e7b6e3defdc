//! UDP's part of opening a link: a listening socket that receives hellos, and a separate socket for each
//! handshake in progress.

use super::config::UdpConfig;
use super::net::Udp;
use super::route::{Route, Way};
use super::socket;
use crate::connections::Failure;
use crate::datagram::greeters::{Greeting, Network, Step};
use crate::datagram::rail::{Links, Rail};
use crate::datagram::strays::{Stray, Strays};
use crate::known::Known;
use crate::opening::{self, Content, Facts, FailureKind, Linked, Local, Medium, Origin};
use crate::tcp::address::Address;
use crate::tcp::now_ms;
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::net::SocketAddr;

/// Datagrams read from the listening socket per step, so that a flood of them does not starve the links.
const AT_ONCE: usize = 64;
/// Datagram lengths to try, in bytes of UDP data: jumbo frames, Ethernet, tunnels, the minimum MTU of IPv6
/// and of IPv4.
const LENGTHS: &[usize] = &[8952, 1452, 1352, 1232, 528];

/// Makes the state machine that opens links.
pub fn machine(config: &UdpConfig) -> opening::Opening {
    let UdpConfig { rank, rail, secret, bound, encrypt, .. } = *config;
    let local = Local { name: config.name(), rank, rail, secret, bound, encrypt, within_host: false };
    opening::Opening::new(local, Medium::Datagrams(LENGTHS))
}

/// Reads the listening socket and the sockets of all handshakes, and continues every attempt.
pub fn step(rail: &mut Rail<Udp>) {
    let Rail { net, machine, links, strays, outcome, .. } = rail;
    let Udp { config, watch, listener, port, known, greeters, scratch, .. } = net;
    let network = Opener { config, watch, known, links, listener, port: *port };
    let mut step = Step { greeters, opening: machine, network, now_ms: now_ms(), outcome };
    read_listener(&mut step, scratch, strays);
    step.act();
    for at in (0..step.greeters.list.len()).rev() {
        listen(at, &mut step, scratch, strays);
    }
    step.advance();
}

/// Reads the listening socket.
fn read_listener(step: &mut Step<'_, Opener<'_>>, scratch: &mut [u8], strays: &mut Strays) {
    for _ in 0..AT_ONCE {
        let (len, from) = match net::recvfrom(step.network.listener, &mut *scratch, RecvFlags::empty()) {
            Ok((_, len, Some(from))) => (len, from),
            Ok((_, _, None)) | Err(Errno::INTR) => continue,
            Err(_) => return,
        };
        let Ok(from) = SocketAddr::try_from(from) else { continue };
        match decode(&scratch[..len], step) {
            // Otherwise it is an answer for a link that is open, or was, and whose peer does not know that.
            Some(greeting) => {
                if !matches!(
                    greeting.content,
                    Content::Message(Control::Welcome(_) | Control::Proof(_) | Control::Refuse(_))
                ) {
                    // The sender knows the secret, or replays a message of one that does.
                    let (text, host) = (from.to_string(), Some(from.ip()));
                    step.accept_hello(
                        Way { fd: None, to: from },
                        Origin { text, host, is_known: true },
                        greeting,
                    );
                }
            }
            // A datagram for a link that is not open yet, or not any more.
            None if step.network.known.has(|address| address.socket() == from) => {
                strays.count(Stray::Untimely)
            }
            None => strays.count(Stray::Stranger),
        }
    }
}

/// Reads the socket of a handshake, up to a message after which the socket may belong to a link.
fn listen(at: usize, step: &mut Step<'_, Opener<'_>>, scratch: &mut [u8], strays: &mut Strays) {
    loop {
        let greeter = &step.greeters.list[at];
        let (is_attempt, Some(fd)) = (greeter.is_attempt, &greeter.way.fd) else { return };
        let len = match net::recv(fd, &mut *scratch, RecvFlags::empty()) {
            Ok((_, len)) => len,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return,
            Err(e) => return step.route_failed(at, e),
        };
        match decode(&scratch[..len], step) {
            Some(Greeting { content: Content::OtherVersion(_), .. }) if !is_attempt => {}
            Some(greeting) => {
                let continues = matches!(greeting.content, Content::Message(Control::Hello(_)));
                step.handle_message(at, greeting);
                if !continues {
                    return;
                }
            }
            None => strays.count(if is_attempt { Stray::Stranger } else { Stray::Untimely }),
        }
    }
}

/// Decodes a handshake message of a sender that knows the secret.
fn decode<'a>(bytes: &'a [u8], step: &Step<'_, Opener<'_>>) -> Option<Greeting<'a>> {
    Greeting::of(bytes, &step.network.config.secret, usize::from(u16::MAX))
}

struct Opener<'a> {
    config: &'a UdpConfig,
    watch: &'a Watch,
    known: &'a Known<Address>,
    links: &'a Links<Route>,
    listener: &'a OwnedFd,
    port: u16,
}

impl Facts for Opener<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.known.remotes(peer)
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        self.links.to(peer).map(|link| link.linked())
    }

    fn is_far(&self, peer: PeerId) -> bool {
        let own = Address::at(&self.config.interface, 0);
        self.known.of(peer).iter().any(|known| own.is_far(&known.address))
    }

    fn no_address(&self) -> &'static str {
        "has no address on the subnet of this rail"
    }

    fn no_answer(&self, peer: PeerId) -> String {
        let (bound, here) = (self.config.bound, self.config.address());
        let first = self.known.of(peer).first();
        let there = first.map_or("it".into(), |known| known.address.socket().to_string());
        format!(
            "did not answer any datagram within {bound:?} (does a firewall swallow UDP from {here} to \
             {there}, or has it the secret of another job?)"
        )
    }
}

impl Network for Opener<'_> {
    type Way = Way;

    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Way, usize), Failure> {
        let to = self.known.of(peer)[address].address.socket();
        let fd = socket::connect(self.config, 0, to)
            .and_then(|fd| self.watch.add(&fd, Token::Opening, false).map(|()| fd))
            .map_err(|e| self.failure(&Way { fd: None, to }, e))?;
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

    fn failure(&self, way: &Way, e: Errno) -> Failure {
        let to = way.to;
        let why = match e {
            Errno::CONNREFUSED => format!("is gone: no process listens at UDP {to} (has it died?)"),
            e => format!("cannot be reached at UDP {to} from {}: {e}", self.config.address()),
        };
        Failure { kind: FailureKind::Unreachable, why }
    }
}
