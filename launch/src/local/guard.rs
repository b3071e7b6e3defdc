//! The guard: a small process that kills the ranks' process groups if the launcher is killed.
//!
//! `PR_SET_PDEATHSIG` ends the ranks themselves when their launcher dies, even by SIGKILL, but not the
//! processes that the ranks started. The guard holds the reading end of a pipe; whoever kills the
//! launcher closes the writing end, and the guard kills every group that it was told of. What leaves
//! its group (a daemon with `setsid`) escapes; nothing without a container catches that.

use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
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
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(LaunchError::system(failed))?;
        // The guard may not allocate, so it gets its memory here: a slot for each rank, 0 if empty.
        let mut slots = vec![0; count as usize];
        let pid = os::fork_guard(read, &mut slots).map_err(LaunchError::system(failed))?;
        Ok(Guard { orders: Some(write), pid })
    }

    /// Rank `rank` leads process group `group` from now on.
    pub fn watch(&self, rank: u32, group: Pid) {
        self.order(rank, group.as_raw_nonzero().get());
    }

    /// The group of rank `rank` is gone, and its number may become someone else's.
    pub fn forget(&self, rank: u32) {
        self.order(rank, 0);
    }

    fn order(&self, rank: u32, group: i32) {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&rank.to_ne_bytes());
        bytes[4..].copy_from_slice(&group.to_ne_bytes());
        // A guard that somebody killed is no reason to end the job; Rust programs ignore SIGPIPE.
        let _ = self.orders.as_ref().map(|orders| rustix::io::write(orders, &bytes));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // It exits as soon as it reads the end of the pipe: bounded by its slots.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}
