//! What a target keeps of each origin: messages that have not been served, and data on its way.

use crate::base::{bytes_of, lent_words};
use crate::frame::Frame;
use crate::{Claims, Port};
use nmad_engine::{Claim, RequestId};
use std::collections::VecDeque;

/// What one origin has asked.
#[derive(Default)]
pub(super) struct Queue {
    /// Messages that wait for one before, or are still on their way.
    pub(super) incoming: VecDeque<Incoming>,
    /// Large data on their way, to the window or from it.
    pub(super) moving: Vec<RequestId>,
}

/// A message with frames that may be on its way.
pub(super) struct Incoming {
    words: Box<[u64]>,
    len: usize,
    /// Bytes of the frames that were served.
    served: usize,
    /// None: it is here.
    request: Option<RequestId>,
}

impl Incoming {
    /// Receives a message that was found. Of one for which there is no memory nothing is received, and its
    /// frames are not served: only a process that breaks the protocol announces such a length.
    pub(super) fn receive(port: &mut impl Claims, claim: Claim) -> Incoming {
        let len = usize::try_from(claim.envelope.len).unwrap_or(usize::MAX);
        let (mut words, len) = memory(len).map_or_else(Default::default, |words| (words, len));
        let into = lent_words(&mut words, len);
        let request = port.receive_claimed(claim, into);
        let mut incoming = Incoming { words, len, served: 0, request: Some(request) };
        // Most are here.
        incoming.is_here(port);
        incoming
    }

    /// Whether it is here; one whose origin is gone is empty.
    pub(super) fn is_here(&mut self, port: &mut impl Port) -> bool {
        if let Some(outcome) = self.request.and_then(|request| port.take(request)) {
            self.request = None;
            if outcome.is_err() {
                self.len = 0;
            }
        }
        self.request.is_none()
    }

    /// The first frame that was not served, its data, and the bytes of both.
    pub(super) fn frame(&self) -> Option<(Frame, &[u8], usize)> {
        let bytes = &bytes_of(&self.words)[..self.len];
        Frame::decode(bytes.get(self.served..)?)
    }

    /// A frame of this number of bytes was served.
    pub(super) fn advance(&mut self, len: usize) {
        self.served += len;
    }
}

/// Zeroes for this number of bytes; none: the system has not so much memory.
fn memory(len: usize) -> Option<Box<[u64]>> {
    let count = len.div_ceil(size_of::<u64>());
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.resize(count, 0);
    Some(words.into())
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.moving.is_empty()
    }

    /// Looks which data have come or left.
    pub(super) fn look(&mut self, port: &mut impl Port) -> bool {
        let before = self.moving.len();
        self.moving.retain(|id| port.take(*id).is_none());
        self.moving.len() < before
    }
}
