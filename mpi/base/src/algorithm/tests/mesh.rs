//! A network in memory: messages leave and arrive in an order that a seed decides.

use crate::algorithm::transport::Transport;
use nmad_engine::Segments;
use nmad_engine::{Context, Envelope, Error, PeerId, RequestId, Tag};
use std::collections::{BTreeMap, VecDeque};

/// From, to, tag.
type Flow = (u32, u32, u64);

/// Messages under way between the parties of one communicator.
pub(super) struct Mesh {
    /// In the order of their flows, so that a seed gives the same run each time.
    flows: BTreeMap<Flow, Traffic>,
    ended: BTreeMap<RequestId, Result<u64, Error>>,
    next: u64,
    random: u64,
    /// Sends end before anybody receives.
    eager: bool,
}

#[derive(Default)]
struct Traffic {
    sends: VecDeque<Sent>,
    recvs: VecDeque<(RequestId, Segments)>,
}

enum Sent {
    /// Its memory is still in use.
    Waiting(RequestId, Segments),
    /// Under way.
    Left(Vec<u8>),
}

impl Mesh {
    pub(super) fn new(seed: u64, eager: bool) -> Mesh {
        Mesh { flows: BTreeMap::new(), ended: BTreeMap::new(), next: 0, random: seed | 1, eager }
    }

    /// A number below `below`.
    pub(super) fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn request(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    /// Lets some messages leave and some arrive; false: nothing could move.
    pub(super) fn shake(&mut self) -> bool {
        let flows: Vec<Flow> = self.flows.keys().copied().collect();
        let mut could = false;
        for flow in flows {
            let lazy = self.random(2) == 0;
            let Some(traffic) = self.flows.get_mut(&flow) else { continue };
            let wanted = !traffic.recvs.is_empty();
            let moves = match traffic.sends.front() {
                None => false,
                Some(Sent::Waiting(..)) => self.eager || wanted,
                Some(Sent::Left(_)) => wanted,
            };
            could |= moves;
            if moves && !lazy {
                self.advance(flow);
            }
        }
        could
    }

    /// The oldest message of a flow leaves, or arrives.
    fn advance(&mut self, flow: Flow) {
        let Some(traffic) = self.flows.get_mut(&flow) else { return };
        match traffic.sends.pop_front() {
            Some(Sent::Waiting(request, data)) => {
                let mut bytes = Vec::new();
                data.append_to(&mut bytes);
                self.ended.insert(request, Ok(data.len()));
                traffic.sends.push_front(Sent::Left(bytes));
            }
            Some(Sent::Left(bytes)) => {
                let Some((request, into)) = traffic.recvs.pop_front() else { return };
                into.write(0, &bytes);
                self.ended.insert(request, outcome(flow, bytes.len() as u64, into.len()));
            }
            None => {}
        }
        if traffic.sends.is_empty() && traffic.recvs.is_empty() {
            self.flows.remove(&flow);
        }
    }

    /// Whether every message was received and every receive ended.
    pub(super) fn is_quiet(&self) -> bool {
        self.flows.is_empty() && self.ended.is_empty()
    }
}

fn outcome((from, _, tag): Flow, len: u64, capacity: u64) -> Result<u64, Error> {
    if len <= capacity {
        return Ok(len);
    }
    let envelope = Envelope { peer: PeerId(from), context: Context(0), tag: Tag(tag), len, seq: 0 };
    Err(Error::Truncated { envelope, capacity })
}

/// A party's access to the mesh.
pub(super) struct Port<'a> {
    pub(super) mesh: &'a mut Mesh,
    pub(super) me: u32,
}

impl Transport for Port<'_> {
    fn send(&mut self, to: u32, tag: u64, data: Segments) -> Option<RequestId> {
        let request = self.mesh.request();
        let traffic = self.mesh.flows.entry((self.me, to, tag)).or_default();
        traffic.sends.push_back(Sent::Waiting(request, data));
        Some(request)
    }

    fn recv(&mut self, from: u32, tag: u64, into: Segments) -> RequestId {
        let request = self.mesh.request();
        self.mesh.flows.entry((from, self.me, tag)).or_default().recvs.push_back((request, into));
        request
    }

    fn take(&mut self, request: RequestId) -> Option<Result<u64, Error>> {
        self.mesh.ended.remove(&request)
    }

    fn explain(&mut self, error: Error) -> crate::error::Error {
        crate::error::Class::PROC_ABORTED.error(error.to_string())
    }
}
