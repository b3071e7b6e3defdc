//! The steps by which a holder sets its host up, and the meaning of a failure of each.
//!
//! The steps run in a forked process: system calls only, no allocation. The builder receives the step and an
//! error number, and finds the meaning.

use crate::{Refused, TestbedError, mounts, sys};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};
use std::ffi::CStr;
use std::io;

/// Which user namespace the holder lives in.
pub(crate) enum User<'a> {
    /// That of its builder.
    Same,
    /// A new one, in which the builder's user is root.
    New,
    /// That of another holder, given by its PID file descriptor.
    Of(BorrowedFd<'a>),
}

/// What makes more than a network of a namespace: a host.
pub(crate) struct Identity<'a> {
    /// Its host name.
    pub name: &'a CStr,
    /// Its `/etc/hosts`.
    pub hosts_file: &'a [u8],
}

/// A step, whose number is what is reported when it fails.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    UserNamespace = 1,
    MapUsers,
    JoinUser,
    Namespaces,
    Mounts,
    HostName,
    Netlink,
}

/// Which of these is in the way cannot be told from the error number.
const ALLOW: &str = "run as root; or allow user namespaces: sysctl user.max_user_namespaces=10000, on Ubuntu \
                     kernel.apparmor_restrict_unprivileged_userns=0; a container needs --cap-add SYS_ADMIN \
                     --cap-add NET_ADMIN and a seccomp profile that allows unshare and mount";

impl Step {
    /// The step of this number.
    pub(crate) fn numbered(number: i32) -> Option<Step> {
        use Step::*;
        [UserNamespace, MapUsers, JoinUser, Namespaces, Mounts, HostName, Netlink]
            .into_iter()
            .find(|step| *step as i32 == number)
    }

    /// What its failure means. Namespaces that are not allowed are a refusal, anything else is an error.
    pub(crate) fn error(self, source: io::Error) -> TestbedError {
        let forbidden = matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSPC));
        let (order, refusal, remedy) = self.meaning();
        match refusal {
            Some(refusal) if forbidden => {
                let cause = format!("{refusal}: {source}");
                Refused { cause, remedy: ALLOW.to_owned() }.into()
            }
            _ => TestbedError::Kernel { step: order.to_owned(), source, remedy },
        }
    }

    /// The step as an order, the meaning of a refusal, and the cause to look for after any other failure.
    fn meaning(self) -> (&'static str, Option<&'static str>, &'static str) {
        match self {
            Step::UserNamespace => (
                "make a user namespace",
                Some("this user is not root and may not make a user namespace"),
                "does this kernel have USER_NS? else run as root",
            ),
            Step::MapUsers | Step::JoinUser => (
                "become root in a user namespace",
                Some("this user may not be root in its own user namespace"),
                "is /proc mounted?",
            ),
            Step::Namespaces => (
                "make namespaces",
                Some("network, mount and host name namespaces are forbidden"),
                "does this kernel have NET_NS, UTS_NS and IPC_NS?",
            ),
            Step::Mounts => (
                "mount a private /dev/shm and /etc/hosts",
                Some("mounting in an own mount namespace is forbidden"),
                "does this kernel have tmpfs?",
            ),
            Step::HostName => ("name a host", None, "is sethostname forbidden?"),
            Step::Netlink => ("talk to the kernel's network", None, "does this kernel have netlink?"),
        }
    }
}

/// The lines for `/proc/self/uid_map` and `gid_map`, written down before the fork.
pub(crate) struct IdMaps {
    uid: String,
    gid: String,
}

impl IdMaps {
    /// That make this user root.
    pub(crate) fn of_this_user() -> IdMaps {
        IdMaps { uid: format!("0 {} 1\n", geteuid().as_raw()), gid: format!("0 {} 1\n", getegid().as_raw()) }
    }
}

type Birth<T> = Result<T, (Step, Errno)>;

/// Puts this process into namespaces of its own; gives a netlink socket of its network.
pub(crate) fn be_born(user: &User<'_>, maps: &IdMaps, host: Option<&Identity<'_>>) -> Birth<OwnedFd> {
    settle_user(user, maps)?;
    let mut spaces = UnshareFlags::NEWNET;
    if host.is_some() {
        spaces |= UnshareFlags::NEWUTS | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    }
    sys::unshare(spaces).map_err(|errno| (Step::Namespaces, errno))?;
    if let Some(host) = host {
        mounts::mount_own(host.hosts_file).map_err(|errno| (Step::Mounts, errno))?;
        rustix::system::sethostname(host.name.to_bytes()).map_err(|errno| (Step::HostName, errno))?;
    }
    // Protocol 0 of this family is rtnetlink.
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|errno| (Step::Netlink, errno))
}

fn settle_user(user: &User<'_>, maps: &IdMaps) -> Birth<()> {
    match user {
        User::Same => Ok(()),
        User::Of(other) => move_into_thread_name_spaces(*other, ThreadNameSpaceType::USER)
            .map_err(|errno| (Step::JoinUser, errno)),
        User::New => {
            sys::unshare(UnshareFlags::NEWUSER).map_err(|errno| (Step::UserNamespace, errno))?;
            // Without "deny" the kernel lets nobody map a group (user_namespaces(7)).
            write(c"/proc/self/setgroups", b"deny")
                .and_then(|()| write(c"/proc/self/uid_map", maps.uid.as_bytes()))
                .and_then(|()| write(c"/proc/self/gid_map", maps.gid.as_bytes()))
                .map_err(|errno| (Step::MapUsers, errno))
        }
    }
}

fn write(path: &CStr, text: &[u8]) -> rustix::io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_is_a_refusal_and_what_is_missing_an_error() {
        let error =
            |number: i32, errno| Step::numbered(number).unwrap().error(io::Error::from_raw_os_error(errno));
        assert!(matches!(error(1, libc::EPERM), TestbedError::Refused(_)));
        assert!(matches!(error(4, libc::EPERM), TestbedError::Refused(_)));
        assert!(matches!(error(4, libc::EINVAL), TestbedError::Kernel { .. }));
        assert!(matches!(error(7, libc::EPERM), TestbedError::Kernel { .. }));
        assert!(Step::numbered(0).is_none() && Step::numbered(8).is_none());
    }
}
