//! Signals to the launcher, as bytes on a socket for `poll(2)`.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::signal as number;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::LaunchError;

/// Request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A child may have ended.
    Reap,
    /// End the job: forward this signal; at the second time, kill.
    End(i32),
    /// Forward this signal, then stop this process (^Z).
    Stop,
    /// Forward this signal.
    Forward(i32),
}

/// Caught signals. Several unread signals of the same number count as one, as always.
///
/// The handlers stay installed after a job (the default action of these signals does not come back), so a
/// program that continues after [`crate::run`] should handle them itself.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Catches all signals that a launcher forwards or needs.
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

    /// Takes the requests that arrived.
    pub fn take(&mut self) -> Vec<Request> {
        let mut bytes = [0; 64];
        while matches!(self.delivery.get_read_mut().read(&mut bytes), Ok(count) if count == bytes.len()) {}
        self.delivery.pending().map(request).collect()
    }

    /// Stops this process like ^Z. Returns when it continues.
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
