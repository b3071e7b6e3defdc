//! Plain TCP sockets with the options that serve bulk data and short messages best.
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockRef, Type};

use super::pace::Pace;
use super::wait::{Wait, moved, timed_out};

/// How a socket is set up and waited for.
///
/// The default is the best of the policies tried on two hosts of a testbed: a congestion control that does
/// not pace by timers, and a send buffer large enough for the wire and small enough for the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Congestion controls in order of preference: the first that the kernel grants is used, the machine's
    /// default if it grants none. Ours is `reno`, which every user may choose, then `cubic`.
    pub congestion: Vec<String>,
    /// SO_SNDBUF in bytes; the kernel doubles it for its bookkeeping. `None` leaves it to autotuning.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes, likewise. `None` is best: a fixed one also fixes the window the peer sees.
    pub recv_buffer: Option<usize>,
    /// How long a side spins for room or data before it sleeps: a sleep costs 20 to 40 us of latency.
    pub spin: Duration,
    /// Rate in bytes per second to which sending is held back, as software does that stands in for a slow
    /// rail; none: as fast as the rail is.
    pub pace: Option<u64>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            congestion: vec!["reno".into(), "cubic".into()],
            send_buffer: Some(512 << 10),
            recv_buffer: None,
            spin: Duration::from_micros(20),
            pace: None,
        }
    }
}

impl Policy {
    /// An unconnected socket that follows this policy. Buffers count only if set before the handshake.
    fn socket(&self, domain: Domain) -> io::Result<socket2::Socket> {
        let socket = socket2::Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        self.choose_congestion(SockRef::from(&socket));
        if let Some(len) = self.send_buffer {
            socket.set_send_buffer_size(len)?;
        }
        if let Some(len) = self.recv_buffer {
            socket.set_recv_buffer_size(len)?;
        }
        Ok(socket)
    }

    /// Before the handshake, or the first round trips run under the default; and once more after it, since a
    /// route with a congestion control of its own (`ip route ... congctl`) overrides what the socket asked.
    fn choose_congestion(&self, socket: SockRef<'_>) {
        let _granted = self.congestion.iter().any(|name| socket.set_tcp_congestion(name.as_bytes()).is_ok());
    }
}

/// A listening socket: the passive side opens it and tells the active side its address.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    policy: Policy,
}

impl Listener {
    /// Listens on `addr` (port 0: any free port) for sockets that follow `policy`.
    pub fn open(addr: SocketAddr, policy: &Policy) -> io::Result<Listener> {
        let socket = policy.socket(Domain::for_address(addr))?;
        socket.set_reuse_address(true)?;
        socket.bind(&addr.into())?;
        socket.listen(16)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { inner: socket.into(), policy: policy.clone() })
    }

    /// The address to connect to.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Waits for the other side to connect; `TimedOut` after `limit`.
    pub fn accept(&self, limit: Duration) -> io::Result<Socket> {
        let mut wait = Wait::new(Duration::ZERO, Instant::now() + limit);
        loop {
            match self.inner.accept() {
                Ok((stream, _)) => return Socket::new(stream, &self.policy),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait.pause(&[(self.inner.as_fd(), PollFlags::IN)])?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A connected, non-blocking TCP socket.
#[derive(Debug)]
pub struct Socket {
    pub(super) stream: TcpStream,
    pub(super) spin: Duration,
    pace: Option<Pace>,
}

impl Socket {
    /// Connects to `to`, from the local address `from` if one is given (which pins the rail); `TimedOut`
    /// after `limit`.
    pub fn connect(
        from: Option<IpAddr>,
        to: SocketAddr,
        policy: &Policy,
        limit: Duration,
    ) -> io::Result<Socket> {
        let socket = policy.socket(Domain::for_address(to))?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
        socket.connect_timeout(&to.into(), limit)?;
        Socket::new(socket.into(), policy)
    }

    fn new(stream: TcpStream, policy: &Policy) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        policy.choose_congestion(SockRef::from(&stream));
        Ok(Socket { stream, spin: policy.spin, pace: policy.pace.map(Pace::new) })
    }

    /// The congestion control in force, as the kernel names it.
    pub fn congestion(&self) -> io::Result<String> {
        let name = SockRef::from(&self.stream).tcp_congestion()?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// How many of `wanted` bytes may be sent now.
    pub(super) fn allowed(&mut self, wanted: usize) -> usize {
        self.pace.as_mut().map_or(wanted, |pace| pace.allowed().min(wanted))
    }

    /// Charges `len` sent bytes to the pace.
    pub(super) fn spend(&mut self, len: usize) {
        if let Some(pace) = &mut self.pace {
            pace.spend(len);
        }
    }

    /// Sends all of `data`, each call offering all that remains.
    pub(crate) fn send_all(&mut self, mut data: &[u8], deadline: Instant) -> io::Result<()> {
        let mut wait = Wait::new(self.spin, deadline);
        while !data.is_empty() {
            let allowed = self.allowed(data.len());
            let sent = match allowed {
                0 => None,
                _ => moved((&self.stream).write(&data[..allowed]))?,
            };
            match sent {
                Some(len) => {
                    data = &data[len..];
                    self.spend(len);
                    wait.rearm();
                }
                None => wait.pause(&[(self.stream.as_fd(), PollFlags::OUT)])?,
            }
        }
        Ok(())
    }

    /// Fills `into`, each call asking for all that is missing.
    pub(crate) fn recv_all(&mut self, into: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut wait = Wait::new(self.spin, deadline);
        let mut at = 0;
        while at < into.len() {
            match moved((&self.stream).read(&mut into[at..]))? {
                Some(len) => {
                    at += len;
                    wait.rearm();
                }
                None => wait.pause(&[(self.stream.as_fd(), PollFlags::IN)])?,
            }
        }
        Ok(())
    }

    /// Fills `into` without ever sleeping. The clock is looked at every thousandth time only: reading it
    /// costs a fifth of an empty receive, and would blur what is measured.
    pub(super) fn recv_spinning(&mut self, into: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut at = 0;
        let mut empty = 0u32;
        while at < into.len() {
            if let Some(len) = moved((&self.stream).read(&mut into[at..]))? {
                at += len;
                continue;
            }
            empty += 1;
            if empty.is_multiple_of(1000) && Instant::now() >= deadline {
                return Err(timed_out());
            }
        }
        Ok(())
    }
}
