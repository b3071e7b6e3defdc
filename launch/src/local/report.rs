//! The result of a job: the end of each rank, and the exit code of the launcher.

use std::fmt;

use serde::{Deserialize, Serialize};

/// End of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankStatus {
    /// Exit with this code.
    Exited(i32),
    /// Killed by a signal.
    Killed {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core file.
        core: bool,
    },
}

impl RankStatus {
    /// Returns the code as in shells: the exit code, or 128 plus the signal's number.
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
    /// Its process identifier.
    pub pid: u32,
    /// Its end.
    pub status: RankStatus,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// 0 if all ranks exited with 0. Otherwise the first failure: a rank's exit code, 128 plus the number
    /// of the signal that killed it, the code of an abort, 124 for the time limit, or 1 for a rank that
    /// exited without finalizing. Between 0 and 255.
    pub code: i32,
    /// All ranks in the order of their ends, without those of a lost host.
    pub ranks: Vec<RankEnd>,
    /// Reason why the launcher ended the job, as reported on standard error; `None` if the ranks ended by
    /// themselves.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_texts_are_those_of_shells() {
        assert_eq!(RankStatus::Exited(3).code(), 3);
        let killed = RankStatus::Killed { signal: libc::SIGSEGV, core: true };
        assert_eq!(killed.code(), 139);
        assert_eq!(killed.to_string(), "was killed by SIGSEGV (core dumped)");
        assert_eq!(RankStatus::Killed { signal: 63, core: false }.to_string(), "was killed by signal 63");
    }
}
