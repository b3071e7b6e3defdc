//! The way of a peer: what the links and their limits allow. One value, derived as a whole when one of them
//! changes ([`super::derive`]).

use crate::packet::RailId;
use crate::transfer::driver::Reads;

/// The only rail to a peer, if its link is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) rail: RailId,
    /// Index of its link among those of the peer.
    pub(crate) place: usize,
}

/// Limits of pushing over a single reliable rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PushLimits {
    /// Longest message that may have a pushed chunk, in bytes.
    pub(crate) message: u64,
    /// Longest chunk, in bytes.
    pub(crate) chunk: u64,
}

/// Protocols and limits that are possible for messages to a peer.
#[derive(Debug)]
pub(crate) struct Way {
    /// The only rail; `None`: there are several usable rails, or none, or the only link is not open.
    pub(crate) lane: Option<Lane>,
    /// Several rails are usable.
    pub(crate) has_several: bool,
    /// Messages shorter than this may bypass the window.
    pub(crate) at_once_below: u64,
    /// A single reliable rail is usable and its driver injects messages: nothing has to be kept of them.
    pub(crate) injects: bool,
    /// A single reliable rail is usable and its driver can hold a pushed chunk.
    pub(crate) push: Option<PushLimits>,
    /// A single reliable rail is usable, over which the peer can read messages from our memory.
    pub(crate) read: Option<Reads>,
    /// Lengths of messages that the peer reads, from the first number to below the second.
    pub(crate) read_lens: (u64, u64),
    /// Packets have to be kept until acknowledged: another rail may have to replay them, or the rail is
    /// lossy.
    pub(crate) keeps: bool,
    /// The first open rail; strategies that use one rail use this one.
    pub(crate) primary: RailId,
    /// The open rail with the lowest latency.
    pub(crate) fastest: RailId,
    /// Longest packet that every rail carries, less the bytes that a replay adds, in bytes.
    pub(crate) packet_max: usize,
    /// Longest eager message in bytes, unless the receiver is late.
    pub(crate) eager_max: usize,
    /// Shortest eager message, or sum of messages, that other cores may post a part of, in bytes.
    pub(crate) parallel_min: u64,
    /// The same for cores that have to be preempted.
    pub(crate) preempt_min: u64,
}

impl Default for Way {
    fn default() -> Self {
        Way {
            lane: None,
            has_several: false,
            at_once_below: 0,
            injects: false,
            push: None,
            read: None,
            read_lens: (u64::MAX, 0),
            keeps: false,
            primary: RailId(0),
            fastest: RailId(0),
            packet_max: 0,
            eager_max: 0,
            parallel_min: u64::MAX,
            preempt_min: u64::MAX,
        }
    }
}
