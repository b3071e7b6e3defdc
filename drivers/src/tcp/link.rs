//! One peer over this rail: a socket, the queue to it, and the order that is arriving on it.

use super::health::Health;
use super::peers::Remote;
use super::room::Room;
use super::stream::Stream;
use super::write::Outbox;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::cell::Cell;

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// Number of the peer's rail.
    pub remote: u8,
    /// The connection.
    pub socket: OwnedFd,
    /// Orders that the kernel has not taken yet.
    pub out: Outbox,
    /// The incoming stream.
    pub stream: Stream,
    /// Whether the peer still answers.
    pub health: Health,
    /// How much the kernel takes.
    pub room: Room,
    /// Which of the rail's lists the link is in.
    pub lists: Lists,
    /// Reads with success since the socket was last watched.
    reads: Cell<u32>,
    /// The peer has sent more than was read at once.
    pub backlog: bool,
    /// Nothing can be written any more; what the peer has left is still read.
    pub failed: Option<Errno>,
    watched: Cell<Watched>,
}

/// Membership in the lists of the rail, so that nothing is in a list twice.
#[derive(Debug, Default, Clone, Copy)]
pub struct Lists {
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// Something was sent and it is not known whether it arrived.
    pub unproven: bool,
}

/// For what a socket is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// For nothing: it is looked at in each poll.
    Not,
    /// For what arrives.
    Input,
    /// For room to write, too.
    Both,
}

impl Remote for Link {
    fn remote(&self) -> u8 {
        self.remote
    }
}

impl Link {
    /// A link that has just been opened; its socket is watched for what arrives.
    pub fn new(remote: u8, socket: OwnedFd, room: Room) -> Self {
        Link {
            remote,
            socket,
            out: Outbox::default(),
            stream: Stream::default(),
            health: Health::default(),
            room,
            lists: Lists::default(),
            reads: Cell::new(0),
            backlog: false,
            failed: None,
            watched: Cell::new(Watched::Input),
        }
    }

    /// A read had success.
    #[inline]
    pub fn brought(&self, watch: &Watch, index: usize) {
        self.reads.set(self.reads.get().wrapping_add(1));
        if self.reads.get() == TRUSTED_AFTER {
            self.watch(watch, index, Watched::Not);
        }
    }

    /// For what the socket is watched now.
    pub fn watched(&self) -> Watched {
        self.watched.get()
    }

    /// Watches the socket for this from now on. Should the system refuse, the next call tries again.
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
            // To be watched costs each packet a look for sleepers, so it has to be for a while only.
            self.reads.set(0);
        }
    }
}
