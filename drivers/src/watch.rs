//! Which sockets have something to do: the descriptor on which a sleeper waits for a whole rail.

use crate::ready::{Ready, ready};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Sockets looked at per call.
const AT_ONCE: usize = 64;

/// Reads with success after which a socket that is read without asking is not watched any more.
pub const TRUSTED_AFTER: u32 = 16;

/// The numbers of [`Token::Bell`] and [`Token::Carrier`]; no link has them.
const BELL: u64 = u64::MAX;
const CARRIER: u64 = u64::MAX - 1;

/// What a socket belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// The listening socket, or a link that is being opened or left.
    Opening,
    /// The link to the peer with this index, or a conversation with this number.
    Link(usize),
    /// A descriptor by which others wake this rail.
    Bell,
    /// What the system tells of interfaces.
    Carrier,
}

/// The sockets of one rail.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Watch { epoll })
    }

    /// The descriptor that becomes readable when a socket has something to do.
    pub fn descriptor(&self) -> i32 {
        self.epoll.as_raw_fd()
    }

    /// Watches a socket for incoming data and, if `output`, for room to write. Closing it ends the watch.
    pub fn add(&self, fd: impl AsFd, token: Token, output: bool) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, data(token), flags(output))
    }

    /// Changes the events for which a socket is watched, and its token.
    pub fn change(&self, fd: impl AsFd, token: Token, output: bool) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, data(token), flags(output))
    }

    /// Watches a socket no longer.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, fd)
    }

    /// Looks once, without waiting, and calls `each` with a socket that has something to do and whether
    /// it has room to write.
    pub fn look(&self, mut each: impl FnMut(Token, bool)) {
        for Ready { data, output } in ready::<AT_ONCE>(self.epoll.as_fd()) {
            let token = match data {
                0 => Token::Opening,
                BELL => Token::Bell,
                CARRIER => Token::Carrier,
                n => Token::Link(n as usize - 1),
            };
            each(token, output);
        }
    }
}

/// A set of sockets can be watched itself, as one of another set.
impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn data(token: Token) -> EventData {
    EventData::new_u64(match token {
        Token::Opening => 0,
        Token::Link(index) => index as u64 + 1,
        Token::Bell => BELL,
        Token::Carrier => CARRIER,
    })
}

fn flags(output: bool) -> EventFlags {
    if output { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
}
