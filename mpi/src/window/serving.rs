//! What the service of a window keeps: frames that have not been served, data on its way, locks that are
//! waited for.

use super::frame::{Frame, Kind};
use super::locks::Ticket;
use crate::error::Class;
use crate::memory;
use newmadeleine::engine::{Claim, Engine};
use newmadeleine::{RequestId, Segments};
use std::collections::{BTreeMap, VecDeque};

/// See the module.
pub(super) struct Serving {
    /// Origins of which something is not done.
    pub(super) queues: BTreeMap<i32, Queue>,
    /// Answers that the engine reads.
    pub(super) answers: Vec<(RequestId, Vec<u8>)>,
    /// Locks that were asked for.
    pub(super) tickets: VecDeque<Asked>,
    /// The first thing that went wrong for an origin since its last flush.
    pub(super) faults: BTreeMap<i32, (Class, String)>,
    /// By rank: `MPI_Win_post` that has named us, and no `MPI_Win_start` has used.
    pub(super) posts: Box<[u32]>,
    /// By rank: `MPI_Win_complete` that no `MPI_Win_wait` has used.
    pub(super) completes: Box<[u32]>,
}

/// A lock that a rank waits for.
pub(super) struct Asked {
    pub(super) rank: i32,
    pub(super) id: u32,
    pub(super) ticket: Ticket,
}

/// What one origin has asked.
#[derive(Default)]
pub(super) struct Queue {
    /// Frames that wait for one before, or are still on their way.
    pub(super) incoming: VecDeque<Incoming>,
    /// Large data on their way, to the window or from it, and memory for refused data.
    pub(super) moving: Vec<(RequestId, Vec<u8>)>,
}

/// A frame that may be on its way.
pub(super) struct Incoming {
    words: Box<[u64]>,
    len: usize,
    /// None: it is here.
    request: Option<RequestId>,
}

impl Serving {
    pub(super) fn new(ranks: usize) -> Serving {
        Serving {
            queues: BTreeMap::new(),
            answers: Vec::new(),
            tickets: VecDeque::new(),
            faults: BTreeMap::new(),
            posts: vec![0; ranks].into(),
            completes: vec![0; ranks].into(),
        }
    }

    /// Whether there is something to be done without another frame.
    pub(super) fn is_busy(&self) -> bool {
        !(self.queues.is_empty() && self.answers.is_empty() && self.tickets.is_empty())
    }

    /// Forgets answers that have left.
    pub(super) fn forget_answers(&mut self, engine: &mut Engine) {
        self.answers.retain(|(id, _)| engine.take(*id).is_none());
    }
}

impl Incoming {
    /// Receives a frame that was found.
    pub(super) fn receive(engine: &mut Engine, claim: Claim) -> Incoming {
        let len = claim.envelope.len as usize;
        let mut words: Box<[u64]> = vec![0; len.div_ceil(size_of::<u64>())].into();
        let into: Segments = memory::contiguous(words.as_mut_ptr().cast(), len);
        let request = engine.recv_claimed(claim, into);
        let mut incoming = Incoming { words, len, request: Some(request) };
        // Most are here.
        incoming.is_here(engine);
        incoming
    }

    /// Whether it is here; one whose origin is gone is empty.
    pub(super) fn is_here(&mut self, engine: &mut Engine) -> bool {
        if let Some(outcome) = self.request.and_then(|request| engine.take(request)) {
            self.request = None;
            if outcome.is_err() {
                self.len = 0;
            }
        }
        self.request.is_none()
    }

    /// The frame and its data.
    pub(super) fn frame(&self) -> Option<(Frame, &[u8])> {
        let bytes = memory::bytes_of(&self.words);
        Frame::decode(&bytes[..self.len])
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.moving.is_empty()
    }

    /// Looks which data have come or left.
    pub(super) fn look(&mut self, engine: &mut Engine) -> bool {
        let before = self.moving.len();
        self.moving.retain(|(id, _)| engine.take(*id).is_none());
        self.moving.len() < before
    }
}

impl Kind {
    /// Whether it says that everything before is done.
    pub(super) fn follows_all(self) -> bool {
        matches!(self, Kind::Flush | Kind::Unlock | Kind::Complete)
    }
}
