//! Requests that have ended: for callers that ask which, and for callers that only ask whether.

use crate::packet::RequestId;
use alloc::collections::VecDeque;

/// Requests that have ended and were not asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// In the order in which they ended; none, once somebody has asked only whether any has.
    names: VecDeque<RequestId>,
    any: bool,
    nameless: bool,
}

impl Ended {
    /// A request has ended.
    #[inline(always)]
    pub(crate) fn push(&mut self, request: RequestId) {
        self.any = true;
        if !self.nameless {
            self.names.push_back(request);
        }
    }

    /// The next one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<RequestId> {
        self.names.pop_front()
    }

    /// Whether any has since [`Ended::any`] was asked.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any
    }

    /// Whether any has since this was asked. From now on nobody asks which.
    #[inline]
    pub(crate) fn any(&mut self) -> bool {
        if !self.nameless {
            self.nameless = true;
            self.names = VecDeque::new();
        }
        core::mem::take(&mut self.any)
    }
}
