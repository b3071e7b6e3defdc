//! The guard: a small process that kills the ranks' process groups if the launcher is killed.
//!
//! `PR_SET_PDEATHSIG` kills the ranks when their launcher dies, even by SIGKILL, but not the processes that
//! the ranks started. The guard holds one end of a socket pair. When the launcher dies, the other end
//! closes, and the guard kills every known process group. A process that leaves its group (a daemon with
//! `setsid`) escapes; only a container would prevent that.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::{LaunchError, os};

/// The launcher's end of the connection. Dropping it ends the guard.
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
        // The guard must not allocate, so it gets its memory here: a slot for each rank, 0 if empty.
        let mut slots = vec![0; count as usize];
        let pid = os::fork_guard(read, &mut slots).map_err(LaunchError::system(failed))?;
        Ok(Guard { orders: Some(write), pid })
    }

    /// Returns the connection for reporting process groups. The rank itself reports before it executes its
    /// program: if the launcher reported, its death right after starting a rank would leave the rank's
    /// children.
    pub fn orders(&self) -> Option<BorrowedFd<'_>> {
        self.orders.as_ref().map(AsFd::as_fd)
    }

    /// Removes the group of rank `rank`, since the system may reuse its number.
    pub fn forget(&self, rank: u32) {
        let _ = self.orders().map(|orders| os::order(orders, rank, 0));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // The guard exits when it reads the end of the connection: bounded by its slots.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}
