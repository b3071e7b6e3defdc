//! Sockets towards peers that have said hello and not proved themselves yet.

use super::config::UdpConfig;
use super::greeting::{self, Heard, Terms};
use super::opening::Opened;
use super::socket;
use super::strays::{Stray, Strays};
use crate::handshake::{self, Ends};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::net::SocketAddr;

/// Somebody who knows the secret of the job, or has recorded the hello of somebody who does.
#[derive(Debug)]
pub struct Stranger {
    fd: OwnedFd,
    ends: Ends,
    /// When it came, in milliseconds.
    pub since_ms: u64,
}

impl Stranger {
    /// One that has just said hello, and is told welcome with a datagram as long as its own.
    ///
    /// # Errors
    /// The system has no socket for it.
    pub fn welcome(
        config: &UdpConfig,
        port: u16,
        from: SocketAddr,
        (hello, terms): (Hello, Terms),
        now_ms: u64,
    ) -> Result<Stranger, Errno> {
        let fd = socket::connect(config, port, from)?;
        let ends = Ends { hello, rail: config.rail, nonce: handshake::nonce() };
        let stranger = Stranger { fd, ends, since_ms: now_ms };
        stranger.answer(terms, config);
        Ok(stranger)
    }

    /// The peer that it claims to be.
    pub fn claims(&self) -> PeerId {
        PeerId(self.ends.hello.from)
    }

    /// Whether this hello is one that it has said.
    pub fn has_said(&self, hello: &Hello) -> bool {
        self.ends.hello == *hello
    }

    /// The socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.fd
    }

    /// Answers a hello. An answer that is lost, or too long for the way back, is given again to the next one.
    pub fn answer(&self, terms: Terms, config: &UdpConfig) {
        let ours = Terms { datagram: terms.datagram, buffer: socket::buffer(&self.fd) };
        let welcome = greeting::padded(&self.ends.welcome(&config.secret), ours, &config.secret);
        let _ = net::send(&self.fd, &welcome, SendFlags::NOSIGNAL);
    }

    /// Listens to what it says; the terms of its proof.
    pub fn listen(&self, config: &UdpConfig, scratch: &mut [u8], strays: &mut Strays) -> Option<Terms> {
        loop {
            let got = match net::recv(&self.fd, &mut *scratch, RecvFlags::empty()) {
                Ok((_, got)) => got,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            match greeting::decode(&scratch[..got], &config.secret) {
                Heard::Message(Control::Hello(hello), terms) if self.has_said(&hello) => {
                    // As long as what came, whatever it says.
                    self.answer(Terms { datagram: terms.datagram.min(got as u32), ..terms }, config);
                }
                Heard::Message(Control::Proof(proof), terms)
                    if self.ends.proves(&proof, &config.secret) && terms.datagram >= SHORTEST =>
                {
                    return Some(terms);
                }
                Heard::Message(..) | Heard::OtherVersion(_) => {}
                Heard::Stranger => strays.count(Stray::Untimely),
            }
        }
    }

    /// The link, now that it has proved itself.
    pub fn into_opened(self, terms: Terms) -> Opened {
        let (peer, remote) = (self.claims(), self.ends.hello.rail);
        let datagram = terms.datagram.min(u32::from(u16::MAX)) as usize;
        let Stranger { fd, ends, .. } = self;
        Opened { peer, remote, fd, ends, proof: Vec::new(), datagram, buffer: terms.buffer }
    }
}

/// No path carries less.
const SHORTEST: u32 = 528;
