//! Ports: a process of one job connects to a process of another job, of which it knows only the name of the
//! port. The name contains a key. Each side proves to the other that it knows the key, and both derive from
//! it a shared secret, which is never sent.

mod greeting;
mod strangers;

use greeting::{Greeted, gone, greet};
use strangers::Strangers;

use crate::{LaunchError, Secret, reach};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Prefix of all port names.
const PREFIX: &str = "nmad";
/// Separator between the parts of a name.
const MARK: char = '#';
/// Time limit of connecting to an address.
const TRY_LIMIT: Duration = Duration::from_secs(5);
/// Port numbers to try until one is free at all addresses.
const NUMBERS_MAX: usize = 16;
/// Longest message in bytes.
const MESSAGE_MAX: u64 = 1 << 30;

/// An open port: a process that knows its name can connect to it.
#[derive(Debug)]
pub struct Port {
    /// A listener for each address, all with the same port number, and a Unix socket for processes of this
    /// host, which may have no network.
    listeners: Vec<OwnedFd>,
    key: Secret,
    name: String,
    strangers: Mutex<Strangers>,
}

/// A connection between the roots of two jobs that have both proved that they know the key.
#[derive(Debug)]
pub struct Meeting {
    fd: OwnedFd,
    secret: Secret,
    is_first: bool,
}

impl Port {
    /// Opens a port on the loopback addresses and on the addresses of the job's rails, or on all addresses
    /// of the host if the job has no rails to other hosts. Its name has at most `longest` bytes.
    ///
    /// # Errors
    /// The system has no socket or no randomness left.
    pub fn open(longest: usize, rails: &[IpAddr]) -> Result<Port, LaunchError> {
        let key = Secret::random()?;
        let Listening { mut listeners, number, addresses } = listen(&addresses(rails))?;
        let here = reach::listen_here(&name_here(&key));
        listeners.push(here.map_err(LaunchError::system("cannot open a port"))?);
        let mut name = format!("{PREFIX}{MARK}{}{MARK}{number}{MARK}", key.to_hex());
        for (place, address) in addresses.into_iter().enumerate() {
            let mark = if place == 0 { "" } else { "," };
            if name.len() + mark.len() + address.to_string().len() <= longest {
                write!(name, "{mark}{address}").expect("strings grow");
            }
        }
        Ok(Port { listeners, key, name, strangers: Mutex::default() })
    }

    /// Returns the name, of printable characters without blanks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for a process that knows the name to connect; `None`: none did within the limit.
    ///
    /// # Errors
    /// The system refuses.
    pub fn accept(&self, limit: Option<Duration>) -> Result<Option<Meeting>, LaunchError> {
        let start = Instant::now();
        // If another process that knows the key connects meanwhile, its connection stays for the next call.
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            self.listeners.iter().for_each(|listener| strangers.accept(listener));
            if let Some(Greeted { fd, secret }) = strangers.go_on(&self.key) {
                return Ok(Some(Meeting { fd, secret, is_first: true }));
            }
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(start.elapsed()));
            if left.is_zero() {
                return Ok(None);
            }
            let now = Instant::now();
            let overdue = strangers.expire(now).map(|at| at.saturating_duration_since(now));
            let port = self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN));
            let others = strangers.iter().map(|stranger| PollFd::new(stranger, PollFlags::IN));
            let mut all: Vec<PollFd<'_>> = port.chain(others).collect();
            wait_for(&mut all, overdue.map_or(left, |overdue| overdue.min(left)))
                .map_err(LaunchError::system("waiting at a port"))?;
        }
    }
}

/// Connects to the port of this name; waits for its owner to accept for at most `limit`.
///
/// # Errors
/// The name is invalid, or no process accepts at this port.
pub fn connect(name: &str, limit: Duration) -> Result<Meeting, LaunchError> {
    let wrong = || LaunchError::Port(format!("{name:?} is no name of a port of NewMadeleine"));
    let mut parts = name.trim().split(MARK);
    let (prefix, key, number) = (parts.next(), parts.next(), parts.next());
    let key = key.filter(|_| prefix == Some(PREFIX)).and_then(Secret::from_hex).ok_or_else(wrong)?;
    let number: u16 = number.and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    let addresses = parts.next().unwrap_or_default().split(',');
    let addresses = addresses.filter_map(|address| address.parse::<IpAddr>().ok());
    let mut attempts = Attempts::default();
    attempts.add("this host", reach::connect_here(&name_here(&key)));
    for address in addresses {
        attempts.add(address, reach::connect(SocketAddr::new(address, number)));
    }
    let deadline = Instant::now() + limit;
    while let Some(fd) = attempts.next_answer(deadline)? {
        match meet(fd, &key, false, deadline) {
            Ok(meeting) => return Ok(meeting),
            Err(error) => attempts.why = error.to_string(),
        }
    }
    Err(LaunchError::Port(format!("no process accepts at this port: {}; is it closed?", attempts.why)))
}

/// Connection attempts to all addresses of a port at the same time, since it is unknown which of them lead
/// to its owner: another host, or none, may have the same address.
#[derive(Default)]
struct Attempts {
    /// Connections that are being established, and their addresses.
    begun: Vec<(OwnedFd, String)>,
    /// Established connections on which the other side has not sent anything yet.
    made: Vec<OwnedFd>,
    /// Error of the last failed attempt.
    why: String,
}

impl Attempts {
    fn add(&mut self, to: impl std::fmt::Display, begun: Result<OwnedFd, Errno>) {
        match begun {
            Ok(fd) => self.begun.push((fd, to.to_string())),
            Err(error) => self.why = format!("{to}: {error}"),
        }
    }

    /// Waits for a connection on which the other side sends first, as the owner of a port does when it
    /// accepts. `None`: no attempt is left. A process that never sends does not delay the other attempts.
    fn next_answer(&mut self, deadline: Instant) -> Result<Option<OwnedFd>, LaunchError> {
        let give_up = Instant::now() + TRY_LIMIT;
        loop {
            let now = Instant::now();
            if now >= give_up {
                for (_, to) in self.begun.drain(..) {
                    self.why = format!("{to}: it does not answer");
                }
            }
            if now >= deadline {
                self.why = "the other side did not answer in time".into();
                return Ok(None);
            }
            if self.begun.is_empty() && self.made.is_empty() {
                return Ok(None);
            }
            let until = if self.begun.is_empty() { deadline } else { deadline.min(give_up) };
            if let Some(at) = self.ready(until - now)? {
                return Ok(Some(self.made.swap_remove(at)));
            }
        }
    }

    /// Waits for an event; returns the index of an established connection that can be read.
    fn ready(&mut self, time: Duration) -> Result<Option<usize>, LaunchError> {
        let made = self.made.iter().map(|fd| (fd, PollFlags::IN));
        let all = made.chain(self.begun.iter().map(|(fd, _)| (fd, PollFlags::OUT)));
        let mut fds: Vec<PollFd<'_>> = all.map(|(fd, what)| PollFd::new(fd, what)).collect();
        wait_for(&mut fds, time).map_err(LaunchError::system("waiting to connect to a port"))?;
        let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let (made, begun) = is_ready.split_at(self.made.len());
        let readable = made.iter().position(|ready| *ready);
        for at in (0..begun.len()).rev().filter(|at| begun[*at]) {
            let (fd, to) = self.begun.swap_remove(at);
            match sockopt::socket_error(&fd) {
                Ok(Ok(())) => self.made.push(fd),
                Ok(Err(error)) | Err(error) => self.why = format!("{to}: {error}"),
            }
        }
        Ok(readable)
    }
}

/// Returns the name of the Unix socket for processes of the port's host.
fn name_here(key: &Secret) -> String {
    let mut hasher = blake3::Hasher::new_keyed(&key.bytes());
    hasher.update(b"nmad port: here");
    format!("nmad-port-{}", &hasher.finalize().to_hex()[..32])
}

/// Connects two processes over the socket between them. Every process that can read the socket can read
/// their exchange.
///
/// # Errors
/// The other side does not call this within `limit`.
pub fn join(socket: impl AsFd, limit: Duration) -> Result<Meeting, LaunchError> {
    let fd = socket.as_fd().try_clone_to_owned().map_err(LaunchError::system("cannot use the socket"))?;
    let own = Secret::random()?.bytes();
    let deadline = Instant::now() + limit;
    send_all(&fd, &own, deadline)?;
    let mut other = [0; 32];
    receive_all(&fd, &mut other, deadline)?;
    let is_first = own < other;
    let (first, second) = if is_first { (own, other) } else { (other, own) };
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"nmad port: join").update(&first).update(&second);
    meet(fd, &Secret::from_bytes(*hasher.finalize().as_bytes()), is_first, deadline)
}

impl Meeting {
    /// Returns whether this is the accepting side.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns 256 bits that only both sides know.
    pub fn secret(&self) -> [u8; 32] {
        self.secret.bytes()
    }

    /// Sends a message and receives the other side's.
    ///
    /// # Errors
    /// The other side is gone, or sends an invalid message.
    pub fn swap(&mut self, mine: &[u8]) -> Result<Vec<u8>, LaunchError> {
        let endless = Instant::now() + Duration::from_secs(1 << 30);
        let (mut head, mut theirs) = ([0; 8], Vec::new());
        // The sides send one after the other, so that two long messages do not block each other.
        for sends in [self.is_first, !self.is_first] {
            if sends {
                send_all(&self.fd, &(mine.len() as u64).to_le_bytes(), endless)?;
                send_all(&self.fd, mine, endless)?;
            } else {
                receive_all(&self.fd, &mut head, endless)?;
                let len = u64::from_le_bytes(head);
                if len > MESSAGE_MAX {
                    return Err(LaunchError::Port(format!("the other side announces a message of {len} B")));
                }
                theirs = vec![0; len as usize];
                receive_all(&self.fd, &mut theirs, endless)?;
            }
        }
        Ok(theirs)
    }
}

/// Returns a short one-way digest.
pub fn digest(what: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"nmad port: digest").update(what);
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    short
}

fn meet(fd: OwnedFd, key: &Secret, is_first: bool, deadline: Instant) -> Result<Meeting, LaunchError> {
    let Greeted { fd, secret } = greet(fd, key, is_first, deadline)?;
    Ok(Meeting { fd, secret, is_first })
}

/// Returns the addresses of this host for a port of a job with rails at these addresses, the most reachable
/// first.
fn addresses(rails: &[IpAddr]) -> Vec<IpAddr> {
    let has_wide = rails.iter().any(|address| !address.is_loopback());
    let own = reach::own_addresses().unwrap_or_default().into_iter();
    reach::in_order(own.filter(|ip| !has_wide || ip.is_loopback() || rails.contains(ip)).collect())
}

/// Sockets that listen on the same port number at these addresses.
#[derive(Default)]
struct Listening {
    listeners: Vec<OwnedFd>,
    number: u16,
    addresses: Vec<IpAddr>,
}

/// Listens on all of these addresses that can be used; on none if the host has no network.
fn listen(addresses: &[IpAddr]) -> Result<Listening, LaunchError> {
    let failed = "cannot open a port";
    for _ in 0..NUMBERS_MAX {
        let mut all = Listening::default();
        let mut is_taken = false;
        for address in addresses {
            match TcpListener::bind((*address, all.number)) {
                Ok(listener) => {
                    listener.set_nonblocking(true).map_err(LaunchError::system(failed))?;
                    all.number = listener.local_addr().map_or(all.number, |bound| bound.port());
                    all.listeners.push(listener.into());
                    all.addresses.push(*address);
                }
                Err(why) => is_taken |= why.kind() == std::io::ErrorKind::AddrInUse,
            }
        }
        if !is_taken {
            return Ok(all);
        }
    }
    Err(LaunchError::system(failed)(std::io::Error::from(std::io::ErrorKind::AddrInUse)))
}

/// Waits until one is ready; false: none was within the time.
fn wait_for(all: &mut [PollFd<'_>], time: Duration) -> Result<bool, Errno> {
    let time = Timespec::try_from(time.min(Duration::from_secs(3600))).ok();
    match poll(all, time.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn until(fd: &impl AsFd, what: PollFlags, deadline: Instant) -> Result<(), LaunchError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LaunchError::Port("the other side did not answer in time".into()));
        }
        if wait_for(&mut [PollFd::new(fd, what)], left)
            .map_err(LaunchError::system("waiting for the other side of a port"))?
        {
            return Ok(());
        }
    }
}

/// Sends bytes; the other side may have closed the connection, which does not end this process by SIGPIPE.
pub(crate) fn send_all(fd: &impl AsFd, mut bytes: &[u8], deadline: Instant) -> Result<(), LaunchError> {
    while !bytes.is_empty() {
        match rustix::net::send(fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => until(fd, PollFlags::OUT, deadline)?,
            Err(_) => return Err(gone()),
        }
    }
    Ok(())
}

fn receive_all(fd: &OwnedFd, bytes: &mut [u8], deadline: Instant) -> Result<(), LaunchError> {
    let mut filled = 0;
    while filled < bytes.len() {
        until(fd, PollFlags::IN, deadline)?;
        match rustix::io::read(fd, &mut bytes[filled..]) {
            Ok(0) => return Err(gone()),
            Ok(count) => filled += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return Err(gone()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpStream;

    /// Returns the addresses at which a port listens.
    fn bound(port: &Port) -> impl Iterator<Item = SocketAddr> {
        let name = |fd| SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok();
        port.listeners.iter().filter_map(name)
    }

    #[test]
    fn two_processes_that_know_the_name_connect_despite_a_wrong_key() {
        let port = Port::open(256, &[]).expect("a port");
        assert!(port.name().len() <= 256 && !port.name().contains(' '), "{}", port.name());
        let name = port.name().to_string();
        let wrong =
            name.replacen(&name[5..9], if name.starts_with("nmad#0000") { "ffff" } else { "0000" }, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let refused = connect(&wrong, Duration::from_secs(20)).expect_err("another key").to_string();
                assert!(refused.contains("no process accepts"), "{refused}");
                let mut meeting = connect(&name, Duration::from_secs(20)).expect("they meet");
                let theirs = meeting.swap(&vec![7; 3 << 20]).expect("a message");
                (meeting.secret(), theirs, meeting.is_first())
            });
            let limit = Some(Duration::from_secs(20));
            let mut meeting = port.accept(limit).expect("no error").expect("somebody");
            let theirs = meeting.swap(b"hello").expect("a message");
            assert!(theirs.len() == 3 << 20 && theirs.iter().all(|byte| *byte == 7));
            let other = other.join().expect("no panic");
            assert_eq!(other, (meeting.secret(), b"hello".to_vec(), false));
        });
    }

    #[test]
    fn silent_and_invalid_connections_delay_no_client_and_a_second_client_waits_for_the_next_call() {
        let port = Port::open(256, &[IpAddr::from([127, 0, 0, 1])]).expect("a port");
        let at = bound(&port).next().expect("it is bound");
        let mut held = Vec::new();
        // More connections than are greeted at the same time; some have sent the part of the greeting that
        // needs no key.
        for number in 0..100 {
            let mut stream = TcpStream::connect(at).expect("it listens");
            if number % 2 == 0 {
                stream
                    .write_all(b"nmad port, rev 1")
                    .and_then(|()| stream.write_all(&[7; 32]))
                    .expect("room");
            }
            held.push(stream);
        }
        let name = port.name().to_string();
        std::thread::scope(|scope| {
            let clients =
                [0, 1].map(|_| scope.spawn(|| connect(&name, Duration::from_secs(60)).map(|m| m.secret())));
            // One silent connection after the other would take longer than the limit.
            let mut met: Vec<_> = (0..2)
                .map(|_| {
                    port.accept(Some(Duration::from_secs(60))).expect("no error").expect("somebody").secret()
                })
                .collect();
            let mut theirs =
                clients.map(|client| client.join().expect("no panic").expect("it connects")).to_vec();
            met.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(met, theirs);
        });
    }

    #[test]
    fn a_port_is_open_on_the_addresses_of_the_job_alone() {
        let port = Port::open(256, &[IpAddr::from([127, 0, 0, 1])]).expect("a port");
        let all = Port::open(256, &[]).expect("a port");
        assert!(bound(&all).all(|address| !address.ip().is_unspecified()));
        let wide = |port: &Port| {
            bound(port).map(|address| address.ip()).filter(|ip| !ip.is_loopback()).collect::<Vec<_>>()
        };
        // A job without rails to other hosts opens its port on all addresses.
        assert_eq!(wide(&port), wide(&all));
        if let [one, .., other] = &wide(&all)[..] {
            let port = Port::open(256, &[*one]).expect("a port");
            assert_eq!(wide(&port), [*one], "not at {other}");
        }
    }

    #[test]
    fn invalid_names_and_closed_ports_are_errors() {
        for name in ["", "nmad", "nmad#00#1#", "tcp://127.0.0.1:7"] {
            let error = connect(name, Duration::from_secs(1)).expect_err(name).to_string();
            assert!(error.contains("no name of a port"), "{error}");
        }
        let closed = Port::open(256, &[]).expect("a port").name().to_string();
        assert!(connect(&closed, Duration::from_secs(1)).expect_err("closed").to_string().contains("closed"));
        let port = Port::open(256, &[]).expect("a port");
        assert!(port.accept(Some(Duration::from_millis(1))).expect("no error").is_none());
    }

    #[test]
    fn processes_of_this_host_need_no_network_and_a_silent_process_delays_none() {
        let port = Port::open(256, &[]).expect("a port");
        let silent = reach::listen().expect("a port");
        let silent = silent.local_addr().expect("it has one").port();
        let mut parts: Vec<String> = port.name().split(MARK).map(str::to_owned).collect();
        // The port number of another process, at addresses that exist but do not lead to the port.
        parts[2] = silent.to_string();
        for addresses in ["", "127.0.0.1,0.0.0.1"] {
            parts[3] = addresses.into();
            let name = parts.join(&MARK.to_string());
            std::thread::scope(|scope| {
                let other = scope.spawn(move || connect(&name, Duration::from_secs(20)).expect("they meet"));
                let here = port.accept(Some(Duration::from_secs(20))).expect("no error").expect("somebody");
                assert_eq!(other.join().expect("no panic").secret(), here.secret());
            });
        }
    }

    #[test]
    fn two_ends_of_a_socket_join() {
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        std::thread::scope(|scope| {
            let limit = Duration::from_secs(20);
            let other = scope.spawn(move || join(&other, limit).expect("they join"));
            let one = join(&one, limit).expect("they join");
            let other = other.join().expect("no panic");
            assert_eq!(one.secret(), other.secret());
            assert_ne!(one.is_first(), other.is_first());
        });
    }
}
