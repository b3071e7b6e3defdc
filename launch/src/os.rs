//! The `unsafe` code of starting processes: three things that only the raw system interface can do.
//!
//! A child is prepared between `fork` and `exec`, the guard is a fork that never execs, and the
//! launcher's descriptor arrives as a number. Between `fork` and `exec` (and in the guard for good) only
//! async-signal-safe calls are allowed: system calls and memory that exists already, no allocation.

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

/// Takes over the launcher's descriptor, whose number came in `PMI_FD`. Once for a process.
pub fn adopt(number: RawFd) -> Result<OwnedFd, LaunchError> {
    static ADOPTED: AtomicBool = AtomicBool::new(false);
    let gone = |why: io::Error| LaunchError::Environment {
        name: "PMI_FD",
        found: number.to_string(),
        why: format!("the descriptor cannot be used ({why}); did a script before this program close it?"),
    };
    if number < 3 {
        return Err(gone(io::Error::other("it is a standard stream")));
    }
    // SAFETY: F_GETFD looks at the table of descriptors only, whatever the number is.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(gone(io::Error::last_os_error()));
    }
    if ADOPTED.swap(true, Ordering::Relaxed) {
        return Err(LaunchError::AlreadyJoined);
    }
    // SAFETY: it is open (checked above), the launcher opened it for this process's PMI client, and the
    // flag above makes us its only owner.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    // A child of this rank must not keep the connection open, nor speak on it.
    rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)
        .map_err(LaunchError::system("cannot set up the descriptor PMI_FD"))?;
    Ok(fd)
}

/// What a child does before it becomes its program.
#[derive(Default)]
pub struct Before<'a> {
    /// It keeps this descriptor.
    pub keep: Option<&'a OwnedFd>,
    /// It tells the guard, there, that it leads the process group of the rank of this number on this host.
    pub guard: Option<(BorrowedFd<'a>, u32)>,
    /// It is bound to these cores.
    pub cores: Option<CpuSet>,
    /// It may open as many files as this says.
    pub files: Option<Rlimit>,
}

/// Arranges what happens in the child of `command` before it becomes the program: it dies with its launcher,
/// and what `before` says.
pub fn prepare_child(command: &mut Command, before: Before<'_>) {
    let Before { keep, guard, cores, files } = before;
    let keep = keep.map(AsRawFd::as_raw_fd);
    let guard = guard.map(|(orders, slot)| (orders.as_raw_fd(), slot));
    let launcher = rustix::process::getpid();
    let prepare = move || -> io::Result<()> {
        if let Some(keep) = keep {
            // SAFETY: `keep` is open in the parent until after `spawn`, so it is open in the child, and
            // nothing closes it while it is borrowed here.
            let keep = unsafe { BorrowedFd::borrow_raw(keep) };
            rustix::io::fcntl_setfd(keep, FdFlags::empty())?;
        }
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The launcher may have died before that call; then the signal never comes.
        if rustix::process::getppid() != Some(launcher) {
            return Err(Errno::SRCH.into());
        }
        if let Some((orders, slot)) = guard {
            // SAFETY: the launcher has the guard's descriptor open for longer than it starts ranks.
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

/// Tells the guard that process group `group` is that of rank `rank` from now on, or that none is (0). A
/// guard that somebody killed is no reason to end the job: the error is for nobody, and there is no SIGPIPE.
/// Nothing here is allocated, so that a child may call it before `exec`.
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
        // The socket keeps orders apart.
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

/// A field of `/proc/PID/stat`, counted from the one behind the program's name, which is in brackets and may
/// hold anything (proc_pid_stat(5)).
pub(crate) fn field_of_stat(stat: &str, place: usize) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(place)
}
