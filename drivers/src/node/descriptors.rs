//! Passing of file descriptors from one process to another, over a Unix socket (SCM_RIGHTS).

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The data byte that accompanies descriptors.
const MARK: u8 = b'+';

/// Sends descriptors to the other side.
pub fn give(socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL);
    }
    match net::sendmsg(socket, &[IoSlice::new(&[MARK])], &mut control, SendFlags::NOSIGNAL)? {
        1 => Ok(()),
        _ => Err(Errno::NOBUFS),
    }
}

/// Result of receiving descriptors.
#[derive(Debug)]
pub enum Given {
    /// No descriptors have arrived yet.
    Nothing,
    /// As many descriptors as were expected.
    All(Vec<OwnedFd>),
    /// The other side has closed the connection.
    Ended,
    /// The message is invalid.
    Wrong(String),
}

/// Receives `count` descriptors, if they have arrived.
pub fn take(socket: impl AsFd, count: usize) -> Given {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut mark = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = match net::recvmsg(socket, &mut [IoSliceMut::new(&mut mark)], &mut control, flags) {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Given::Nothing,
        Err(e) => return Given::Wrong(e.to_string()),
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    match (got, mark[0], fds.len()) {
        (0, ..) => Given::Ended,
        (_, MARK, n) if n == count => Given::All(fds),
        (_, MARK, n) => Given::Wrong(format!("{n} descriptors came instead of {count} (is there a limit?)")),
        _ => Given::Wrong("something else than descriptors came".into()),
    }
}
