//! Order within a flow: the messages of one peer and context match in the order of submission, whichever
//! rails they took.

use super::matching::{Arrived, Comes};
use super::request::Envelope;
use crate::packet::RegionId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A message that arrived before an earlier one of its flow.
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) envelope: Envelope,
    pub(crate) body: Arrived,
    /// The sender's request if the sender waits for an answer, otherwise zero.
    pub(crate) request: u64,
}

/// Sequence numbers of one peer and context, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Sequence number of the next message to send.
    pub(crate) send_next: u32,
    /// Sequence number of the next message to match.
    pub(crate) recv_next: u32,
    /// The last matched message was large, so it is worth opening a receive region early.
    pub(crate) large: bool,
    /// For the last large message an Rtr was sent before its request to send arrived, or soon after.
    pub(crate) expects_rtr: bool,
    /// The peer's Rtrs are used: all messages are sent in order, whatever their hints allow.
    pub(crate) invited: bool,
    /// Unordered messages were sent: Rtrs, which rely on the order, are not used.
    pub(crate) has_unordered: bool,
    early: BTreeMap<u32, Early>,
}

/// Position of an arriving message in its flow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Next,
    Early,
    /// The message has arrived before: a protocol violation.
    Past,
}

impl Flow {
    #[inline]
    pub(crate) fn place(&self, seq: u32) -> Place {
        match seq.wrapping_sub(self.recv_next) {
            0 => Place::Next,
            ahead if ahead < 1 << 31 => Place::Early,
            _ => Place::Past,
        }
    }

    /// Stores an early message; false if one with its sequence number is already stored.
    pub(crate) fn park(&mut self, early: Early) -> bool {
        let seq = early.envelope.seq;
        self.early.insert(seq, early).is_none()
    }

    /// Whether messages wait for earlier ones.
    #[inline]
    pub(crate) fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// Whether a message that waits for earlier ones uses this open receive region.
    pub(crate) fn uses(&self, region: RegionId) -> bool {
        let invited = Comes::Invited(region);
        self.early.values().any(|early| matches!(early.body, Arrived::Rts { body, .. } if body == invited))
    }

    /// Returns the next message in order if it has already arrived.
    #[inline]
    pub(crate) fn next_early(&mut self) -> Option<Early> {
        if self.early.is_empty() { None } else { self.early.remove(&self.recv_next) }
    }
}

/// Entries of the cache of contexts: programs with several contexts use them in turn.
const CACHED: usize = 32;

/// Flows of one peer, by context.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    /// Number of messages sent with a request to send.
    pub(crate) requested: u64,
    /// Blocks that traveled with these requests, and their bytes.
    pub(crate) blocks: u64,
    pub(crate) blocks_bytes: u64,
    /// Index in `flows` of each context.
    places: BTreeMap<u32, u32>,
    /// Context and index of the last used flow, which is most often the next one too.
    last: (u32, u32),
    /// Cache of context and index of recently used flows, by context number modulo its size.
    others: [Option<(u32, u32)>; CACHED],
}

impl Flows {
    /// Counts blocks that travel with a request to send.
    pub(crate) fn add_blocks(&mut self, (count, bytes): (u64, u64)) {
        (self.blocks, self.blocks_bytes) = (self.blocks + count, self.blocks_bytes + bytes);
    }

    /// Returns the messages sent and received; each context counts modulo 2^32.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let add = |(sent, received), flow: &Flow| {
            (sent + u64::from(flow.send_next), received + u64::from(flow.recv_next))
        };
        self.flows.iter().fold((0, 0), add)
    }

    #[inline(always)]
    pub(crate) fn of(&mut self, context: u32) -> &mut Flow {
        let (last, place) = self.last;
        // Without any flow, the index is not valid.
        let known = last == context && (place as usize) < self.flows.len();
        let place = if known { place } else { self.find(context) };
        &mut self.flows[place as usize]
    }

    /// The bodies of messages that wait for earlier ones, with the sender's requests.
    pub(crate) fn early_mut(&mut self) -> impl Iterator<Item = (u64, &mut Arrived)> {
        let early = self.flows.iter_mut().flat_map(|flow| flow.early.values_mut());
        early.map(|early| (early.request, &mut early.body))
    }

    #[inline(never)]
    fn find(&mut self, context: u32) -> u32 {
        let other = &mut self.others[context as usize % CACHED];
        let found = match *other {
            Some(known) if known.0 == context => known,
            _ => {
                let place = *self.places.entry(context).or_insert_with(|| {
                    self.flows.push(Flow::default());
                    (self.flows.len() - 1) as u32
                });
                *other.insert((context, place))
            }
        };
        self.last = found;
        found.1
    }
}
