//! Admission: the head's port, and its unauthenticated connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::channel::{self, Channel};
use super::message::{Down, Up};
use super::proof::{self, Numbers, Side};
use crate::{LaunchError, Secret, reach};
use nmad_seal::exchange::Scalar;

/// Time limit of authentication.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Time after which an unauthenticated connection may be closed to make room for another.
const SHORT_LIMIT: Duration = Duration::from_millis(250);

/// Most unauthenticated connections at the same time.
const STRANGERS_MAX: usize = 256;

/// The port of a job.
pub struct Admission {
    listener: TcpListener,
    secret: Secret,
    hosts: u32,
    silence: Duration,
    strangers: Vec<Stranger>,
}

struct Stranger {
    channel: Channel,
    since: Instant,
    /// The random numbers of the proofs and this side's scalar, set when the agent has sent its hello.
    numbers: Option<(Numbers, Scalar)>,
}

impl Admission {
    /// Opens a port for the agents of `hosts` hosts. A host that does not answer for `silence` is lost.
    pub fn open(secret: Secret, hosts: u32, silence: Duration) -> Result<Admission, LaunchError> {
        let failed = "cannot open a port for the other hosts";
        let listener = reach::listen().map_err(LaunchError::system(failed))?;
        Ok(Admission { listener, secret, hosts, silence, strangers: Vec::new() })
    }

    /// Returns how long a host may not answer before it is lost.
    pub fn silence(&self) -> Duration {
        self.silence
    }

    /// Returns the addresses of the port.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, LaunchError> {
        let failed = "cannot list the addresses of this host";
        let port = self.listener.local_addr().map_err(LaunchError::system(failed))?.port();
        let mut found = reach::addresses(&self.listener).map_err(LaunchError::system(failed))?;
        if !found.iter().any(IpAddr::is_loopback) {
            // For agents on this host.
            found.push(Ipv4Addr::LOCALHOST.into());
        }
        Ok(found.into_iter().map(|ip| (ip, port).into()).collect())
    }

    /// Returns the descriptors to wait for: the port, and each unauthenticated connection with its number
    /// for [`Admission::handle`].
    pub fn interests(&self) -> impl Iterator<Item = (Option<usize>, BorrowedFd<'_>, PollFlags)> {
        let strangers = self.strangers.iter().enumerate();
        let strangers =
            strangers.map(|(number, one)| (Some(number), one.channel.as_fd(), one.channel.wants()));
        let has_room = self.strangers.len() < STRANGERS_MAX || self.worst(Instant::now()).is_some();
        let port = has_room.then_some((None, self.listener.as_fd(), PollFlags::IN));
        port.into_iter().chain(strangers)
    }

    /// Returns the connection that makes room for others: the oldest without a hello, or else the oldest
    /// one. Agents send their hello at once.
    fn worst(&self, now: Instant) -> Option<usize> {
        let late = |(_, one): &(usize, &Stranger)| now >= one.since + SHORT_LIMIT;
        let late = self.strangers.iter().enumerate().filter(late);
        late.min_by_key(|(_, one)| (one.numbers.is_some(), one.since)).map(|(number, _)| number)
    }

    /// Accepts a connection.
    pub fn accept(&mut self) {
        if self.strangers.len() >= STRANGERS_MAX {
            let Some(worst) = self.worst(Instant::now()) else { return };
            self.strangers.swap_remove(worst);
        }
        let Ok((stream, _)) = self.listener.accept() else { return };
        // A connection that breaks at once is dropped.
        let ready = channel::watch(&stream, self.silence).and_then(|()| Channel::new(stream));
        let since = Instant::now();
        self.strangers.extend(ready.ok().map(|channel| Stranger { channel, since, numbers: None }));
    }

    /// Handles messages of an unauthenticated connection; returns it with its host when it has proved that
    /// it knows the secret.
    pub fn handle(&mut self, number: usize) -> Option<(u32, Channel)> {
        let stranger = self.strangers.get_mut(number)?;
        stranger.channel.write();
        stranger.channel.read();
        while let Some(message) = stranger.channel.take::<Up>() {
            let secret = self.secret.bytes();
            match (message, stranger.numbers.take()) {
                (Up::Hello { node, nonce, key }, None) if node < self.hosts => {
                    let (Ok(head), Ok(scalar)) = (Secret::random(), Secret::random()) else { break };
                    let scalar = Scalar::new(scalar.bytes());
                    let keys = [key, scalar.public()];
                    let numbers = Numbers { agent: nonce, head: head.bytes(), keys, node };
                    let proof = proof::prove(&secret, Side::Head, &numbers);
                    stranger.channel.send(&Down::Proof { nonce: numbers.head, key: keys[1], proof });
                    stranger.numbers = Some((numbers, scalar));
                }
                (Up::Proof(proof), Some((numbers, scalar)))
                    if proof::is_proven(&secret, Side::Agent, &numbers, &proof) =>
                {
                    let mut stranger = self.strangers.swap_remove(number);
                    let keys = numbers.derive(&secret, Side::Head, &scalar)?;
                    stranger.channel.trust(&keys, Side::Head);
                    return Some((numbers.node, stranger.channel));
                }
                _ => {
                    // It does not belong to this job.
                    self.strangers.swap_remove(number);
                    return None;
                }
            }
        }
        if !stranger.channel.is_open() {
            self.strangers.swap_remove(number);
        }
        None
    }

    /// Closes connections that exceed the time limit; returns the next deadline.
    pub fn overdue(&mut self, now: Instant) -> Option<Instant> {
        self.strangers.retain(|stranger| now < stranger.since + TIME_LIMIT);
        let is_full = self.strangers.len() >= STRANGERS_MAX && self.worst(now).is_none();
        let patience = if is_full { SHORT_LIMIT } else { TIME_LIMIT };
        self.strangers.iter().map(|stranger| stranger.since + patience).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::join;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    const SILENCE: Duration = Duration::from_secs(3);

    /// Serves the port until `done`, and returns the hosts that were admitted.
    fn serve(mut port: Admission, done: impl Fn(&[u32], usize) -> bool) -> Vec<u32> {
        let mut came = Vec::new();
        let limit = Instant::now() + Duration::from_secs(20);
        let mut seen = 0;
        while !done(&came, seen) {
            assert!(Instant::now() < limit, "only {came:?} came");
            port.accept();
            seen = seen.max(port.strangers.len());
            for number in (0..port.strangers.len()).rev() {
                came.extend(port.handle(number).map(|(node, _)| node));
            }
            std::thread::yield_now();
        }
        came
    }

    #[test]
    fn agents_that_know_the_secret_come_in() {
        let secret = Secret::random().expect("a secret");
        let port = Admission::open(secret, 3, SILENCE).expect("a port");
        let addresses = port.addresses().expect("addresses");
        let agent = std::thread::spawn(move || join::join(&secret.bytes(), &addresses, 2).map(drop));
        assert_eq!(serve(port, |came, _| !came.is_empty()), [2]);
        agent.join().expect("no panic").expect("it came in");
    }

    #[test]
    fn processes_without_the_secret_are_not_admitted() {
        let secret = Secret::random().expect("a secret");
        let port = Admission::open(secret, 1, SILENCE).expect("a port");
        let address = *port.addresses().expect("addresses").last().expect("one");
        let wrong = std::thread::spawn(move || join::join(&[0; 32], &[address], 0).map(drop));
        let talker = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it is taken");
            let mut answer = Vec::new();
            // The connection is closed, with or without a reset, and without an answer.
            let _ = stream.read_to_end(&mut answer);
            answer
        });
        let done = |_: &[u32], seen: usize| seen > 0 && wrong.is_finished() && talker.is_finished();
        assert_eq!(serve(port, done), []);
        assert_eq!(talker.join().expect("no panic"), b"");
        let why = wrong.join().expect("no panic").expect_err("it does not know the secret");
        assert!(why.contains("cannot reach mpiexec"), "{why}");
    }
}
