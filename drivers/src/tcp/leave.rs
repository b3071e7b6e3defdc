//! Closing of connections such that the last bytes written still arrive.
//!
//! Closing a socket with unread input resets the connection, and so does input that comes later. That
//! destroys data that have not reached the peer's system yet. So a socket is only closed when the other side
//! has closed too, or after a time limit; at the end of a rail, when the peer's system has acknowledged all
//! data.

use super::{socket, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for the other side, in milliseconds. With a third of it, a receiver that a busy machine had
/// not scheduled lost messages; longer delays the end of a process whose peer hangs.
const WAIT_MS: u64 = 3000;
/// Longest wait for acknowledgements at the end of a rail. A peer's system sends them without its process,
/// until its buffer is full.
const DELIVERY: Duration = Duration::from_secs(1);
/// Time between two looks in that wait.
const PAUSE: Duration = Duration::from_micros(50);
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
        if self.list.len() == self.most {
            self.list.remove(0);
        }
        self.push(fd, now_ms);
    }

    fn push(&mut self, fd: OwnedFd, now_ms: u64) {
        socket::shutdown_output(fd.as_fd());
        self.list.push((fd, now_ms + WAIT_MS));
    }

    /// Reads and discards input.
    pub fn step(&mut self, scratch: &mut [u8], now_ms: u64) {
        self.list.retain(|(fd, until_ms)| now_ms < *until_ms && !drained(fd, scratch));
    }

    /// Adds the last connections, however many, and waits until all data have reached the systems of the
    /// peers, before everything is closed.
    pub fn finish(&mut self, last: impl IntoIterator<Item = OwnedFd>, scratch: &mut [u8]) {
        last.into_iter().for_each(|fd| self.push(fd, 0));
        let is_under_way =
            |(fd, _): &(OwnedFd, u64)| sys::tcp_info(fd.as_fd()).is_ok_and(|info| info.unacknowledged > 0);
        let begun = Instant::now();
        loop {
            self.step(scratch, 0);
            if !self.list.iter().any(is_under_way) || begun.elapsed() >= DELIVERY {
                return;
            }
            thread::sleep(PAUSE);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn data_that_the_peer_reads_late_arrive_although_it_writes_meanwhile() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut writer = TcpStream::connect(listener.local_addr().expect("its address")).expect("a link");
        let (mut reader, _) = listener.accept().expect("its other end");
        writer.set_nonblocking(true).expect("a setting");
        let mut written = 0;
        loop {
            match writer.write(&[7; 1 << 16]) {
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let peer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            reader.write_all(b"an acknowledgement").expect("the link is there");
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all.len())
        });
        let mut leaving = Leaving::new(1);
        leaving.finish([writer.into()], &mut [0; 64]);
        drop(leaving);
        assert_eq!(peer.join().expect("no panic").expect("no reset"), written);
    }
}
