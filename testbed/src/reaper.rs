//! What a holder does last: kill whatever still runs in its network namespace.
//!
//! Namespaces live as long as a process in them, so a program that outlives the builder would keep its
//! host and its rails. Runs in a forked process: system calls only, nothing allocated.

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, statat};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// Kills every other process in this process's network namespace, until a look finds none.
pub(crate) fn kill_neighbours() {
    // A process that forks between two looks has children that the next look finds. One that is dying
    // slowly (in the kernel) is found again; a bound keeps us from waiting for it forever.
    for _ in 0..1000 {
        match kill_once() {
            Some(0) | None => return,
            Some(_) => rustix::thread::sched_yield(),
        }
    }
}

/// One look through `/proc`; how many processes it killed, `None` without a `/proc`.
fn kill_once() -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, c"/proc", flags, Mode::empty()).ok()?;
    let ours = statat(&proc, c"self/ns/net", rustix::fs::AtFlags::empty()).ok()?;
    let me = getpid();
    let mut killed = 0;
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut space);
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = pid_of(entry.file_name()).filter(|pid| *pid != me) else { continue };
        let mut path = [0_u8; 32];
        let Some(path) = namespace_path(entry.file_name(), &mut path) else { continue };
        // A process that has ended, a zombie too, has no namespace any more; one of another user is not ours.
        let Ok(theirs) = statat(&proc, path, rustix::fs::AtFlags::empty()) else { continue };
        if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino) {
            let _ = kill_process(pid, Signal::KILL);
            killed += 1;
        }
    }
    Some(killed)
}

fn pid_of(name: &CStr) -> Option<Pid> {
    Pid::from_raw(name.to_str().ok()?.parse().ok()?)
}

/// `PID/ns/net` in `space`.
fn namespace_path<'a>(pid: &CStr, space: &'a mut [u8; 32]) -> Option<&'a CStr> {
    let (pid, rest) = (pid.to_bytes(), b"/ns/net\0");
    let end = pid.len() + rest.len();
    space.get_mut(..pid.len())?.copy_from_slice(pid);
    space.get_mut(pid.len()..end)?.copy_from_slice(rest);
    CStr::from_bytes_until_nul(&space[..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_processes() {
        assert_eq!(pid_of(c"12"), Pid::from_raw(12));
        assert_eq!(pid_of(c"self"), None);
        assert_eq!(pid_of(c"0"), None);
    }

    #[test]
    fn the_path_of_a_namespace_fits() {
        assert_eq!(namespace_path(c"4194304", &mut [0; 32]), Some(c"4194304/ns/net"));
    }
}
