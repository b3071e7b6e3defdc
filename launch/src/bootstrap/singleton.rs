//! A job of one process without a launcher.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};

use super::Bootstrap;
use crate::pmi::spawn::{self, ASKED_WORD, Request, STARTED};
use crate::port::send_all;
use crate::{LaunchError, Secret};

/// The names of our launcher; another MPI may have the second one too.
const LAUNCHERS: [&str; 2] = ["nmad", "mpiexec"];

/// Time limit of the launcher to start processes.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Rank 0 of 1; its values never leave the process.
pub struct Singleton {
    values: HashMap<String, String>,
    secret: Secret,
    job: String,
    /// Launchers of the jobs that this process has spawned.
    launchers: Vec<Child>,
}

impl Singleton {
    pub fn new() -> Result<Singleton, LaunchError> {
        let job = format!("singleton-{}", std::process::id());
        let secret = Secret::random()?;
        Ok(Singleton { values: HashMap::new(), secret, job, launchers: Vec::new() })
    }

    /// Reaps launchers whose jobs have ended.
    fn reap(&mut self) {
        self.launchers.retain_mut(|launcher| matches!(launcher.try_wait(), Ok(None)));
    }
}

/// Finds the file of our launcher.
fn launcher() -> Result<PathBuf, LaunchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = LAUNCHERS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = files.into_iter().find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
    found.ok_or_else(|| {
        LaunchError::NoSpawn(
            "this process was not started by mpiexec, and neither nmad nor mpiexec is in PATH: add the \
             folder bin of NewMadeleine to PATH, or start the program with mpiexec"
                .into(),
        )
    })
}

/// Starts a launcher for a request, and waits until it has started the processes.
fn start(request: &Request) -> Result<Child, LaunchError> {
    let text = spawn::write(request).map_err(LaunchError::NoSpawn)? + "\n";
    let file = launcher()?;
    let failed = |source: std::io::Error| {
        LaunchError::NoSpawn(format!("the launcher {} cannot be used: {source}", file.display()))
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut child =
        Command::new(&file).arg(ASKED_WORD).stdin(OwnedFd::from(theirs)).spawn().map_err(failed)?;
    ours.set_read_timeout(Some(ANSWER_LIMIT)).map_err(failed)?;
    let mut answer = String::new();
    let read = send_all(&ours, text.as_bytes(), Instant::now() + ANSWER_LIMIT).map_err(std::io::Error::other);
    let read = read.and_then(|()| BufReader::new(&ours).read_line(&mut answer));
    match (read, answer.trim()) {
        (Ok(_), STARTED) => return Ok(child),
        (Ok(_), why) if !why.is_empty() => {
            let _ = child.wait();
            return Err(LaunchError::NoSpawn(why.to_owned()));
        }
        _ => {}
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(LaunchError::NoSpawn(format!(
        "the launcher {} has started nothing: is it that of another MPI? The folder bin of NewMadeleine has \
         to come first in PATH",
        file.display()
    )))
}

impl Bootstrap for Singleton {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError> {
        // The rules of launchers apply, so that a program does not work only when alone.
        crate::pmi::value::check_key(key, crate::pmi::server::KEY_MAX)?;
        if self.values.contains_key(key) {
            return Err(LaunchError::Refused {
                doing: format!("put key {key}"),
                why: "it was put before".into(),
            });
        }
        self.values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), LaunchError> {
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        Ok(self.values.get(key).cloned())
    }

    fn nodes(&self) -> &[u32] {
        &[0]
    }

    fn program(&self) -> Option<u32> {
        Some(0)
    }

    fn secret(&self) -> [u8; 32] {
        self.secret.bytes()
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn spawn(&mut self, request: &Request) -> Result<(), LaunchError> {
        self.reap();
        self.launchers.push(start(request)?);
        Ok(())
    }

    fn abort(&mut self, code: i32, why: &str) {
        nmad_words::tell_user(format_args!("nmad: the job ends with code {code}: {why}"));
        self.reap();
        for launcher in &self.launchers {
            // It ends its ranks, like after this signal from the user.
            let _ = kill_process(Pid::from_child(launcher), Signal::TERM);
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(), LaunchError> {
        self.reap();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_job_of_its_own() {
        let mut alone = Singleton::new().unwrap();
        assert_eq!((alone.rank(), alone.size(), alone.nodes()), (0, 1, &[0][..]));
        assert_eq!(alone.program(), Some(0));
        alone.put("card-0", "any text").unwrap();
        assert!(alone.put("card-0", "again").is_err());
        alone.fence().unwrap();
        assert_eq!(alone.get("card-0").unwrap().as_deref(), Some("any text"));
        assert_eq!(alone.get("card-1").unwrap(), None);
        Box::new(alone).finish().unwrap();
    }
}
