//! A link to one peer over this rail: a socket, the send queue, and the incoming order.

use super::health::Health;
use super::peers::Remote;
use super::records::{Sealing, Unsealing};
use super::room::Room;
use super::stream::Stream;
use super::write::Outbox;
use crate::opening::Opened;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::cell::Cell;

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// Number of the peer's rail.
    pub remote: u8,
    /// The name of the cipher, if the link is encrypted.
    pub cipher: Option<&'static str>,
    /// The connection.
    pub socket: OwnedFd,
    /// Orders that are not entirely in the kernel's send buffer yet.
    pub out: Outbox,
    /// The incoming stream.
    pub stream: Stream,
    /// Decrypts the incoming stream, if the link is encrypted.
    pub unsealing: Option<Box<Unsealing>>,
    /// Detects an unreachable peer.
    pub health: Health,
    /// Adapts the size of the kernel's send buffer.
    pub room: Room,
    /// Lists of the rail that contain the link.
    pub lists: Lists,
    /// Successful reads since the socket was last watched.
    reads: Cell<u32>,
    /// The last read filled its buffer, so there may be more data.
    pub backlog: bool,
    /// Writing has failed; data that the peer sent before is still read.
    pub failed: Option<Errno>,
    watched: Cell<Watched>,
}

/// Membership in the lists of the rail, so that no link is in a list twice.
#[derive(Debug, Default, Clone, Copy)]
pub struct Lists {
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// Data was sent whose delivery is not confirmed.
    pub unproven: bool,
}

/// The events for which a socket is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// None: the socket is polled directly.
    Not,
    /// Input.
    Input,
    /// Input, and room to write.
    Both,
}

impl Remote for Link {
    fn remote(&self) -> u8 {
        self.remote
    }
}

impl Link {
    /// Creates a link for a new connection, whose socket is watched for input.
    pub fn new(opened: &Opened, socket: OwnedFd, room: Room) -> Self {
        let (sealer, unsealer) = opened.directions().unzip();
        Link {
            remote: opened.remote,
            cipher: opened.cipher(),
            socket,
            out: Outbox::new(sealer.map(Sealing::new)),
            stream: Stream::default(),
            unsealing: unsealer.map(|unsealer| Box::new(Unsealing::new(unsealer))),
            health: Health::default(),
            room,
            lists: Lists::default(),
            reads: Cell::new(0),
            backlog: false,
            failed: None,
            watched: Cell::new(Watched::Input),
        }
    }

    /// Returns whether bytes are stored that were read but not handled, for the next poll.
    pub fn has_kept(&self) -> bool {
        let is_held = matches!(self.stream, Stream::Held(_));
        let has_records = || self.unsealing.as_ref().is_some_and(|unsealing| unsealing.has_kept());
        self.stream.has_kept() || !is_held && has_records()
    }

    /// Counts a successful read.
    #[inline]
    pub fn count_read(&self, watch: &Watch, index: usize) {
        self.reads.set(self.reads.get().wrapping_add(1));
        if self.reads.get() == TRUSTED_AFTER {
            self.watch(watch, index, Watched::Not);
        }
    }

    /// The events for which the socket is watched now.
    pub fn watched(&self) -> Watched {
        self.watched.get()
    }

    /// Changes the watched events. If the system call fails, the next call tries again.
    pub fn watch(&self, watch: &Watch, index: usize, wanted: Watched) {
        let now = self.watched.get();
        let (token, output) = (Token::Link(index), wanted == Watched::Both);
        let done = match (now, wanted) {
            _ if now == wanted => return,
            (_, Watched::Not) => watch.remove(&self.socket),
            (Watched::Not, _) => watch.add(&self.socket, token, output),
            _ => watch.change(&self.socket, token, output),
        };
        if done.is_ok() {
            self.watched.set(wanted);
            // A watched socket makes the kernel check for sleepers at each packet, so it is soon unwatched
            // again.
            self.reads.set(0);
        }
    }
}
