//! What a host mounts for itself: shared memory that nobody else sees, and a list of host names.
//!
//! The mounting runs in a forked process: system calls only, nothing allocated.

use crate::address::{address, host_name, rail_name};
use rustix::fs::{CWD, Mode, OFlags, open, unlinkat};
use rustix::io::{Errno, Result, write};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use std::ffi::CStr;

/// Where the list of names lies for a moment, on the host's own file system.
const DRAFT: &CStr = c"/dev/shm/.hosts";

/// What `/etc/hosts` says in every host: the machine's own names, then `host1`, which is its address on
/// rail 0, and `host1-r1` for every rail.
pub(crate) fn hosts_file(hosts: u32, rails: u32) -> String {
    let mut text = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for host in 0..hosts {
        let name = host_name(host);
        text.push_str(&format!("{} {name}\n", address(host, 0)));
        for rail in 0..rails {
            text.push_str(&format!("{} {name}-{}\n", address(host, rail), rail_name(rail)));
        }
    }
    text
}

/// Gives this process's mount namespace a `/dev/shm` and an `/etc/hosts` of its own.
///
/// Where there is no `/dev/shm` there is nothing to share, and names are not listed.
pub(crate) fn mount_own(hosts_file: &[u8]) -> Result<()> {
    // Downstream only: mounts of this namespace stay here, and a disk mounted outside later is still seen.
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match mount(c"testbed", c"/dev/shm", c"tmpfs", flags, c"mode=1777") {
        Ok(()) => list_names(hosts_file),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn list_names(mut text: &[u8]) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = open(DRAFT, flags, Mode::from_raw_mode(0o644))?;
    while !text.is_empty() {
        let len = write(&file, text)?;
        text = text.get(len..).unwrap_or_default();
    }
    let bound = match mount_bind(DRAFT, c"/etc/hosts") {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    };
    // The mount keeps the file; its name is only in the way.
    unlinkat(CWD, DRAFT, rustix::fs::AtFlags::empty())?;
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_name() {
        let text = hosts_file(2, 2);
        for line in ["10.88.0.2 host1", "10.88.0.2 host1-r0", "10.88.1.1 host0-r1"] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
