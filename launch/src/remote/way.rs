//! The ways to other hosts.

use serde::{Deserialize, Serialize};

/// How agents get to their hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// A command for each host, followed by the host and a command line for the shell there: ssh and its
    /// likes.
    Shell(Vec<String>),
    /// One command for all hosts, which gives each agent the same input: srun, flux.
    Step {
        /// The command, followed by the program.
        command: Vec<String>,
        /// The variable in which an agent finds the name of its host.
        variable: String,
    },
    /// A command for each host, followed by the host and words, that passes no input: pbs_tmrsh.
    Tasks(Vec<String>),
}

/// Way and program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starting {
    /// How agents get to their hosts.
    pub way: Way,
    /// The path of this program there.
    pub program: String,
}

/// The command and options of ssh: no password is asked for, no unknown key waited for, and no host for long.
pub fn ssh(program: &str, more: &[String]) -> Way {
    let options = ["-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"];
    let words = std::iter::once(program).chain(options).map(str::to_owned);
    Way::Shell(words.chain(more.iter().cloned()).collect())
}
