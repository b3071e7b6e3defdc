//! Starts agents: the command for each method, and its process on this host.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use super::AGENT_WORD;
use super::message::{Intro, Node};
use super::way::Way;
use crate::local::output::{LineStart, Source};
use crate::{LaunchError, os};

/// Number of agents that one process starts; those start the others.
const FANOUT: usize = 32;

/// Number of shown lines of a failed command.
const LINES_TOLD: usize = 4;

/// Largest pipe buffer, if the system allows it; the pipe takes this much before the other side reads.
const PIPE_MAX: usize = 1 << 20;

/// A process here that connects to one agent, or to all of them.
struct Leader {
    child: Child,
    /// Its host; `None` for all hosts.
    node: Option<u32>,
    host: String,
    words: Option<Source>,
    /// Its output that was not yet shown.
    unshown: Vec<u8>,
    /// Whether its output is reported at once.
    is_reported: bool,
    alive: bool,
}

/// A leader that is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its host; `None` for all hosts.
    pub node: Option<u32>,
    /// The reason as far as known, without the name of the host.
    pub why: String,
}

/// The processes here that connect to agents. Dropping this kills them.
#[derive(Default)]
pub struct Leaders {
    list: Vec<Leader>,
}

impl Leaders {
    /// Starts the agents of these hosts through a remote shell: some of them from here, which start the
    /// others.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn start_tree(&mut self, hosts: &[(u32, String)], intro: &Intro) -> Result<(), LaunchError> {
        let Way::Shell(command) = &intro.starting.way else { return Ok(()) };
        for group in hosts.chunks(hosts.len().div_ceil(FANOUT).max(1)) {
            let [(node, host), below @ ..] = group else { continue };
            let mut words = command.clone();
            let program = shlex::try_quote(&intro.starting.program).unwrap_or_default();
            words.extend([host.clone(), program.into_owned(), AGENT_WORD.to_owned()]);
            let line = Intro { node: Node::Number(*node), below: below.to_vec(), ..intro.clone() }.to_line();
            self.start(&words, Some(*node), host, &line)?;
        }
        Ok(())
    }

    /// Starts a command with `line` on its standard input, which stays open.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn start(
        &mut self,
        words: &[String],
        node: Option<u32>,
        host: &str,
        line: &str,
    ) -> Result<(), LaunchError> {
        let Some((program, args)) = words.split_first() else {
            return Err(LaunchError::Job("the command that starts agents is empty".into()));
        };
        let failed = |source: std::io::Error| LaunchError::Agent {
            host: host.to_owned(),
            why: format!("{program} cannot be started: {source}"),
        };
        let (ours, theirs) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).process_group(0);
        command.stdout(theirs.try_clone().map_err(failed)?).stderr(theirs);
        os::prepare_child(&mut command, os::Before::default());
        let mut child = command.spawn().map_err(failed)?;
        if let Some(stdin) = &mut child.stdin {
            let _ = rustix::pipe::fcntl_setpipe_size(&*stdin, line.len().clamp(1 << 16, PIPE_MAX));
            // If the command is gone already, its end gives the reason.
            let _ = stdin.write_all(line.as_bytes());
        }
        let ours = OwnedFd::from(ours);
        let _ = rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK);
        let words = Some(Source::new(ours, LineStart::default()));
        let host = host.to_owned();
        self.list.push(Leader {
            child,
            node,
            host,
            words,
            unshown: Vec::new(),
            is_reported: false,
            alive: true,
        });
        Ok(())
    }

    /// Returns the open outputs, each with a number for [`Leaders::listen`].
    pub fn outputs(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let leaders = self.list.iter().enumerate();
        leaders.filter_map(|(number, leader)| Some((number, leader.words.as_ref()?.as_fd())))
    }

    /// Reads an output; returns lines for the user.
    pub fn listen(&mut self, number: usize) -> Vec<String> {
        let leader = &mut self.list[number];
        if let Some(words) = &mut leader.words
            && !words.pump(&mut leader.unshown)
        {
            leader.words = None;
        }
        // Messages of a failed command are shorter than this.
        leader.unshown.drain(..leader.unshown.len().saturating_sub(64 * 1024));
        if leader.is_reported { leader.lines() } else { Vec::new() }
    }

    /// Records that the agent of a host has connected: earlier output of its command is dropped, later
    /// output is reported.
    pub fn came(&mut self, node: u32) {
        for leader in self.list.iter_mut().filter(|leader| leader.node.is_none_or(|own| own == node)) {
            leader.is_reported = true;
            leader.unshown.clear();
        }
    }

    /// Kills the command of a host that is given up.
    pub fn give_up(&mut self, node: u32) {
        for leader in self.list.iter().filter(|leader| leader.alive && leader.node == Some(node)) {
            leader.kill();
        }
    }

    /// Returns whether a command is left.
    pub fn any_alive(&self) -> bool {
        self.list.iter().any(|leader| leader.alive)
    }

    /// Returns the commands that ended since the last call.
    pub fn reap(&mut self) -> Vec<Gone> {
        let mut gone = Vec::new();
        for leader in self.list.iter_mut().filter(|leader| leader.alive) {
            let Ok(Some(status)) = leader.child.try_wait() else { continue };
            leader.alive = false;
            if let Some(words) = leader.words.take() {
                words.drain(&mut leader.unshown);
            }
            let how = match (status.code(), status.signal()) {
                (Some(code), _) => format!("exited with code {code}"),
                (None, signal) => format!("was killed by signal {}", signal.unwrap_or(0)),
            };
            gone.push(Gone { node: leader.node, why: leader.why(&how) });
        }
        gone
    }
}

impl Drop for Leaders {
    fn drop(&mut self) {
        for leader in self.list.iter_mut().filter(|leader| leader.alive) {
            leader.kill();
            let _ = leader.child.wait();
        }
    }
}

impl Leader {
    fn kill(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Takes complete lines that were not yet reported.
    fn lines(&mut self) -> Vec<String> {
        let end = self.unshown.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let text: Vec<u8> = self.unshown.drain(..end).collect();
        let host = &self.host;
        String::from_utf8_lossy(&text).lines().map(|line| format!("{host}: {line}")).collect()
    }

    /// Returns the reason of its end: its last output and, for well-known errors, the remedy.
    fn why(&self, how: &str) -> String {
        let text = String::from_utf8_lossy(&self.unshown);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_TOLD)..].join("; ");
        let said = if last.is_empty() { String::new() } else { format!(": {last}") };
        let host = &self.host;
        let remedy = match &*text {
            text if text.contains("Permission denied") || text.contains("keyboard-interactive") => {
                format!("; `ssh {host} true` has to work without a password, by a key")
            }
            text if text.contains("Host key verification failed") => {
                format!("; accept the key of the host once with `ssh {host} true`")
            }
            text if text.contains("not resolve") || text.contains("Name or service not known") => {
                "; is the name of the host right?".into()
            }
            text if how.ends_with("code 127") || text.contains("No such file") => {
                "; NewMadeleine has to be installed there too, at the same path or where --prefix says".into()
            }
            _ => String::new(),
        };
        format!("the command that starts ranks there {how}{said}{remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::way::ssh;
    use std::time::{Duration, Instant};

    fn end_of(script: &str) -> Gone {
        let mut leaders = Leaders::default();
        let words = ["sh", "-c", script].map(str::to_owned);
        leaders.start(&words, Some(2), "far", "hello\n").expect("there is a shell");
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(gone) = leaders.reap().pop() {
                assert!(!leaders.any_alive());
                return gone;
            }
            assert!(Instant::now() < limit, "it does not end");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_command_that_fails_is_explained() {
        for (script, words) in [
            ("exit 3", "exited with code 3"),
            ("kill -9 $$", "killed by signal 9"),
            ("read -r line; echo got $line >&2; exit 1", "got hello"),
            ("echo 'root@far: Permission denied (publickey).'; exit 255", "without a password"),
            ("echo 'Host key verification failed.'; exit 255", "accept the key"),
            ("echo 'Could not resolve hostname far'; exit 255", "name of the host right"),
            ("no-such-command-here", "installed there too"),
        ] {
            let gone = end_of(script);
            assert!(gone.node == Some(2) && gone.why.contains(words), "{script}: {gone:?}");
        }
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error_that_names_the_host() {
        let words = ["no-such-command-here".to_owned()];
        let error = Leaders::default().start(&words, None, "far", "").expect_err("there is none").to_string();
        assert!(error.contains("far") && error.contains("no-such-command-here cannot be started"), "{error}");
    }

    #[test]
    fn ssh_never_asks_for_a_password() {
        let Way::Shell(words) = ssh("ssh", &["-p".into(), "2222".into()]) else { panic!("it is a shell") };
        assert!(words.contains(&"BatchMode=yes".into()) && words.ends_with(&["-p".into(), "2222".into()]));
    }
}
