//! Waiting for sockets: spin while there is hope, then sleep in `poll`, never past the deadline.
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// One wait: begins at the first fruitless attempt and ends with the next fruitful one.
pub(super) struct Wait {
    spin: Duration,
    deadline: Instant,
    since: Option<Instant>,
}

impl Wait {
    /// A wait that spins for `spin` before it sleeps and fails at `deadline`.
    pub fn new(spin: Duration, deadline: Instant) -> Wait {
        Wait { spin, deadline, since: None }
    }

    /// An attempt bore fruit: the next wait spins again.
    pub fn rearm(&mut self) {
        self.since = None;
    }

    /// An attempt was fruitless. Returns at once while spinning is worth it, else sleeps until one of
    /// `interests` is ready. Fails with `TimedOut` at the deadline.
    pub fn pause(&mut self, interests: &[(BorrowedFd<'_>, PollFlags)]) -> io::Result<()> {
        let now = Instant::now();
        let left = self.deadline.saturating_duration_since(now);
        if left.is_zero() {
            return Err(timed_out());
        }
        if now - *self.since.get_or_insert(now) < self.spin {
            std::hint::spin_loop();
            return Ok(());
        }
        sleep(interests, left)
    }
}

/// The error of a side that waited until its limit.
pub(super) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other side did not answer within the limit of the plan")
}

/// Tries until it is done; none if that is not before the deadline. The clock is looked at every thousandth
/// time only.
pub(super) fn spin(
    deadline: Instant,
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    for tries in 1u64.. {
        match attempt() {
            Ok(len) => return Ok(Some(len)),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if tries.is_multiple_of(1000) && Instant::now() >= deadline => break,
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Sleeps until one of `interests` is ready or `left` has passed.
fn sleep(interests: &[(BorrowedFd<'_>, PollFlags)], left: Duration) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> =
        interests.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = Timespec::try_from(left).ok();
    match poll(&mut fds, timeout.as_ref()) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What a non-blocking call did: moved some bytes, or nothing yet (`None`). The end of the stream is an
/// error, since both sides know how much is to come.
pub(super) fn moved(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(0) => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other side closed the connection early"))
        }
        Ok(len) => Ok(Some(len)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
