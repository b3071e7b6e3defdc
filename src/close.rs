//! Closing a session: its last messages leave, and its statistics are printed and stored.

use crate::error::SessionError;
use crate::notices;
use crate::observations;
use crate::sampling;
use crate::session::Session;
use crate::summary;
use nmad_drivers::interpreted;
use nmad_engine::Driver;
use nmad_launch::Bootstrap;
use std::time::Duration;

/// Time limit for the last messages to leave.
const DRAIN_BOUND: Duration = Duration::from_secs(5);
/// Time limit of the wait for rails in use by other threads.
const LOOK_BOUND: nmad_engine::Duration = nmad_engine::Duration::from_ms(100);

impl Session {
    /// Leaves the job: submitted messages leave, and the other ranks receive notice.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn close(self) -> Result<(), SessionError> {
        self.leave()
    }

    /// [`Session::close`] for bindings whose requests share the session; no call may follow it.
    ///
    /// # Errors
    /// The launcher is gone.
    #[doc(hidden)]
    pub fn leave(&self) -> Result<(), SessionError> {
        let job = self.job.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(job) = job else { return Ok(()) };
        self.node().submit(|engine| engine.leave());
        self.node().wait_for(DRAIN_BOUND, |engine| engine.inspect().is_drained());
        notices::tell_held();
        summary::tell(self);
        observations::write(self, job.job());
        if !interpreted::by_valgrind() {
            self.keep_learnt(job.as_ref());
        }
        if let Some(trace) = &self.trace {
            trace.write(self.node());
        }
        job.finish().map_err(SessionError::from)
    }
}

impl Session {
    /// Stores the results that this session has learnt about its rails, for later jobs.
    fn keep_learnt(&self, job: &dyn Bootstrap) {
        sampling::doubt_refuted(self.node(), self.profiles(), self.size());
        let of_each = |rails: &mut [&mut dyn Driver]| -> Vec<_> {
            rails.iter().map(|rail| rail.statistics().learnt).collect()
        };
        if let Some(learnt) = self.node().with_rails_within(LOOK_BOUND, of_each) {
            sampling::learnt::keep(job, self.profiles(), &learnt);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A session that is dropped instead of closed still sends its last messages.
        let _ = self.leave();
    }
}
