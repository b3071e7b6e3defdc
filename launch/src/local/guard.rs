//! The guard: a small process that kills the ranks' process groups if the launcher is killed.
//!
//! `PR_SET_PDEATHSIG` ends the ranks themselves when their launcher dies, even by SIGKILL, but not the
//! processes that the ranks started. The guard holds one end of a pair of sockets; the death of the
//! launcher closes the other, and the guard kills every process group that it knows. A process that leaves
//! its group (a daemon with `setsid`) escapes; nothing without a container catches that.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::{LaunchError, os};

/// The launcher's end. Dropping it ends the guard.
pub struct Guard {
    orders: Option<OwnedFd>,
    pid: Pid,
}

impl Guard {
    /// Starts the guard of a job of `count` ranks, before the first of them.
    pub fn start(count: u32) -> Result<Guard, LaunchError> {
        let failed = "cannot start the guard process";
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (read, write) =
            socketpair(AddressFamily::UNIX, kind, flags, None).map_err(LaunchError::system(failed))?;
        // The guard may not allocate, so it gets its memory here: a slot for each rank, 0 if empty.
        let mut slots = vec![0; count as usize];
        let pid = os::fork_guard(read, &mut slots).map_err(LaunchError::system(failed))?;
        Ok(Guard { orders: Some(write), pid })
    }

    /// Where a rank reports its process group. The rank itself does it before it becomes its program: if the
    /// launcher did it, one that is killed right after starting a rank would leave the rank's children.
    pub fn orders(&self) -> Option<BorrowedFd<'_>> {
        self.orders.as_ref().map(AsFd::as_fd)
    }

    /// The group of rank `rank` is gone, and its number may become someone else's.
    pub fn forget(&self, rank: u32) {
        let _ = self.orders().map(|orders| os::order(orders, rank, 0));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // It exits as soon as it reads that ours is closed: bounded by its slots.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}
