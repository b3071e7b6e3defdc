//! The route of a link: a socket connected to the peer.

use super::socket;
use super::write::Outbox;
use crate::datagram::cut::{Cut, LEAST};
use crate::datagram::header::Signal;
use crate::datagram::link::{Broken, Due, Link};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::cell::Cell;
use std::net::SocketAddr;

/// The route to the other side of a handshake.
#[derive(Debug)]
pub struct Way {
    /// The socket, connected to the other side; none for a sender of a hello that has not been answered
    /// yet.
    pub fd: Option<OwnedFd>,
    /// Its address.
    pub to: SocketAddr,
}

/// A socket, and the datagrams of its next send call.
#[derive(Debug)]
pub struct Route {
    /// The socket, connected to the peer.
    pub socket: OwnedFd,
    /// The datagrams of the next send call.
    pub out: Outbox,
    /// Successful reads since the socket was last watched.
    pub reads: Cell<u32>,
    /// Whether the socket is watched, so that its events wake a sleeper.
    pub is_watched: Cell<bool>,
}

impl Route {
    /// Creates the route over a watched socket. It takes datagrams of the length `datagram`, of which the
    /// last `behind` bytes are not data.
    pub fn new(socket: OwnedFd, datagram: usize, behind: usize) -> Route {
        let can_cut = socket::cut(&socket, datagram);
        socket::join(&socket);
        let out = Outbox::new(Cut::new(datagram, behind, can_cut));
        Route { socket, out, reads: Cell::new(0), is_watched: Cell::new(true) }
    }
}

impl Link<Route> {
    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) {
        let bytes = self.sealed(signal);
        self.send_bytes(&bytes);
    }

    /// Handles an error of the system, which is about this datagram or an earlier one. An unreachable peer
    /// is probed, and nothing more; orders too long for the path are cut into shorter datagrams. (Where the
    /// kernel cuts, an older one reports an invalid argument instead.)
    #[cold]
    pub fn refused(&mut self, e: Errno) {
        match e {
            Errno::MSGSIZE | Errno::INVAL if self.shorten() => {}
            // The error is about an earlier datagram.
            Errno::MSGSIZE => {}
            e => self.silence.refused(e),
        }
    }

    /// Shortens the datagrams to the present path MTU; false: they are short enough, or the path MTU is too
    /// small.
    fn shorten(&mut self) -> bool {
        let Route { socket, out, .. } = &mut self.route;
        let datagram = socket::longest(socket);
        let Some(cut) = out.cut.shorter(datagram, |len| socket::cut(socket, len)) else { return false };
        out.cut_anew(cut);
        self.queue.restart();
        log::debug!("the path takes {datagram} B a datagram now");
        true
    }

    /// Sends probes and repetitions that are due.
    ///
    /// # Errors
    /// The peer cannot be reached.
    pub fn maintain(&mut self, now_ms: u64) -> Result<(), Broken> {
        let longest = socket::longest(&self.route.socket);
        if longest <= socket::NOWHERE {
            self.silence.refused(Errno::NETDOWN);
        } else if longest < LEAST {
            return Err(Broken::System(Errno::MSGSIZE));
        }
        match self.due(now_ms)? {
            Due::Nothing => {}
            Due::Proof(proof) => self.send_bytes(&proof),
            Due::Probe => self.signal(Signal::Probe),
        }
        Ok(())
    }

    /// Sends a datagram. If the kernel does not take it, it is lost, as it might be in the network. An
    /// error about an earlier datagram makes the kernel skip this one, so it is tried again.
    fn send_bytes(&mut self, bytes: &[u8]) {
        let send = |link: &Self| net::send(&link.route.socket, bytes, SendFlags::NOSIGNAL);
        if let Err(e) = send(self)
            && !matches!(e, Errno::AGAIN | Errno::INTR | Errno::NOBUFS)
        {
            self.refused(e);
            let _ = send(self);
        }
    }
}
