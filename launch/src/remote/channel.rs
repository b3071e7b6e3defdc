//! A connection between head and agent: messages in both directions, without blocking.

use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{packed, unpacked};

/// Longest message in bytes; the values of a host's ranks, and the environment, are much shorter.
const LEN_MAX: usize = 1 << 30;

/// Longest message of an unauthenticated peer in bytes.
const LEN_MAX_OF_STRANGERS: usize = 1 << 10;

/// Keepalive: idle time before the first probe, and interval of probes.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The head regards a host that answers no probe for this long as dead; it must notice within 5 s.
pub const SILENCE_OF_AGENTS: Duration = Duration::from_millis(3500);

/// An agent waits longer for its head, which the user may have stopped.
pub const SILENCE_OF_HEAD: Duration = Duration::from_secs(10);

/// Most reads in one turn, so that a host cannot block the others.
const READS_MAX: usize = 16;

/// One end of a connection.
pub struct Channel {
    stream: TcpStream,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    written: usize,
    len_max: usize,
    open: bool,
}

impl Channel {
    /// Takes over an unauthenticated connection.
    pub fn new(stream: TcpStream) -> std::io::Result<Channel> {
        stream.set_nonblocking(true)?;
        let (input, output) = (Vec::new(), Vec::new());
        let len_max = LEN_MAX_OF_STRANGERS;
        Ok(Channel { stream, input, taken: 0, output, written: 0, len_max, open: true })
    }

    /// Marks the other side as authenticated.
    pub fn trust(&mut self) {
        self.len_max = LEN_MAX;
    }

    /// Returns whether the other side is still there.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the events to wait for.
    pub fn wants(&self) -> PollFlags {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.written < self.output.len());
        flags
    }

    /// Queues a message and sends as much as the connection takes.
    pub fn send(&mut self, message: &impl Serialize) {
        self.output.extend(packed(message));
        self.write();
    }

    /// Sends as much as the connection takes.
    pub fn write(&mut self) {
        while self.open && self.written < self.output.len() {
            match rustix::net::send(&self.stream, &self.output[self.written..], SendFlags::NOSIGNAL) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.open = false,
            }
        }
        self.output.clear();
        self.written = 0;
    }

    /// Reads all available bytes; complete messages can be taken even after the end.
    pub fn read(&mut self) {
        let mut bytes = [0; 16 * 1024];
        for _ in 0..READS_MAX {
            match rustix::io::read(&self.stream, &mut bytes) {
                Ok(0) => self.open = false,
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.open = false,
            }
            if !self.open {
                return;
            }
        }
    }

    /// Takes the next complete message. An invalid one closes the connection.
    pub fn take<T: DeserializeOwned>(&mut self) -> Option<T> {
        let rest = &self.input[self.taken..];
        let len = rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        if len.is_some_and(|len| len > self.len_max) {
            self.open = false;
            return None;
        }
        let Some(bytes) = len.and_then(|len| rest.get(4..4 + len)) else {
            self.input.drain(..self.taken);
            self.taken = 0;
            return None;
        };
        let (message, len) = (unpacked(bytes), bytes.len());
        self.taken += 4 + len;
        if message.is_none() {
            self.open = false;
        }
        message
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Lets TCP detect a host that does not answer for `silence`, and send small messages at once. The kernel
/// does this, also while the process is stopped.
pub fn watch(stream: &TcpStream, silence: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_user_timeout(stream, silence.as_millis() as u32)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::message::Up;
    use std::io::Write;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let other = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (stream, _) = listener.accept().expect("it comes");
        watch(&stream, SILENCE_OF_AGENTS).expect("options of TCP");
        (other, Channel::new(stream).expect("a channel"))
    }

    /// Reads until the channel has a message or is closed.
    fn next(channel: &mut Channel) -> Option<Up> {
        loop {
            let mut fds = [rustix::event::PollFd::new(channel, PollFlags::IN)];
            rustix::event::poll(&mut fds, None).expect("poll");
            channel.read();
            match channel.take() {
                None if channel.is_open() => {}
                message => return message,
            }
        }
    }

    #[test]
    fn messages_come_in_pieces_and_several_at_once() {
        let (mut other, mut channel) = pair();
        let bytes = [packed(&Up::InputTaken), packed(&Up::Waiting(3))].concat();
        other.write_all(&bytes[..6]).expect("it is taken");
        assert!(matches!(next(&mut channel), Some(Up::InputTaken)));
        other.write_all(&bytes[6..]).expect("it is taken");
        assert!(matches!(next(&mut channel), Some(Up::Waiting(3))));
        drop(other);
        assert!(next(&mut channel).is_none() && !channel.is_open());
    }

    #[test]
    fn unauthenticated_peers_cannot_fill_our_memory() {
        let (mut other, mut channel) = pair();
        other.write_all(&(LEN_MAX_OF_STRANGERS as u32 + 1).to_le_bytes()).expect("it is taken");
        assert!(next(&mut channel).is_none() && !channel.is_open());
    }

    #[test]
    fn nonsense_closes_the_connection() {
        let (mut other, mut channel) = pair();
        other.write_all(&[3, 0, 0, 0, 255, 255, 255]).expect("it is taken");
        assert!(next(&mut channel).is_none() && !channel.is_open());
    }
}
