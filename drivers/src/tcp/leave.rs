//! Closing of connections such that the last bytes written still arrive.
//!
//! Closing a socket with unread input resets the connection, which destroys data that the peer has not read
//! yet. So a socket is only closed when the other side has closed too, or after a time limit.

use super::socket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

/// Longest wait for the other side, in milliseconds. With a third of it, a receiver that a busy machine had
/// not scheduled lost messages; longer delays the end of a process whose peer hangs.
const WAIT_MS: u64 = 3000;
/// Reads per step; a peer that sends more than that is cut off after the wait.
const READS: usize = 4;

/// Connections on which this side has nothing more to send.
#[derive(Debug)]
pub struct Leaving {
    most: usize,
    list: Vec<(OwnedFd, u64)>,
}

impl Leaving {
    /// An empty list; of more than `most` connections, the oldest are closed at once.
    pub fn new(most: usize) -> Leaving {
        Leaving { most, list: Vec::new() }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Shuts down the output of a connection, and closes it when the other side has closed.
    pub fn add(&mut self, fd: OwnedFd, now_ms: u64) {
        socket::shutdown_output(fd.as_fd());
        if self.list.len() == self.most {
            self.list.remove(0);
        }
        self.list.push((fd, now_ms + WAIT_MS));
    }

    /// Reads and discards input.
    pub fn step(&mut self, scratch: &mut [u8], now_ms: u64) {
        self.list.retain(|(fd, until_ms)| now_ms < *until_ms && !drained(fd, scratch));
    }
}

/// Returns whether the other side has closed.
fn drained(fd: &OwnedFd, scratch: &mut [u8]) -> bool {
    for _ in 0..READS {
        match net::recv(fd, &mut *scratch, RecvFlags::empty()) {
            Ok((_, 0)) => return true,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    false
}
