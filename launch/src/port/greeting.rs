//! Greetings: both sides of a connection prove to each other that they know a key. Neither side blocks, so
//! a silent process delays no other.

use crate::{LaunchError, Secret};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// First bytes of both sides.
const WORDS: &[u8; 16] = b"nmad port, rev 1";
/// Length of the first part: these bytes, and a random number.
const FIRST: usize = WORDS.len() + 32;
/// Length of a whole greeting: the first part, and a proof.
const ALL: usize = FIRST + 32;

/// A greeting in progress.
#[derive(Debug)]
pub(super) struct Greeting {
    fd: OwnedFd,
    /// Start time.
    pub(super) since: Instant,
    is_first: bool,
    own: [u8; 32],
    received: [u8; ALL],
    len: usize,
    /// Values derived from the first part.
    known: Option<Known>,
}

/// Values derived from the key and the random numbers of both sides.
#[derive(Debug)]
struct Known {
    /// Expected proof of the other side.
    expected: blake3::Hash,
    secret: Secret,
}

/// A connection on which both sides have proved that they know the key.
#[derive(Debug)]
pub(super) struct Greeted {
    /// The connection.
    pub(super) fd: OwnedFd,
    /// The shared secret.
    pub(super) secret: Secret,
}

impl Greeting {
    /// Begins a greeting; one side of the connection `is_first`.
    ///
    /// # Errors
    /// The other side is gone.
    pub(super) fn begin(fd: OwnedFd, is_first: bool) -> Result<Greeting, LaunchError> {
        let own = Secret::random()?.bytes();
        let since = Instant::now();
        let greeting = Greeting { fd, since, is_first, own, received: [0; ALL], len: 0, known: None };
        greeting.say(&[&WORDS[..], &own].concat())?;
        Ok(greeting)
    }

    /// Returns whether the other side has sent nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.len == 0
    }

    /// Continues as far as possible; returns the greeting itself if the other side has not sent everything.
    ///
    /// # Errors
    /// The other side is gone, or does not know the key.
    pub(super) fn go_on(mut self, key: &Secret) -> Result<Result<Greeted, Greeting>, LaunchError> {
        loop {
            let whole = if self.known.is_some() { ALL } else { FIRST };
            if self.len < whole {
                match rustix::net::recv(&self.fd, &mut self.received[self.len..whole], RecvFlags::DONTWAIT) {
                    Ok((_, 0)) => return Err(gone()),
                    Ok((_, count)) => self.len += count,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Ok(Err(self)),
                    Err(_) => return Err(gone()),
                }
                continue;
            }
            match self.known.take() {
                None => self.answer(key)?,
                // This comparison takes constant time.
                Some(known) if known.expected == blake3::Hash::from(self.proof()) => {
                    return Ok(Ok(Greeted { fd: self.fd, secret: known.secret }));
                }
                Some(_) => {
                    let why = "the other side does not know the key in the name of the port";
                    return Err(LaunchError::Port(why.into()));
                }
            }
        }
    }

    /// Answers the first part with the proof of this side.
    fn answer(&mut self, key: &Secret) -> Result<(), LaunchError> {
        let (words, other) = self.received[..FIRST].split_at(WORDS.len());
        if words != WORDS {
            let why = "the other side is no process of NewMadeleine of this version";
            return Err(LaunchError::Port(why.into()));
        }
        let (first, second) = if self.is_first { (&self.own[..], other) } else { (other, &self.own[..]) };
        let hash = |what: &[u8]| {
            let mut hasher = blake3::Hasher::new_keyed(&key.bytes());
            hasher.update(what).update(first).update(second);
            hasher.finalize()
        };
        let proofs = [hash(b"nmad port: accept"), hash(b"nmad port: connect")];
        let (mine, expected) = if self.is_first { (proofs[0], proofs[1]) } else { (proofs[1], proofs[0]) };
        let secret = Secret::from_bytes(*hash(b"nmad port: secret").as_bytes());
        self.known = Some(Known { expected, secret });
        self.say(mine.as_bytes())
    }

    fn proof(&self) -> [u8; 32] {
        let mut proof = [0; 32];
        proof.copy_from_slice(&self.received[FIRST..]);
        proof
    }

    /// Sends bytes. There is room, since little was sent on this connection before.
    fn say(&self, bytes: &[u8]) -> Result<(), LaunchError> {
        match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) if count == bytes.len() => Ok(()),
            _ => Err(gone()),
        }
    }
}

impl AsFd for Greeting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The error of a connection that has ended.
pub(super) fn gone() -> LaunchError {
    LaunchError::Port("the other side of the port is gone".into())
}

/// Runs a greeting on one connection; waits for the other side until `deadline`.
///
/// # Errors
/// Errors of [`Greeting::go_on`], or the other side does not answer in time.
pub(super) fn greet(
    fd: OwnedFd,
    key: &Secret,
    is_first: bool,
    deadline: Instant,
) -> Result<Greeted, LaunchError> {
    let mut greeting = Greeting::begin(fd, is_first)?;
    loop {
        match greeting.go_on(key)? {
            Ok(greeted) => return Ok(greeted),
            Err(more) => greeting = more,
        }
        super::until(&greeting.fd, PollFlags::IN, deadline)?;
    }
}
