//! How a job ended: each rank, and the one code that the launcher exits with.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How one process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number killed it.
    Killed {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core file.
        core: bool,
    },
}

impl RankStatus {
    /// The code as shells count: the exit code, or 128 and the signal's number.
    pub fn code(self) -> i32 {
        match self {
            RankStatus::Exited(code) => code,
            RankStatus::Killed { signal, .. } => 128 + signal,
        }
    }
}

impl fmt::Display for RankStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RankStatus::Exited(code) => write!(f, "exited with code {code}"),
            RankStatus::Killed { signal, core } => {
                let name = signal_hook::low_level::signal_name(signal);
                match name {
                    Some(name) => write!(f, "was killed by {name}")?,
                    None => write!(f, "was killed by signal {signal}")?,
                }
                f.write_str(if core { " (core dumped)" } else { "" })
            }
        }
    }
}

/// One rank's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankEnd {
    /// The rank.
    pub rank: u32,
    /// The process that it was.
    pub pid: u32,
    /// How it ended.
    pub status: RankStatus,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// 0 if all ranks exited with 0. Otherwise what failed first: a rank's exit code, 128 and the number of
    /// the signal that killed it, the code of an abort, 124 for the time limit, or 1 for a rank that left
    /// without goodbye. Between 0 and 255.
    pub code: i32,
    /// All ranks, in the order in which they ended; without those of a host that was lost.
    pub ranks: Vec<RankEnd>,
    /// Why the launcher ended the job, as it told on standard error; `None` if the ranks ended by themselves.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_as_shells_do() {
        assert_eq!(RankStatus::Exited(3).code(), 3);
        let killed = RankStatus::Killed { signal: libc::SIGSEGV, core: true };
        assert_eq!(killed.code(), 139);
        assert_eq!(killed.to_string(), "was killed by SIGSEGV (core dumped)");
        assert_eq!(RankStatus::Killed { signal: 63, core: false }.to_string(), "was killed by signal 63");
    }
}
