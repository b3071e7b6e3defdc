//! Size of the kernel's send buffer: the buffer of a link grows while it limits what is sent.
//!
//! A large buffer costs a few percent if the peer reads all the time, since data in it leaves the caches. A
//! peer that computes reads nothing, and then a send can complete only if the kernel has room for all of it
//! (P5 section 4.1). And a buffer holds what is under way until it is acknowledged: if that takes long, since
//! the way is long or the acknowledgements wait behind the peer's own data, a small buffer leaves the network
//! idle. So a buffer begins small, and is doubled each time that the peer has kept its window shut for a
//! while, or that all of it was under way.

use super::sys;
use rustix::fd::BorrowedFd;
use rustix::net::sockopt;

/// Writes without progress between two queries of the kernel: some tens of microseconds for a thread that
/// does nothing else. That is longer than the time between two reads of an active reader, and short beside
/// a computation.
const EVERY: u32 = 32;
/// The kernel sends pieces of this many bytes. A receive window below it counts as shut, and a buffer in
/// which less is unsent as under way.
const PIECE: u32 = 64 << 10;
/// Largest buffer in bytes: the usual maximum of the kernel's own tuning (`tcp_wmem`).
const MOST: usize = 4 << 20;

/// The send buffer size of one link.
#[derive(Debug)]
pub struct Room {
    /// Consecutive writes without progress.
    stuck_writes: u32,
    /// The buffer limited what is sent at the last query.
    is_limit: bool,
    /// The size that was requested last, in bytes.
    len: usize,
}

impl Room {
    /// Manages a send buffer of this size in bytes; none: the kernel tunes it, and it is not changed.
    pub fn new(len: Option<usize>) -> Room {
        Room { stuck_writes: 0, is_limit: false, len: len.unwrap_or(MOST) }
    }

    /// Records whether the kernel has accepted data.
    #[inline]
    pub fn note(&mut self, has_taken: bool, fd: BorrowedFd<'_>) {
        if has_taken {
            self.stuck_writes = 0;
        } else if self.len < MOST {
            self.stuck_writes = self.stuck_writes.wrapping_add(1);
            if self.stuck_writes.is_multiple_of(EVERY) {
                self.consider(fd);
            }
        }
    }

    #[cold]
    fn consider(&mut self, fd: BorrowedFd<'_>) {
        let sending = sys::sending(fd).ok();
        let is_short = |len: Option<u32>| len.is_some_and(|len| len < PIECE);
        let was_limit = self.is_limit && self.stuck_writes > EVERY;
        self.is_limit = sending.is_some_and(|sending| is_short(sending.window) || is_short(sending.unsent));
        if was_limit && self.is_limit {
            self.grow(fd);
        }
    }

    /// Requests twice the size. If the system does not grant it (`wmem_max`), no further attempt is made.
    fn grow(&mut self, fd: BorrowedFd<'_>) {
        let has = || sockopt::socket_send_buffer_size(fd).unwrap_or(0);
        let before = has();
        self.len = (2 * self.len).min(MOST);
        let is_longer = sockopt::set_socket_send_buffer_size(fd, self.len).is_ok() && has() > before;
        if !is_longer {
            self.len = MOST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::net::{self, SendFlags};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    /// Sends until `times` sends have made no progress; returns the number of bytes sent.
    fn fill(socket: &TcpStream, room: &mut Room, times: u32) -> usize {
        let (mut taken, mut stuck_writes) = (0, 0);
        while stuck_writes < times {
            match net::send(socket, &[0; 1 << 16], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(len) => {
                    taken += len;
                    stuck_writes = 0;
                    room.note(true, socket.as_fd());
                }
                Err(_) => {
                    stuck_writes += 1;
                    room.note(false, socket.as_fd());
                }
            }
        }
        taken
    }

    #[test]
    fn a_peer_that_does_not_read_gets_more_room_up_to_a_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).expect("accepted");
        let (mut peer, _) = listener.accept().expect("connected");
        sockopt::set_socket_send_buffer_size(&socket, 256 << 10).expect("a short buffer");
        let mut room = Room::new(Some(256 << 10));
        let first = fill(&socket, &mut room, EVERY);
        assert_eq!(room.len, 256 << 10, "asked once at most");
        let more = fill(&socket, &mut room, 100_000);
        assert!(more >= 1 << 20, "{first} B, then {more} B more");
        assert_eq!(room.len, MOST);
        let len = sockopt::socket_send_buffer_size(&socket).expect("a socket");
        assert_eq!(fill(&socket, &mut room, 100), 0);
        assert_eq!(sockopt::socket_send_buffer_size(&socket).expect("a socket"), len, "there is a bound");
        drop(socket);
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("everything arrives");
        assert_eq!(all.len(), first + more);
    }
}
