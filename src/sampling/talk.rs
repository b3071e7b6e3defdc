//! Messages between the two ranks of a measurement; every wait is bounded.

use crate::error::SessionError;
use crate::memory::{readable, readable_blocks, writable, writable_blocks};
use nmad_engine::{
    BLOCKS_LEN, Context, Duration, Engine, Envelope, Hints, InPlace, LinkView, Method, PeerId, RailId,
    RequestId, Segments, Source, Tag, TagMatch,
};
use nmad_progress::{Node, Outcome};

const ORDERS: Tag = Tag(1);
/// Longest order in bytes.
const ORDER_LEN: usize = 64;
/// Number of consecutive waits after which a peer is dead: longer than any message takes on a usable rail,
/// also on a lossy one, between processes without a core for most of the time. A stopped job or machine
/// uses up only one of them. Tests of a silent rail wait for less.
const WAITS: u32 = if cfg!(test) { 8 } else { 20 };
const EACH: Duration = Duration::from_ms(500);

/// Reason of an early end.
pub(super) enum Broken {
    /// The measured rail is dead or silent; other rails reach the rank.
    Rail,
    /// The other rank is gone or does not answer.
    Rank(SessionError),
}

impl From<SessionError> for Broken {
    fn from(error: SessionError) -> Broken {
        Broken::Rank(error)
    }
}

/// The connection to the other rank, and memory for the messages.
pub(super) struct Talk<'a> {
    pub(super) node: &'a Node,
    pub(super) peer: PeerId,
    /// The context of this measurement alone, since messages of an earlier broken one may be missing
    /// forever.
    context: Context,
    /// Our rail, once both agree on it.
    pub(super) rail: Option<RailId>,
    /// Length of the measured messages.
    len: usize,
    /// Memory for two messages each; see [`Memory`].
    out: Memory,
    into: Memory,
}

/// Memory of requests. It is freed only if nothing failed, since an unfinished request may still use it.
struct Memory(Vec<u8>);

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            std::mem::forget(std::mem::take(&mut self.0));
        }
    }
}

impl<'a> Talk<'a> {
    /// Makes the connection of the measurement with this number in the job.
    pub(super) fn new(node: &'a Node, peer: PeerId, number: u32) -> Talk<'a> {
        let (out, into) = (Memory(vec![1; ORDER_LEN]), Memory(vec![0; ORDER_LEN]));
        Talk { node, peer, context: Context(Context::LIMIT - 1 - number), rail: None, len: 0, out, into }
    }

    /// Ends the measurement and frees the memory; no request may be pending.
    pub(super) fn end(mut self) {
        self.out.0 = Vec::new();
        self.into.0 = Vec::new();
    }

    /// Makes room for `count` messages of `len` bytes in each direction. No request may be pending.
    pub(super) fn make_room(&mut self, len: usize, count: usize) {
        self.len = len;
        let wanted = (len * count).max(ORDER_LEN);
        for memory in [&mut self.out.0, &mut self.into.0] {
            if memory.len() < wanted {
                memory.resize(wanted, 1);
            }
        }
    }

    /// Sends an order to the other rank.
    pub(super) fn order(&mut self, text: &str) -> Result<(), Broken> {
        let len = text.len().min(ORDER_LEN);
        self.out.0[..len].copy_from_slice(&text.as_bytes()[..len]);
        let data = readable(&self.out.0[..len]);
        let hints = Hints { probe: Some(Method::Copy), ..Hints::default() };
        let sent = self.node.submit(|engine| engine.send(self.peer, self.context, ORDERS, data, hints));
        self.wait(&[sent]).map(drop)
    }

    /// Receives an order of the other rank.
    pub(super) fn receive_order(&mut self) -> Result<String, Broken> {
        let into = writable(&mut self.into.0[..ORDER_LEN]);
        let from = Source::Peer(self.peer);
        let posted =
            self.node.submit(|engine| engine.recv(from, self.context, TagMatch::Exact(ORDERS), into));
        let len = self.wait(&[posted])?[0].len as usize;
        Ok(String::from_utf8_lossy(&self.into.0[..len]).into_owned())
    }

    /// Makes room for a message in blocks in each direction.
    pub(super) fn make_room_for_blocks(&mut self) {
        self.make_room(2 * BLOCKS_LEN as usize, 1);
        self.len = BLOCKS_LEN as usize;
    }

    /// Tells the measured rail from which lengths it leaves data in place; `None`: from the nominal ones.
    pub(super) fn leave_in_place(&self, from: Option<InPlace>) {
        let Some(rail) = self.rail else { return };
        self.node.with_rails(|rails| rails[rail.index()].leave_in_place(from));
    }

    /// Submits a message in blocks of `block` bytes.
    pub(super) fn send_blocks(&self, block: usize, method: Method) -> [Option<RequestId>; 2] {
        let hints = Hints { probe: Some(method), ..Hints::default() };
        let data = readable_blocks(&self.out.0[..2 * BLOCKS_LEN as usize], block);
        let send = |engine: &mut Engine| engine.send(self.peer, self.context, Tag(2), data, hints);
        [Some(self.node.submit(send)), None]
    }

    /// Posts a receive for a message in blocks of `block` bytes.
    pub(super) fn post_blocks(&mut self, block: usize) -> [Option<RequestId>; 2] {
        let into = writable_blocks(&mut self.into.0[..2 * BLOCKS_LEN as usize], block);
        let from = Source::Peer(self.peer);
        let post = |engine: &mut Engine| engine.recv(from, self.context, TagMatch::Any, into);
        [Some(self.node.submit(post)), None]
    }

    /// Submits `count` messages of `len` bytes at once.
    pub(super) fn send(&self, len: usize, count: usize, method: Method) -> [Option<RequestId>; 2] {
        let hints = Hints { probe: Some(method), ..Hints::default() };
        let data = |index: usize| readable(&self.out.0[index * len..(index + 1) * len]);
        self.node.submit(|engine| {
            let mut send = |index| engine.send(self.peer, self.context, Tag(2), data(index), hints);
            [0, 1].map(|index| (index < count).then(|| send(index)))
        })
    }

    /// Sends a message as a program does. Returns how long the call took, or the request if its rail did not
    /// take the message in this call.
    pub(super) fn send_at_once(&self, len: usize) -> Result<std::time::Duration, RequestId> {
        let (to, data) = ((self.peer, self.context, Tag(2)), readable(&self.out.0[..len]));
        let start = std::time::Instant::now();
        let request = self.node.step(|step| step.send(to, &data, Hints::default()));
        let took = start.elapsed();
        request.map_or(Ok(took), Err)
    }

    /// Posts receives for `count` messages of `len` bytes. They name no tag: a receive with a tag might
    /// invite the sender (Rtr), which saves the handshake that is to be measured.
    pub(super) fn post(&mut self, len: usize, count: usize) -> [Option<RequestId>; 2] {
        let memory = &mut self.into.0;
        let mut places = [0, 1].map(|index| match index < count {
            true => Some(writable(&mut memory[index * len..(index + 1) * len])),
            false => None,
        });
        let from = Source::Peer(self.peer);
        self.node.submit(|engine| {
            let mut post = |into: Segments| engine.recv(from, self.context, TagMatch::Any, into);
            [0, 1].map(|index| places[index].take().map(&mut post))
        })
    }

    /// Posts a receive for an empty message.
    pub(super) fn post_empty(&self) -> RequestId {
        let from = Source::Peer(self.peer);
        self.node.submit(|engine| engine.recv(from, self.context, TagMatch::Any, Segments::empty()))
    }

    /// Waits for all of these requests.
    pub(super) fn wait_all(&self, requests: [Option<RequestId>; 2]) -> Result<(), Broken> {
        match requests {
            [Some(one), Some(other)] => self.wait(&[one, other]).map(drop),
            [Some(one), None] | [None, Some(one)] => self.wait(&[one]).map(drop),
            [None, None] => Ok(()),
        }
    }

    pub(super) fn wait(&self, requests: &[RequestId]) -> Result<Vec<Envelope>, Broken> {
        // Before there is a rail, the other rank may still wait for a silent one.
        let waits = if self.rail.is_some() { WAITS } else { 2 * WAITS };
        for _ in 0..waits {
            let ended = self.node.wait_all_within(requests, Some(EACH)).ok().flatten();
            if let Some(outcomes) = ended {
                return outcomes.into_iter().map(|outcome| self.envelope(outcome)).collect();
            }
            if self.is_dead() {
                break;
            }
        }
        Err(self.silent())
    }

    fn is_dead(&self) -> bool {
        let dead = |rail| self.node.with(|engine| engine.inspect().link(self.peer, rail));
        matches!(self.rail.and_then(dead), Some(LinkView::Dead | LinkView::Left))
    }

    /// Gives up the silent rail, or reports the rank as lost if no other rail reaches it.
    fn silent(&self) -> Broken {
        let why = format!(
            "silent while it was measured with messages of {} B (is the MTU of the path below that of the \
             interface, or does a firewall drop packets?)",
            self.len
        );
        let gives_up = |rail| {
            self.node.submit(|engine| {
                engine.setup().measure(self.peer, None);
                engine.setup().abandon(self.peer, rail, &why)
            })
        };
        match self.rail.is_some_and(gives_up) {
            true => Broken::Rail,
            false => Broken::Rank(self.lost("does not answer")),
        }
    }

    fn envelope(&self, outcome: Outcome) -> Result<Envelope, Broken> {
        outcome.map_err(|error| {
            let why = self.node.with(|engine| engine.inspect().failure(self.peer));
            Broken::Rank(self.lost(&why.map_or_else(|| error.to_string(), |why| why.to_string())))
        })
    }

    /// Makes the error of a rank that is gone or does not answer.
    pub(super) fn lost(&self, why: &str) -> SessionError {
        let why = format!("{why}, while a rail was measured (NMAD_SAMPLE=off does without)");
        SessionError::PeerLost { rank: self.peer.0, why }
    }
}
