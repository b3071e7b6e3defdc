//! Persistent requests: the same operation again and again.

use super::State;
use crate::error::{Class, Result};
use crate::partitioned::Side;

/// An operation that can be started, and its current run.
pub(crate) struct Persistent {
    make: Box<dyn FnMut() -> Result<State> + Send>,
    pub(crate) active: Option<State>,
    /// Of a partitioned message.
    pub(crate) side: Option<Side>,
}

impl Persistent {
    pub(crate) fn new(make: impl FnMut() -> Result<State> + Send + 'static) -> Box<Persistent> {
        Box::new(Persistent { make: Box::new(make), active: None, side: None })
    }

    /// A partitioned message.
    pub(crate) fn partitioned(
        side: Side,
        make: impl FnMut() -> Result<State> + Send + 'static,
    ) -> Box<Persistent> {
        Box::new(Persistent { make: Box::new(make), active: None, side: Some(side) })
    }

    /// Starts it.
    ///
    /// # Errors
    /// It runs already, or the operation cannot begin.
    pub(crate) fn start(&mut self) -> Result<()> {
        if self.active.is_some() {
            return Err(Class::REQUEST.error("the persistent request runs already: wait for it first"));
        }
        self.active = Some((self.make)()?);
        Ok(())
    }
}
