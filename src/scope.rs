//! Concurrent messages in safe Rust.
//!
//! A request uses the caller's memory until it ends. A scope makes this sound like `std::thread::scope`:
//! buffers are borrowed for longer than the scope, and the scope ends only after all of its requests,
//! whether the program waited for them or not.
#![allow(unsafe_code)]

use crate::channel::Channel;
use crate::error::SessionError;
use crate::info::Message;
use crate::memory::{gather, readable, writable};
use crate::session::Session;
use crate::{Source, TagMatch};
use bytemuck::{NoUninit, Pod};
use nmad_engine::{Duration, Hints, Packing, PeerId, RequestId, Segments, Tag, Unpacking};
use nmad_progress::Node;
use std::cell::RefCell;
use std::marker::PhantomData;

/// Panic message for an invalid request, which is an error of the program.
const ONCE: &str = "a request ends once, in the scope that it belongs to";

/// A request of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request(pub(crate) RequestId);

/// State of an incremental message that is packed or unpacked.
#[derive(Debug)]
pub enum Piece {
    /// Made by [`Scope::begin_packing`].
    Packing(Packing),
    /// Made by [`Scope::begin_unpacking`].
    Unpacking(Unpacking),
}

/// See [`Channel::scope`].
pub struct Scope<'s, 'env> {
    channel: Channel<'s>,
    /// Requests whose result the caller has not received yet.
    open: RefCell<Vec<RequestId>>,
    /// Invariant in `'env`, so that the lifetime of buffers cannot be shortened.
    env: PhantomData<&'env mut &'env ()>,
}

/// A receive that returns its buffer, see [`Scope::receive`]. If it is dropped, the receive continues until
/// the scope ends.
pub struct Receive<'a, 's, 'env, T> {
    scope: &'a Scope<'s, 'env>,
    request: Request,
    /// A pointer, since the request writes to the memory meanwhile.
    memory: *mut [T],
    env: PhantomData<&'env mut [T]>,
}

impl<'env, T: Pod> Receive<'_, '_, 'env, T> {
    /// Waits for the message; returns it and the buffer.
    ///
    /// # Errors
    /// The receive failed. The buffer is free when the scope ends.
    pub fn wait(self) -> Result<(Message, &'env mut [T]), SessionError> {
        let message = self.scope.wait(self.request)?;
        // SAFETY: borrowed for `'env` when the receive was posted; the only request that used it has ended.
        Ok((message, unsafe { &mut *self.memory }))
    }

    /// Returns whether the message has come; waiting for it then returns at once.
    pub fn is_done(&self) -> bool {
        self.scope.test_all(&[self.request])
    }

    /// Tries to cancel the receive; see [`Scope::cancel`].
    pub fn cancel(&self) -> bool {
        self.scope.cancel(self.request)
    }
}

/// Waits for all requests of a scope, even if its work panics.
struct Guard<'a, 's, 'env>(&'a Scope<'s, 'env>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        // The caller has received the errors already, or a panic matters more.
        let _ = self.0.wait_rest();
    }
}

impl<'s> Channel<'s> {
    /// Runs concurrent messages; all of them have ended when this returns.
    ///
    /// # Errors
    /// The error of `work`, else the first error of a request that the program did not wait for.
    pub fn scope<'env, R>(
        &self,
        work: impl FnOnce(&Scope<'s, 'env>) -> Result<R, SessionError>,
    ) -> Result<R, SessionError> {
        Scope::run(*self, work)
    }
}

impl Session {
    /// [`Channel::scope`] on context 0.
    ///
    /// # Errors Those of [`Channel::scope`].
    pub fn scope<'s, 'env, R>(
        &'s self,
        work: impl FnOnce(&Scope<'s, 'env>) -> Result<R, SessionError>,
    ) -> Result<R, SessionError> {
        self.default_channel().scope(work)
    }
}

impl<'s, 'env> Scope<'s, 'env> {
    fn run<R>(
        channel: Channel<'s>,
        work: impl FnOnce(&Scope<'s, 'env>) -> Result<R, SessionError>,
    ) -> Result<R, SessionError> {
        let scope = Scope { channel, open: RefCell::new(Vec::new()), env: PhantomData };
        let guard = Guard(&scope);
        let answer = work(&scope)?;
        guard.0.wait_rest()?;
        Ok(answer)
    }

    /// Submits a message.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn send(&self, to: u32, tag: u64, data: &'env [u8]) -> Result<Request, SessionError> {
        self.send_with(to, tag, data, Hints::default())
    }

    /// Submits a message on another channel of the session; it belongs to the scope too.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn send_on(
        &self,
        channel: Channel<'s>,
        to: u32,
        tag: u64,
        data: &'env [u8],
    ) -> Result<Request, SessionError> {
        channel.submit_send(to, tag, readable(data), Hints::default()).map(|request| self.keep(request))
    }

    /// Posts a receive on another channel of the session.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn recv_on(
        &self,
        channel: Channel<'s>,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &'env mut [u8],
    ) -> Result<Request, SessionError> {
        channel.submit_recv(from, tag, writable(buffer)).map(|request| self.keep(request))
    }

    /// Submits values: their bytes, as [`Scope::send`] does.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn send_slice<T: NoUninit>(
        &self,
        to: u32,
        tag: u64,
        data: &'env [T],
    ) -> Result<Request, SessionError> {
        self.send(to, tag, bytemuck::cast_slice(data))
    }

    /// Submits a message with hints.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn send_with(
        &self,
        to: u32,
        tag: u64,
        data: &'env [u8],
        hints: Hints,
    ) -> Result<Request, SessionError> {
        self.channel.submit_send(to, tag, readable(data), hints).map(|request| self.keep(request))
    }

    /// Submits one message with data from several places.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn send_gather(&self, to: u32, tag: u64, pieces: &[&'env [u8]]) -> Result<Request, SessionError> {
        let piece = |p: &&[u8]| nmad_engine::Segment { start: p.as_ptr().cast_mut(), len: p.len() };
        let list: Vec<_> = pieces.iter().map(piece).collect();
        // SAFETY: the scope outlives the request, `'env` outlives the scope; sends only read.
        let data = unsafe { Segments::from_list(&list) };
        self.channel.submit_send(to, tag, data, Hints::default()).map(|request| self.keep(request))
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn recv(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &'env mut [u8],
    ) -> Result<Request, SessionError> {
        self.channel.submit_recv(from, tag, writable(buffer)).map(|request| self.keep(request))
    }

    /// Posts a receive whose buffer is returned by the wait and not only at the end of the scope: it can be
    /// read then, and used for the next receive of the same scope.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn receive<'a, T: Pod>(
        &'a self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        buffer: &'env mut [T],
    ) -> Result<Receive<'a, 's, 'env, T>, SessionError> {
        let memory = std::ptr::from_mut(buffer);
        // SAFETY: borrowed for `'env` by the caller, and only used through `memory` and the request.
        let request = self.recv(from, tag, bytemuck::cast_slice_mut(unsafe { &mut *memory }))?;
        Ok(Receive { scope: self, request, memory, env: PhantomData })
    }

    /// Posts a receive that scatters one message over several places.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn recv_scatter(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
        pieces: Vec<&'env mut [u8]>,
    ) -> Result<Request, SessionError> {
        self.channel.submit_recv(from, tag, gather(pieces.into_iter())).map(|request| self.keep(request))
    }

    /// Begins to pack a message piece by piece (P1 section 3.4).
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn begin_packing(&self, to: u32, tag: u64) -> Result<Piece, SessionError> {
        let to: PeerId = self.channel.session.peer(to)?;
        Ok(Piece::Packing(Packing::new(to, self.channel.context, Tag(tag))))
    }

    /// Begins to unpack a message piece by piece.
    ///
    /// # Errors
    /// The rank does not exist.
    pub fn begin_unpacking(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<Piece, SessionError> {
        let (from, tag) = (from.into(), tag.into());
        self.channel.session.check_source(from)?;
        let context = self.channel.context;
        let begin =
            |engine: &mut nmad_engine::Engine| Unpacking::new(engine, from.into(), context, tag.into());
        Ok(Piece::Unpacking(self.node().with(begin)))
    }

    /// Adds a piece to a message, which may leave at once.
    ///
    /// # Panics
    /// `message` is being unpacked.
    pub fn pack(&self, message: &mut Piece, data: &'env [u8], hints: Hints) -> Request {
        let Piece::Packing(packing) = message else { panic!("pack on a message that is taken apart") };
        let data = readable(data);
        self.keep(self.node().submit(|engine| packing.pack(engine, data, hints)))
    }

    /// Receives the next piece of a message.
    ///
    /// # Panics
    /// `message` is being packed.
    pub fn unpack(&self, message: &mut Piece, buffer: &'env mut [u8]) -> Request {
        let Piece::Unpacking(unpacking) = message else { panic!("unpack on a message that is built") };
        let into = writable(buffer);
        self.keep(self.node().submit(|engine| unpacking.unpack(engine, into)))
    }

    /// Ends a message: waits for its pieces, like Madeleine's barrier at the end of a message.
    ///
    /// # Errors
    /// The first error of a piece.
    pub fn end(&self, message: Piece, pieces: &[Request]) -> Result<(), SessionError> {
        if let Piece::Unpacking(unpacking) = message {
            self.node().with(|engine| unpacking.end(engine));
        }
        pieces.iter().try_for_each(|&piece| self.wait(piece).map(drop))
    }

    /// Waits for a request.
    ///
    /// # Errors The request failed.
    ///
    /// # Panics The request was already waited for.
    pub fn wait(&self, request: Request) -> Result<Message, SessionError> {
        self.mark_ended(request.0);
        let outcome = self.node().wait(request.0);
        self.channel.session.outcome(outcome)
    }

    /// Waits for all of the requests.
    ///
    /// # Errors
    /// The first error; all requests have ended nevertheless.
    ///
    /// # Panics
    /// One of the requests was already waited for, or is listed twice; the others continue.
    pub fn wait_all(&self, requests: &[Request]) -> Result<Vec<Message>, SessionError> {
        let ids = names(requests);
        let ended = self.node().wait_all_within(&ids, None).expect(ONCE).unwrap_or_default();
        ids.iter().for_each(|&request| self.mark_ended(request));
        ended.into_iter().map(|outcome| self.channel.session.outcome(outcome)).collect()
    }

    /// Waits for any of the requests; returns its index and its message, `None` for an empty list.
    ///
    /// # Errors The request failed.
    ///
    /// # Panics
    /// One of the requests was already waited for, and none before it in the list has ended.
    pub fn wait_any(&self, requests: &[Request]) -> Result<Option<(usize, Message)>, SessionError> {
        self.any_within(requests, None)
    }

    /// Returns the index and the message of a request that has ended, if any.
    ///
    /// # Errors The request failed.
    ///
    /// # Panics
    /// Like [`Scope::wait_any`].
    pub fn test_any(&self, requests: &[Request]) -> Result<Option<(usize, Message)>, SessionError> {
        self.any_within(requests, Some(Duration::ZERO))
    }

    /// Returns whether all of the requests have ended; waiting for them then returns at once.
    ///
    /// # Panics One of the requests was already waited for.
    pub fn test_all(&self, requests: &[Request]) -> bool {
        self.node().test_all(&names(requests)).expect(ONCE)
    }

    /// Returns the message of the request, if it has ended.
    ///
    /// # Errors The request failed.
    ///
    /// # Panics The request was already waited for.
    pub fn test(&self, request: Request) -> Result<Option<Message>, SessionError> {
        self.test_any(&[request]).map(|found| found.map(|(_, message)| message))
    }

    /// Tries to cancel a receive; it ends with [`SessionError::Cancelled`] or with its message.
    pub fn cancel(&self, request: Request) -> bool {
        self.node().submit(|engine| engine.cancel(request.0))
    }

    fn any_within(
        &self,
        requests: &[Request],
        bound: Option<Duration>,
    ) -> Result<Option<(usize, Message)>, SessionError> {
        let ended = self.node().wait_any_within(&names(requests), bound).expect(ONCE);
        let Some((index, outcome)) = ended else { return Ok(None) };
        self.mark_ended(requests[index].0);
        Ok(Some((index, self.channel.session.outcome(outcome)?)))
    }

    fn node(&self) -> &'s Node {
        self.channel.session.node()
    }

    fn keep(&self, request: RequestId) -> Request {
        self.open.borrow_mut().push(request);
        Request(request)
    }

    /// Marks a request whose result is returned now.
    fn mark_ended(&self, request: RequestId) {
        let mut open = self.open.borrow_mut();
        let index = open.iter().position(|&other| other == request);
        open.swap_remove(index.expect(ONCE));
    }

    fn wait_rest(&self) -> Result<(), SessionError> {
        let mut rest = std::mem::take(&mut *self.open.borrow_mut());
        if rest.is_empty() {
            return Ok(());
        }
        // A request of this scope may have been waited for in another scope, which panicked.
        self.node().with(|engine| rest.retain(|&request| engine.has_ended(request).is_some()));
        let mut failed = None;
        self.node().wait_all(&rest, |outcome| failed = failed.or(outcome.err()));
        failed.map_or(Ok(()), |error| self.channel.session.outcome(Err(error)).map(drop))
    }
}

fn names(requests: &[Request]) -> Vec<RequestId> {
    requests.iter().map(|request| request.0).collect()
}
