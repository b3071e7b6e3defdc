//! Messages as futures, for any executor (feature `async`).
//!
//! A future owns the memory of its message and returns it at the end, so it can be dropped or forgotten at
//! any time. One thread of the library advances messages and wakes tasks while futures wait, and sleeps
//! otherwise. This module knows requests and their ends, never rails or packets.
//!
//! ```no_run
//! # async fn run() -> Result<(), newmadeleine::SessionError> {
//! use newmadeleine::{AsyncSession, Session, Source};
//!
//! let session = AsyncSession::new(Session::open()?)?;
//! if session.rank() == 0 {
//!     session.send(1, 7, vec![1.0, 2.0, 3.0]).await?;
//! } else {
//!     let (message, numbers) = session.recv(Source::Any, 7, vec![0.0; 100]).await?;
//!     assert_eq!((message.from, numbers.len()), (0, 3));
//! }
//! session.close()
//! # }
//! ```

mod transfer;
mod waker;

pub use transfer::{Receiving, Sending};

use crate::error::SessionError;
use crate::session::Session;
use crate::{Source, TagMatch};
use bytemuck::{NoUninit, Pod};
use nmad_engine::Hints;
use std::sync::Arc;
use transfer::Transfer;
use waker::Waking;

/// A session whose messages are futures. Cheap to clone; all clones share one session.
#[derive(Clone)]
pub struct AsyncSession {
    waking: Arc<Waking>,
    context: u32,
}

impl AsyncSession {
    /// Takes over a session.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn new(session: Session) -> Result<AsyncSession, SessionError> {
        Ok(AsyncSession { waking: Arc::new(Waking::start(session)?), context: 0 })
    }

    /// Returns the session for messages of another context.
    ///
    /// # Errors
    /// The number is not below 2^31.
    pub fn channel(&self, context: u32) -> Result<AsyncSession, SessionError> {
        self.session().channel(context)?;
        Ok(AsyncSession { waking: self.waking.clone(), context })
    }

    /// Returns the session, for everything that does not wait.
    pub fn session(&self) -> &Session {
        self.waking.session()
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> u32 {
        self.session().rank()
    }

    /// Returns the number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.session().size()
    }

    /// Sends values. The message is submitted when this returns. The future ends when the values may be
    /// reused, and returns them. If it is dropped earlier, the message still arrives.
    pub fn send<T: NoUninit + Send>(&self, to: u32, tag: u64, data: Vec<T>) -> Sending<T> {
        Sending(Transfer::start(&self.waking, data, |memory| {
            self.session().channel(self.context)?.submit_send(to, tag, memory, Hints::default())
        }))
    }

    /// Receives values. The receive is posted when this returns. The future returns the received values. If
    /// it is dropped earlier, the receive is cancelled, and a message that was already arriving is lost.
    pub fn recv<T: Pod + Send>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: Vec<T>,
    ) -> Receiving<T> {
        Receiving(Transfer::start(&self.waking, buffer, |memory| {
            self.session().channel(self.context)?.submit_recv(from, tag, memory)
        }))
    }

    /// Leaves the job like [`Session::close`]; other clones must not be used any more. It blocks until the
    /// last messages have left.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn close(self) -> Result<(), SessionError> {
        self.session().leave()
    }
}
