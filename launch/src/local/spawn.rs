//! Starting one rank: its command line, its environment, its descriptors.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::Job;
use crate::variables::STARTED_BY_US;
use crate::{LaunchError, Secret, os, secret};

/// Variables of a launcher around us would mislead a rank about who its own launcher is.
const FOREIGN: [&str; 4] = ["PMI_", "PMIX_", "HYDI_", "MPI_LOCAL"];

/// A rank that runs, and our ends of what connects it. None of the descriptors blocks.
pub struct Started {
    pub pid: Pid,
    pub talk: OwnedFd,
    pub stdin: Option<OwnedFd>,
    pub out: Option<OwnedFd>,
    pub err: Option<OwnedFd>,
}

/// Starts rank `rank` of `job` as the leader of a process group of its own.
pub fn spawn(job: &Job, secret: &Secret, rank: u32) -> Result<Started, LaunchError> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| failed(job, rank, error.into()))?;
    let mut command = command(job, rank);
    environment(&mut command, job, secret, rank, std::os::fd::AsRawFd::as_raw_fd(&theirs));
    command.stdin(if job.reads_stdin(rank) { Stdio::piped() } else { Stdio::null() });
    if job.tag_output {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    command.process_group(0);
    os::prepare_child(&mut command, &theirs, cores(job, rank)?);
    let mut child = command.spawn().map_err(|error| failed(job, rank, error))?;
    let started = Started {
        pid: Pid::from_child(&child),
        talk: ours,
        stdin: child.stdin.take().map(OwnedFd::from),
        out: child.stdout.take().map(OwnedFd::from),
        err: child.stderr.take().map(OwnedFd::from),
    };
    for fd in [Some(&started.talk), started.stdin.as_ref(), started.out.as_ref(), started.err.as_ref()] {
        // It cannot fail on a pipe or socket that is open.
        let _ = fd.map(|fd| rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK));
    }
    Ok(started)
}

fn command(job: &Job, rank: u32) -> Command {
    let prefix = job.placement.host(rank).map_or(&[][..], |host| &host.prefix);
    let program = job.program(rank);
    let mut words = prefix.iter().map(OsStr::new).chain([program.program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(&program.args);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}

fn environment(command: &mut Command, job: &Job, secret: &Secret, rank: u32, fd: i32) {
    let foreign = |name: &OsString| FOREIGN.iter().any(|f| name.as_encoded_bytes().starts_with(f.as_bytes()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(name)) {
        command.env_remove(name);
    }
    for (name, value) in job.env.iter().chain(&job.program(rank).env) {
        command.env(name, value);
    }
    let (local, locals) = job.placement.local(rank, job.count());
    for (name, value) in [
        ("PMI_FD", fd.to_string()),
        ("PMI_RANK", rank.to_string()),
        ("PMI_SIZE", job.count().to_string()),
        (STARTED_BY_US, local.to_string()),
        ("NMAD_LOCAL_SIZE", locals.to_string()),
        ("MPI_LOCALRANKID", local.to_string()),
        ("MPI_LOCALNRANKS", locals.to_string()),
        (secret::VARIABLE, secret.to_hex()),
    ] {
        command.env(name, value);
    }
}

fn cores(job: &Job, rank: u32) -> Result<Option<CpuSet>, LaunchError> {
    let Some(cores) = &job.bind else { return Ok(None) };
    let core = cores[rank as usize % cores.len()];
    if core >= CpuSet::MAX_CPU {
        return Err(LaunchError::Job(format!(
            "cannot bind rank {rank} to core {core}: there is no such core"
        )));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(Some(set))
}

fn failed(job: &Job, rank: u32, source: std::io::Error) -> LaunchError {
    let program = command(job, rank).get_program().display().to_string();
    let remedy = match Errno::from_io_error(&source) {
        Some(Errno::NOENT) if program.contains('/') => "is the path right?",
        Some(Errno::NOENT) => "it is not in PATH; a program in this directory is written ./NAME",
        Some(Errno::ACCESS) => "is it a file that may be executed?",
        Some(Errno::NOEXEC) => "is it made for this machine, or a script without #! line?",
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit of open files (ulimit -n) or start fewer ranks",
        Some(Errno::AGAIN | Errno::NOMEM) => "raise the limit of processes (ulimit -u) or start fewer ranks",
        Some(Errno::INVAL) => "is it bound to a core that it may use?",
        _ => "does it start without the launcher?",
    };
    LaunchError::Spawn { rank, program, source, remedy }
}
