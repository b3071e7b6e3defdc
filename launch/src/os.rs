//! The `unsafe` code for starting processes: three tasks that need the raw system interface.
//!
//! The child is prepared between `fork` and `exec`, the guard is a fork that never calls `exec`, and the
//! launcher's descriptor arrives as a number. Between `fork` and `exec`, and always in the guard, only
//! async-signal-safe code is allowed: system calls and existing memory, no allocation.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, FdFlags};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};
use rustix::thread::CpuSet;

use crate::LaunchError;

/// Takes over an inherited descriptor, whose number is in the variable `name`; `adopted` says whether
/// this was done before.
pub fn adopt(number: RawFd, name: &'static str, adopted: &AtomicBool) -> Result<OwnedFd, LaunchError> {
    let gone = |why: io::Error| LaunchError::Environment {
        name,
        found: number.to_string(),
        why: format!("the descriptor cannot be used ({why}); did a script before this program close it?"),
    };
    if number < 3 {
        return Err(gone(io::Error::other("it is a standard stream")));
    }
    // SAFETY: F_GETFD only reads the descriptor table, whatever the number is.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(gone(io::Error::last_os_error()));
    }
    if adopted.swap(true, Ordering::Relaxed) {
        return Err(LaunchError::AlreadyJoined);
    }
    // SAFETY: it is open (checked above), the launcher opened it for this process, and the flag above
    // makes us its only owner.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    // A child of this rank must not keep the connection open or write to it.
    rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)
        .map_err(LaunchError::system(format!("cannot set up the descriptor {name}")))?;
    Ok(fd)
}

/// Preparations of a child before it executes its program.
#[derive(Default)]
pub struct Before<'a> {
    /// Descriptors that the child inherits.
    pub keep: [Option<&'a OwnedFd>; 2],
    /// Connection to the guard, and the number of the rank on this host; the child reports its process
    /// group there.
    pub guard: Option<(BorrowedFd<'a>, u32)>,
    /// Cores that the child is bound to.
    pub cores: Option<CpuSet>,
    /// Limit of open files.
    pub files: Option<Rlimit>,
}

/// Prepares the child of `command`: it dies with its launcher, and does what `before` says.
pub fn prepare_child(command: &mut Command, before: Before<'_>) {
    let Before { keep, guard, cores, files } = before;
    let keep = keep.map(|fd| fd.map(AsRawFd::as_raw_fd));
    let guard = guard.map(|(orders, slot)| (orders.as_raw_fd(), slot));
    let launcher = rustix::process::getpid();
    let prepare = move || -> io::Result<()> {
        for keep in keep.into_iter().flatten() {
            // SAFETY: `keep` is open in the parent until after `spawn`, so it is open in the child, and
            // nothing closes it while it is borrowed here.
            let keep = unsafe { BorrowedFd::borrow_raw(keep) };
            rustix::io::fcntl_setfd(keep, FdFlags::empty())?;
        }
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the launcher died before that call, the signal never comes.
        if rustix::process::getppid() != Some(launcher) {
            return Err(Errno::SRCH.into());
        }
        if let Some((orders, slot)) = guard {
            // SAFETY: the launcher keeps the guard's descriptor open while it starts ranks.
            let orders = unsafe { BorrowedFd::borrow_raw(orders) };
            let _ = order(orders, slot, rustix::process::getpid().as_raw_nonzero().get());
        }
        if let Some(cores) = &cores {
            rustix::thread::sched_setaffinity(None, cores)?;
        }
        if let Some(files) = &files {
            setrlimit(Resource::Nofile, *files)?;
        }
        Ok(())
    };
    // SAFETY: the closure makes a few system calls and allocates nothing (its errors are plain numbers).
    unsafe { command.pre_exec(prepare) };
}

/// Tells the guard that rank `rank` has process group `group` from now on, or none (0). The error can be
/// ignored: a killed guard is no reason to end the job, and there is no SIGPIPE. Nothing is allocated, so a
/// child may call this before `exec`.
pub fn order(orders: impl AsFd, rank: u32, group: i32) -> Result<(), Errno> {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&rank.to_ne_bytes());
    bytes[4..].copy_from_slice(&group.to_ne_bytes());
    send(orders, &bytes, SendFlags::NOSIGNAL).map(drop)
}

/// Forks a process that reads `(slot, group)` pairs from `orders` and, when the other end closes, sends
/// SIGKILL to every process group that is still in a slot. See `local/guard.rs`.
pub fn fork_guard(orders: OwnedFd, slots: &mut [i32]) -> io::Result<Pid> {
    // SAFETY: the child runs `guard_main` only, which is async-signal-safe and never returns, so neither
    // locks nor destructors of the parent's other threads matter to it.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => guard_main(orders.as_raw_fd(), slots),
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process")),
    }
}

fn guard_main(orders: RawFd, slots: &mut [i32]) -> ! {
    // SAFETY: system calls only, on memory of this function; the set is written by sigfillset before it is
    // read. Closing every other descriptor is wanted: the guard must hold neither the launcher's output
    // nor its own write end open.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, c"nmad-guard".as_ptr());
        if libc::dup2(orders, 0) < 0 || libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32) < 0 {
            libc::_exit(1);
        }
        let mut order = [0i32; 2];
        // The socket preserves message boundaries.
        while libc::read(0, order.as_mut_ptr().cast(), size_of_val(&order)) == size_of_val(&order) as isize {
            if let Some(slot) = slots.get_mut(order[0] as usize) {
                *slot = order[1];
            }
        }
        for &group in slots.iter().filter(|&&group| group > 1) {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

/// Returns a field of `/proc/PID/stat`, counted from the one behind the program's name, which is in
/// brackets and may contain anything (proc_pid_stat(5)).
pub(crate) fn field_of_stat(stat: &str, place: usize) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(place)
}
