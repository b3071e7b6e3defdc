//! The sans-IO core of NewMadeleine. Its folders are the three layers of figure 1 of P1:
//!
//! - [`collect`]: requests of the application, matching, order, the window.
//! - [`schedule`]: the data that an idle rail carries: strategies and the packet builder.
//! - [`profile`]: measured profiles of rails, and predictions of transfer times.
//! - [`transfer`]: orders to rails and their reports: drivers, links, receive regions, credits.
//!
//! - `protocol`: the protocols of messages, one file per protocol.
//! - `receive`: the receives of the application.
//! - `observe`: late receivers, silent links, corrected profiles, receipts.
//!
//! [`Engine`] joins them; [`pump`] is the only loop. The core calls nothing outside itself: it reads no
//! clock, opens no socket and starts no thread. Time is an argument, so that real and simulated hosts run
//! the same code. It must never know which networks exist or how processes found each other.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod clock;
pub mod collect;
mod config;
mod engine;
#[allow(unsafe_code)]
pub mod memory;
mod observe;
pub mod packet;
mod port;
pub mod profile;
mod protocol;
pub mod pump;
mod receive;
pub mod schedule;
mod slab;
pub mod transfer;

pub use clock::{Duration, Instant};
pub use collect::message::{Packing, Unpacking};
pub use collect::request::{Completion, Context, Envelope, Error, Hints, Prefer, Source, Tag, TagMatch};
pub use collect::window::{Entry, Names, Scope, Window};
pub use config::Config;
pub use engine::{Engine, Inspect, LinkView, NotWell, Notice, NoticeKind, Owed, PeerView, Setup};
pub use memory::{Segment, Segments};
pub use nmad_wire::{Keys, MAX_RAILS};
pub use observe::in_force::{InForce, RailInForce, ThresholdOrigin};
pub use observe::observation::{Observation, Observed};
pub use observe::observation_text::Observations;
pub use observe::receipt::{Candidate, Receipt};
pub use observe::replay;
pub use observe::traffic::Traffic;
pub use packet::{Key, Packet, PeerId, RailId, RegionId, RequestId, StrategyId};
pub use port::{Claims, Outcome, Port};
pub use profile::blocks::{BlockCost, BlockCosts};
pub use profile::correction::Accuracy;
pub use profile::curve::Curve;
pub use profile::doubt::Doubt;
pub use profile::forecast::Forecast;
pub use profile::learning::Taught;
pub use profile::measured::{Profile, Provenance};
pub use profile::sample::{BLOCKS_LEN, Method, Pair, Sample};
pub use profile::sampler::{Effort, Probe, Reach, Sampler};
pub use profile::threshold::{InPlace, Thresholds};
pub use protocol::early::EarlyEnd;
pub use protocol::leaving::{Leaving, Refused, Submitted, To};
pub use protocol::parallel::Cores;
pub use protocol::plan::Quote;
pub use protocol::{Caller, Plan, Protocol};
pub use receive::claims::Claim;
pub use receive::expected::Met;
pub use schedule::builder::PacketBuilder;
pub use schedule::feed::Feed;
pub use schedule::preempt::Preempt;
pub use schedule::registry::{Maker, Registry, UnknownStrategy};
pub use schedule::strategy::{RailView, ShareList, Shares, Strategy, Waiting};
pub use transfer::access::{Access, Act, Atomics, Came, Exposure, RemoteAccess};
pub use transfer::congestion::Scheme as CongestionControl;
pub use transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Reads, Scope as PollScope, Sent, Statistics,
};
pub use transfer::rail::{Opening, RailCounters};
