//! What a host costs: the engine's own time, copies in memory, the I/O bus.

use crate::model::time;

/// One kind of host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Name for the user.
    pub name: &'static str,
    /// The engine's time for a call that submits a request, in nanoseconds.
    pub call_ns: u64,
    /// The engine's time for a packet that it builds, and for one that arrives, in nanoseconds.
    pub packet_ns: u64,
    /// The engine's time for a message that arrives, in nanoseconds.
    pub message_ns: u64,
    /// What copying in memory costs; none: nothing.
    pub copy: Option<Copying>,
    /// Bytes per second that its I/O bus carries in one direction, all rails together; none: the bus is never
    /// the bottleneck.
    pub bus: Option<u64>,
    /// Age of the time that the pump of every other host receives, in nanoseconds, as a real caller's may be.
    pub stale_ns: u64,
}

/// The cost of a copy in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copying {
    /// Nanoseconds before the first byte.
    pub start_ns: u64,
    /// Bytes per second as long as the caches help.
    pub near: u64,
    /// For how many bytes they do.
    pub near_len: u64,
    /// Bytes per second beyond.
    pub far: u64,
}

impl Default for Machine {
    /// A host whose engine and memory cost next to nothing.
    fn default() -> Machine {
        Machine {
            name: "host",
            call_ns: 60,
            packet_ns: 0,
            message_ns: 0,
            copy: None,
            bus: None,
            stale_ns: 2_000,
        }
    }
}

impl Machine {
    /// Nanoseconds for a copy of `len` bytes.
    pub fn copy_ns(&self, len: u64) -> u64 {
        self.copy.filter(|_| len > 0).map_or(0, |copy| {
            let near = len.min(copy.near_len);
            copy.start_ns + time(near, copy.near) + time(len - near, copy.far)
        })
    }

    /// Whether arrivals cost the engine something, so that it is worth looking into them.
    pub fn counts_messages(&self) -> bool {
        self.message_ns > 0 || self.copy.is_some()
    }
}
