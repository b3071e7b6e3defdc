//! Waiting for a bounded time, for requests whose names may be wrong: for callers whose language cannot
//! ensure that a request is waited for once.

use crate::lock::Guard;
use crate::locked::{Core, Looked, Outcome};
use crate::node::Node;
use nmad_engine::{Duration, Engine, RequestId};

/// A request that does not exist: it never did, or its end was reported already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownRequest {
    /// Its place in the list that was given.
    pub index: usize,
}

/// Lists up to this length are searched for doubles without a sorted copy.
const FEW: usize = 16;

impl Node {
    /// Waits until `ready` says so, or for at most `bound`; false: it did not.
    pub fn wait_for(&self, bound: std::time::Duration, mut ready: impl FnMut(&mut Engine) -> bool) -> bool {
        let until = self.now() + Duration::from_ns(bound.as_nanos().try_into().unwrap_or(u64::MAX));
        self.wait_until(Some(until), |core| ready(&mut core.engine).then_some(()).ok_or(None)).is_some()
    }

    /// Waits for one of the requests, for at most `bound` (without one: until it ends): its place in the
    /// list, and how it ended. `Duration::ZERO` looks once at the rails. `Ok(None)`: none has ended, or the
    /// list is empty. If one is unknown, none that comes later in the list is
    /// reported.
    ///
    /// # Errors
    /// One of the requests is unknown, or becomes so because another thread takes its end.
    #[inline]
    pub fn wait_any_within(
        &self,
        requests: &[RequestId],
        bound: Option<Duration>,
    ) -> Result<Option<(usize, Outcome)>, UnknownRequest> {
        if requests.is_empty() {
            return Ok(None);
        }
        self.within(bound, |core| core.first_ended(requests).transpose().ok_or(only(requests))).transpose()
    }

    /// Waits for all of the requests, for at most `bound`: how each ended. `Ok(None)`: not all have;
    /// nothing was reported then, and all can still be waited for.
    ///
    /// # Errors
    /// One of the requests is unknown, or there twice, which is found before anything is waited for; or one
    /// becomes unknown because another thread receives its end. Nothing was reported.
    pub fn wait_all_within(
        &self,
        requests: &[RequestId],
        bound: Option<Duration>,
    ) -> Result<Option<Vec<Outcome>>, UnknownRequest> {
        let wrong = twice(requests).or_else(|| self.shared.lock().unknown_among(requests));
        if let Some(index) = wrong {
            return Err(UnknownRequest { index });
        }
        // Those before this one have ended.
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

    /// Whether the request has ended, and that was not reported yet. Does not turn the pump.
    ///
    /// # Errors
    /// It is unknown.
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

    /// The place of the first that is unknown.
    pub(crate) fn unknown_among(&self, requests: &[RequestId]) -> Option<usize> {
        requests.iter().position(|&request| self.engine.has_ended(request).is_none())
    }

    /// How each of the requests ended, which all have and no two of which are the same; nothing is taken if
    /// another thread has received the end of one of them meanwhile.
    fn take_all(&mut self, requests: &[RequestId]) -> Result<Vec<Outcome>, UnknownRequest> {
        if let Some(index) = self.unknown_among(requests) {
            return Err(UnknownRequest { index });
        }
        let take = |(index, &request)| self.engine.take(request).ok_or(UnknownRequest { index });
        requests.iter().enumerate().map(take).collect()
    }
}

/// The place of the first request that is in the list before that already.
fn twice(requests: &[RequestId]) -> Option<usize> {
    let mut places = (1..requests.len()).filter(|&place| requests[..place].contains(&requests[place]));
    if requests.len() > FEW {
        // Requests in the order in which they were made are mostly sorted already.
        let mut sorted = requests.to_vec();
        sorted.sort_unstable();
        sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    }
    places.next()
}

/// The one that has to end before any of them has; none if any of several may.
#[inline]
fn only(requests: &[RequestId]) -> Option<RequestId> {
    if let [request] = requests { Some(*request) } else { None }
}
