//! The ranks as processes: process groups, signals, ends.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use super::guard::Guard;
use super::output::{LineStart, Source};
use super::spawn::{Seat, spawn};
use super::talk::Talk;
use super::{RankEnd, RankStatus};
use crate::deaths::Reporter;
use crate::{LaunchError, Secret};

/// A rank while it is connected.
pub struct Rank {
    pid: Pid,
    alive: bool,
    /// Reports deaths of other ranks to it; `None` without `--ft`.
    deaths: Option<Reporter>,
    /// The PMI connection, until the rank closes it.
    pub talk: Option<Talk>,
    /// Standard output and error, if they are tagged.
    pub outputs: [Option<Source>; 2],
}

/// All ranks. Dropping this kills the living ones.
pub struct Ranks {
    list: Vec<Rank>,
    guard: Guard,
}

impl Ranks {
    /// Makes an empty list.
    pub fn new(guard: Guard) -> Ranks {
        Ranks { list: Vec::new(), guard }
    }

    /// Starts the next rank; the lines of its output begin with `start`. Returns its standard input if it
    /// reads ours.
    ///
    /// # Errors
    /// A program that cannot be started; its place is still empty then.
    pub fn start(
        &mut self,
        seat: &Seat<'_>,
        secret: &Secret,
        files: Option<Rlimit>,
        start: &LineStart,
    ) -> Result<Option<OwnedFd>, LaunchError> {
        debug_assert_eq!(seat.place as usize, self.list.len());
        let started =
            spawn(seat, secret, files, &self.guard).inspect_err(|_| self.guard.forget(seat.place))?;
        let outputs = [started.out, started.err].map(|fd| fd.map(|fd| Source::new(fd, start.clone())));
        self.list.push(Rank {
            pid: started.pid,
            alive: true,
            deaths: started.deaths,
            talk: Some(Talk::new(started.talk)),
            outputs,
        });
        Ok(started.stdin)
    }

    /// Returns whether a rank lives.
    pub fn any_alive(&self) -> bool {
        self.list.iter().any(|rank| rank.alive)
    }

    /// Returns the ranks with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Rank)> {
        (0..).zip(&self.list)
    }

    /// Returns a rank.
    pub fn get_mut(&mut self, rank: u32) -> &mut Rank {
        &mut self.list[rank as usize]
    }

    /// Kills a rank; returns whether it lives.
    pub fn kill(&self, rank: u32) -> bool {
        let rank = self.list.get(rank as usize).filter(|rank| rank.alive);
        rank.is_some_and(|rank| kill_process_group(rank.pid, Signal::KILL).is_ok())
    }

    /// Reports the death of a rank of the job to all ranks of this host.
    pub fn tell_death(&self, rank: u32) {
        self.list.iter().filter_map(|own| own.deaths.as_ref()).for_each(|deaths| deaths.report(rank));
    }

    /// Sends a signal to the process groups of all living ranks.
    pub fn signal(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        for rank in self.list.iter().filter(|rank| rank.alive) {
            // This fails for a group that just ended (SIGCHLD is on its way) or changed its user.
            let _ = kill_process_group(rank.pid, signal);
        }
    }

    /// Returns the ranks that ended since the last call, and kills the rest of their process groups.
    pub fn reap(&mut self) -> Vec<RankEnd> {
        let mut ends = Vec::new();
        for (number, rank) in (0..).zip(&mut self.list).filter(|(_, rank)| rank.alive) {
            let Some(status) = rank.ended(WaitIdOptions::NOHANG) else { continue };
            self.guard.forget(number);
            ends.push(RankEnd { rank: number, pid: rank.pid.as_raw_nonzero().get() as u32, status });
        }
        ends
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        for rank in self.list.iter_mut().filter(|rank| rank.alive) {
            rank.ended(WaitIdOptions::empty());
        }
    }
}

impl Rank {
    /// Reaps the process if it ended; without `NOHANG` waits for its end.
    fn ended(&mut self, how: WaitIdOptions) -> Option<RankStatus> {
        // The first wait does not reap: while the leader is a zombie, no other process can get the number
        // of its group, so the rest of the group can be killed safely.
        let look = how | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        if let Ok(None) = wait(self.pid, look) {
            return None;
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.alive = false;
        match wait(self.pid, WaitIdOptions::EXITED) {
            Ok(Some(status)) => Some(translate(&status)),
            // Another part of this process reaped it, so its code is lost; count it as a failure.
            Ok(None) | Err(_) => Some(RankStatus::Exited(1)),
        }
    }
}

fn wait(pid: Pid, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn translate(status: &WaitIdStatus) -> RankStatus {
    match status.terminating_signal() {
        Some(signal) => RankStatus::Killed { signal, core: status.dumped() },
        None => RankStatus::Exited(status.exit_status().unwrap_or(1)),
    }
}
