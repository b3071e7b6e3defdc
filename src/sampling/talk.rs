//! What the two ranks of a measurement say to each other, every wait bounded.

use crate::error::SessionError;
use crate::scope::{readable, writable};
use nmad_engine::{
    Context, Duration, Envelope, Hints, Method, PeerId, RequestId, Segments, Source, Tag, TagMatch,
};
use nmad_progress::{Node, Outcome};

/// Nobody else talks in this context.
const CONTEXT: Context = Context(Context::LIMIT - 1);
const ORDERS: Tag = Tag(1);
/// Longest order in bytes.
const ORDER_LEN: usize = 64;
/// So many waits in a row are longer than any message takes, on any rail worth measuring, also one that
/// loses, between processes that have no core for most of the time; a peer that needs longer is dead. A job
/// that stands still, or its machine, uses up no more than one of them.
const WAITS: u32 = 20;
const EACH: Duration = Duration::from_ms(500);

/// The other rank, and memory for what goes back and forth.
pub(super) struct Talk<'a> {
    pub(super) node: &'a Node,
    pub(super) peer: PeerId,
    /// Two messages each; see [`Memory`].
    out: Memory,
    into: Memory,
}

/// Memory that requests refer to. Given back only when nothing went wrong: what was begun and has not ended
/// may still use it.
struct Memory(Vec<u8>);

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            std::mem::forget(std::mem::take(&mut self.0));
        }
    }
}

impl<'a> Talk<'a> {
    pub(super) fn new(node: &'a Node, peer: PeerId) -> Talk<'a> {
        Talk { node, peer, out: Memory(vec![1; ORDER_LEN]), into: Memory(vec![0; ORDER_LEN]) }
    }

    /// Nothing is under way any more: the memory is given back.
    pub(super) fn end(mut self) {
        self.out.0 = Vec::new();
        self.into.0 = Vec::new();
    }

    /// Room for `count` messages of `len` bytes each way. Nothing may be under way.
    pub(super) fn make_room(&mut self, len: usize, count: usize) {
        let wanted = (len * count).max(ORDER_LEN);
        for memory in [&mut self.out.0, &mut self.into.0] {
            if memory.len() < wanted {
                memory.resize(wanted, 1);
            }
        }
    }

    /// Tells the other rank what to do.
    pub(super) fn order(&mut self, text: &str) -> Result<(), SessionError> {
        let len = text.len().min(ORDER_LEN);
        self.out.0[..len].copy_from_slice(&text.as_bytes()[..len]);
        let data = readable(&self.out.0[..len]);
        let hints = Hints { probe: Some(Method::Copy), ..Hints::default() };
        let sent = self.node.submit(|engine| engine.send(self.peer, CONTEXT, ORDERS, data, hints));
        self.wait(&[sent]).map(drop)
    }

    /// What the other rank says that is to be done.
    pub(super) fn hear(&mut self) -> Result<String, SessionError> {
        let into = writable(&mut self.into.0[..ORDER_LEN]);
        let from = Source::Peer(self.peer);
        let posted = self.node.submit(|engine| engine.recv(from, CONTEXT, TagMatch::Exact(ORDERS), into));
        let len = self.wait(&[posted])?[0].len as usize;
        Ok(String::from_utf8_lossy(&self.into.0[..len]).into_owned())
    }

    /// Submits `count` messages of `len` bytes at once.
    pub(super) fn send(&self, len: usize, count: usize, method: Method) -> [Option<RequestId>; 2] {
        let hints = Hints { probe: Some(method), ..Hints::default() };
        let data = |index: usize| readable(&self.out.0[index * len..(index + 1) * len]);
        self.node.submit(|engine| {
            let mut send = |index| engine.send(self.peer, CONTEXT, Tag(2), data(index), hints);
            [0, 1].map(|index| (index < count).then(|| send(index)))
        })
    }

    /// Posts receives for as much. They name no tag: one that does might be promised to the sender, which
    /// saves the handshake that is to be measured.
    pub(super) fn post(&mut self, len: usize, count: usize) -> [Option<RequestId>; 2] {
        let memory = &mut self.into.0;
        let mut places = [0, 1].map(|index| match index < count {
            true => Some(writable(&mut memory[index * len..(index + 1) * len])),
            false => None,
        });
        let from = Source::Peer(self.peer);
        self.node.submit(|engine| {
            let mut post = |into: Segments| engine.recv(from, CONTEXT, TagMatch::Any, into);
            [0, 1].map(|index| places[index].take().map(&mut post))
        })
    }

    /// Posts a receive for an empty message.
    pub(super) fn post_empty(&self) -> RequestId {
        let from = Source::Peer(self.peer);
        self.node.submit(|engine| engine.recv(from, CONTEXT, TagMatch::Any, Segments::empty()))
    }

    /// Waits for all of these.
    pub(super) fn wait_all(&self, requests: [Option<RequestId>; 2]) -> Result<(), SessionError> {
        match requests {
            [Some(one), Some(other)] => self.wait(&[one, other]).map(drop),
            [Some(one), None] | [None, Some(one)] => self.wait(&[one]).map(drop),
            [None, None] => Ok(()),
        }
    }

    pub(super) fn wait(&self, requests: &[RequestId]) -> Result<Vec<Envelope>, SessionError> {
        let mut waits = (0..WAITS).map(|_| self.node.wait_all_within(requests, Some(EACH)).ok().flatten());
        let outcomes = waits.find_map(|ended| ended).ok_or_else(|| self.lost("does not answer"))?;
        outcomes.into_iter().map(|outcome| self.envelope(outcome)).collect()
    }

    fn envelope(&self, outcome: Outcome) -> Result<Envelope, SessionError> {
        outcome.map_err(|error| {
            let why = self.node.with(|engine| engine.failure(self.peer));
            self.lost(&why.map_or_else(|| error.to_string(), |why| why.to_string()))
        })
    }

    /// The other rank is gone, or as good as.
    pub(super) fn lost(&self, why: &str) -> SessionError {
        let why = format!("{why}, while a rail was measured (NMAD_SAMPLE=off does without)");
        SessionError::PeerLost { rank: self.peer.0, why }
    }
}
