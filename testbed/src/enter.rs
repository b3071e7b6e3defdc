//! How a process gets into a host.

use crate::{TestbedError, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat, stat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const GONE: &str = "has the testbed ended? do you run as the user who built it?";

/// A host's namespaces, ready to be entered.
pub(crate) struct Entry {
    process: OwnedFd,
    spaces: ThreadNameSpaceType,
}

impl Entry {
    /// The namespaces of the process behind `pidfd`, its user namespace too if `user`.
    pub(crate) fn of(pidfd: BorrowedFd<'_>, user: bool) -> Result<Entry, TestbedError> {
        let process = pidfd.try_clone_to_owned().map_err(|source| kernel("duplicate a file", source))?;
        let mut spaces = ThreadNameSpaceType::NETWORK
            | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
            | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
            | ThreadNameSpaceType::MOUNT;
        if user {
            spaces |= ThreadNameSpaceType::USER;
        }
        Ok(Entry { process, spaces })
    }

    /// Has the program of `command` run in these namespaces.
    pub(crate) fn apply(self, command: &mut Command) {
        sys::before_exec(command, move || self.go());
    }

    /// Moves this process, which must have one thread. Makes system calls only.
    fn go(&self) -> io::Result<()> {
        let mut space = [0_u8; 4096];
        let here = current_directory(&mut space)?;
        move_into_thread_name_spaces(self.process.as_fd(), self.spaces)?;
        // A new mount namespace begins at its root.
        Ok(rustix::process::chdir(here)?)
    }
}

/// Replaces this process by `command`, run in the host whose process is `pid`. Returns only to say why it
/// could not. The calling process must have a single thread.
pub fn enter(pid: u32, mut command: Command) -> TestbedError {
    match entry_of(pid) {
        Ok(entry) => entry.apply(&mut command),
        Err(error) => return error,
    }
    let source = command.exec();
    TestbedError::Start {
        host: format!("host of process {pid}"),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    }
}

fn entry_of(pid: u32) -> Result<Entry, TestbedError> {
    let process = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|errno| kernel(&format!("find the host of process {pid}"), errno.into()))?;
    Entry::of(process.as_fd(), lives_in_other_user_namespace(pid)?)
}

/// Entering the user namespace one is in already is an error (setns(2)).
fn lives_in_other_user_namespace(pid: u32) -> Result<bool, TestbedError> {
    let look = |path: String| stat(path).map(|found| (found.st_dev, found.st_ino));
    look(format!("/proc/{pid}/ns/user"))
        .and_then(|theirs| Ok(theirs != look("/proc/self/ns/user".to_owned())?))
        .map_err(|errno| kernel(&format!("look at the host of process {pid}"), errno.into()))
}

/// The network namespace of `pid`, as a file.
pub(crate) fn network_of(pid: u32) -> Result<OwnedFd, TestbedError> {
    openat(CWD, format!("/proc/{pid}/ns/net"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| kernel(&format!("open the network of process {pid}"), errno.into()))
}

/// The working directory, in `space`: `std` would allocate.
fn current_directory(space: &mut [u8; 4096]) -> io::Result<&CStr> {
    let len = rustix::fs::readlinkat_raw(CWD, c"/proc/self/cwd", &mut space[..4095])?;
    space[len] = 0;
    CStr::from_bytes_until_nul(&space[..]).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn kernel(step: &str, source: io::Error) -> TestbedError {
    TestbedError::Kernel { step: step.to_owned(), source, remedy: GONE }
}
