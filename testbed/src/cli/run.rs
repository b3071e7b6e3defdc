//! One program in host 0: it gets the terminal, and signals that were meant for it.

use crate::sys::BlockedSignals;
use crate::{Testbed, TestbedError};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};

/// Signals that are passed on.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Runs the program `words`, or the user's shell, in host 0 until it ends.
pub(super) fn run(testbed: &Testbed, words: &[OsString]) -> Result<ExitCode, TestbedError> {
    let mut taken = FORWARDED.to_vec();
    taken.push(libc::SIGCHLD);
    // Before the program starts, so that none is lost.
    let signals = BlockedSignals::block(&taken);
    let mut command = command(words);
    signals.unblock_in(&mut command);
    let child = testbed.run(0, command)?;
    let status = wait(child, &signals);
    Ok(exit_code(status))
}

fn command(words: &[OsString]) -> Command {
    let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(words.first().cloned().unwrap_or_else(shell));
    command.args(words.iter().skip(1));
    command
}

fn wait(mut child: Child, signals: &BlockedSignals) -> ExitStatus {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return status;
        }
        let taken = signals.next();
        // What a key at the terminal sends goes to the whole job, the program included.
        if taken.signal != libc::SIGCHLD && taken.sent {
            pass_on(&child, taken.signal);
        }
    }
}

fn pass_on(child: &Child, signal: i32) {
    let known = Signal::from_named_raw(signal);
    if let (Some(pid), Some(signal)) = (Pid::from_raw(child.id() as i32), known) {
        // It can have ended just now, which the next round sees.
        let _ = kill_process(pid, signal);
    }
}

pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(number as u8)
}
