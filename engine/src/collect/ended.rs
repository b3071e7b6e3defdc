//! Completed requests, for callers that fetch each of them, and for callers that only ask whether any
//! request has completed.

use crate::packet::RequestId;
use alloc::collections::VecDeque;

/// Completed requests that were not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Completed requests in order of completion; empty once a caller has used [`Ended::any`].
    requests: VecDeque<RequestId>,
    any: bool,
    is_counted_only: bool,
}

impl Ended {
    /// Adds a completed request.
    #[inline(always)]
    pub(crate) fn push(&mut self, request: RequestId) {
        self.any = true;
        if !self.is_counted_only {
            self.requests.push_back(request);
        }
    }

    /// Returns the next completed request.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<RequestId> {
        self.requests.pop_front()
    }

    /// Whether any request has completed since the last call of [`Ended::any`].
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any
    }

    /// Whether any request has completed since the last call. From now on the requests themselves are not
    /// recorded.
    #[inline]
    pub(crate) fn any(&mut self) -> bool {
        if !self.is_counted_only {
            self.is_counted_only = true;
            self.requests = VecDeque::new();
        }
        core::mem::take(&mut self.any)
    }
}
