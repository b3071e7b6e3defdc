//! Keeps signals of the application away from the helper: its own threads handle them.
//!
//! A signal handler may jump out of the interrupted code, or take a lock that its own threads never hold
//! there. The helper may be in the middle of a driver, so it blocks all signals except those that it causes
//! itself.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::thread::{self, JoinHandle};

/// Starts a thread of the library's own, which handles no signals of the application.
///
/// # Errors
/// The system starts no further thread.
pub fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    without(|| thread::Builder::new().name(name.into()).spawn(work))
}

/// Calls `run` with signals blocked in the calling thread; threads that it starts inherit the mask.
fn without<R>(run: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are local. The first call fills the first one; the last call fills the second one,
    // or fails and changes nothing.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(all.as_mut_ptr(), own);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let answer = run();
    if is_blocked {
        // SAFETY: the call above has filled it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line `SigBlk` of the calling thread.
    fn blocked() -> u64 {
        let status =
            std::fs::read_to_string("/proc/thread-self/status").expect("the system tells of threads");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("it has this line");
        u64::from_str_radix(mask.trim(), 16).expect("a mask")
    }

    #[test]
    fn a_thread_that_was_started_without_signals_gets_none_and_its_starter_does() {
        let before = blocked();
        let started = without(|| std::thread::spawn(blocked)).join().expect("it does not panic");
        let bit = |signal: i32| 1 << (signal - 1);
        assert!(started & bit(libc::SIGALRM) != 0 && started & bit(libc::SIGUSR1) != 0, "{started:x}");
        assert_eq!(started & bit(libc::SIGSEGV), 0);
        assert_eq!(blocked(), before);
    }
}
