//! The PMI connection of one rank: splits bytes into lines for the server, and sends replies.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::pmi::line::LineBuffer;
use crate::pmi::server::{Event, Server};

/// Unsent answers, in bytes, at which the launcher stops reading from a rank.
const BACKLOG_MAX: usize = 64 * 1024;

/// Most reads in one turn, so that a rank cannot block the others.
const READS_MAX: usize = 16;

/// Our end of a connection; it never blocks.
pub struct Talk {
    fd: OwnedFd,
    input: LineBuffer,
    output: Vec<u8>,
}

impl Talk {
    /// `fd` must not block.
    pub fn new(fd: OwnedFd) -> Talk {
        Talk { fd, input: LineBuffer::default(), output: Vec::new() }
    }

    /// Returns the events to wait for.
    pub fn wants(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.output.len() < BACKLOG_MAX);
        flags.set(PollFlags::OUT, !self.output.is_empty());
        flags
    }

    /// Passes received lines to `server`. False: the connection has ended.
    pub fn read(&mut self, rank: u32, server: &mut Server, events: &mut Vec<Event>) -> bool {
        let mut bytes = [0; 4096];
        for _ in 0..READS_MAX {
            match rustix::io::read(&self.fd, &mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.input.push(&bytes[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
            self.lines(rank, server, events);
        }
        true
    }

    fn lines(&mut self, rank: u32, server: &mut Server, events: &mut Vec<Event>) {
        loop {
            match self.input.next_line() {
                Ok(Some(line)) => events.extend(server.handle(rank, &line)),
                Ok(None) => return,
                Err(why) => events.push(Event::Note(format!("rank {rank} sent what is not PMI-1: {why}"))),
            }
        }
    }

    /// Queues a line and sends as much as the connection takes.
    pub fn say(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
        self.write();
    }

    /// Sends as much as the connection takes. Answers to a rank that closed its connection are dropped; its
    /// end is reported elsewhere.
    pub fn write(&mut self) {
        while !self.output.is_empty() {
            match rustix::net::send(&self.fd, &self.output, SendFlags::NOSIGNAL) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.output.clear(),
            }
        }
    }
}

impl AsFd for Talk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
