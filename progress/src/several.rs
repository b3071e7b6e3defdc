//! Waiting for several requests.

use crate::bounded::UnknownRequest;
use crate::locked::{Core, Outcome};
use crate::node::Node;
use nmad_engine::RequestId;

impl Node {
    /// Waits until all of the requests end. All must be known and different; `tell` receives their results
    /// in the order of the list.
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

    /// Returns whether all of the requests have ended; their results stay. Turns the pump if not.
    ///
    /// # Errors
    /// One of the requests is unknown.
    pub fn test_all(&self, requests: &[RequestId]) -> Result<bool, UnknownRequest> {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        if core.all_ended(requests)? {
            return Ok(true);
        }
        self.shared.turn(&mut core, true);
        core.all_ended(requests)
    }
}

impl Core {
    fn all_ended(&self, requests: &[RequestId]) -> Result<bool, UnknownRequest> {
        match self.unknown_among(requests) {
            Some(index) => Err(UnknownRequest { index }),
            None => Ok(requests.iter().all(|&request| self.engine.has_ended(request) == Some(true))),
        }
    }
}
