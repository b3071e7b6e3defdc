//! One message as a future.
#![allow(unsafe_code)]

use super::waker::Waking;
use crate::error::SessionError;
use crate::info::Message;
use nmad_engine::{Duration, RequestId, Segments};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A message being sent: see [`AsyncSession::send`](super::AsyncSession::send).
#[must_use = "the message leaves, but only the future tells whether it could"]
pub struct Sending<T: Send + 'static>(pub(super) Transfer<T>);

/// A message being received: see [`AsyncSession::recv`](super::AsyncSession::recv).
#[must_use = "a receive that is dropped is taken back"]
pub struct Receiving<T: Send + 'static>(pub(super) Transfer<T>);

/// A request with the memory that it uses.
pub(super) struct Transfer<T: Send + 'static> {
    waking: Arc<Waking>,
    memory: Vec<T>,
    state: State,
}

enum State {
    /// It could not be submitted.
    Refused(SessionError),
    Running(RequestId),
    /// The request has ended, and the future has returned its result.
    Over,
}

impl<T: Send + 'static> Transfer<T> {
    pub(super) fn start(
        waking: &Arc<Waking>,
        mut memory: Vec<T>,
        submit: impl FnOnce(Segments) -> Result<RequestId, SessionError>,
    ) -> Transfer<T> {
        let len = std::mem::size_of_val(&memory[..]);
        // SAFETY: the vector is not touched, and its memory not freed, before the request has ended: it
        // stays here or moves to the list of abandoned requests.
        let segments = unsafe { Segments::from_raw(memory.as_mut_ptr().cast(), len) };
        let state = submit(segments).map_or_else(State::Refused, State::Running);
        Transfer { waking: waking.clone(), memory, state }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(Message, Vec<T>), SessionError>> {
        let request = match std::mem::replace(&mut self.state, State::Over) {
            State::Running(request) => request,
            State::Refused(error) => return Poll::Ready(Err(error)),
            State::Over => panic!("a future that has ended is polled again"),
        };
        if let Some(ended) = self.look(request) {
            return Poll::Ready(ended);
        }
        self.waking.wake(request, context.waker());
        // The request may have ended between the check and the registration.
        match self.look(request) {
            Some(ended) => {
                self.waking.forget(request);
                Poll::Ready(ended)
            }
            None => {
                self.state = State::Running(request);
                Poll::Pending
            }
        }
    }

    /// Turns the pump; returns the result of the request, if it has ended.
    fn look(&mut self, request: RequestId) -> Option<Result<(Message, Vec<T>), SessionError>> {
        let session = self.waking.session();
        // Only this future knows the request, so it exists.
        let (_, outcome) = session.node().wait_any_within(&[request], Some(Duration::ZERO)).ok()??;
        let memory = std::mem::take(&mut self.memory);
        Some(session.outcome(outcome).map(|message| (message, memory)))
    }
}

impl<T: Send + 'static> Drop for Transfer<T> {
    fn drop(&mut self) {
        if let State::Running(request) = self.state {
            self.waking.session().node().submit(|engine| engine.cancel(request));
            self.waking.leave(request, Box::new(std::mem::take(&mut self.memory)));
        }
    }
}

// The memory of a vector does not move with it.
impl<T: Send + 'static> Unpin for Transfer<T> {}

impl<T: Send + 'static> Future for Sending<T> {
    /// The values that were sent.
    type Output = Result<Vec<T>, SessionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map_ok(|(_, data)| data)
    }
}

impl<T: Send + 'static> Future for Receiving<T> {
    /// The message and the received values.
    type Output = Result<(Message, Vec<T>), SessionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map_ok(|(message, mut values)| {
            values.truncate(message.count::<T>());
            (message, values)
        })
    }
}
