//! The user's side of a job: its output, the launcher's messages, and its end with the reason.
//!
//! The loop of one host ([`super::run()`]) and the loop of several hosts (`remote/head.rs`) both own one.
//! It decides and reports; its owner carries out its [`Order`]s.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::ending::{CODE_TIMEOUT, Ending, Order, describe, is_death};
use super::output::{Sink, Taker};
use super::{ExitReport, Job, RankEnd, SPEAKER};
use crate::LaunchError;
use crate::pmi::server::Phase;

/// Most messages about malformed lines of ranks that the user sees.
const NOTES_MAX: u32 = 10;

/// The user's side of one job.
pub struct Desk {
    /// Standard output and error.
    pub sinks: [Sink; 2],
    ending: Ending,
    ends: Vec<RankEnd>,
    deadline: Option<Instant>,
    limit: Option<Duration>,
    notes: u32,
    ft: bool,
}

impl Desk {
    /// Opens the desk of a job that begins now.
    pub fn open(job: &Job) -> Result<Desk, LaunchError> {
        let sinks = sinks().map_err(LaunchError::system("cannot write to standard output"))?;
        let deadline = job.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let ending = Ending::new(job.grace).keep_going(job.keep_going).ft(job.ft);
        Ok(Desk { sinks, ending, ends: Vec::new(), deadline, limit: job.timeout, notes: 0, ft: job.ft })
    }

    /// Returns whether output waits to be written.
    pub fn has_output(&self) -> bool {
        self.sinks.iter().any(|sink| !sink.is_empty())
    }

    /// Writes as much as `poll(2)` says that a stream takes.
    pub fn write(&mut self, which: usize) {
        let written = self.sinks[which].write();
        if which == 0 {
            nmad_words::said(written);
        }
    }

    /// Drops the rest of the output.
    pub fn give_up(&mut self) {
        self.sinks.iter_mut().for_each(Sink::give_up);
    }

    /// Returns the time of the next call of [`Desk::overdue`].
    pub fn due(&self) -> Option<Instant> {
        [self.deadline, self.ending.deadline()].into_iter().flatten().min()
    }

    /// Handles expired deadlines; `alive`: whether a rank lives.
    pub fn overdue(&mut self, now: Instant, alive: bool) -> Order {
        if self.deadline.is_some_and(|deadline| deadline <= now) && alive {
            self.deadline = None;
            let limit = self.limit.unwrap_or_default().as_secs_f64();
            let reason = format!("the time limit of {limit} s is over");
            return self.end(CODE_TIMEOUT, reason, "ending all ranks");
        }
        self.decide(alive, |ending| ending.overdue(now))
    }

    /// Handles a signal by which the user ends the job.
    pub fn interrupted(&mut self, signal: i32) -> Order {
        self.ending.interrupted(signal)
    }

    /// Records the end of a rank.
    pub fn rank_ended(&mut self, end: RankEnd, phase: Phase, host: Option<&str>, alive: bool) -> Order {
        self.ends.push(end);
        if self.ft && is_death(&end, phase) && !self.is_ending() {
            let then = if alive { "; the others go on (--ft)" } else { "" };
            self.tell(&format!("{}{then}", describe(&end, phase, host)));
        }
        self.decide(alive, |ending| ending.rank_ended(&end, phase, host, Instant::now()))
    }

    /// Records and reports the loss of a host with ranks. The job survives it if `alive`: ranks of other
    /// hosts live.
    pub fn host_lost(&mut self, lost: &str, alive: bool) {
        self.ending.host_lost();
        let then = if alive && !self.is_ending() { "; the ranks of other hosts go on" } else { "" };
        self.tell(&format!("{lost}{then}"));
    }

    /// If a rank is suspected to be the reason, because it exited without finalizing, confirms it.
    pub fn confirm(&mut self, alive: bool) -> Order {
        self.decide(alive, |ending| ending.confirm(Instant::now()))
    }

    /// Lets the ending decide, and reports the reason if none was known before.
    fn decide(&mut self, alive: bool, what: impl FnOnce(&mut Ending) -> Order) -> Order {
        let known = self.ending.reason().is_some();
        let order = what(&mut self.ending);
        if let Some(reason) = self.ending.reason().filter(|_| !known) {
            let then = if alive { "; ending the other ranks" } else { "" };
            let line = format!("{reason}{then}");
            self.tell(&line);
        }
        order
    }

    /// Ends the job and reports the reason, unless it is already ending for another reason.
    pub fn end(&mut self, code: i32, reason: String, then: &str) -> Order {
        let before = self.confirm(true);
        if self.ending.reason().is_none() {
            self.tell(&format!("{reason}; {then}"));
        }
        match self.ending.because(code, reason, Instant::now()) {
            Order::None => before,
            order => order,
        }
    }

    /// Returns whether the job is ending for a reason.
    pub fn is_ending(&self) -> bool {
        self.ending.reason().is_some()
    }

    /// Reports a line to the user.
    pub fn tell(&mut self, text: &str) {
        self.sinks[1].push(format!("{SPEAKER}: {text}\n").as_bytes());
    }

    /// Reports a message that may come very often, only a few times.
    pub fn note(&mut self, text: &str) {
        self.notes += 1;
        match self.notes {
            ..NOTES_MAX => self.tell(text),
            NOTES_MAX => self.tell(&format!("{text} (further such lines are not reported)")),
            _ => {}
        }
    }

    /// Returns the result of the job.
    pub fn report(self) -> ExitReport {
        let reason = self.ending.reason().map(str::to_owned);
        ExitReport { code: self.ending.code(), ranks: self.ends, reason }
    }
}

fn sinks() -> io::Result<[Sink; 2]> {
    let out = rustix::stdio::stdout().as_fd().try_clone_to_owned()?;
    let err = rustix::stdio::stderr().as_fd().try_clone_to_owned()?;
    Ok([Sink::new(out), Sink::new(err)])
}
