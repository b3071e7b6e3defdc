//! Messages between head and agents, and the first line for an agent.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::way::Starting;
use crate::binding::Binding;
use crate::local::{Output, Program};
use crate::pmi::server::{Absent, Phase};
use crate::pmi::spawn::Request;

/// Version of the protocol; different versions do not understand each other.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/7");

/// Prefix of the first line on an agent's standard input.
const GREETING: &str = "nmad-agent";

/// Initial information for an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Intro {
    pub secret: [u8; 32],
    /// Addresses of the head; at least one is reachable.
    pub addresses: Vec<SocketAddr>,
    pub node: Node,
    /// Further hosts with their numbers, whose agents this one starts.
    pub below: Vec<(u32, String)>,
    pub starting: Starting,
    /// Whether the end of standard input means that the head, or the command that started the agent, is
    /// gone.
    pub input_stays: bool,
}

/// The host of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Node {
    /// The host with this number.
    Number(u32),
    /// The host whose name is in this variable, or is the system's host name.
    Named { variable: String, hosts: Vec<String> },
}

impl Intro {
    /// Returns the line for standard input: the version, and the rest in hexadecimal, so that another
    /// version can report its own.
    pub fn to_line(&self) -> String {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{GREETING} {VERSION} {digits}\n")
    }

    /// Parses a line of [`Intro::to_line`].
    ///
    /// # Errors
    /// The error as a message for the user.
    pub fn from_line(line: &str) -> Result<Intro, String> {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(GREETING) {
            return Err("only `mpiexec` can start an agent: its first line is missing".into());
        }
        match words.next() {
            Some(VERSION) => {}
            version => {
                let theirs = version.and_then(|text| text.split('/').next()).unwrap_or("an unknown one");
                return Err(format!(
                    "this host has version {} of NewMadeleine, and the mpiexec that starts it has version \
                     {theirs}; install the same version on all hosts",
                    env!("CARGO_PKG_VERSION")
                ));
            }
        }
        let digits = words.next().unwrap_or_default();
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        let intro = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        intro.ok_or_else(|| {
            "the first line from mpiexec was cut off or changed on its way to this host".into()
        })
    }
}

/// Messages from an agent to the head.
#[derive(Debug, Serialize, Deserialize)]
pub enum Up {
    /// The first message: the number of the host, a fresh random number, and a public key.
    Hello { node: u32, nonce: [u8; 32], key: [u8; 32] },
    /// The second message: the proof that the agent knows the secret. All later messages are encrypted.
    Proof([u8; 32]),
    /// A message for the user.
    Note(String),
    /// A line about a binding.
    Bound(String),
    /// Output of ranks: 0 is standard output, 1 standard error.
    Output(u8, Vec<u8>),
    /// The current piece of input was taken.
    InputTaken,
    /// A message about the job with this number: 0 is that of the user, others were spawned.
    Job(u32, JobUp),
    /// A rank aborts the job.
    Abort { rank: u32, code: i32, why: String },
    /// An agent that this one started is gone: its host, and the reason as far as known.
    Below { node: u32, why: String },
    /// This agent received a signal.
    Interrupted(i32),
    /// A message about the connections to other agents.
    Relay(RelayUp),
}

/// Messages from an agent to the head about its connections to other agents.
#[derive(Debug, Serialize, Deserialize)]
pub enum RelayUp {
    /// Addresses at which other agents reach this one, the answer to [`Down::Listen`].
    Port(Vec<SocketAddr>),
    /// The agent of this host has connected to this one.
    Connected(u32),
    /// The connection of the agent of this host to this one has ended.
    Gone(u32),
}

/// Messages from an agent to the head about one job.
#[derive(Debug, Serialize, Deserialize)]
pub enum JobUp {
    /// The ranks of this host run.
    Started,
    /// A rank cannot be started: the exit code of the job, and the reason.
    Failed { code: i32, why: String },
    /// A rank waits in the fence.
    Waiting(u32),
    /// A rank will not join any further fence.
    Absent(Absent),
    /// All ranks here are in a fence; with the values that they put before, as
    /// [`crate::pmi::delta::write_pairs`] writes them.
    Fence(String),
    /// A rank cannot reach another one.
    Unreachable { by: u32, rank: u32 },
    /// A member, by its number on this host, asks for more processes.
    Spawn(u32, Request),
    /// A rank has ended.
    Ended { rank: u32, pid: u32, status: crate::RankStatus, phase: Phase },
}

/// Messages from the head to an agent.
#[derive(Debug, Serialize, Deserialize)]
pub enum Down {
    /// The proof that the head knows the secret, a fresh random number of the head, and its public key.
    Proof { nonce: [u8; 32], key: [u8; 32], proof: [u8; 32] },
    /// A message about the job with this number.
    Job(u32, JobDown),
    /// A signal for all ranks.
    Signal(i32),
    /// A piece of input for the ranks that read it.
    Input(Vec<u8>),
    /// The end of input.
    InputEnd,
    /// Standard output (0) or error (1) has no reader any more.
    Deaf(u8),
    /// The head has taken this number of bytes of output.
    Taken(u32),
    /// Open a port for other agents, to which this one will pass messages on.
    Listen(Listen),
    /// Connect to the agent at these addresses, which will pass messages on to this one.
    Parent(Vec<SocketAddr>),
    /// The job is over.
    Bye,
}

/// The port of an agent for those to which it passes messages on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listen {
    /// Their hosts, with names for messages to the user.
    pub children: Vec<(u32, String)>,
    /// How long one may not answer before its connection is closed.
    pub silence: Duration,
    /// Time limit for them to connect.
    pub limit: Duration,
}

/// Messages from the head to an agent about one job.
#[derive(Debug, Serialize, Deserialize)]
pub enum JobDown {
    /// Start these ranks.
    Start(Box<Work>),
    /// Kill all ranks, since another host could not start its ranks or was lost.
    End,
    /// All hosts are in the fence.
    Release(Release),
    /// The answer to the spawn request of a member: the number of processes, or the refusal.
    Spawned(u32, Result<u32, String>),
    /// End this rank, which another one cannot reach.
    EndUnreachable(u32),
    /// Ranks of the job have died. It may overtake a [`JobDown::Release`] that comes along the tree, which
    /// does not matter: ranks read deaths from a pipe and the end of a fence from their PMI connection, so
    /// they see no order of the two on one host either.
    Died(Vec<u32>),
}

/// The end of a fence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Release {
    /// The number of the fence, counted from 1. A host may get a release twice.
    pub fence: u32,
    /// All values that were put, as the hosts sent them.
    pub put: Vec<String>,
    /// Whether agents pass it on to those that are connected to them.
    pub is_for_all: bool,
}

/// Work of one host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work {
    /// The job's name.
    pub job: String,
    /// The secret of its ranks.
    pub secret: [u8; 32],
    /// Number of ranks of the job.
    pub size: u32,
    pub mapping: String,
    /// Initial values in the key-value space.
    pub preset: Vec<(String, String)>,
    /// The name of this host in the user's list.
    pub host: String,
    pub programs: Vec<Command>,
    pub seats: Vec<Place>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Variables of the agent's environment that ranks get; `None` for all.
    pub inherit: Option<Vec<Vec<u8>>>,
    pub output: Output,
    pub binding: Binding,
    pub report_bindings: bool,
    /// Whether the job survives deaths (`--ft`).
    pub ft: bool,
}

/// A rank of this host, and the number of its program.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Place {
    pub rank: u32,
    pub program: u32,
    pub reads_stdin: bool,
}

/// A [`Program`] in a message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Command {
    words: Vec<Vec<u8>>,
    env: Vec<(Vec<u8>, Vec<u8>)>,
    folder: Vec<u8>,
}

impl Command {
    /// Converts a program; its folder is relative to `folder`.
    pub fn of(program: &Program, folder: &std::path::Path) -> Command {
        let words = std::iter::once(&program.program).chain(&program.args);
        let folder = folder.join(program.folder.as_deref().unwrap_or(folder));
        Command {
            words: words.map(|word| word.as_bytes().to_vec()).collect(),
            env: pairs_out(&program.env),
            folder: folder.into_os_string().into_vec(),
        }
    }

    /// Converts to the program on the host.
    pub fn program(self) -> Program {
        let mut words = self.words.into_iter().map(OsString::from_vec);
        Program {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            count: 0,
            env: pairs_in(self.env),
            folder: Some(PathBuf::from(OsString::from_vec(self.folder))),
        }
    }
}

/// Converts variables to bytes.
pub fn pairs_out(pairs: &[(OsString, OsString)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Converts variables from bytes.
pub fn pairs_in(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(OsString, OsString)> {
    let pair = |(name, value)| (OsString::from_vec(name), OsString::from_vec(value));
    pairs.into_iter().map(pair).collect()
}

/// Encodes a message: its length in four bytes, little endian, and its bytes.
pub fn packed(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    // Encoding fails only for types without a known length, which these messages do not contain.
    bytes.extend(postcard::to_stdvec(message).unwrap_or_default());
    let len = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// Decodes a message, without its length.
pub fn unpacked<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::way::Way;

    fn intro() -> Intro {
        Intro {
            secret: [7; 32],
            addresses: vec!["10.88.0.1:4000".parse().expect("an address")],
            node: Node::Number(3),
            below: vec![(4, "host4".into())],
            starting: Starting { way: Way::Shell(vec!["ssh".into()]), program: "/usr/bin/nmad".into() },
            input_stays: true,
        }
    }

    #[test]
    fn the_initial_information_is_one_line() {
        let line = intro().to_line();
        assert_eq!(line.matches('\n').count(), 1);
        let read = Intro::from_line(&line).expect("it is the same version");
        assert_eq!((read.secret, read.below), ([7; 32], vec![(4, "host4".to_string())]));
    }

    #[test]
    fn malformed_lines_are_explained() {
        let line = intro().to_line();
        let other = line.replace(VERSION, "9.9.9/1");
        for (line, words) in [
            ("", "only `mpiexec` can start an agent"),
            (other.as_str(), "the mpiexec that starts it has version 9.9.9"),
            (&line[..line.len() / 2], "cut off"),
            (&format!("{GREETING} {VERSION} zz"), "cut off"),
            (&format!("{GREETING} {VERSION} é"), "cut off"),
        ] {
            let why = Intro::from_line(line).expect_err(line);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn damaged_messages_are_refused() {
        let bytes = packed(&Up::Note("hello".into()));
        assert!(matches!(unpacked::<Up>(&bytes[4..]), Some(Up::Note(text)) if text == "hello"));
        assert!(unpacked::<Up>(&bytes[4..bytes.len() - 1]).is_none());
        assert!(unpacked::<Up>(&[255; 9]).is_none());
    }
}
