//! The input of a sampler: what a rail supports, and a single measurement to carry out on it.

use super::sample::{Method, Pair};

/// Capabilities of a rail, and the methods to measure. The default has no optional capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// Longest message that fits into a packet, in bytes of data.
    pub packet_max: u64,
    /// Longest message to measure, in bytes.
    pub len_max: u64,
    /// Packets can send data in place.
    pub gathers: bool,
    /// Data can follow its request to send at once.
    pub pushes: bool,
    /// Receivers can read messages from their sender's memory.
    pub reads: bool,
    /// The driver chooses between copying blocks and leaving them in place.
    pub blocks: bool,
    /// The time of a post is measured too.
    pub posts: bool,
    /// Copying in memory is measured too; once per host suffices.
    pub host: bool,
    /// Pairs of cores between which handing over work is measured, in the order of [`Pair::ALL`].
    pub hand_offs: [bool; Pair::ALL.len()],
}

/// A measurement to carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Method.
    pub method: Method,
    /// Bytes of data of each message.
    pub len: u64,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Round trips (copies, hand-offs) per repetition.
    pub round_trips: u32,
}
