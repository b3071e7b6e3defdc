//! Where the three layers meet, and the only place where they do.
//!
//! This file holds the state and the face; each of its neighbours joins the layers in one direction: `plan`
//! (how a message goes: the `protocol`), `submit` (application to window), `depart` (what rails are given,
//! booked once; `leaving` is a message on its way), `offer` (messages that their receiver copies), `claim`
//! (found now, received later), `dispatch` (window to rail), `chunks` (bodies to rails), `arrive` (rail to
//! application), `plain` (the same for a packet with one message), `kept` (timers of lossy rails),
//! `rendezvous` (large messages both ways), `push` (their beginnings that do not wait), `late` (receivers
//! that let them wait: `lateness`), `parts` (eager messages longer than a packet), `parallel` (eager messages
//! that several cores post), `access` (memory that peers have exposed), `failure` (links and peers that are
//! gone), `suspect` (links that may be), `part` (peers that come and go), `peer` (what the layers keep for
//! one peer: `lane`, `fixed`), `short_way` (past the window), `forecast` (what profiles say for it),
//! `in_force` (the thresholds that follow), `learn` (profiles that transfers correct), `receipt` (how
//! messages went), `traffic` (how many there were), `outcome` (how requests ended).

mod arrive;
mod chunks;
pub(crate) mod claims;
pub(crate) mod depart;
mod dispatch;
pub(crate) mod expected;
mod fail;
pub(crate) mod fixed;
pub(crate) mod lane;
mod outcome;
mod part;
pub(crate) mod peer;
mod short_way;
mod state;
mod submit;
mod thresholds;
mod timers;
mod view;

pub use claims::Claim;
pub use expected::Met;
pub use outcome::NotWell;
pub use state::Engine;
pub use view::{LinkView, Notice, PeerView};
