//! Connecting to a peer: hellos of different lengths to its addresses, until one is answered or time is over.
//!
//! The longest datagram that the interface takes is tried first, then shorter ones: an answer is as long as
//! the hello that it answers, so what comes back has passed in both directions. Answers come in the order of
//! the hellos, also from a peer that was busy and finds several of them at once.

use super::config::UdpConfig;
use super::greeting::{self, Heard, Terms};
use super::opening::Opened;
use super::socket;
use super::strays::{Stray, Strays};
use crate::handshake::{self, Ends};
use crate::tcp::address::Address;
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, VERSION};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::net::SocketAddr;

/// Time between two hellos, in milliseconds.
pub const RETRY_MS: u64 = 25;
/// Hellos of one length before a shorter one is tried.
const TRIES: u32 = 4;
/// What the common obstacles let pass, in bytes of UDP data: jumbo frames, Ethernet, tunnels, the least of
/// IPv6 and of IPv4.
const LENGTHS: [usize; 5] = [8952, 1452, 1352, 1232, 528];
/// Answers that nobody listens before that is believed.
const REFUSALS: u32 = 3;

/// A link that this side opens.
#[derive(Debug)]
pub struct Attempt {
    /// The peer to reach.
    pub peer: PeerId,
    until_ms: u64,
    next_ms: u64,
    tries: u32,
    refusals: u32,
    /// Which of the peer's addresses.
    at: usize,
    way: Option<Way>,
    last: Option<String>,
}

/// A socket towards one address of the peer.
#[derive(Debug)]
struct Way {
    fd: OwnedFd,
    hello: Hello,
    to: SocketAddr,
    len: usize,
}

/// How far an attempt has come.
#[derive(Debug)]
pub enum Step {
    /// Further on another time.
    On,
    /// The link is open.
    Open(Opened),
    /// It cannot be opened.
    Failed(String),
}

/// What an attempt needs to know.
pub struct Around<'a> {
    /// The rail's configuration.
    pub config: &'a UdpConfig,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Where the peer is.
    pub known: &'a [(u8, Address)],
    /// The peer has said hello, too, and this side has answered: now it is the peer's turn.
    pub rival: bool,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Attempt {
    /// Begins at the next step.
    pub fn new(peer: PeerId, config: &UdpConfig, now_ms: u64) -> Self {
        let until_ms = now_ms + config.bound.as_millis() as u64;
        Attempt { peer, until_ms, next_ms: 0, tries: 0, refusals: 0, at: 0, way: None, last: None }
    }

    /// Goes as far as is possible now.
    pub fn step(&mut self, around: &Around<'_>, scratch: &mut [u8], strays: &mut Strays) -> Step {
        if around.known.is_empty() {
            return Step::Failed("has no address on the subnet of this rail".into());
        }
        if around.now_ms >= self.until_ms {
            return Step::Failed(self.too_late(around));
        }
        let heard = self.listen(around, scratch, strays);
        if !matches!(heard, Step::On) || around.rival || around.now_ms < self.next_ms {
            return heard;
        }
        self.next_ms = around.now_ms + RETRY_MS;
        match self.say_hello(around) {
            Ok(()) => Step::On,
            Err(e) => self.refused(e, around),
        }
    }

    fn say_hello(&mut self, around: &Around<'_>) -> Result<(), Errno> {
        if self.tries == TRIES {
            self.shorten();
        }
        let config = around.config;
        let way = match &mut self.way {
            Some(way) => way,
            None => {
                let to = around.known[self.at % around.known.len()].1.socket;
                let fd = socket::connect(config, 0, to)?;
                around.watch.add(&fd, Token::Opening, false)?;
                let hello = Hello {
                    from: config.rank.0,
                    to: self.peer.0,
                    rail: config.rail,
                    nonce: handshake::nonce(),
                };
                let len = socket::longest(&fd);
                self.way.insert(Way { fd, hello, to, len })
            }
        };
        self.tries += 1;
        let terms = Terms { datagram: way.len as u32, buffer: socket::buffer(&way.fd) };
        let bytes = greeting::padded(&Control::Hello(way.hello), terms, &config.secret);
        match net::send(&way.fd, &bytes, SendFlags::NOSIGNAL) {
            // The kernel knows a shorter path already.
            Err(Errno::MSGSIZE) => {
                self.tries = TRIES;
                self.next_ms = around.now_ms;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) | Ok(_) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Tries a shorter datagram, or after the shortest the next address.
    fn shorten(&mut self) {
        self.tries = 0;
        let shorter = self.way.as_ref().and_then(|way| LENGTHS.iter().find(|len| **len < way.len));
        match (shorter, &mut self.way) {
            (Some(len), Some(way)) => way.len = *len,
            _ => {
                self.way = None;
                self.at += 1;
            }
        }
    }

    fn listen(&mut self, around: &Around<'_>, scratch: &mut [u8], strays: &mut Strays) -> Step {
        loop {
            let Some(way) = &self.way else { return Step::On };
            let got = match net::recv(&way.fd, &mut *scratch, RecvFlags::empty()) {
                Ok((_, got)) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Step::On,
                Err(e) => return self.refused(e, around),
            };
            match greeting::decode(&scratch[..got], &around.config.secret) {
                Heard::Message(Control::Welcome(welcome), terms) => {
                    let secret = &around.config.secret;
                    let Some(ends) = Ends::from_welcome(way.hello, &welcome, secret) else { continue };
                    let Some(way) = self.way.take() else { return Step::On };
                    return prove(way, ends, terms, got, around);
                }
                Heard::Message(Control::Refuse(refusal), _) => {
                    return Step::Failed(format!("refused the link: {}", refusal.text));
                }
                Heard::Message(..) => {}
                Heard::OtherVersion(theirs) => {
                    return Step::Failed(format!(
                        "speaks version {theirs} of the format, this side version {VERSION} \
                         (start one release everywhere)"
                    ));
                }
                Heard::Stranger => strays.count(Stray::Stranger),
            }
        }
    }

    fn refused(&mut self, e: Errno, around: &Around<'_>) -> Step {
        let to = around.known[self.at % around.known.len()].1.socket;
        let why = match e {
            Errno::CONNREFUSED => format!("is gone: nobody listens at UDP {to} (has it died?)"),
            e => format!("cannot be reached at UDP {to} from {}: {e}", around.config.address()),
        };
        self.refusals += 1;
        if self.refusals >= REFUSALS * around.known.len() as u32 {
            return Step::Failed(why);
        }
        (self.way, self.tries, self.last) = (None, 0, Some(why));
        self.at += 1;
        self.next_ms = around.now_ms + RETRY_MS;
        Step::On
    }

    fn too_late(&self, around: &Around<'_>) -> String {
        let (bound, here) = (around.config.bound, around.config.address());
        let there = self.way.as_ref().map_or(around.known[0].1.socket, |way| way.to);
        let hint = format!(
            "did not answer any datagram within {bound:?} (does a firewall swallow UDP from {here} to \
             {there}, or has it the secret of another job?)"
        );
        match &self.last {
            Some(last) => format!("{hint}; before: {last}"),
            None => hint,
        }
    }
}

/// The peer has shown that it knows the secret, by an answer of `len` bytes.
fn prove(way: Way, ends: Ends, theirs: Terms, len: usize, around: &Around<'_>) -> Step {
    let secret = &around.config.secret;
    let datagram = len.min(theirs.datagram as usize);
    if datagram < LENGTHS[LENGTHS.len() - 1].min(way.len) {
        return Step::Failed("answered with a datagram that is too short to carry anything".into());
    }
    let terms = Terms { datagram: datagram as u32, buffer: socket::buffer(&way.fd) };
    let proof = greeting::encode(&ends.proof(secret), terms, secret);
    let _ = net::send(&way.fd, &proof, SendFlags::NOSIGNAL);
    let (peer, remote) = (PeerId(ends.hello.to), ends.rail);
    Step::Open(Opened { peer, remote, fd: way.fd, ends, proof, datagram, buffer: theirs.buffer })
}
