//! Congestion control: how many bytes may be in flight on a lossy link.
//!
//! A scheme is a file here that implements [`Congestion`]. It sees acknowledgements, losses and round trips
//! of one link, and answers with a window; it never sees packets, timers or other links. What is sent again,
//! and when, is the business of the link.

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

/// Orders into which a window is cut at least, so that a loss shows by the arrival of others.
const ORDERS: u64 = 4;
/// No order is cut shorter than this, in bytes.
const ORDER_MIN: u64 = 4 << 10;
/// A segment of TCP on Ethernet, in bytes: the unit of growth of schemes that were made for TCP.
const SEGMENT: u64 = 1448;

/// A window for one link.
pub(crate) trait Congestion: Debug + Send {
    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// A round trip was measured.
    fn measured(&mut self, now: Instant, sample: Duration);

    /// The peer has `len` bytes more, of `in_flight`. `capacity` tells the bytes that the way carries in a
    /// nanosecond, if that is known.
    fn acknowledged(&mut self, now: Instant, len: u64, in_flight: u64, capacity: &dyn Fn() -> Option<f64>);

    /// Number `number` was lost, and `next` is the next one to be sent.
    fn lost(&mut self, now: Instant, number: u32, next: u32);

    /// Nothing was acknowledged for two timeouts or more; `next` is the next number to be sent.
    fn stalled(&mut self, now: Instant, next: u32);

    /// Whether an acknowledgement that comes `after` a packet was sent again answers the time before, since
    /// it comes sooner than any round trip.
    fn is_too_soon(&self, after: Duration) -> bool {
        let _ = after;
        false
    }

    /// Longest order that should be given to the rail, in bytes.
    fn order_max(&self) -> u64 {
        (self.window() / ORDERS).max(ORDER_MIN)
    }
}

/// Which losses were answered: those of one window count once.
#[derive(Debug, Default)]
struct Answered(u32);

impl Answered {
    /// Whether the loss of `number` is news; if so, those before `next` are answered with it.
    fn is_news(&mut self, number: u32, next: u32) -> bool {
        let is_news = number.wrapping_sub(self.0) as i32 >= 0;
        if is_news {
            self.0 = next;
        }
        is_news
    }
}

/// The schemes to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// A part of the queue, and no answer to losses by chance: the default.
    #[default]
    Share,
    /// NewReno as QUIC has it (RFC 9002), for comparison.
    NewReno,
    /// Swift (SIGCOMM 2020), for comparison.
    Swift,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 3] = [Scheme::Share, Scheme::NewReno, Scheme::Swift];

    /// Its name for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Share => "share",
            Scheme::NewReno => "newreno",
            Scheme::Swift => "swift",
        }
    }

    /// A window by this scheme.
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
