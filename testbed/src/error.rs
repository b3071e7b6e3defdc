//! What can go wrong, worded with the remedy.

use std::io;

/// This machine does not let this user make network namespaces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no testbed on this machine: {cause} ({remedy})")]
pub struct Refused {
    /// The step that failed and the kernel's answer.
    pub cause: String,
    /// The change that the owner of the machine can make.
    pub remedy: String,
}

/// Why a testbed could not be built, changed or used.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Neither root nor a user namespace may make hosts here.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The [`crate::Spec`] asks for what cannot be.
    #[error("{what}")]
    Spec {
        /// Which field and its limits.
        what: String,
    },
    /// The kernel did not do one step.
    #[error("cannot {step}: {source} ({remedy})")]
    Kernel {
        /// The step, as an order: `create rail r0`.
        step: String,
        /// What the kernel answered.
        source: io::Error,
        /// What to look at.
        remedy: &'static str,
    },
    /// There is no such host in this testbed.
    #[error("there is no host {asked} here: the hosts are host0 to host{last}")]
    NoSuchHost {
        /// The name or number that was asked for.
        asked: String,
        /// The number of the last host.
        last: u32,
    },
    /// There is no such rail in this testbed.
    #[error("there is no rail {asked} here (`nmad testbed --show` lists the rails)")]
    NoSuchRail {
        /// The name that was asked for.
        asked: String,
    },
    /// A program could not be started in a host.
    #[error("{host}: cannot run {program}: {source}")]
    Start {
        /// Where.
        host: String,
        /// What.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// `NMAD_TESTBED` is not set.
    #[error(
        "this program does not run in a testbed: NMAD_TESTBED is not set (start it by `nmad testbed -- ...`)"
    )]
    NotInside,
    /// `NMAD_TESTBED` is set to something else than a list of hosts.
    #[error("NMAD_TESTBED is damaged at `{at}`: expected host0=PROGRAM testbed-enter PID;host1=...")]
    Environment {
        /// The part that could not be read.
        at: String,
    },
}
