//! One peer over this rail: a socket, what is to be sent on it, and what is arriving on it.

use super::health::Health;
use super::stream::Stream;
use super::write::Outbox;
use rustix::fd::OwnedFd;
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
    /// The socket is watched for room to write.
    pub armed: Cell<bool>,
    /// Which of the rail's lists the link is in.
    pub lists: Lists,
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

impl Link {
    /// A link that has just been opened.
    pub fn new(remote: u8, socket: OwnedFd) -> Self {
        Link {
            remote,
            socket,
            out: Outbox::default(),
            stream: Stream::default(),
            health: Health::default(),
            armed: Cell::new(false),
            lists: Lists::default(),
        }
    }
}
