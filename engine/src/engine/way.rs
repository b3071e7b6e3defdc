//! What the links to a peer and their limits allow: one value, derived whole when one of them changes
//! ([`super::derive`]), and stored nowhere else.

use crate::packet::RailId;
use crate::transfer::driver::Reads;

/// The only rail to a peer, if its link is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) rail: RailId,
    /// Place of its link among those of the peer.
    pub(crate) place: usize,
}

/// What one reliable rail may push.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PushLimits {
    /// Longest message of which a chunk may go ahead of any answer, in bytes.
    pub(crate) message: u64,
    /// Longest chunk, in bytes.
    pub(crate) chunk: u64,
}

/// How messages to a peer may go.
#[derive(Debug)]
pub(crate) struct Way {
    /// None: several rails are left, or none, or the only link is not open.
    pub(crate) lane: Option<Lane>,
    /// Several rails are left.
    pub(crate) has_several: bool,
    /// Messages shorter than this may leave without a stop in the window.
    pub(crate) at_once_below: u64,
    /// One reliable rail is left, whose driver injects messages: nothing has to be remembered of them.
    pub(crate) injects: bool,
    /// One reliable rail is left, whose driver can hold a pushed chunk.
    pub(crate) push: Option<PushLimits>,
    /// One reliable rail is left, over which the peer can read messages from our memory.
    pub(crate) read: Option<Reads>,
    /// Lengths of messages that it does read, from the first number on and below the second.
    pub(crate) read_lens: (u64, u64),
    /// Packets have to be kept until acknowledged: another rail could carry them, or the rail is lossy.
    pub(crate) keeps: bool,
    /// The first open rail; strategies that use one rail use this one.
    pub(crate) primary: RailId,
    /// The open rail with the lowest latency.
    pub(crate) fastest: RailId,
    /// Longest packet that every rail carries, with room for what a replay adds, in bytes.
    pub(crate) packet_max: usize,
    /// Longest message that is sent without asking unless the receiver is late, in bytes.
    pub(crate) eager_max: usize,
    /// Shortest eager message, or sum of them, of which other cores may post a part, in bytes.
    pub(crate) parallel_min: u64,
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
        }
    }
}
