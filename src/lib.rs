//! NewMadeleine: a communication library that uses every network of a node at once.
//!
//! This crate is the *session*: it joins the other processes of the job (`nmad-launch`), opens a rail for
//! each network interface (`nmad-drivers`), and connects the rails with the engine (`nmad-engine`) behind a
//! lock that any thread may use (`nmad-progress`). It assembles these parts and never knows how they work:
//! it decides no frame, strategy or socket option.
//!
//! ```no_run
//! use newmadeleine::{Session, Source};
//!
//! fn main() -> Result<(), newmadeleine::SessionError> {
//!     let session = Session::open()?; // rank 0 of 1 without a launcher
//!     let mut name = [0; 64];
//!     if session.rank() == 0 {
//!         for _ in 1..session.size() {
//!             let message = session.recv(Source::Any, 7, &mut name)?;
//!             println!("rank {} says {}", message.from, String::from_utf8_lossy(&name[..message.len]));
//!         }
//!     } else {
//!         session.send(0, 7, b"hello over every rail")?;
//!     }
//!     session.close()
//! }
//! ```
//!
//! Messages are bytes; values of plain types are sent as they are in memory ([`Session::send_slice`]).
//! [`bytemuck`] defines and derives these types:
//!
//! ```no_run
//! use newmadeleine::{Session, bytemuck};
//!
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[bytemuck(crate = "newmadeleine::bytemuck")]
//! #[repr(C)]
//! struct Particle {
//!     position: [f64; 3],
//!     charge: f64,
//! }
//!
//! # fn main() -> Result<(), newmadeleine::SessionError> {
//! let session = Session::open()?;
//! let mut particles = vec![<Particle as bytemuck::Zeroable>::zeroed(); 100];
//! let message = session.recv_slice(0, 7, &mut particles)?;
//! let come = &particles[..message.count::<Particle>()];
//! # Ok(()) }
//! ```
//!
//! [`Session::scope`] runs several messages at the same time. The feature `async`, on by default, has
//! futures, and a descriptor for an event loop of the program.
#![deny(unsafe_code)]

mod bridge;
mod card;
mod channel;
mod close;
mod cores;
mod error;
#[cfg(feature = "async")]
pub mod futures;
mod info;
mod latest;
mod lines;
mod machine;
mod memory;
mod notices;
mod observations;
mod options;
mod places;
mod rails;
mod receipts;
#[doc(hidden)]
pub mod sampling;
mod scope;
mod session;
mod strategies;
mod summary;
mod switches;
mod trace;
#[cfg(feature = "async")]
mod watch;
mod written;

#[doc(hidden)]
pub use bridge::Bridge;
pub use bytemuck;
pub use channel::Channel;
pub use error::SessionError;
#[cfg(feature = "async")]
pub use futures::AsyncSession;
pub use info::{Message, RailInfo};
#[doc(hidden)]
pub use nmad_drivers::node::{Segment as SharedMemory, across, huge, joint};
#[doc(hidden)]
pub use nmad_drivers::shm::{fence_all, kernel, shares_fences};
// For bindings, benchmarks and tools of this repository, which use the layers below; not for applications.
pub use nmad_drivers::network::Network;
#[doc(hidden)]
pub use nmad_engine as engine;
#[doc(hidden)]
pub use nmad_launch as launch;
pub use nmad_launch::host_name;
#[doc(hidden)]
pub use nmad_plugin as plugin;
#[doc(hidden)]
pub use nmad_progress as progress;
pub use nmad_progress::Progress;
pub use nmad_seal::Policy as Encryption;
#[doc(hidden)]
pub use nmad_words::setting;
#[doc(hidden)]
pub use nmad_words::tell_user;
pub use nmad_words::{parse_rate, parse_size};
#[doc(hidden)]
pub use notices::{OnNotice, on_notice};
pub use options::{Explain, Given, Options, RailChoice, Sampling, Stats};
#[doc(hidden)]
pub use rails::wires;
pub use sampling::{Origin, ProfileInfo};
pub use scope::{Piece, Receive, Request, Scope};
pub use session::Session;
#[doc(hidden)]
pub use trace::FileAccess;
#[cfg(feature = "async")]
pub use watch::{Armed, Watch};

/// Types for a strategy of the program; see [`Options::register`].
pub mod strategy {
    #[doc(hidden)]
    pub use crate::strategies::PlugIn;
    pub use nmad_engine::schedule::strategy::{fastest, primary};
    pub use nmad_engine::{
        Duration, Entry, Forecast, Instant, Names, PacketBuilder, PeerId, RailId, RailView, Scope, ShareList,
        Shares, Strategy, Waiting, Window,
    };
}

pub use nmad_engine::{
    Accuracy, Effort, Feed, Hints, InForce, Prefer, RailId, RailInForce, Receipt, StrategyId, Taught,
    ThresholdOrigin,
};
#[doc(hidden)]
pub use nmad_engine::{RequestId, Segment, Segments};

/// The sender that a receive matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This rank only.
    Rank(u32),
    /// Any rank.
    Any,
}

impl From<u32> for Source {
    fn from(rank: u32) -> Self {
        Source::Rank(rank)
    }
}

/// The tag that a receive matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMatch {
    /// This tag only.
    Exact(u64),
    /// Any tag.
    Any,
}

impl From<u64> for TagMatch {
    fn from(tag: u64) -> Self {
        TagMatch::Exact(tag)
    }
}

impl From<Source> for nmad_engine::Source {
    fn from(source: Source) -> Self {
        match source {
            Source::Rank(rank) => Self::Peer(nmad_engine::PeerId(rank)),
            Source::Any => Self::Any,
        }
    }
}

impl From<TagMatch> for nmad_engine::TagMatch {
    fn from(tag: TagMatch) -> Self {
        match tag {
            TagMatch::Exact(tag) => Self::Exact(nmad_engine::Tag(tag)),
            TagMatch::Any => Self::Any,
        }
    }
}
