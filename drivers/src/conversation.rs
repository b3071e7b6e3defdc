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
    heard: [u8; LONGEST],
    len: usize,
}

/// Result of reading from the peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
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
        Conversation { fd, heard: [0; LONGEST], len: 0 }
    }

    /// Sends a message; the error would-block means that the connection is not established yet.
    pub fn say(&self, message: &Control<'_>) -> Result<(), Errno> {
        let bytes = message.encode();
        // A message is far shorter than the smallest send buffer, and little else was sent on this socket.
        match net::send(&self.fd, &bytes, SendFlags::NOSIGNAL)? {
            sent if sent == bytes.len() => Ok(()),
            _ => Err(Errno::NOBUFS),
        }
    }

    /// Refuses the link, with the reason. Errors of the send are ignored.
    pub fn refuse(&self, code: RefusalCode, text: &str) {
        let _ = self.say(&Control::Refuse(Refusal { code, text }));
    }

    /// Reads the next message.
    pub fn hear(&mut self) -> Heard<'_> {
        loop {
            let whole = match self.whole() {
                Ok(whole) => whole,
                Err(what) => return what,
            };
            if self.len == whole {
                self.len = 0;
                return match Control::decode(&self.heard[..whole]) {
                    Ok(message) => Heard::Message(message),
                    Err(malformed) => Heard::Foreign(malformed),
                };
            }
            match net::recv(&self.fd, &mut self.heard[self.len..whole], RecvFlags::empty()) {
                Ok((_, 0)) => return Heard::Ended,
                Ok((_, got)) => self.len += got,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Heard::Nothing,
                Err(e) => return Heard::Failed(e),
            }
        }
    }

    /// Number of bytes to read next: the header, then the whole message once its length is known.
    fn whole(&self) -> Result<usize, Heard<'static>> {
        if self.len < Header::LEN {
            return Ok(Header::LEN);
        }
        let version = self.heard[5];
        if self.heard[4] == Kind::Control as u8 && version != VERSION && self.heard[6..8] == [0, 0] {
            return Err(Heard::OtherVersion(version));
        }
        let header = Header::decode(&self.heard).map_err(Heard::Foreign)?;
        if header.kind != Kind::Control {
            return Err(Heard::Foreign(Malformed("data on a link that is not open")));
        }
        match header.len as usize {
            len if len <= LONGEST => Ok(len),
            _ => Err(Heard::Foreign(Malformed("opening message too long"))),
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
