//! Signals to the launcher, as bytes of a socket that `poll(2)` can wait for.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::signal as number;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::LaunchError;

/// What a signal asks of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A child may have ended.
    Reap,
    /// End the job: pass this on; at the second time, kill.
    End(i32),
    /// Pass this on, then stop ourselves (^Z).
    Stop,
    /// Pass this on.
    Forward(i32),
}

/// Caught signals. One can be lost only in another of the same number that was not yet read, as always.
///
/// The handlers stay after a job (the default action of these signals does not come back), so a program
/// that goes on living after [`crate::run`] should handle them itself.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Catches all that a launcher passes on or lives by.
    pub fn catch() -> Result<Signals, LaunchError> {
        let failed = "cannot catch signals";
        let (read, write) = UnixStream::pair().map_err(LaunchError::system(failed))?;
        read.set_nonblocking(true).map_err(LaunchError::system(failed))?;
        let numbers = [
            number::SIGCHLD,
            number::SIGINT,
            number::SIGTERM,
            number::SIGHUP,
            number::SIGQUIT,
            number::SIGTSTP,
            number::SIGCONT,
            number::SIGUSR1,
            number::SIGUSR2,
        ];
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, numbers)
            .map_err(LaunchError::system(failed))?;
        Ok(Signals { delivery })
    }

    /// Takes what came.
    pub fn take(&mut self) -> Vec<Request> {
        let mut bytes = [0; 64];
        while matches!(self.delivery.get_read_mut().read(&mut bytes), Ok(count) if count == bytes.len()) {}
        self.delivery.pending().map(request).collect()
    }

    /// Stops this process, as ^Z would have without us. Returns when it goes on.
    pub fn stop_ourselves() {
        let _ = signal_hook::low_level::raise(number::SIGSTOP);
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }
}

fn request(signal: i32) -> Request {
    match signal {
        number::SIGCHLD => Request::Reap,
        number::SIGINT | number::SIGTERM | number::SIGHUP | number::SIGQUIT => Request::End(signal),
        number::SIGTSTP => Request::Stop,
        other => Request::Forward(other),
    }
}
