//! Driver for TCP over one interface.
//!
//! One stream per peer, opened when either side first needs it. Packets and chunks follow each other in the
//! stream as `wire` writes them; large data is written from and read into user memory. The driver knows
//! headers, never frames; it trusts no process that does not know the secret of the job.

pub(crate) mod address;
pub(crate) mod config;
mod health;
mod leave;
mod link;
mod lists;
pub(crate) mod opening;
mod outgoing;
mod padding;
pub(crate) mod peers;
mod rail;
mod read;
mod records;
mod room;
mod scratch;
pub(crate) mod socket;
mod staging;
mod stream;
#[allow(unsafe_code)]
mod sys;
mod traffic;
mod write;

pub use config::TcpConfig;
pub use rail::TcpRail;

use crate::error::DriverError;
use crate::network::{OverInterface, Place};
use rustix::time::{ClockId, clock_gettime};

/// Longest packet in bytes: 64 KiB of data and its headers.
pub const PACKET: usize = 72 << 10;

/// Milliseconds of a clock that is cheap to read. Its resolution is the timer tick, which suffices for time
/// limits of seconds.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

impl OverInterface for TcpRail {
    const NAME: &'static str = "tcp";

    fn open_over(_: &'static str, place: Place) -> Result<Self, DriverError> {
        let Place { rank, rail, interface, secret, encrypt } = place;
        TcpRail::open(TcpConfig { encrypt, ..TcpConfig::new(rank, rail, interface, secret) })
    }
}
