//! Starts one rank: command line, environment, descriptors.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;

use super::destination::Writer;
use super::guard::Guard;
use super::{Inherit, Output, Program};
use crate::deaths::{self, Reporter};
use crate::{LaunchError, Secret, os, secret};
use nmad_words::setting::{LOCAL_RANK, LOCAL_SIZE};

/// Variables of an outer launcher, which would mislead a rank about its own launcher.
const FOREIGN: [&str; 4] = ["PMI_", "PMIX_", "HYDI_", "MPI_LOCAL"];

/// Variables that ranks always get: they locate programs, libraries, files and the user.
const BASIC: [&str; 9] =
    ["PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR"];

/// Parameters of a rank to be started on this host.
pub struct Seat<'a> {
    pub rank: u32,
    /// Its number among the ranks that this process starts.
    pub place: u32,
    /// Number of ranks of the job.
    pub size: u32,
    /// Its number on its host.
    pub local: u32,
    /// Number of ranks on its host.
    pub locals: u32,
    pub program: &'a Program,
    /// The prefix command of its host.
    pub prefix: &'a [String],
    pub inherit: &'a Inherit,
    /// Variables for all ranks of the job.
    pub env: &'a [(OsString, OsString)],
    pub reads_stdin: bool,
    /// Whether its output goes through the launcher, unless it goes to files; otherwise it inherits ours.
    pub piped: bool,
    pub output: &'a Output,
    /// The name of its host, and 0 or the number of its job among the spawned ones: for names of files.
    pub host: String,
    pub group: u32,
    pub cores: Option<CpuSet>,
    /// Whether the launcher reports deaths of other ranks to it.
    pub ft: bool,
}

/// A running rank, and our ends of its connections. None of the descriptors blocks.
pub struct Started {
    pub pid: Pid,
    pub talk: OwnedFd,
    pub deaths: Option<Reporter>,
    pub stdin: Option<OwnedFd>,
    pub out: Option<OwnedFd>,
    pub err: Option<OwnedFd>,
}

/// Starts a rank as the leader of its own process group, which `guard` watches from then on.
pub fn spawn(
    seat: &Seat<'_>,
    secret: &Secret,
    files: Option<Rlimit>,
    guard: &Guard,
) -> Result<Started, LaunchError> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| failed(seat, error.into()))?;
    let deaths = seat.ft.then(Reporter::new).transpose().map_err(|error| failed(seat, error.into()))?;
    let (deaths, reports) = deaths.unzip();
    let mut command = command(seat);
    environment(&mut command, seat, secret, theirs.as_raw_fd());
    match &reports {
        Some(reports) => command.env(deaths::VARIABLE, reports.as_raw_fd().to_string()),
        None => command.env_remove(deaths::VARIABLE),
    };
    command.stdin(if seat.reads_stdin { Stdio::piped() } else { Stdio::null() });
    let writer = Writer { rank: seat.rank, place: seat.place, group: seat.group, host: &seat.host };
    let [out, err] = seat.output.open(writer)?;
    let stream = |file: Option<File>| match file {
        Some(file) => file.into(),
        None if seat.piped => Stdio::piped(),
        None => Stdio::inherit(),
    };
    command.stdout(stream(out)).stderr(stream(err));
    command.process_group(0);
    let guard = guard.orders().map(|orders| (orders, seat.place));
    os::prepare_child(
        &mut command,
        os::Before { keep: [Some(&theirs), reports.as_ref()], guard, cores: seat.cores, files },
    );
    let mut child = command.spawn().map_err(|error| failed(seat, error))?;
    let started = Started {
        pid: Pid::from_child(&child),
        talk: ours,
        deaths,
        stdin: child.stdin.take().map(OwnedFd::from),
        out: child.stdout.take().map(OwnedFd::from),
        err: child.stderr.take().map(OwnedFd::from),
    };
    for fd in [Some(&started.talk), started.stdin.as_ref(), started.out.as_ref(), started.err.as_ref()] {
        // This cannot fail for an open pipe or socket.
        let _ = fd.map(|fd| rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK));
    }
    Ok(started)
}

/// Raises the limit of open files of this process, which has some for each rank. Returns the former limit
/// for the ranks, if it was lower: programs that use select(2) depend on it.
pub fn raise_limit_of_files() -> Option<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return None;
    }
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    setrlimit(Resource::Nofile, raised).ok().map(|()| before)
}

fn command(seat: &Seat<'_>) -> Command {
    let mut words = seat.prefix.iter().map(OsStr::new).chain([seat.program.program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(&seat.program.args);
    if let Some(folder) = &seat.program.folder {
        command.current_dir(folder);
    }
    command
}

fn environment(command: &mut Command, seat: &Seat<'_>, secret: &Secret, fd: i32) {
    let foreign = |name: &OsString| FOREIGN.iter().any(|f| name.as_encoded_bytes().starts_with(f.as_bytes()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(name) || !inherits(seat.inherit, name)) {
        command.env_remove(name);
    }
    for (name, value) in seat.env.iter().chain(&seat.program.env) {
        command.env(name, value);
    }
    let (local, locals) = (seat.local.to_string(), seat.locals.to_string());
    for (name, value) in [
        ("PMI_FD", fd.to_string()),
        ("PMI_RANK", seat.rank.to_string()),
        ("PMI_SIZE", seat.size.to_string()),
        (LOCAL_RANK.name, local.clone()),
        (LOCAL_SIZE.name, locals.clone()),
        ("MPI_LOCALRANKID", local),
        ("MPI_LOCALNRANKS", locals),
        (secret::VARIABLE, secret.to_hex()),
    ] {
        command.env(name, value);
    }
}

/// Returns whether ranks get this variable.
pub fn inherits(what: &Inherit, name: &OsStr) -> bool {
    match what {
        Inherit::All => true,
        Inherit::Only(names) => names.iter().any(|one| one == name) || BASIC.iter().any(|one| *one == name),
    }
}

fn failed(seat: &Seat<'_>, source: std::io::Error) -> LaunchError {
    let command = command(seat);
    let program = command.get_program();
    let folder = seat.program.folder.clone().unwrap_or_default();
    let is_folder = folder.join(program).is_dir() && program.as_encoded_bytes().contains(&b'/');
    let program = program.display().to_string();
    let remedy = match Errno::from_io_error(&source) {
        Some(Errno::NOENT) if program.contains('/') => "is the path right?",
        Some(Errno::NOENT) => "it is not in PATH; a program in this directory is written ./NAME",
        Some(Errno::ACCESS) if is_folder => "it is a folder; name a program in it",
        Some(Errno::ACCESS) => "is it a file that may be executed?",
        Some(Errno::NOEXEC) => "is it made for this machine, or a script without #! line?",
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit of open files (ulimit -n) or start fewer ranks",
        Some(Errno::AGAIN | Errno::NOMEM) => "raise the limit of processes (ulimit -u) or start fewer ranks",
        Some(Errno::INVAL) => "is it bound to a core that it may use?",
        _ => "does it start without the launcher?",
    };
    LaunchError::Spawn { rank: seat.rank, program, source, remedy }
}
