//! The books: every request that was submitted and how it ended.

use crate::buffer::Buffer;
use nmad_engine::packet::RequestId;
use nmad_engine::{Envelope, Error};
use std::collections::BTreeMap;

/// A request, as the application submitted it.
#[derive(Debug)]
pub struct Entry {
    /// On which host.
    pub host: usize,
    /// Send or receive, and what it names.
    pub what: What,
    /// Its memory.
    pub buffer: Buffer,
    /// Bytes of the memory.
    pub len: u64,
    /// When it was submitted, in virtual nanoseconds of its host.
    pub submitted: u64,
    /// When and how it ended.
    pub ended: Option<(u64, Result<Envelope, Error>)>,
    /// For a receive, the send that it got; for a send, the receive that got it.
    pub partner: Option<usize>,
}

/// What a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A message.
    Send {
        /// Receiver.
        to: usize,
        /// Context.
        context: u32,
        /// Tag.
        tag: u64,
        /// Place among the ordered messages of its flow; none if it is unordered.
        seq: Option<u32>,
        /// Which payload it has.
        payload: u64,
        /// It ends only when it is matched.
        synchronous: bool,
    },
    /// A receive.
    Recv {
        /// From whom; none: anybody.
        from: Option<usize>,
        /// Context.
        context: u32,
        /// Tag; none: any.
        tag: Option<u64>,
        /// Somebody tried to cancel it.
        cancelled: bool,
    },
}

/// A flow: sender, receiver, context.
pub type FlowName = (usize, usize, u32);

/// All requests of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    /// In the order of submission.
    pub entries: Vec<Entry>,
    running: BTreeMap<(usize, RequestId), usize>,
    /// Sends of each flow, in order.
    pub flows: BTreeMap<FlowName, Vec<usize>>,
    ordered: BTreeMap<FlowName, u32>,
}

impl Ledger {
    /// The place that the next ordered message of a flow has.
    pub fn next_seq(&mut self, flow: FlowName) -> u32 {
        let next = self.ordered.entry(flow).or_default();
        *next += 1;
        *next - 1
    }

    /// Enters a request. `Err`: the engine gave the name of a request that still runs.
    pub fn enter(&mut self, request: RequestId, entry: Entry) -> Result<(), String> {
        let index = self.entries.len();
        if let What::Send { to, context, .. } = entry.what {
            self.flows.entry((entry.host, to, context)).or_default().push(index);
        }
        let host = entry.host;
        self.entries.push(entry);
        match self.running.insert((host, request), index) {
            None => Ok(()),
            Some(_) => {
                Err(format!("h{host} got the name of a running request, {request:?}, for another one"))
            }
        }
    }

    /// The entry of a running request.
    pub fn running(&self, host: usize, request: RequestId) -> Option<usize> {
        self.running.get(&(host, request)).copied()
    }

    /// A request ends; its entry.
    pub fn end(
        &mut self,
        host: usize,
        request: RequestId,
        at: u64,
        result: Result<Envelope, Error>,
    ) -> Option<usize> {
        let index = self.running.remove(&(host, request))?;
        self.entries[index].ended = Some((at, result));
        Some(index)
    }

    /// Entries of requests that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &Entry> {
        self.running.values().map(|&index| &self.entries[index])
    }
}

impl Entry {
    /// The host that the request names.
    pub fn peer(&self) -> Option<usize> {
        match self.what {
            What::Send { to, .. } => Some(to),
            What::Recv { from, .. } => from,
        }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, len) = (self.host, self.len);
        match self.what {
            What::Send { to, context, tag, seq, .. } => {
                let place = seq.map_or("unordered".into(), |seq| format!("seq {seq}"));
                write!(f, "send h{host}->h{to} of {len} B, context {context} tag {tag:#x} {place}")
            }
            What::Recv { from, context, tag, .. } => {
                let from = from.map_or("any".into(), |from| format!("h{from}"));
                let tag = tag.map_or("any tag".into(), |tag| format!("tag {tag:#x}"));
                write!(f, "recv h{host}<-{from} up to {len} B, context {context} {tag}")
            }
        }
    }
}
