//! A connection between head and agent: messages in both directions, without blocking. After both proofs each
//! message is encrypted, and authenticated together with its length.

use crate::LaunchError;
use nmad_words::setting::HOST_SILENCE;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{packed, unpacked};
use super::proof::Side;
use nmad_seal::{Keys, Sealer, TAG, Unsealer};

/// Bytes of the length before a message.
const LEN: usize = 4;

/// Longest message in bytes; the values of a host's ranks, and the environment, are much shorter.
const LEN_MAX: usize = 1 << 30;

/// Longest message of an unauthenticated peer in bytes.
const LEN_MAX_OF_STRANGERS: usize = 1 << 10;

/// Keepalive: idle time before the first probe, and interval of probes.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Returns how long a host may not answer before the head regards it as lost (`NMAD_HOST_SILENCE`). A job
/// that survives the loss learns of it earlier.
///
/// # Errors
/// The setting is no number of seconds.
pub fn silence_of_agents(ft: bool) -> Result<Duration, LaunchError> {
    let usual = Duration::from_millis(if ft { 1_000 } else { 3_500 });
    Ok(HOST_SILENCE.duration().map_err(LaunchError::Job)?.unwrap_or(usual))
}

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
    /// The ciphers of both directions.
    ciphers: Option<(Sealer, Unsealer)>,
}

impl Channel {
    /// Takes over an unauthenticated connection.
    pub fn new(stream: TcpStream) -> std::io::Result<Channel> {
        stream.set_nonblocking(true)?;
        let (input, output) = (Vec::new(), Vec::new());
        let len_max = LEN_MAX_OF_STRANGERS;
        Ok(Channel { stream, input, taken: 0, output, written: 0, len_max, open: true, ciphers: None })
    }

    /// Marks the other side as authenticated; `side` is this side. All further messages are encrypted.
    pub fn trust(&mut self, keys: &Keys, side: Side) {
        self.len_max = LEN_MAX;
        self.ciphers = Some(keys.directions(side == Side::Agent));
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
        let mut bytes = packed(message);
        if let Some((sealer, ..)) = &mut self.ciphers {
            let (len, content) = bytes.split_at_mut(LEN);
            let Ok(tag) = sealer.seal(len, content) else {
                self.open = false;
                return;
            };
            bytes.extend_from_slice(&tag);
        }
        self.output.extend(bytes);
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
        let behind = if self.ciphers.is_some() { TAG } else { 0 };
        let Some(len) = len.map(|len| LEN + len + behind).filter(|len| *len <= rest.len()) else {
            self.input.drain(..self.taken);
            self.taken = 0;
            return None;
        };
        let (head, content) = self.input[self.taken..self.taken + len].split_at_mut(LEN);
        let message = match &mut self.ciphers {
            None => unpacked(content),
            Some((_, unsealer)) => unsealer.open_next(head, content).and_then(|content| unpacked(content)),
        };
        self.taken += len;
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
    use crate::remote::proof::Numbers;
    use nmad_seal::exchange::Scalar;
    use std::io::Write;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let other = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (stream, _) = listener.accept().expect("it comes");
        watch(&stream, SILENCE_OF_HEAD).expect("options of TCP");
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
        let bytes = [packed(&Up::InputTaken), packed(&Up::Interrupted(3))].concat();
        other.write_all(&bytes[..6]).expect("it is taken");
        assert!(matches!(next(&mut channel), Some(Up::InputTaken)));
        other.write_all(&bytes[6..]).expect("it is taken");
        assert!(matches!(next(&mut channel), Some(Up::Interrupted(3))));
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
    fn messages_of_a_trusted_side_are_encrypted_and_a_changed_or_repeated_one_closes_the_connection() {
        let numbers = |keys| Numbers { agent: [1; 32], head: [2; 32], keys, node: 0 };
        let [agent, head] = [5, 6].map(|byte| Scalar::new([byte; 32]));
        let numbers = numbers([agent.public(), head.public()]);
        let keys = |side, scalar| numbers.derive(&[9; 32], side, scalar).expect("valid keys");
        let sent = |text: &str| {
            let (mut other, mut channel) = pair();
            channel.trust(&keys(Side::Agent, &agent), Side::Agent);
            channel.send(&Up::Note(text.into()));
            drop(channel);
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut other, &mut bytes).expect("it arrives");
            bytes
        };
        let bytes = sent("a line for the user");
        assert!(!bytes.windows(4).any(|some| b"a line for the user".windows(4).any(|other| some == other)));
        let received = |bytes: &[u8]| {
            let (mut other, mut channel) = pair();
            channel.trust(&keys(Side::Head, &head), Side::Head);
            other.write_all(bytes).expect("it is taken");
            drop(other);
            (next(&mut channel), next(&mut channel))
        };
        let (Some(Up::Note(text)), None) = received(&bytes) else { panic!("the message arrives") };
        assert_eq!(text, "a line for the user");
        assert!(matches!(received(&[&bytes[..], &bytes].concat()), (Some(Up::Note(_)), None)), "repeated");
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(received(&changed), (None, None)), "bit {bit}");
        }
    }

    #[test]
    fn nonsense_closes_the_connection() {
        let (mut other, mut channel) = pair();
        other.write_all(&[3, 0, 0, 0, 255, 255, 255]).expect("it is taken");
        assert!(next(&mut channel).is_none() && !channel.is_open());
    }
}
