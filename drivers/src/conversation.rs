//! Handshake messages over a socket that is not a link yet.
//!
//! Exactly one message is read at a time, so that no byte of the link's own traffic is consumed.

use nmad_wire::{Control, Header, Kind, Malformed, Refusal, RefusalCode, VERSION};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

/// Longest message: a refusal with its text.
const LONGEST: usize = 544;

/// A socket on which a handshake takes place.
#[derive(Debug)]
pub struct Conversation {
    fd: OwnedFd,
    received: [u8; LONGEST],
    len: usize,
}

/// Result of reading from the peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// No complete message yet.
    Nothing,
    /// A message.
    Message(Control<'a>),
    /// The peer closed the connection.
    Ended,
    /// The connection failed.
    Failed(Errno),
    /// The peer uses another version of the protocol.
    OtherVersion(u8),
    /// The bytes are not of this protocol.
    Foreign(Malformed),
}

impl Conversation {
    /// Wraps a connected or connecting socket.
    pub fn new(fd: OwnedFd) -> Self {
        Conversation { fd, received: [0; LONGEST], len: 0 }
    }

    /// Sends a message; the error would-block means that the connection is not established yet.
    pub fn send(&self, message: &Control<'_>) -> Result<(), Errno> {
        let bytes = message.encode();
        // A message is far shorter than the smallest send buffer, and little else was sent on this socket.
        match net::send(&self.fd, &bytes, SendFlags::NOSIGNAL)? {
            sent if sent == bytes.len() => Ok(()),
            _ => Err(Errno::NOBUFS),
        }
    }

    /// Refuses the link, with the reason. Errors of the send are ignored.
    pub fn refuse(&self, code: RefusalCode, text: &str) {
        let _ = self.send(&Control::Refuse(Refusal { code, text }));
    }

    /// Reads the next message.
    pub fn receive(&mut self) -> Received<'_> {
        loop {
            let whole = match self.whole() {
                Ok(whole) => whole,
                Err(what) => return what,
            };
            if self.len == whole {
                self.len = 0;
                return match Control::decode(&self.received[..whole]) {
                    Ok(message) => Received::Message(message),
                    Err(malformed) => Received::Foreign(malformed),
                };
            }
            match net::recv(&self.fd, &mut self.received[self.len..whole], RecvFlags::empty()) {
                Ok((_, 0)) => return Received::Ended,
                Ok((_, got)) => self.len += got,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(e) => return Received::Failed(e),
            }
        }
    }

    /// Number of bytes to read next: the header, then the whole message once its length is known.
    fn whole(&self) -> Result<usize, Received<'static>> {
        if self.len < Header::LEN {
            return Ok(Header::LEN);
        }
        let version = self.received[5];
        if self.received[4] == Kind::Control as u8 && version != VERSION && self.received[6..8] == [0, 0] {
            return Err(Received::OtherVersion(version));
        }
        let header = Header::decode(&self.received).map_err(Received::Foreign)?;
        if header.kind != Kind::Control {
            return Err(Received::Foreign(Malformed("data on a link that is not open")));
        }
        match header.len as usize {
            len if len <= LONGEST => Ok(len),
            _ => Err(Received::Foreign(Malformed("opening message too long"))),
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.fd
    }

    /// Returns the socket, for use after the handshake.
    pub fn into_socket(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
