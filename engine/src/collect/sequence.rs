//! Order within a flow: the messages of one peer and context match in the order of their submission,
//! whatever rails they took.

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
    /// The sender's request if it waits for an answer, zero if not.
    pub(crate) request: u64,
}

/// One direction each of one peer and context.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Number of the next message to send.
    pub(crate) send_next: u32,
    /// Number of the next message to match.
    pub(crate) recv_next: u32,
    /// The last message matched was large: it pays to open a receive region early.
    pub(crate) large: bool,
    /// The last large message was invited before it was announced, or soon after.
    pub(crate) expects_rtr: bool,
    /// The peer's Rtrs are in use: messages are sent in order, whatever they allow.
    pub(crate) invited: bool,
    /// Messages without order were sent: Rtrs, which rely on the order, are not used.
    pub(crate) relaxed: bool,
    early: BTreeMap<u32, Early>,
}

/// Where an arriving message stands in its flow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Next,
    Early,
    /// Was there already: a violation of the protocol.
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

    /// Keeps an early message; false if one with this number is there already.
    pub(crate) fn park(&mut self, early: Early) -> bool {
        let seq = early.envelope.seq;
        self.early.insert(seq, early).is_none()
    }

    /// Whether later messages wait for earlier ones.
    #[inline]
    pub(crate) fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// Whether a message that waits for earlier ones uses this open receive region.
    pub(crate) fn uses(&self, region: RegionId) -> bool {
        let invited = Comes::Invited(region);
        self.early.values().any(|early| matches!(early.body, Arrived::Rts { body, .. } if body == invited))
    }

    /// The next message in order, if it is already there.
    #[inline]
    pub(crate) fn next_early(&mut self) -> Option<Early> {
        if self.early.is_empty() { None } else { self.early.remove(&self.recv_next) }
    }
}

/// Contexts whose places are remembered: programs that use several use them in turn.
const REMEMBERED: usize = 32;

/// Flows of one peer, by context.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    /// Messages that were announced with a request to send.
    pub(crate) requested: u64,
    /// Place in `flows` of each context.
    places: BTreeMap<u32, u32>,
    /// Context and place of the flow that was used last: most often the next one too.
    last: (u32, u32),
    /// The same of some that were used before it, by the end of the context's number.
    others: [Option<(u32, u32)>; REMEMBERED],
}

impl Flows {
    /// Messages sent and received, of each context modulo 2^32.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let add = |(sent, received), flow: &Flow| {
            (sent + u64::from(flow.send_next), received + u64::from(flow.recv_next))
        };
        self.flows.iter().fold((0, 0), add)
    }

    #[inline(always)]
    pub(crate) fn of(&mut self, context: u32) -> &mut Flow {
        let (last, place) = self.last;
        // While there is no flow, no place is one.
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
        let other = &mut self.others[context as usize % REMEMBERED];
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
