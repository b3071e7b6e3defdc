//! Half round trip of a short datagram over a bare UDP socket, both sides spinning: the least that a rail of
//! datagrams can cost. Nothing is sent again, so a loss ends it at the limit.
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::wait::{spin, timed_out};

/// A UDP socket tied to the other side.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// A socket on a free port of this address, and where that is.
    pub fn open(at: IpAddr) -> io::Result<(Datagrams, SocketAddr)> {
        let socket = UdpSocket::bind(SocketAddr::new(at, 0))?;
        socket.set_nonblocking(true)?;
        let at = socket.local_addr()?;
        Ok((Datagrams { socket, buffer: vec![0; 64 << 10] }, at))
    }

    /// Ties it to the other side's.
    pub fn connect(&self, to: SocketAddr) -> io::Result<()> {
        self.socket.connect(to)
    }

    /// The socket itself.
    pub(super) fn into_socket(self) -> UdpSocket {
        self.socket
    }

    /// `rounds` round trips of `len` bytes; the active side begins.
    pub fn ping_pong(&mut self, active: bool, len: usize, rounds: usize, limit: Duration) -> io::Result<()> {
        let deadline = Instant::now() + limit;
        for _ in 0..rounds {
            if active {
                self.send(len, deadline)?;
                self.receive(deadline)?;
            } else {
                self.receive(deadline)?;
                self.send(len, deadline)?;
            }
        }
        Ok(())
    }

    fn send(&self, len: usize, deadline: Instant) -> io::Result<()> {
        spin(deadline, || self.socket.send(&self.buffer[..len.max(1)]))?.map(drop).ok_or_else(timed_out)
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<()> {
        spin(deadline, || self.socket.recv(&mut self.buffer))?.map(drop).ok_or_else(timed_out)
    }
}
