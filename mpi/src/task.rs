//! Tasks: operations in several steps, each of which starts when the messages of the one before have arrived:
//! collectives, agreements, pairs of messages.
//!
//! Any thread that waits or tests in MPI takes steps. While the program computes, the helper of the node
//! takes those of collectives and of agreements upon contexts ([`Work::serve`]), but for steps that run an
//! operator of the program.

use crate::at_hand;
use crate::error::Result;
use crate::request::Ended;
use crate::status::Status;
use crate::world::{World, world};
use newmadeleine::RequestId;
use newmadeleine::engine::Engine;
use newmadeleine::progress::{self, Outcome, Patience, Service};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::task::{Context, Poll, Waker};

/// Something that goes on in steps.
pub(crate) trait Work: Send {
    /// Goes on as far as it can: how it ended, if it has. Not called again then.
    fn advance(&mut self, world: &World) -> Option<Ended>;

    /// Goes on as far as it can on a thread of the library's own, which holds the node's lock: without calls
    /// to the node, functions of the program, or waiting for anything. Not called again when it has ended.
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let _ = engine;
        Served::Nothing
    }

    /// Prepares for a sleep of the caller until a packet comes; false: it has to go on once more before. Work
    /// that waits for messages alone needs nothing for that.
    fn may_sleep(&mut self) -> bool {
        true
    }
}

/// What a thread of the library's own has done for some work.
pub(crate) enum Served {
    /// There was nothing to do.
    Nothing,
    /// Another thread is at it.
    Busy,
    /// It has gone on.
    Moved,
    Ended(Ended),
}

/// Pauses between two looks at tasks.
pub(crate) fn pause(world: &World, patience: &mut Patience) {
    pause_for(world, patience, &mut || true);
}

/// The same for a wait that has to prepare for a sleep, as [`progress::Node::pause`] says.
pub(crate) fn pause_for(world: &World, patience: &mut Patience, prepare: &mut dyn FnMut() -> bool) {
    world.node().pause(patience, || may_sleep() & prepare());
}

/// Whether all tasks are woken when they can go on.
fn may_sleep() -> bool {
    // Each of them has to prepare for it.
    !any() || tasks().iter().fold(true, |all, task| task.may_sleep() & all)
}

/// Work that any waiting thread advances.
pub(crate) struct Task {
    work: Mutex<Box<dyn Work>>,
    ended: OnceLock<Ended>,
}

impl Task {
    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// Takes a step unless another thread is at it; true: it has ended.
    fn advance(&self, world: &World) -> bool {
        let Ok(mut work) = self.work.try_lock() else { return false };
        if self.ended.get().is_none()
            && let Some(ended) = work.advance(world)
        {
            // Only the thread with the lock sets it.
            let _ = self.ended.set(ended);
            world.node().rouse();
        }
        self.ended.get().is_some()
    }
}

impl Task {
    /// As [`Work::may_sleep`]; false as long as another thread is at it.
    fn may_sleep(&self) -> bool {
        self.ended.get().is_some() || self.work.try_lock().is_ok_and(|mut work| work.may_sleep())
    }

    /// As [`Task::advance`], by a thread that has the engine.
    fn serve(&self, engine: &mut Engine) -> Served {
        let mut work = match self.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::WouldBlock) => return Served::Busy,
            Err(TryLockError::Poisoned(_)) => return Served::Nothing,
        };
        if self.ended.get().is_some() {
            return Served::Nothing;
        }
        match work.serve(engine) {
            Served::Ended(ended) => {
                let _ = self.ended.set(ended);
                Served::Moved
            }
            served => served,
        }
    }
}

/// All tasks, for the helper of the node.
struct All;

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> progress::Served {
        let mut all = progress::Served::default();
        if !any() {
            return all;
        }
        // A thread that has the list waits for nothing while it does. A task that has ended is taken off it
        // by a thread of the program: dropping it may take a call to the node.
        for task in tasks().iter() {
            match task.serve(engine) {
                Served::Nothing => {}
                Served::Busy => all.waits = true,
                Served::Moved | Served::Ended(_) => all.worked = true,
            }
        }
        all
    }
}

/// The node goes on with tasks while the program computes.
pub(crate) fn begin(world: &World) {
    world.node().set_background(Box::new(All));
}

static TASKS: Mutex<Vec<Arc<Task>>> = Mutex::new(Vec::new());
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

fn tasks() -> MutexGuard<'static, Vec<Arc<Task>>> {
    TASKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether there is a task that waits for steps.
#[inline]
pub(crate) fn any() -> bool {
    ACTIVE.load(Ordering::Relaxed) > 0
}

/// Begins a task.
pub(crate) fn start(world: &World, work: Box<dyn Work>) -> Arc<Task> {
    let task = Arc::new(Task { work: Mutex::new(work), ended: OnceLock::new() });
    if !task.advance(world) {
        let mut tasks = tasks();
        tasks.push(task.clone());
        ACTIVE.store(tasks.len(), Ordering::Relaxed);
    }
    task
}

/// Takes a step of each task.
#[inline]
pub(crate) fn advance(world: &World) {
    if any() {
        advance_all(world);
    }
}

#[cold]
fn advance_all(world: &World) {
    // Functions of the program that a task calls may begin others, and advance all themselves.
    let next = |index: usize| tasks().get(index).cloned();
    let (mut index, mut has_ended) = (0, false);
    while let Some(task) = next(index) {
        has_ended |= task.advance(world);
        index += 1;
    }
    if has_ended {
        // Dropped without the lock: that may take calls.
        let _over: Vec<Arc<Task>> = take_over();
    }
}

/// Takes the tasks that have ended off the list.
fn take_over() -> Vec<Arc<Task>> {
    let mut tasks = tasks();
    let over = tasks.extract_if(.., |task| task.ended().is_some()).collect();
    ACTIVE.store(tasks.len(), Ordering::Relaxed);
    over
}

/// Does the work on the caller's thread, and advances what else there is meanwhile.
pub(crate) fn run(world: &World, work: &mut dyn Work) -> Ended {
    let mut patience = Patience::default();
    loop {
        if let Some(ended) = work.advance(world) {
            return ended;
        }
        advance(world);
        pause(world, &mut patience);
    }
}

/// Work that is written as a future; it is looked at in each step, so nothing has to wake it.
pub(crate) struct Async<F> {
    future: Pin<Box<F>>,
    /// It reaches the node by [`at_hand`] alone, so that a thread of the library's own may go on with it.
    is_served: bool,
}

impl<F: Future<Output = Result<Status>> + Send> Async<F> {
    pub(crate) fn new(future: F) -> Async<F> {
        Async { future: Box::pin(future), is_served: false }
    }

    /// The same of a future that reaches the node by [`at_hand`] alone, also in its errors and when it is
    /// over.
    pub(crate) fn served(future: F) -> Async<F> {
        Async { is_served: true, ..Async::new(future) }
    }

    fn step(&mut self) -> Option<Ended> {
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(Ok(status)) => Some(Ended::well(status)),
            Poll::Ready(Err(error)) => Some(Ended::badly(Status::EMPTY, error)),
        }
    }
}

impl<F: Future<Output = Result<Status>> + Send> Work for Async<F> {
    fn advance(&mut self, _: &World) -> Option<Ended> {
        self.step()
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        if !self.is_served {
            return Served::Nothing;
        }
        match at_hand::lend(engine, || self.step()) {
            (Some(ended), _) => Served::Ended(ended),
            (None, true) => Served::Moved,
            (None, false) => Served::Nothing,
        }
    }
}

/// Runs a future on the caller's thread.
///
/// # Errors
/// The future's own.
pub(crate) fn block_on<R: Send>(future: impl Future<Output = Result<R>> + Send) -> Result<R> {
    let mut future = pin!(future);
    // Much has ended when it is looked at first, and then needs no memory.
    if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return answer;
    }
    let world = world()?;
    let mut answer = None;
    let mut work = Async::new(async {
        answer = Some(future.await?);
        Ok(Status::EMPTY)
    });
    let ended = run(world, &mut work);
    drop(work);
    ended.answer()?;
    answer.ok_or_else(|| crate::Class::INTERN.error("a future that ended has no answer"))
}

/// The answer of a future that waits in its calls, so that it has ended when it is looked at first.
///
/// # Panics
/// The future has not ended then.
pub(crate) fn now<R>(future: impl Future<Output = R>) -> R {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("internal error: a future that waits in its calls is pending"),
    }
}

/// The end of a request of the engine's.
pub(crate) struct Ending(pub(crate) RequestId);

impl Future for Ending {
    type Output = Result<Outcome>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match at_hand::take(self.0) {
            Err(gone) => Poll::Ready(Err(gone)),
            Ok(outcome) => outcome.map_or(Poll::Pending, |outcome| Poll::Ready(Ok(outcome))),
        }
    }
}
