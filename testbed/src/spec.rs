//! What a testbed is asked to be.

use crate::address::{MAX_HOSTS, MAX_RAILS};
use crate::{Rate, TestbedError};
use std::path::PathBuf;

/// The hosts and rails of a testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of hosts, 2 to 250.
    pub hosts: u32,
    /// One rate for each rail, 1 to 32 rails. Every rail joins all hosts.
    pub rails: Vec<Rate>,
    /// The program that [`crate::Host::prefix`] names: one that understands `testbed-enter PID COMMAND...`
    /// by calling [`crate::cli::enter_main`] or [`crate::enter()`]. `None` is the program that is running.
    pub enter: Option<PathBuf>,
}

impl Spec {
    /// `hosts` hosts joined by rails of the rates `rails`; this program enters them.
    pub fn new(hosts: u32, rails: Vec<Rate>) -> Spec {
        Spec { hosts, rails, enter: None }
    }

    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<(), TestbedError> {
        if !(2..=MAX_HOSTS).contains(&self.hosts) {
            let what = format!("{} hosts: a testbed has 2 to {MAX_HOSTS}", self.hosts);
            return Err(TestbedError::Spec { what });
        }
        if !(1..=MAX_RAILS).contains(&self.rails.len()) {
            let what = format!("{} rails: a testbed has 1 to {MAX_RAILS}", self.rails.len());
            return Err(TestbedError::Spec { what });
        }
        Ok(())
    }

    /// The command prefix, without its last word (the PID).
    ///
    /// It travels in an environment variable whose separators are a blank and a semicolon.
    pub(crate) fn prefix(&self) -> Result<Vec<String>, TestbedError> {
        let program = match &self.enter {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|source| TestbedError::Kernel {
                step: "find the path of this program".to_owned(),
                source,
                remedy: "is /proc mounted?",
            })?,
        };
        match program.to_str() {
            Some(text) if !text.contains([' ', ';', '\t', '\n']) => {
                Ok(vec![text.to_owned(), "testbed-enter".to_owned()])
            }
            _ => {
                let what = format!("the program {program:?} has a blank, `;` or non-UTF-8 bytes in its path");
                Err(TestbedError::Spec { what: what + ": install it elsewhere" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told() {
        for (hosts, rails, word) in [(1, 1, "hosts"), (251, 1, "hosts"), (2, 0, "rails"), (2, 33, "rails")] {
            let error = Spec::new(hosts, vec![Rate::Unlimited; rails]).check().unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        Spec::new(2, vec![Rate::Unlimited]).check().unwrap();
    }

    #[test]
    fn a_program_with_a_blank_in_its_path_cannot_be_a_prefix() {
        let mut spec = Spec::new(2, vec![Rate::Unlimited]);
        spec.enter = Some("/opt/my tools/nmad".into());
        assert!(spec.prefix().unwrap_err().to_string().contains("blank"));
    }
}
