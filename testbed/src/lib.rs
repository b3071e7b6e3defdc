//! Several hosts with unequal rails on one machine.
//!
//! A host is a set of Linux namespaces (network, host name, mounts, System V shared memory) kept alive by
//! one small process; a rail is a pair of virtual Ethernet devices between two hosts, or a bridge among
//! more, shaped to a rate. It works as root and, where the kernel allows user namespaces, as anybody.
//!
//! ```no_run
//! use nmad_testbed::{Rate, Spec, Testbed};
//! use std::process::Command;
//!
//! let testbed = Testbed::build(&Spec::new(2, vec!["4gbit".parse()?, "2.8gbit".parse()?]))?;
//! let mut receiver = testbed.run(1, Command::new("hostname"))?; // prints host1
//! receiver.wait()?;
//! testbed.set_link(0, 1, false)?; // the second rail loses its carrier
//! testbed.set_rate(0, Rate::Unlimited)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate stands alone below the session: it knows hosts, rails and the kernel's netlink
//! (`nmad-netlink`), and must never know what a message, a rank or a driver is. From the outside in:
//!
//! | file | subject |
//! |---|---|
//! | `cli` | the command: build, run one program in host 0, show, change |
//! | `testbed` | what joins the parts: hosts, the switch, rails |
//! | `inside` | the same seen from a program that runs in it (`NMAD_TESTBED`) |
//! | `method` | root or user namespace, or why neither |
//! | `host`, `wiring` | one host; how a rail is laid between hosts |
//! | `holder` | the process that is a host |
//! | `birth`, `mounts`, `reaper` | its setup, its mounts, the end of all its processes |
//! | `netlink` | the few orders to the kernel's network that rails need |
//! | `sys` | all `unsafe` |
//!
//! Nothing is left behind: there are no names under `/run/netns`, and when the builder ends, however it
//! ends, every process in its hosts is killed and the kernel takes the rails away.
//!
//! Missing: latency (`tc netem`), a private `/sys` (a host sees the machine's own list of interfaces there),
//! private PIDs and a private `/tmp`.

mod address;
mod birth;
pub mod chaos;
pub mod cli;
mod enter;
mod error;
mod holder;
mod host;
mod inside;
mod method;
mod mounts;
mod netlink;
mod rate;
mod reaper;
mod spec;
mod sys;
mod testbed;
mod wiring;

pub use address::{address, address6, rail_name};
pub use enter::enter;
pub use error::{Refused, TestbedError};
pub use host::Host;
pub use inside::{Change, Inside, InsideHost, What, set};
pub use method::Method;
pub use netlink::RailState;
pub use rate::{InvalidRate, Rate};
pub use spec::Spec;
pub use testbed::{Testbed, available};

/// The environment variable that tells a program that it runs in a testbed, and how to reach its hosts:
/// `host0=ARG ARG ARG;host1=ARG ARG ARG`, the arguments being a command prefix that enters the host.
pub const ENVIRONMENT: &str = "NMAD_TESTBED";
