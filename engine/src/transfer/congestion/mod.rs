//! Congestion control: how many bytes may be in flight on a lossy link.
//!
//! A scheme is a file in this folder that implements `Congestion`. It receives the acknowledgements,
//! losses and round trips of one link and returns a window; it never sees packets, timers or other links.
//! The link decides what is retransmitted, and when.

mod new_reno;
mod share;
mod swift;
#[cfg(test)]
mod tests;

use crate::clock::{Duration, Instant};
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::Debug;
use core::str::FromStr;

/// Smallest number of orders per window, so that the arrival of later orders reveals a loss.
const ORDERS: u64 = 4;
/// Orders are not cut shorter than this, in bytes.
const ORDER_MIN: u64 = 4 << 10;
/// A TCP segment on Ethernet, in bytes: the unit of growth of schemes designed for TCP.
const SEGMENT: u64 = 1448;

/// The congestion window of one link.
pub(crate) trait Congestion: Debug + Send {
    /// Returns the bytes that may be in flight.
    fn window(&self) -> u64;

    /// Adds a round trip sample.
    fn measured(&mut self, now: Instant, sample: Duration);

    /// Records that `len` of `in_flight` bytes were acknowledged. `capacity` returns the bytes that the
    /// path carries per nanosecond, if known.
    fn acknowledged(&mut self, now: Instant, len: u64, in_flight: u64, capacity: &dyn Fn() -> Option<f64>);

    /// Records that number `number` was lost; `next` is the next number to be sent.
    fn lost(&mut self, now: Instant, number: u32, next: u32);

    /// Records that nothing was acknowledged for two timeouts or more; `next` is the next number to be
    /// sent.
    fn stalled(&mut self, now: Instant, next: u32);

    /// The clock went back: nothing was recorded later than now.
    fn restart_timers(&mut self, now: Instant) {
        let _ = now;
    }

    /// Whether an acknowledgement that arrives `after` a retransmission acknowledges the transmission
    /// before it, since it arrives sooner than any round trip.
    fn is_too_soon(&self, after: Duration) -> bool {
        let _ = after;
        false
    }

    /// Returns the longest order that should be given to the rail, in bytes.
    fn order_max(&self) -> u64 {
        (self.window() / ORDERS).max(ORDER_MIN)
    }
}

/// The number before which all losses have been handled: the losses of one window count once.
#[derive(Debug, Default)]
struct HandledLosses(u32);

impl HandledLosses {
    /// Whether the loss of `number` is not handled yet; if so, the losses before `next` are handled with
    /// it.
    fn is_new(&mut self, number: u32, next: u32) -> bool {
        let is_new = number.wrapping_sub(self.0) as i32 >= 0;
        if is_new {
            self.0 = next;
        }
        is_new
    }
}

/// The available congestion control schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// A share of the queue; tolerates random losses. The default.
    #[default]
    Share,
    /// NewReno as QUIC has it (RFC 9002), for comparison.
    NewReno,
    /// Swift (SIGCOMM 2020), for comparison.
    Swift,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Scheme; 3] = [Scheme::Share, Scheme::NewReno, Scheme::Swift];

    /// Returns its name for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Share => "share",
            Scheme::NewReno => "newreno",
            Scheme::Swift => "swift",
        }
    }

    /// Creates a window of this scheme.
    pub(crate) fn window(self) -> Box<dyn Congestion> {
        match self {
            Scheme::Share => Box::<share::Share>::default(),
            Scheme::NewReno => Box::<new_reno::NewReno>::default(),
            Scheme::Swift => Box::<swift::Swift>::default(),
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Scheme, String> {
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        let names = Scheme::ALL.map(Scheme::name).join(", ");
        found.ok_or_else(|| alloc::format!("'{name}' is no congestion control (there are: {names})"))
    }
}
