//! Half round trip of a short Ethernet frame over a bare packet socket with a mapped receive ring, both sides
//! spinning: the least that a rail of raw Ethernet can cost. Nothing is sent again, so a loss ends it at the
//! limit.
use nmad_drivers::packet::frame::{HEAD, Way, head};
use nmad_drivers::packet::sys::Socket;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::wait::timed_out;

/// A packet socket, and frames for the other side.
#[derive(Debug)]
pub struct Frames {
    socket: Socket,
    /// Holds the port.
    _port: UdpSocket,
    ours: Way,
    frame: Vec<u8>,
    data: Vec<u8>,
}

impl Frames {
    /// A socket on the interface with this address.
    pub fn open(interface: &str, at: IpAddr) -> io::Result<Frames> {
        let holder = UdpSocket::bind(SocketAddr::new(at, 0))?;
        let port = holder.local_addr()?.port();
        let socket = Socket::open(interface, port)?;
        let ours = Way { mac: socket.mac(), port };
        Ok(Frames { socket, _port: holder, ours, frame: Vec::new(), data: Vec::new() })
    }

    /// Where it is.
    pub fn way(&self) -> Way {
        self.ours
    }

    /// Ties it to the other side's.
    pub fn connect(&mut self, to: Way) {
        self.frame = head(self.ours, to).into();
    }

    /// `rounds` round trips of `len` bytes; the active side begins.
    pub fn ping_pong(&mut self, active: bool, len: usize, rounds: usize, limit: Duration) -> io::Result<()> {
        self.frame.resize(HEAD + len, 1);
        let deadline = Instant::now() + limit;
        for _ in 0..rounds {
            if active {
                self.send()?;
            }
            self.receive(deadline)?;
            if !active {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&self) -> io::Result<()> {
        rustix::net::send(&self.socket, &self.frame, rustix::net::SendFlags::empty())?;
        Ok(())
    }

    /// The clock is looked at every thousandth time only.
    fn receive(&mut self, deadline: Instant) -> io::Result<()> {
        for tries in 1u64.. {
            if let Some(frame) = self.socket.frame() {
                // A receiver wants the message in memory of its own, so the copy counts.
                self.data.clear();
                self.data.extend_from_slice(&frame[HEAD.min(frame.len())..]);
                self.socket.release();
                return Ok(());
            }
            if tries.is_multiple_of(1000) && Instant::now() >= deadline {
                break;
            }
        }
        Err(timed_out())
    }
}
