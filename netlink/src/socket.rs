//! A conversation with the kernel about one network namespace: one request, then its answers.

use super::message::{Message, answers, u32_at};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;

/// A netlink socket. It acts on the namespace it was made in, whoever uses it.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    sequence: u32,
}

/// One message that answers a request: everything behind the netlink header.
pub type Body = Vec<u8>;

impl Socket {
    /// A socket of the calling thread's network namespace, for rtnetlink(7).
    ///
    /// # Errors
    /// The system has no more sockets for this process, or forbids them.
    pub fn open() -> io::Result<Socket> {
        // Protocol 0 of this family is rtnetlink.
        Socket::of(None)
    }

    /// The same for another protocol of the family.
    ///
    /// # Errors
    /// As [`Socket::open`].
    pub fn of(protocol: Option<Protocol>) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        Ok(Socket::from(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?))
    }

    /// Does what `message` orders.
    ///
    /// # Errors
    /// The kernel refuses it, with the number of its error.
    pub fn order(&mut self, message: Message) -> io::Result<()> {
        self.ask(message).map(drop)
    }

    /// Sends `messages` at once between `begin` and `end`, and waits until each is acknowledged.
    ///
    /// # Errors
    /// That of the first message that the kernel refuses, or of the batch.
    pub fn send_all(&mut self, begin: Message, messages: Vec<Message>, end: Message) -> io::Result<()> {
        let (mut bytes, mut missing) = (begin.finish(0), messages.len());
        let first = self.sequence + 1;
        for message in messages {
            self.sequence += 1;
            bytes.extend(message.finish(self.sequence));
        }
        bytes.extend(end.finish(0));
        send(&self.file, &bytes, SendFlags::empty())?;
        let mut buffer = vec![0; 32 * 1024];
        let mut refused = Ok(());
        while missing > 0 {
            let (len, _) = recv(&self.file, &mut buffer[..], RecvFlags::empty())?;
            for answer in answers(&buffer[..len]) {
                let is_error = i32::from(answer.kind) == libc::NLMSG_ERROR;
                if !is_error {
                    continue;
                }
                let ours = (first..=self.sequence).contains(&answer.sequence);
                missing -= usize::from(ours);
                let verdict = verdict(answer.body);
                // The kernel answers with another sequence number if it refuses the batch as a whole.
                if !ours && verdict.is_err() {
                    return verdict;
                }
                refused = refused.and(verdict);
            }
        }
        refused
    }

    /// Sends `message` and gathers the answers.
    ///
    /// # Errors
    /// The kernel refuses it, with the number of its error.
    pub fn ask(&mut self, message: Message) -> io::Result<Vec<Body>> {
        self.sequence += 1;
        send(&self.file, &message.finish(self.sequence), SendFlags::empty())?;
        let mut bodies = Vec::new();
        // The kernel fills at most 32 KiB at a time (netlink(7)).
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (len, _) = recv(&self.file, &mut buffer[..], RecvFlags::empty())?;
            for answer in answers(&buffer[..len]) {
                if answer.sequence != self.sequence {
                    continue;
                }
                match i32::from(answer.kind) {
                    libc::NLMSG_ERROR => return verdict(answer.body).map(|()| bodies),
                    libc::NLMSG_DONE => return Ok(bodies),
                    _ => bodies.push(answer.body.to_vec()),
                }
            }
        }
    }
}

impl From<OwnedFd> for Socket {
    fn from(file: OwnedFd) -> Socket {
        Socket { file, sequence: 0 }
    }
}

/// The acknowledgement: zero or a negative error number.
fn verdict(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error((code as i32).wrapping_neg())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
