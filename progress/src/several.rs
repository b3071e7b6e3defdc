//! Several requests at once.

use crate::node::{Core, Node, Outcome};
use nmad_engine::RequestId;

impl Node {
    /// Waits until all of the requests end; `tell` is given how each did, in the order of the list.
    #[inline]
    pub fn wait_all(&self, requests: &[RequestId], mut tell: impl FnMut(Outcome)) {
        let mut rest = requests.iter();
        let mut next = rest.next();
        self.wait_until(None, |core| {
            while let Some(&request) = next {
                tell(core.take(request)?);
                next = rest.next();
            }
            Ok(())
        });
    }

    /// Waits until one of the requests ends: its place in the list, and how. None for an empty list.
    pub fn wait_any(&self, requests: &[RequestId]) -> Option<(usize, Outcome)> {
        if requests.is_empty() {
            return None;
        }
        self.wait_until(None, |core| {
            let ended = requests.iter().position(|&request| core.has_ended(request));
            let index = ended.ok_or(only(requests))?;
            Ok((index, core.take(requests[index])?))
        })
    }

    /// One of the requests that has ended, if any has; turns the pump if none has.
    pub fn test_any(&self, requests: &[RequestId]) -> Option<(usize, Outcome)> {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        if !requests.iter().any(|&request| core.has_ended(request)) {
            self.shared.turn(&mut core, true);
        }
        let index = requests.iter().position(|&request| core.has_ended(request))?;
        let outcome = core.engine.take(requests[index])?;
        Some((index, outcome))
    }

    /// Whether all of the requests have ended; their results stay. Turns the pump if not.
    pub fn test_all(&self, requests: &[RequestId]) -> bool {
        let mut core = self.shared.lock();
        let all = |core: &Core| requests.iter().all(|&request| core.has_ended(request));
        self.shared.waits(&mut core);
        all(&core) || {
            self.shared.turn(&mut core, true);
            all(&core)
        }
    }
}

/// The one that has to end before any of them has; none if any of several may.
#[inline]
pub(crate) fn only(requests: &[RequestId]) -> Option<RequestId> {
    if let [request] = requests { Some(*request) } else { None }
}
