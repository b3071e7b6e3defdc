//! Bounded waits that check request names, for callers whose language cannot ensure that each request is
//! waited for once.

use crate::lock::Guard;
use crate::locked::{Core, Looked, Outcome};
use crate::node::Node;
use nmad_engine::{Duration, Engine, RequestId};

/// A request that does not exist: it never did, or its result was already taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownRequest {
    /// Index in the given list.
    pub index: usize,
}

/// Lists up to this length are searched for duplicates without a sorted copy.
const FEW: usize = 16;

impl Node {
    /// Waits until `ready` is true, for at most `bound`; returns whether it was.
    pub fn wait_for(&self, bound: std::time::Duration, mut ready: impl FnMut(&mut Engine) -> bool) -> bool {
        let until = self.now() + Duration::from_ns(bound.as_nanos().try_into().unwrap_or(u64::MAX));
        self.wait_until(Some(until), |core| ready(&mut core.engine).then_some(()).ok_or(None)).is_some()
    }

    /// Waits for one of the requests, for at most `bound` (without one: until one ends). Returns its index
    /// and its result. `Duration::ZERO` polls the rails once. `Ok(None)`: none has ended, or the list is
    /// empty. If a request is unknown, none that comes later in the list is reported.
    ///
    /// # Errors
    /// One of the requests is unknown, or becomes unknown because another thread takes its result.
    #[inline]
    pub fn wait_any_within(
        &self,
        requests: &[RequestId],
        bound: Option<Duration>,
    ) -> Result<Option<(usize, Outcome)>, UnknownRequest> {
        if requests.is_empty() {
            return Ok(None);
        }
        self.within(bound, |core| core.first_ended(requests).transpose().ok_or(only_one(requests)))
            .transpose()
    }

    /// Waits for all of the requests, for at most `bound`, and returns their results. `Ok(None)`: not all
    /// have ended; no result was taken, and all can still be waited for.
    ///
    /// # Errors
    /// One of the requests is unknown or listed twice, which is checked before waiting; or one becomes
    /// unknown because another thread takes its result. No result was taken.
    pub fn wait_all_within(
        &self,
        requests: &[RequestId],
        bound: Option<Duration>,
    ) -> Result<Option<Vec<Outcome>>, UnknownRequest> {
        let wrong = first_duplicate(requests).or_else(|| self.shared.lock().unknown_among(requests));
        if let Some(index) = wrong {
            return Err(UnknownRequest { index });
        }
        // All requests before this index have ended.
        let mut next = 0;
        self.within(bound, |core| {
            while let Some(&request) = requests.get(next) {
                match core.engine.has_ended(request) {
                    Some(true) => next += 1,
                    Some(false) => return Err(Some(request)),
                    None => return Ok(Err(UnknownRequest { index: next })),
                }
            }
            Ok(core.take_all(requests))
        })
        .transpose()
    }

    /// Returns whether the request has ended; its result was not taken yet. Does not turn the pump.
    ///
    /// # Errors
    /// The request is unknown.
    pub fn has_ended(&self, request: RequestId) -> Result<bool, UnknownRequest> {
        self.with(|engine| engine.has_ended(request)).ok_or(UnknownRequest { index: 0 })
    }

    #[inline]
    fn within<R>(
        &self,
        bound: Option<Duration>,
        mut ready: impl FnMut(&mut Guard<'_, Core>) -> Looked<R>,
    ) -> Option<R> {
        if bound != Some(Duration::ZERO) {
            let until = bound.map(|bound| self.now() + bound);
            return self.wait_until(until, ready);
        }
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        let looked = ready(&mut core).or_else(|_| {
            self.shared.turn(&mut core, true);
            ready(&mut core)
        });
        looked.ok()
    }
}

impl Core {
    #[inline]
    fn first_ended(&mut self, requests: &[RequestId]) -> Result<Option<(usize, Outcome)>, UnknownRequest> {
        for (index, &request) in requests.iter().enumerate() {
            match self.engine.has_ended(request) {
                Some(true) => return Ok(self.engine.take(request).map(|outcome| (index, outcome))),
                Some(false) => {}
                None => return Err(UnknownRequest { index }),
            }
        }
        Ok(None)
    }

    /// Returns the index of the first unknown request.
    pub(crate) fn unknown_among(&self, requests: &[RequestId]) -> Option<usize> {
        requests.iter().position(|&request| self.engine.has_ended(request).is_none())
    }

    /// Takes the results of the requests, which all have ended and are different. Takes none if another
    /// thread has taken one meanwhile.
    fn take_all(&mut self, requests: &[RequestId]) -> Result<Vec<Outcome>, UnknownRequest> {
        if let Some(index) = self.unknown_among(requests) {
            return Err(UnknownRequest { index });
        }
        let take = |(index, &request)| self.engine.take(request).ok_or(UnknownRequest { index });
        requests.iter().enumerate().map(take).collect()
    }
}

/// Returns the index of the first request that the list contains before already.
fn first_duplicate(requests: &[RequestId]) -> Option<usize> {
    let mut places = (1..requests.len()).filter(|&place| requests[..place].contains(&requests[place]));
    if requests.len() > FEW {
        // Requests in the order of their submission are almost sorted already.
        let mut sorted = requests.to_vec();
        sorted.sort_unstable();
        sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    }
    places.next()
}

/// Returns the request that has to end first; `None` if any of several may.
#[inline]
fn only_one(requests: &[RequestId]) -> Option<RequestId> {
    if let [request] = requests { Some(*request) } else { None }
}
