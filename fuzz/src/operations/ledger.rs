//! Messages sent and received: each is received once at most, and whole.

use crate::net::memory::BufferId;
use nmad_engine::{Context, Envelope, RequestId};
use std::collections::BTreeMap;

/// Sender, receiver, context.
type Flow = (u32, u32, u32);

/// Content of at least this many bytes is unlike any other.
const UNIQUE_MIN: usize = 100;

/// A message that was sent, with what it consists of.
pub struct Message {
    flow: Flow,
    tag: u64,
    /// Whether it may not overtake.
    ordered: bool,
    content: Vec<u8>,
    received: bool,
    /// Place in its flow, as its receiver saw it.
    seq: Option<u32>,
    /// The further pieces, if it is built piece by piece.
    pub pieces: Vec<Vec<u8>>,
}

/// A receive, or a piece of a message that is taken apart.
pub struct Receive {
    pub host: usize,
    pub request: RequestId,
    pub buffer: BufferId,
    pub capacity: usize,
    pub piece: Option<Piece>,
    pub checked: bool,
}

/// Piece `number` of what the receive at place `first` began; zero is the first.
#[derive(Clone, Copy)]
pub struct Piece {
    pub first: usize,
    pub number: usize,
}

#[derive(Default)]
pub struct Ledger {
    pub messages: Vec<Message>,
    pub receives: Vec<Receive>,
    /// How many messages of a flow, tag and length arrived.
    arrived: BTreeMap<(Flow, u64, u64), usize>,
}

impl Ledger {
    /// A message is sent; its place in the ledger.
    pub fn send(&mut self, flow: Flow, tag: u64, ordered: bool, content: Vec<u8>) -> usize {
        let pieces = Vec::new();
        self.messages.push(Message { flow, tag, ordered, content, received: false, seq: None, pieces });
        self.messages.len() - 1
    }

    /// A receive at `host` has got a message: which one it was.
    ///
    /// # Panics
    /// It was never sent, or somebody else got it already.
    pub fn receive(
        &mut self,
        host: u32,
        capacity: usize,
        envelope: &Envelope,
        holds: impl Fn(&[u8]) -> bool,
    ) {
        let flow = (envelope.peer.0, host, envelope.context.0);
        if envelope.context.0 >= Context::LIMIT {
            return self.receive_piece(flow, envelope, holds);
        }
        let named =
            |m: &Message| (m.flow, m.tag, m.content.len() as u64) == (flow, envelope.tag.0, envelope.len);
        let count = self.arrived.entry((flow, envelope.tag.0, envelope.len)).or_default();
        *count += 1;
        let sent = self.messages.iter().filter(|m| named(m)).count();
        assert!(*count <= sent, "more messages arrived than were sent: {envelope:?}");
        let fits = |m: &&mut Message| named(m) && !m.received && holds(&m.content);
        let Some(message) = self.messages.iter_mut().find(fits) else {
            panic!("nobody sent what arrived as {envelope:?}");
        };
        // Of a few bytes nobody can tell which message they are.
        if (envelope.len as usize).min(capacity) >= UNIQUE_MIN {
            (message.received, message.seq) = (true, Some(envelope.seq));
        }
    }

    /// A piece is named by its message's place in the flow and its number.
    fn receive_piece(&self, flow: Flow, envelope: &Envelope, holds: impl Fn(&[u8]) -> bool) {
        let flow = (flow.0, flow.1, flow.2 - Context::LIMIT);
        let (seq, piece) = ((envelope.tag.0 >> 32) as u32, envelope.tag.0 as u32 as usize);
        let has = |m: &&Message| m.flow == flow && m.pieces.get(piece - 1).is_some_and(|piece| holds(piece));
        let mut messages = self.messages.iter().filter(has);
        assert!(messages.any(|m| m.seq.is_none_or(|s| s == seq)), "nobody packed {envelope:?}");
    }

    /// Messages of a flow got their places in the order in which they were sent.
    pub fn check_order(&self) {
        let mut last: BTreeMap<Flow, u32> = BTreeMap::new();
        for message in self.messages.iter().filter(|m| m.ordered) {
            let Some(seq) = message.seq else { continue };
            let before = last.insert(message.flow, seq);
            assert!(before.is_none_or(|before| before < seq), "the order of flow {:?}", message.flow);
        }
    }
}
