//! Reports of deaths in a job with `--ft`: each rank inherits the read end of a pipe, to which the launcher
//! writes the numbers of ranks that have died.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::{LaunchError, os};
use nmad_words::setting::DEATHS_FD;

/// Environment variable with the number of the read end.
pub(crate) const VARIABLE: &str = DEATHS_FD.name;

/// Bytes of one report: a rank in native byte order.
const REPORT: usize = 4;

/// The rank's end: receives reports.
#[derive(Debug)]
pub struct Deaths {
    fd: OwnedFd,
    /// Bytes of an incomplete report.
    part: Vec<u8>,
}

/// Returns whether the launcher reports deaths to this process. The launcher then also informs the user.
pub fn are_reported() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Result of a wait for reports.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// Ranks that have died; empty if the bound was reached first.
    Died(Vec<u32>),
    /// The launcher has ended.
    Gone,
}

impl Deaths {
    /// Takes ownership of the descriptor from the launcher; `None` in a job without `--ft`. A process can
    /// call this once.
    ///
    /// # Errors
    /// The variable does not hold an open descriptor of this process.
    pub fn open() -> Result<Option<Deaths>, LaunchError> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        let wrong =
            |why: &str| LaunchError::Environment { name: VARIABLE, found: text.clone(), why: why.into() };
        let number = text.parse().map_err(|_| wrong("it is not a descriptor"))?;
        static ADOPTED: AtomicBool = AtomicBool::new(false);
        let fd = os::adopt(number, VARIABLE, &ADOPTED)?;
        rustix::fs::fcntl_setfl(&fd, OFlags::NONBLOCK)
            .map_err(LaunchError::system("cannot set up the descriptor that NMAD_DEATHS_FD names"))?;
        Ok(Some(Deaths { fd, part: Vec::new() }))
    }

    /// Waits until ranks have died, until the other end of `stop` is closed, or for at most `bound`.
    pub fn wait(&mut self, bound: Duration, stop: BorrowedFd<'_>) -> Report {
        let bound = Timespec::try_from(bound).ok();
        let stop = PollFd::from_borrowed_fd(stop, PollFlags::IN);
        // An error or a signal ends the wait early, which is harmless.
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN), stop], bound.as_ref());
        let mut bytes = [0; 256];
        loop {
            match read(&self.fd, &mut bytes) {
                Ok(0) => return Report::Gone,
                Ok(count) => self.part.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Report::Gone,
            }
        }
        let whole = self.part.len() / REPORT * REPORT;
        let reports = self.part.drain(..whole).collect::<Vec<u8>>();
        Report::Died(reports.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect())
    }
}

/// The launcher's end of the pipe to one rank: sends reports.
pub(crate) struct Reporter(OwnedFd);

impl Reporter {
    /// Makes a pipe; returns the launcher's end and the rank's end.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub(crate) fn new() -> Result<(Reporter, OwnedFd), Errno> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok((Reporter(ours), theirs))
    }

    /// Reports a death to the rank. The report is lost if the rank has ended, or if the pipe is full, which
    /// takes 16,000 unread reports.
    pub(crate) fn report(&self, rank: u32) {
        while write(self.0.as_fd(), &rank.to_ne_bytes()) == Err(Errno::INTR) {}
    }
}

/// Ranks that were ended because others could not reach them.
#[derive(Debug, Default)]
pub(crate) struct Unreachable(Vec<u32>);

impl Unreachable {
    /// Returns whether `rank`, which rank `by` cannot reach, has to be ended now. If two ranks report each
    /// other, only the first report counts.
    pub(crate) fn ends(&mut self, by: u32, rank: u32) -> bool {
        let is_accepted = !self.0.contains(&rank) && !self.0.contains(&by);
        self.0.extend(is_accepted.then_some(rank));
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_reports_are_completed_and_the_end_of_the_launcher_is_detected() {
        let (reporter, fd) = Reporter::new().expect("a pipe");
        rustix::fs::fcntl_setfl(&fd, OFlags::NONBLOCK).expect("a pipe");
        let mut deaths = Deaths { fd, part: Vec::new() };
        let (stop, _running) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        assert_eq!(deaths.wait(Duration::ZERO, stop.as_fd()), Report::Died(vec![]));
        reporter.report(3);
        reporter.report(70_000);
        assert_eq!(deaths.wait(Duration::from_secs(9), stop.as_fd()), Report::Died(vec![3, 70_000]));
        write(&reporter.0, &[7, 0]).expect("room");
        assert_eq!(deaths.wait(Duration::from_secs(9), stop.as_fd()), Report::Died(vec![]));
        write(&reporter.0, &[0, 0]).expect("room");
        assert_eq!(deaths.wait(Duration::from_secs(9), stop.as_fd()), Report::Died(vec![7]));
        drop(reporter);
        assert_eq!(deaths.wait(Duration::from_secs(9), stop.as_fd()), Report::Gone);
    }
}
