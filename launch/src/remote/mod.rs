//! Jobs on several machines.
//!
//! The launcher (the *head*) starts one *agent* on each host, through ssh or whatever else reaches it; the
//! agent is the same program, called with [`AGENT_WORD`]. With many hosts, agents start further agents, as a
//! tree. What an agent must know to begin, the secret of the job above all, comes on its standard input
//! ([`message::Intro`]), so it is on no command line. It then connects to the head over TCP; both prove that
//! they know the secret ([`proof`]). On that connection come the ranks to start, signals and input; output,
//! ends and what ranks put come back. Ranks speak PMI-1 with their agent.
//!
//! An agent whose connection or standard input ends kills its ranks: nothing outlives the head, the ssh or
//! the network between them. The head notices a host that is silent by TCP's own probes within 5 s
//! ([`channel`]).
//!
//! | file | subject |
//! |---|---|
//! | `layout` | which rank runs on which machine |
//! | `start`, `starter` | which agents are started, and the processes that lead to them |
//! | `message`, `channel`, `proof` | messages of head and agent, their transport, proof of identity |
//! | `head`, `hosts`, `feed`, `admission` | the launcher: the loop, its hosts, input, admission |
//! | `agent`, `crew`, `join` | the host's side: the loop, its ranks, the way to the head |
//! | `allocation`, `handover` | Slurm, Flux and PBS; PRRTE and Hydra |
//! | `environment` | which of our variables are for other hosts |

mod admission;
pub mod agent;
pub mod allocation;
mod channel;
mod crew;
mod environment;
mod feed;
pub mod handover;
pub(crate) mod head;
mod hosts;
mod join;
mod layout;
mod message;
mod proof;
pub(crate) mod start;
pub mod starter;
pub mod way;

pub use layout::{Machine, Machines, Share, place, slots};

/// The word that makes an agent of the program when it is the first on the command line.
pub const AGENT_WORD: &str = "--launch-agent";
