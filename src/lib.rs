//! NewMadeleine: a communication library that uses every network of a node at once.
//!
//! This crate is the *session*: it finds out who the other processes of the job are (`nmad-launch`), opens
//! a rail for each network interface (`nmad-drivers`), and joins them with the engine (`nmad-engine`)
//! behind a lock that any thread may use (`nmad-progress`). It knows how things are put together, never
//! how they work: no frame, no strategy, no socket option is decided here.
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
#![deny(unsafe_code)]

mod card;
mod channel;
mod cores;
mod error;
mod info;
mod lines;
mod options;
mod rails;
mod receipts;
pub mod sampling;
mod scope;
mod session;
mod size;

pub use channel::Channel;
pub use error::SessionError;
pub use info::{Message, RailInfo};
pub use nmad_drivers::shm::Segment as SharedMemory;
pub use nmad_engine as engine;
pub use nmad_launch::{host_name, initial_errhandler};
pub use nmad_progress as progress;
pub use nmad_words::tell_user;
pub use options::{Explain, Network, Options, RailChoice, parse_rate};
pub use rails::wires;
pub use scope::{Piece, Request, Scope};
pub use session::Session;
pub use size::parse_size;

pub use nmad_engine::{Feed, Hints, RequestId, Segment, Segments};

/// From whom a receive takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From this rank only.
    Rank(u32),
    /// From anybody.
    Any,
}

impl From<u32> for Source {
    fn from(rank: u32) -> Self {
        Source::Rank(rank)
    }
}

/// Which tags a receive takes.
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
