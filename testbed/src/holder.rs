//! The process that is a host: it owns the namespaces and does nothing but exist.
//!
//! It is forked, not executed, so it allocates nothing and makes system calls only. One socket ties it to
//! its builder: through it the child hands over a netlink socket born in its network namespace, and by its
//! end the child learns that the builder is gone, however it went. (A death signal would not do: it is
//! sent when the *thread* that forked ends.) Knows namespaces; must never know rails.

use crate::{Refused, TestbedError, reaper, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socket_with,
    socketpair,
};
use rustix::process::{Pid, PidfdFlags, WaitOptions, getegid, geteuid, pidfd_open, waitpid};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};
use std::ffi::CStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Which user namespace the holder lives in.
pub(crate) enum User<'a> {
    /// That of its builder.
    Same,
    /// A new one, in which the builder's user is root.
    New,
    /// That of another holder, given by its PID file descriptor.
    Of(BorrowedFd<'a>),
}

/// A process that keeps namespaces alive, and all it holds dies with this value.
pub(crate) struct Holder {
    pid: Pid,
    pidfd: OwnedFd,
    /// Its closing is what ends the holder.
    tie: Option<OwnedFd>,
}

impl Holder {
    /// Starts a holder with a network namespace and, when `host` names one, all else that makes a host.
    /// Gives a netlink socket of that network namespace along.
    pub(crate) fn start(user: User<'_>, host: Option<&CStr>) -> Result<(Holder, OwnedFd), TestbedError> {
        let kernel =
            |source| failed("start the process of a host", source, "is the limit on processes reached?");
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|errno| kernel(errno.into()))?;
        let maps = IdMaps::of_this_user();
        let pid = sys::fork(|| live(theirs.as_fd(), &user, &maps, host)).map_err(kernel)?;
        drop(theirs);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| kernel(errno.into()))?;
        let holder = Holder { pid, pidfd, tie: Some(ours) };
        let socket = holder.receive_birth()?;
        Ok((holder, socket))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Its process, as a file.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Begins to end it and everything that runs in its namespaces; dropping waits for that.
    pub(crate) fn release(&mut self) {
        self.tie = None;
    }

    fn receive_birth(&self) -> Result<OwnedFd, TestbedError> {
        let lost = || failed("start a host", io::ErrorKind::UnexpectedEof.into(), "was its process killed?");
        let tie = self.tie.as_ref().ok_or_else(lost)?;
        let mut word = [0_u8; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(tie, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)
            .map_err(|errno| {
                failed("hear from a new host", errno.into(), "is the limit on open files reached?")
            })?;
        if got.bytes != word.len() {
            return Err(lost());
        }
        let step = i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let errno = i32::from_le_bytes([word[4], word[5], word[6], word[7]]);
        if let Some(step) = Step::ALL.iter().find(|known| **known as i32 == step) {
            return Err(step.error(io::Error::from_raw_os_error(errno)));
        }
        let socket = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        socket.ok_or_else(lost)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release();
        // It can only fail when somebody else has already waited for our child.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// What a holder does before it lives, in order. The number is what it reports when it fails.
#[derive(Clone, Copy)]
enum Step {
    UserNamespace = 1,
    MapUsers,
    JoinUser,
    Namespaces,
    Mounts,
    HostName,
    Netlink,
}

impl Step {
    const ALL: [Step; 7] = [
        Step::UserNamespace,
        Step::MapUsers,
        Step::JoinUser,
        Step::Namespaces,
        Step::Mounts,
        Step::HostName,
        Step::Netlink,
    ];

    /// What the failure means. Namespaces that are not allowed are a refusal, anything else is an error.
    fn error(self, source: io::Error) -> TestbedError {
        let forbidden = matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSPC));
        let refused = |cause: &str, remedy: &str| {
            TestbedError::Refused(Refused { cause: format!("{cause}: {source}"), remedy: remedy.to_owned() })
        };
        match self {
            Step::UserNamespace => refused(
                "this user is not root and may not make a user namespace",
                "run as root, or allow user namespaces: sysctl user.max_user_namespaces=10000, on Ubuntu \
                 kernel.apparmor_restrict_unprivileged_userns=0, in a container --cap-add SYS_ADMIN",
            ),
            Step::MapUsers | Step::JoinUser if forbidden => refused(
                "this user may not be root in its own user namespace",
                "run as root, or look for a security module that restricts user namespaces",
            ),
            Step::Namespaces | Step::Mounts if forbidden => refused(
                "network, mount or host name namespaces are forbidden",
                "a container needs --cap-add SYS_ADMIN --cap-add NET_ADMIN and a seccomp profile that \
                 allows unshare and mount",
            ),
            Step::MapUsers | Step::JoinUser => {
                failed("become root in a user namespace", source, "is /proc mounted?")
            }
            Step::Namespaces => {
                failed("make namespaces", source, "does this kernel have NET_NS, UTS_NS, IPC_NS?")
            }
            Step::Mounts => failed("mount a private /dev/shm", source, "does this kernel have tmpfs?"),
            Step::HostName => failed("name a host", source, "is sethostname forbidden?"),
            Step::Netlink => failed("talk to the kernel's network", source, "does this kernel have netlink?"),
        }
    }
}

fn failed(step: &str, source: io::Error, remedy: &'static str) -> TestbedError {
    TestbedError::Kernel { step: step.to_owned(), source, remedy }
}

/// The lines for `/proc/self/uid_map` and `gid_map`, written down before the fork.
struct IdMaps {
    uid: String,
    gid: String,
}

impl IdMaps {
    fn of_this_user() -> IdMaps {
        IdMaps { uid: format!("0 {} 1\n", geteuid().as_raw()), gid: format!("0 {} 1\n", getegid().as_raw()) }
    }
}

/// The whole life of a holder. Runs in the forked child.
fn live(tie: BorrowedFd<'_>, user: &User<'_>, maps: &IdMaps, host: Option<&CStr>) {
    sys::block_all_signals();
    // Its own session: a key pressed at the terminal is for the programs in the host, not for the host.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(host.unwrap_or(c"nmad-switch"));
    match be_born(user, maps, host) {
        Err((step, errno)) => report(tie, step as i32, errno.raw_os_error(), None),
        Ok(socket) => {
            report(tie, 0, 0, Some(socket.as_fd()));
            sys::close_all_but(tie);
            // Nothing is ever sent: this returns when the builder closes its end or dies.
            while let Err(rustix::io::Errno::INTR) = recv(tie, &mut [0_u8; 1], RecvFlags::empty()) {}
            reaper::kill_neighbours();
        }
    }
}

type Birth<T> = Result<T, (Step, rustix::io::Errno)>;

fn be_born(user: &User<'_>, maps: &IdMaps, host: Option<&CStr>) -> Birth<OwnedFd> {
    settle_user(user, maps)?;
    let mut spaces = UnshareFlags::NEWNET;
    if host.is_some() {
        spaces |= UnshareFlags::NEWUTS | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    }
    sys::unshare(spaces).map_err(|errno| (Step::Namespaces, errno))?;
    if let Some(name) = host {
        mount_private_shared_memory().map_err(|errno| (Step::Mounts, errno))?;
        rustix::system::sethostname(name.to_bytes()).map_err(|errno| (Step::HostName, errno))?;
    }
    let flags = SocketFlags::CLOEXEC;
    // Protocol 0 of this family is rtnetlink.
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).map_err(|errno| (Step::Netlink, errno))
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
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
    rustix::io::write(file, text).map(drop)
}

/// A job across two hosts must not find shared memory between them.
fn mount_private_shared_memory() -> rustix::io::Result<()> {
    // Downstream only: what is mounted here stays here, a disk mounted outside later is still seen.
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match mount(c"testbed", c"/dev/shm", c"tmpfs", flags, c"mode=1777") {
        // Where there is no /dev/shm there is nothing to share.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Tells the builder: step 0 with a socket, or the step that failed and why.
fn report(tie: BorrowedFd<'_>, step: i32, errno: i32, socket: Option<BorrowedFd<'_>>) {
    let mut word = [0_u8; 8];
    word[..4].copy_from_slice(&step.to_le_bytes());
    word[4..].copy_from_slice(&errno.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = socket.map(|socket| [socket]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    // A builder that no longer listens is gone, and then so are we.
    let _ = sendmsg(tie, &[IoSlice::new(&word)], &mut control, SendFlags::NOSIGNAL);
}
