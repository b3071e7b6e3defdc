//! The process that is a host: it owns the namespaces and does nothing but exist.
//!
//! It is forked, not executed, so it allocates nothing and makes system calls only. One socket ties it to
//! its builder: through it the child hands over a netlink socket born in its network namespace, and by its
//! end the child learns that the builder is gone, however it went. (A death signal would not do: it is
//! sent when the *thread* that forked ends.) Knows namespaces; must never know rails.

use crate::birth::{IdMaps, Identity, Step, User, be_born};
use crate::{TestbedError, reaper, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// A process that keeps namespaces alive, and all it holds dies with this value.
pub(crate) struct Holder {
    pid: Pid,
    pidfd: OwnedFd,
    /// Its closing is what ends the holder.
    tie: Option<OwnedFd>,
}

impl Holder {
    /// Starts a holder with a network namespace and, with an identity, all else that makes a host.
    /// Gives a netlink socket of that network namespace along.
    pub(crate) fn start(
        user: User<'_>,
        host: Option<&Identity<'_>>,
    ) -> Result<(Holder, OwnedFd), TestbedError> {
        let kernel =
            |source| failed("start the process of a host", source, "is the limit on processes reached?");
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|errno| kernel(errno.into()))?;
        let maps = IdMaps::of_this_user();
        let pid = sys::fork(|| live(theirs.as_fd(), &user, &maps, host)).map_err(kernel)?;
        drop(theirs);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| kernel(errno.into()))?;
        let holder = Holder { pid, pidfd, tie: Some(ours) };
        let socket = holder.receive_birth()?;
        Ok((holder, socket))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Its process, as a file.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Begins to end it and everything that runs in its namespaces; dropping waits for that.
    pub(crate) fn release(&mut self) {
        self.tie = None;
    }

    fn receive_birth(&self) -> Result<OwnedFd, TestbedError> {
        let lost = || failed("start a host", io::ErrorKind::UnexpectedEof.into(), "was its process killed?");
        let tie = self.tie.as_ref().ok_or_else(lost)?;
        let mut word = [0_u8; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(tie, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)
            .map_err(|errno| {
                failed("hear from a new host", errno.into(), "is the limit on open files reached?")
            })?;
        if got.bytes != word.len() {
            return Err(lost());
        }
        let step = i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let errno = i32::from_le_bytes([word[4], word[5], word[6], word[7]]);
        if let Some(step) = Step::numbered(step) {
            return Err(step.error(io::Error::from_raw_os_error(errno)));
        }
        let socket = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        socket.ok_or_else(lost)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release();
        // It can only fail when somebody else has already waited for our child.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

fn failed(step: &str, source: io::Error, remedy: &'static str) -> TestbedError {
    TestbedError::Kernel { step: step.to_owned(), source, remedy }
}

/// The whole life of a holder. Runs in the forked child.
fn live(tie: BorrowedFd<'_>, user: &User<'_>, maps: &IdMaps, host: Option<&Identity<'_>>) {
    sys::block_all_signals();
    // Its own session: a key pressed at the terminal is for the programs in the host, not for the host.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(host.map_or(c"nmad-switch", |host| host.name));
    match be_born(user, maps, host) {
        Err((step, errno)) => report(tie, step as i32, errno.raw_os_error(), None),
        Ok(socket) => {
            report(tie, 0, 0, Some(socket.as_fd()));
            sys::close_all_but(tie);
            // Nothing is ever sent: this returns when the builder closes its end or dies.
            while let Err(rustix::io::Errno::INTR) = recv(tie, &mut [0_u8; 1], RecvFlags::empty()) {}
            reaper::kill_neighbours();
        }
    }
}

/// Tells the builder: step 0 with a socket, or the step that failed and why.
fn report(tie: BorrowedFd<'_>, step: i32, errno: i32, socket: Option<BorrowedFd<'_>>) {
    let mut word = [0_u8; 8];
    word[..4].copy_from_slice(&step.to_le_bytes());
    word[4..].copy_from_slice(&errno.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = socket.map(|socket| [socket]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    // A builder that no longer listens is gone, and then so are we.
    let _ = sendmsg(tie, &[IoSlice::new(&word)], &mut control, SendFlags::NOSIGNAL);
}
