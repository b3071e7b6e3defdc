//! The object behind a session of C.

use crate::code::Failure;
use crate::table::Table;
use newmadeleine::engine::{Packing, RequestId, Unpacking};
use newmadeleine::progress::Node;
use newmadeleine::{Channel, Session};

/// The object behind `nmad_session_t`.
pub struct Handle {
    pub session: Session,
    /// Rails that it has; their number does not change.
    pub rails: u32,
    /// Strategies that it knows; their number does not change.
    pub strategies: u32,
    pub packings: Table<Packing>,
    pub unpackings: Table<Unpacking>,
}

impl Handle {
    pub fn node(&self) -> &Node {
        self.session.node()
    }

    pub fn channel(&self, context: u32) -> Result<Channel<'_>, Failure> {
        Ok(self.session.channel(context)?)
    }

    /// Waits for a request that only this call knows.
    pub fn end_of(&self, request: RequestId) -> Result<(), Failure> {
        Ok(self.session.outcome(self.node().wait(request)).map(drop)?)
    }
}
