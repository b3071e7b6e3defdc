//! Ports: how a process of one job meets a process of another, which knows nothing of the first but the name
//! of its port. The name holds a key; each side proves to the other that it knows it, and both derive from
//! it a secret of their own, which never travels.

use crate::{LaunchError, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// What every name of a port begins with.
const PREFIX: &str = "nmad";
/// Between the parts of a name.
const MARK: char = '#';
/// What both sides say first.
const GREETING: &[u8; 16] = b"nmad port, rev 1";
/// How long the other side may take to prove that it knows the key.
const PROOF_LIMIT: Duration = Duration::from_secs(10);
/// How long one address is tried.
const TRY_LIMIT: Duration = Duration::from_secs(5);
/// Longest message, in bytes.
const MESSAGE_MAX: u64 = 1 << 30;

/// An open port: a process that knows its name can connect to it.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    key: Secret,
    name: String,
}

/// A connection between the roots of two jobs, both of which know the key.
#[derive(Debug)]
pub struct Meeting {
    fd: OwnedFd,
    secret: Secret,
    is_first: bool,
}

impl Port {
    /// Opens a port; its name has at most `longest` bytes.
    ///
    /// # Errors
    /// The system has no socket or no randomness left.
    pub fn open(longest: usize) -> Result<Port, LaunchError> {
        let failed = "cannot open a port";
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(LaunchError::system(failed))?;
        let number = listener.local_addr().map_err(LaunchError::system(failed))?.port();
        listener.set_nonblocking(true).map_err(LaunchError::system(failed))?;
        let key = Secret::random()?;
        let mut name = format!("{PREFIX}{MARK}{}{MARK}{number}{MARK}", key.to_hex());
        for (place, address) in addresses().into_iter().enumerate() {
            let mark = if place == 0 { "" } else { "," };
            if name.len() + mark.len() + address.to_string().len() <= longest {
                write!(name, "{mark}{address}").expect("strings grow");
            }
        }
        Ok(Port { listener, key, name })
    }

    /// Its name, of printable characters without blanks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for a process that knows the name to connect; none: no process did within the limit.
    ///
    /// # Errors
    /// The system refuses.
    pub fn accept(&self, limit: Option<Duration>) -> Result<Option<Meeting>, LaunchError> {
        let start = Instant::now();
        loop {
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(start.elapsed()));
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.listener, PollFlags::IN, left).map_err(LaunchError::system("waiting at a port"))?;
            let Ok((stream, _)) = self.listener.accept() else { continue };
            // A stranger does not know the key, and keeps nobody else from connecting.
            if let Ok(meeting) = greet(stream.into(), &self.key, true) {
                return Ok(Some(meeting));
            }
        }
    }
}

/// Connects to the port of this name; waits for its owner to accept for at most `limit`.
///
/// # Errors
/// The name is none, or nobody is there.
pub fn connect(name: &str, limit: Duration) -> Result<Meeting, LaunchError> {
    let wrong = || LaunchError::Port(format!("{name:?} is no name of a port of NewMadeleine"));
    let mut parts = name.trim().split(MARK);
    let (prefix, key, number) = (parts.next(), parts.next(), parts.next());
    let key = key.filter(|_| prefix == Some(PREFIX)).and_then(Secret::from_hex).ok_or_else(wrong)?;
    let number: u16 = number.and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    let addresses = parts.next().unwrap_or_default().split(',');
    let mut why = String::from("it has no address");
    for address in addresses.filter_map(|address| address.parse::<IpAddr>().ok()) {
        match TcpStream::connect_timeout(&SocketAddr::new(address, number), TRY_LIMIT.min(limit)) {
            Ok(stream) => match greet_within(stream.into(), &key, false, limit) {
                Ok(meeting) => return Ok(meeting),
                Err(error) => why = error.to_string(),
            },
            Err(error) => why = format!("{address}: {error}"),
        }
    }
    Err(LaunchError::Port(format!("nobody accepts at this port: {why}; is it closed?")))
}

/// Two processes meet over the socket between them. Every process that can read the socket can read what they
/// exchange.
///
/// # Errors
/// The other side does not do the same within `limit`.
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
    greet_within(fd, &Secret::from_bytes(*hasher.finalize().as_bytes()), is_first, limit)
}

impl Meeting {
    /// Whether this side is the first of both: that which accepts.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// 256 bits that only both sides know.
    pub fn secret(&self) -> [u8; 32] {
        self.secret.bytes()
    }

    /// Sends a message and receives the other side's.
    ///
    /// # Errors
    /// The other side is gone, or says what is no message.
    pub fn swap(&mut self, mine: &[u8]) -> Result<Vec<u8>, LaunchError> {
        let endless = Instant::now() + Duration::from_secs(1 << 30);
        let (mut head, mut theirs) = ([0; 8], Vec::new());
        // The first sends first, so that two long messages do not wait for each other.
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

/// A short name for something, from which it cannot be found out.
pub fn digest(what: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"nmad port: digest").update(what);
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    short
}

/// Addresses of this host, those that others may reach first.
fn addresses() -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    for address in all.filter_map(|each| each.address) {
        if let Some(v4) = address.as_sockaddr_in() {
            found.push(IpAddr::V4(v4.ip()));
        }
    }
    found.sort_by_key(|address| address.is_loopback());
    found.dedup();
    found
}

fn greet(fd: OwnedFd, key: &Secret, is_first: bool) -> Result<Meeting, LaunchError> {
    greet_within(fd, key, is_first, PROOF_LIMIT)
}

/// Both sides send a number, then a proof; then they know each other.
fn greet_within(fd: OwnedFd, key: &Secret, is_first: bool, limit: Duration) -> Result<Meeting, LaunchError> {
    let deadline = Instant::now() + limit;
    let own = Secret::random()?.bytes();
    let mut theirs = [0; 48];
    send_all(&fd, GREETING, deadline)?;
    send_all(&fd, &own, deadline)?;
    receive_all(&fd, &mut theirs, deadline)?;
    let (greeting, other) = theirs.split_at(GREETING.len());
    if greeting != GREETING {
        return Err(LaunchError::Port("the other side is no process of NewMadeleine of this version".into()));
    }
    let (first, second) = if is_first { (&own[..], other) } else { (other, &own[..]) };
    let hash = |what: &[u8]| {
        let mut hasher = blake3::Hasher::new_keyed(&key.bytes());
        hasher.update(what).update(first).update(second);
        hasher.finalize()
    };
    let proofs = [hash(b"nmad port: accept"), hash(b"nmad port: connect")];
    let (mine, expected) = if is_first { (proofs[0], proofs[1]) } else { (proofs[1], proofs[0]) };
    send_all(&fd, mine.as_bytes(), deadline)?;
    let mut proof = [0; 32];
    receive_all(&fd, &mut proof, deadline)?;
    // This comparison takes the same time wherever they differ.
    if blake3::Hash::from(proof) != expected {
        return Err(LaunchError::Port("the other side does not know the key in the name of the port".into()));
    }
    let secret = Secret::from_bytes(*hash(b"nmad port: secret").as_bytes());
    Ok(Meeting { fd, secret, is_first })
}

/// False: it is not ready within the time.
fn wait(fd: &impl AsFd, what: PollFlags, time: Duration) -> Result<bool, Errno> {
    let time = Timespec::try_from(time.min(Duration::from_secs(3600))).ok();
    match poll(&mut [PollFd::new(fd, what)], time.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn until(fd: &OwnedFd, what: PollFlags, deadline: Instant) -> Result<(), LaunchError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LaunchError::Port("the other side did not answer in time".into()));
        }
        if wait(fd, what, left).map_err(LaunchError::system("waiting for the other side of a port"))? {
            return Ok(());
        }
    }
}

fn gone() -> LaunchError {
    LaunchError::Port("the other side of the port is gone".into())
}

fn send_all(fd: &OwnedFd, mut bytes: &[u8], deadline: Instant) -> Result<(), LaunchError> {
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

    #[test]
    fn two_who_know_the_name_meet_and_a_stranger_keeps_nobody_away() {
        let port = Port::open(256).expect("a port");
        assert!(port.name().len() <= 256 && !port.name().contains(' '), "{}", port.name());
        let name = port.name().to_string();
        let wrong =
            name.replacen(&name[5..9], if name.starts_with("nmad#0000") { "ffff" } else { "0000" }, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let refused = connect(&wrong, Duration::from_secs(20)).expect_err("another key").to_string();
                assert!(refused.contains("nobody accepts"), "{refused}");
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
    fn what_is_no_port_and_where_nobody_waits_are_errors() {
        for name in ["", "nmad", "nmad#00#1#", "tcp://127.0.0.1:7"] {
            let error = connect(name, Duration::from_secs(1)).expect_err(name).to_string();
            assert!(error.contains("no name of a port"), "{error}");
        }
        let closed = Port::open(256).expect("a port").name().to_string();
        assert!(connect(&closed, Duration::from_secs(1)).expect_err("closed").to_string().contains("closed"));
        let port = Port::open(256).expect("a port");
        assert!(port.accept(Some(Duration::from_millis(1))).expect("no error").is_none());
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
