//! All that is `unsafe` here: processes that are forked without exec, their memory being a copy; what runs
//! between fork and exec; signals that are waited for. Knows nothing of hosts.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Forks a process that runs `life` and ends, seeing no exec.
///
/// Other threads may have held any lock at that moment, so `life` must neither allocate nor lock nor panic:
/// system calls on what was prepared before, nothing else. It must not return to its caller's stack either,
/// which is why it ends here.
pub(crate) fn fork(life: impl FnOnce()) -> io::Result<Pid> {
    // SAFETY: the child only runs `life`, which keeps to the rule above, and leaves by `_exit` without
    // running exit handlers or destructors that belong to the parent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            life();
            // SAFETY: `_exit` only ends the process.
            unsafe { libc::_exit(0) }
        }
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no PID")),
    }
}

/// In a forked child: closes every file except `keep`, so that no pipe of the parent stays open here.
pub(crate) fn close_all_but(keep: BorrowedFd<'_>) {
    let keep = keep.as_raw_fd() as libc::c_uint;
    // SAFETY: the files closed belong to variables of the parent that this child never touches again.
    unsafe {
        if keep > 0 {
            libc::syscall(libc::SYS_close_range, 0 as libc::c_uint, keep - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, keep + 1, libc::c_uint::MAX, 0);
    }
}

/// In a forked child: puts this process into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: a child after fork has one thread and shares no files or memory that FILES or FS would part.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Has `command` call `step` in its child before the program starts.
///
/// The rule of [`fork`] holds for `step`.
pub(crate) fn before_exec(
    command: &mut Command,
    step: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: `step` makes system calls only, as every caller in this crate promises.
    unsafe {
        command.pre_exec(step);
    }
}

/// Signals that this process takes by [`BlockedSignals::next`] instead of dying from them.
pub(crate) struct BlockedSignals {
    taken: libc::sigset_t,
    before: libc::sigset_t,
}

/// One signal, and whether a process sent it (and not the terminal, which tells the whole job itself).
pub(crate) struct Taken {
    /// Its number.
    pub signal: i32,
    /// Sent by `kill`, to us alone.
    pub sent: bool,
}

impl BlockedSignals {
    /// Blocks `signals` in this thread and those it starts.
    pub(crate) fn block(signals: &[i32]) -> BlockedSignals {
        // SAFETY: both sets are plain data, for which zero is a valid value, and are initialised before use
        // by the C library; the pointers live through the calls.
        unsafe {
            let mut set = BlockedSignals { taken: std::mem::zeroed(), before: std::mem::zeroed() };
            libc::sigemptyset(&mut set.taken);
            for &signal in signals {
                libc::sigaddset(&mut set.taken, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set.taken, &mut set.before);
            set
        }
    }

    /// Gives a program that `command` starts the signals as they were.
    pub(crate) fn unblock_in(&self, command: &mut Command) {
        let before = self.before;
        before_exec(command, move || {
            // SAFETY: `before` is a set that the C library filled in.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
            Ok(())
        });
    }

    /// Waits for the next of them.
    pub(crate) fn next(&self) -> Taken {
        loop {
            // SAFETY: `info` is plain data that the call fills in when it succeeds.
            let (signal, info) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                (libc::sigwaitinfo(&self.taken, &mut info), info)
            };
            if signal > 0 {
                return Taken { signal, sent: info.si_code <= 0 };
            }
        }
    }
}

/// In a forked child: lets no signal but SIGKILL end this process.
pub(crate) fn block_all_signals() {
    // SAFETY: as in `BlockedSignals::block`; the mask of this process only.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}
