//! Methods of starting agents on other hosts.

use serde::{Deserialize, Serialize};

/// Method of starting agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// A command for each host, followed by the host and a command line for the shell there, like ssh.
    Shell(Vec<String>),
    /// One command for all hosts that gives each agent the same input: srun, flux.
    Step {
        /// The command, followed by the program.
        command: Vec<String>,
        /// The variable that contains the name of an agent's host.
        variable: String,
    },
    /// A command for each host, followed by the host and words, that forwards no input: pbs_tmrsh.
    Tasks(Vec<String>),
}

/// Method and program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starting {
    /// Method of starting agents.
    pub way: Way,
    /// The path of this program on the hosts.
    pub program: String,
}

/// Returns ssh with options: it asks for no password, waits for no unknown key, and connects within 10 s.
pub fn ssh(program: &str, more: &[String]) -> Way {
    let options = ["-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"];
    let words = std::iter::once(program).chain(options).map(str::to_owned);
    Way::Shell(words.chain(more.iter().cloned()).collect())
}
