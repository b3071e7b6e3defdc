//! Jobs on several machines.
//!
//! The launcher (the *head*) starts one *agent* on each host, through ssh or another remote command. The
//! agent is the same program, called with [`AGENT_WORD`]. With many hosts, agents start further agents, as
//! a tree. The initial information of an agent, above all the secret of the job, comes on its standard
//! input ([`message::Intro`]), so it is on no command line. The agent then connects to the head over TCP;
//! both prove that they know the secret ([`proof`]). On that connection the head sends the ranks to start,
//! signals and input; the agent sends output, ends of ranks and the values that ranks put. Ranks use PMI-1
//! with their agent. The values of all ranks, which each host gets at the end of a fence, go along a tree of
//! agents ([`tree`]).
//!
//! An agent whose connection or standard input ends kills its ranks: no rank outlives the head, the ssh or
//! the network between them. The head detects a silent host by TCP keepalive ([`channel`]).
//!
//! | file | subject |
//! |---|---|
//! | `layout` | placement of ranks on machines |
//! | `start`, `starter` | starting agents, and the commands that started them |
//! | `message`, `channel`, `proof` | messages of head and agent, their transport, proof of identity |
//! | `head`, `hosts`, `jobs`, `feed`, `admission` | the launcher: loop, hosts and jobs, input, admission |
//! | `head/end` | the end of a job |
//! | `agent`, `crew`, `party`, `join` | the host's side: loop, all ranks, those of a job, connection |
//! | `tree`, `relay` | messages that agents pass on: the head's side and the agents' |
//! | `allocation`, `handover` | Slurm, Flux and PBS; PRRTE and Hydra |
//! | `environment` | environment variables for other hosts |

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
mod jobs;
mod join;
mod layout;
mod message;
mod party;
mod proof;
mod relay;
pub(crate) mod start;
pub mod starter;
pub mod tree;
pub mod way;

pub use layout::{Machine, Machines, Share, place, slots};

/// First command-line word that makes the program an agent.
pub const AGENT_WORD: &str = "--launch-agent";
