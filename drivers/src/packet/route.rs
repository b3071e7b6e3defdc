//! The route of a link: the addresses in its frames.

use super::frame::{HEAD, Way, head};
use super::sys::Socket;
use super::write::Outbox;
use crate::datagram::cut::Cut;
use crate::datagram::greeters::Greeted;
use crate::datagram::header::Signal;
use crate::datagram::link::{Broken, Due, Link};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::io;
use std::net::UdpSocket;

/// The addresses in frames, and the frames of the next send call.
#[derive(Debug)]
pub struct Route {
    /// Address of the peer in frames.
    pub way: Way,
    /// The frames of the next send call.
    pub out: Outbox,
    /// Data bytes of a frame, at most.
    pub part: usize,
    /// Buffer in which a frame is decrypted.
    pub plain: Vec<u8>,
    head: [u8; HEAD],
    /// A socket connected to the UDP port that the peer's process holds. The peer does not read from that
    /// port; but when its process has ended, its kernel answers with an error.
    death_probe: Option<UdpSocket>,
}

impl Route {
    /// Creates the route from the address `ours` to the peer's. The handshake has found the length of
    /// datagrams.
    pub fn new(ours: Way, opened: &Greeted<Way>, death_probe: Option<UdpSocket>) -> Route {
        let Greeted { way, opened, .. } = opened;
        let (head, cut) = (head(ours, *way), Cut::new(opened.len, opened.behind(), false));
        let out = Outbox::new(head, cut);
        Route { way: *way, out, part: cut.part, plain: Vec::new(), head, death_probe }
    }
}

impl Link<Route> {
    /// Sends a signal. If the kernel does not take it, it is lost, as it might be in the network.
    pub fn signal(&mut self, socket: &Socket, signal: Signal) {
        let bytes = self.sealed(signal);
        self.send_bytes(socket, &bytes);
    }

    fn send_bytes(&self, socket: &Socket, bytes: &[u8]) {
        let _ = net::send(socket, &[&self.route.head[..], bytes].concat(), SendFlags::empty());
    }

    /// Shortens frames to `datagram` bytes behind the head, and restarts an order that was sent in part.
    /// False: they are not longer, or `datagram` is too short.
    pub fn shorten(&mut self, datagram: usize) -> bool {
        let Some(cut) = self.route.out.cut.shorter(datagram, |_| false) else { return false };
        self.route.out.cut = cut;
        self.queue.restart();
        true
    }

    /// Sends probes and repetitions that are due.
    ///
    /// # Errors
    /// The peer's kernel reports that the process has ended, or the peer does not answer any more.
    pub fn maintain(&mut self, socket: &Socket, now_ms: u64) -> Result<(), Broken> {
        match self.due(now_ms)? {
            Due::Nothing => {}
            Due::Proof(proof) => self.send_bytes(socket, &proof),
            Due::Probe => {
                self.signal(socket, Signal::Probe);
                self.test_process();
            }
        }
        Ok(())
    }

    /// Sends a datagram to the peer's UDP port. An error of the kernel is about an earlier datagram, and is
    /// returned instead of sending this one.
    fn test_process(&mut self) {
        let Some(death_probe) = &self.route.death_probe else { return };
        if let Err(e) = death_probe.send(&[])
            && e.kind() != io::ErrorKind::WouldBlock
        {
            let _ = death_probe.send(&[]);
            self.silence.refused(Errno::from_io_error(&e).unwrap_or(Errno::IO));
        }
    }
}
