//! The epoll of a rail: one descriptor on which a thread sleeps for all sockets of the rail.

use crate::ready::{Ready, ready};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Events handled per call.
const AT_ONCE: usize = 64;

/// Successful reads after which a socket that is polled directly is no longer watched.
pub const TRUSTED_AFTER: u32 = 16;

/// Reserved epoll data: [`Token::Wakeup`] and [`Token::Carrier`] lie above the numbers of all links.
const WAKEUP: u64 = u64::MAX;
const CARRIER: u64 = u64::MAX - 1;

/// The owner of a watched socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// The listening socket, or a link that is being opened or closed.
    Opening,
    /// The link to the peer with this index, or the conversation with this number.
    Link(usize),
    /// A wakeup descriptor, by which other threads or processes wake this rail.
    Wakeup,
    /// The netlink socket with notifications about interfaces.
    Carrier,
}

/// The watched sockets of one rail.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// Creates an empty set.
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Watch { epoll })
    }

    /// The descriptor that becomes readable when any socket is ready.
    pub fn descriptor(&self) -> i32 {
        self.epoll.as_raw_fd()
    }

    /// Watches a socket for incoming data and, if `output`, for room to write. Closing the socket removes
    /// it.
    pub fn add(&self, fd: impl AsFd, token: Token, output: bool) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, data(token), flags(output))
    }

    /// Changes the watched events and the token of a socket.
    pub fn change(&self, fd: impl AsFd, token: Token, output: bool) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, data(token), flags(output))
    }

    /// Removes a socket.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, fd)
    }

    /// Calls `each`, without blocking, with the token of each ready socket and whether it is writable.
    pub fn look(&self, mut each: impl FnMut(Token, bool)) {
        for Ready { data, output } in ready::<AT_ONCE>(self.epoll.as_fd()) {
            let token = match data {
                0 => Token::Opening,
                WAKEUP => Token::Wakeup,
                CARRIER => Token::Carrier,
                n => Token::Link(n as usize - 1),
            };
            each(token, output);
        }
    }
}

/// A set can itself be watched as a member of another set.
impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn data(token: Token) -> EventData {
    EventData::new_u64(match token {
        Token::Opening => 0,
        Token::Link(index) => index as u64 + 1,
        Token::Wakeup => WAKEUP,
        Token::Carrier => CARRIER,
    })
}

fn flags(output: bool) -> EventFlags {
    if output { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
}
