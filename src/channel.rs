//! A communication context of a session: messages of different channels never match.

use crate::error::SessionError;
use crate::info::Message;
use crate::memory::{readable, writable};
use crate::session::Session;
use crate::{Source, TagMatch};
use bytemuck::{NoUninit, Pod};
use nmad_engine::{Context, Hints, RequestId, Segments};
use nmad_progress::Outcome;

/// A communication context of a session. Cheap to make.
#[derive(Clone, Copy)]
pub struct Channel<'s> {
    pub(crate) session: &'s Session,
    pub(crate) context: Context,
}

impl<'s> Channel<'s> {
    /// Returns the engine's context, for bindings.
    #[doc(hidden)]
    pub fn context(&self) -> Context {
        self.context
    }

    /// Sends a message and waits until `data` may be reused.
    ///
    /// # Errors
    /// The rank does not exist or is gone.
    pub fn send(&self, to: u32, tag: u64, data: &[u8]) -> Result<(), SessionError> {
        self.send_with(to, tag, data, Hints::default())
    }

    /// Sends a message with hints and waits until it ends.
    ///
    /// # Errors Errors of [`Channel::send`].
    pub fn send_with(&self, to: u32, tag: u64, data: &[u8], hints: Hints) -> Result<(), SessionError> {
        self.send_segments(to, tag, readable(data), hints)
    }

    /// Receives a matching message into `buffer`; waits for it.
    ///
    /// # Errors
    /// The message is longer than the buffer, or the rank does not exist or is gone.
    pub fn recv(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &mut [u8],
    ) -> Result<Message, SessionError> {
        let outcome = self.recv_segments(from, tag, writable(buffer))?;
        self.session.outcome(outcome)
    }

    /// Sends values of a type without padding and pointers, such as numbers and structures of numbers
    /// ([`NoUninit`]). Their bytes are sent as they are in memory, so both sides must have the same byte
    /// order.
    ///
    /// # Errors Errors of [`Channel::send`].
    pub fn send_slice<T: NoUninit>(&self, to: u32, tag: u64, data: &[T]) -> Result<(), SessionError> {
        self.send(to, tag, bytemuck::cast_slice(data))
    }

    /// Receives values of a type that any bytes represent ([`Pod`]); [`Message::count`] returns the number
    /// of received values.
    ///
    /// # Errors
    /// Errors of [`Channel::recv`].
    pub fn recv_slice<T: Pod>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &mut [T],
    ) -> Result<Message, SessionError> {
        self.recv(from, tag, bytemuck::cast_slice_mut(buffer))
    }

    /// Returns a matching unexpected message, without receiving it.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagMatch>) -> Option<Message> {
        let (from, tag) = (from.into().into(), tag.into().into());
        let look = |engine: &mut nmad_engine::Engine| engine.probe(from, self.context, tag);
        let found = self.session.node().with(look).or_else(|| {
            self.session.node().turn();
            self.session.node().with(look)
        });
        found.map(Message::from)
    }

    /// [`Channel::send_with`] of memory whose validity the caller guarantees (see [`Segments::from_raw`]):
    /// for bindings.
    ///
    /// # Errors Errors of [`Channel::send`].
    #[inline]
    #[doc(hidden)]
    pub fn send_segments(&self, to: u32, tag: u64, data: Segments, hints: Hints) -> Result<(), SessionError> {
        let to = self.session.peer(to)?;
        let outcome = self.session.node().send(&(to, self.context, nmad_engine::Tag(tag)), &data, hints);
        self.session.outcome(outcome).map(drop)
    }

    /// [`Channel::recv`] into memory whose validity the caller guarantees; for bindings.
    ///
    /// # Errors
    /// The rank does not exist. The result of the receive is inside, since a truncated message still has an
    /// envelope; [`Session::outcome`] converts it.
    #[inline]
    #[doc(hidden)]
    pub fn recv_segments(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        into: Segments,
    ) -> Result<Outcome, SessionError> {
        let (from, tag) = (from.into(), tag.into());
        self.session.check_source(from)?;
        Ok(self.session.node().recv((from.into(), self.context, tag.into()), into))
    }

    /// Submits a send of memory whose validity the caller guarantees (see [`Segments::from_raw`]); for
    /// bindings.
    ///
    /// # Errors
    /// The rank does not exist.
    #[inline]
    #[doc(hidden)]
    pub fn submit_send(
        &self,
        to: u32,
        tag: u64,
        data: Segments,
        hints: Hints,
    ) -> Result<RequestId, SessionError> {
        let to = self.session.peer(to)?;
        let to = (to, self.context, nmad_engine::Tag(tag));
        Ok(self.session.node().submit_send(&to, &data, hints))
    }

    /// Submits a receive into memory whose validity the caller guarantees; for bindings.
    ///
    /// # Errors
    /// The rank does not exist.
    #[inline]
    #[doc(hidden)]
    pub fn submit_recv(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        into: Segments,
    ) -> Result<RequestId, SessionError> {
        let (from, tag) = (from.into(), tag.into());
        self.session.check_source(from)?;
        Ok(self.session.node().submit(|engine| engine.recv(from.into(), self.context, tag.into(), into)))
    }
}

/// Operations on context 0.
impl Session {
    /// Returns a communication context; both sides use the same number.
    ///
    /// # Errors
    /// The number is not below 2^31.
    pub fn channel(&self, context: u32) -> Result<Channel<'_>, SessionError> {
        if context >= Context::LIMIT {
            return Err(SessionError::NoSuchContext(context));
        }
        Ok(Channel { session: self, context: Context(context) })
    }

    pub(crate) fn default_channel(&self) -> Channel<'_> {
        Channel { session: self, context: Context(0) }
    }

    /// [`Channel::send`] on context 0.
    ///
    /// # Errors Those of the channel's function.
    pub fn send(&self, to: u32, tag: u64, data: &[u8]) -> Result<(), SessionError> {
        self.default_channel().send(to, tag, data)
    }

    /// [`Channel::recv`] on context 0.
    ///
    /// # Errors Those of the channel's function.
    pub fn recv(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &mut [u8],
    ) -> Result<Message, SessionError> {
        self.default_channel().recv(from, tag, buffer)
    }

    /// [`Channel::probe`] on context 0.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagMatch>) -> Option<Message> {
        self.default_channel().probe(from, tag)
    }

    /// Sends values, see [`Channel::send_slice`].
    ///
    /// # Errors Those of the channel's function.
    pub fn send_slice<T: NoUninit>(&self, to: u32, tag: u64, data: &[T]) -> Result<(), SessionError> {
        self.default_channel().send_slice(to, tag, data)
    }

    /// Receives values, see [`Channel::recv_slice`].
    ///
    /// # Errors Those of the channel's function.
    pub fn recv_slice<T: Pod>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &mut [T],
    ) -> Result<Message, SessionError> {
        self.default_channel().recv_slice(from, tag, buffer)
    }
}
