//! Tasks that wait for requests, and the thread that wakes them.

use crate::error::SessionError;
use crate::session::Session;
use nmad_engine::{Duration, Engine, RequestId};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::JoinHandle;

/// Interval at which the thread checks for the end of the session.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Memory of a message, whatever its type.
pub(super) type Memory = Box<dyn Any + Send>;

/// A session and its thread, which ends with this value.
pub(super) struct Waking {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that tasks and the thread share. The lock of the node is taken before the lock of the list.
struct Shared {
    // Dropped first, so that no request uses the memory in the list any more.
    session: Session,
    list: Mutex<List>,
    /// Signalled when the list is no longer empty, or the session ends.
    news: Condvar,
}

#[derive(Default)]
struct List {
    wakers: HashMap<RequestId, Waker>,
    /// Requests of dropped futures, with the memory that they use.
    left: Vec<(RequestId, Memory)>,
    is_over: bool,
}

impl List {
    fn is_empty(&self) -> bool {
        self.wakers.is_empty() && self.left.is_empty()
    }

    fn has_news(&self, engine: &Engine) -> bool {
        let has_ended = |request: &RequestId| engine.has_ended(*request) != Some(false);
        self.wakers.keys().any(has_ended) || self.left.iter().any(|(request, _)| has_ended(request))
    }
}

impl Waking {
    pub(super) fn start(session: Session) -> Result<Waking, SessionError> {
        let (list, news) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { session, list, news });
        let thread = std::thread::Builder::new().name("nmad-futures".into());
        let refused = |source| SessionError::System { what: "start the thread of futures", source };
        let its = shared.clone();
        let thread = Some(thread.spawn(move || its.serve()).map_err(refused)?);
        Ok(Waking { shared, thread })
    }

    pub(super) fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Registers a task to be woken when the request has ended. It may have ended already: check again
    /// after this.
    pub(super) fn wake(&self, request: RequestId, waker: &Waker) {
        self.shared.list().wakers.insert(request, waker.clone());
        self.shared.news.notify_one();
    }

    /// Removes the task of an ended request.
    pub(super) fn forget(&self, request: RequestId) {
        let waker = self.shared.list().wakers.remove(&request);
        // Dropping the task may drop further values of ours, so the lock must be released before.
        drop(waker);
    }

    /// Keeps the memory of a dropped future's request until it has ended.
    pub(super) fn leave(&self, request: RequestId, memory: Memory) {
        let mut list = self.shared.list();
        let waker = list.wakers.remove(&request);
        list.left.push((request, memory));
        drop(list);
        drop(waker);
        self.shared.news.notify_one();
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        self.shared.list().is_over = true;
        self.shared.news.notify_one();
        // A task that this thread has woken may hold the last reference to this value.
        let thread = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(thread) = thread {
            // A panic of the thread does not matter any more.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Main loop of the thread.
    fn serve(&self) {
        loop {
            let list = self.list();
            let list = self.news.wait_while(list, |list| list.is_empty() && !list.is_over);
            if list.unwrap_or_else(PoisonError::into_inner).is_over {
                return;
            }
            self.session.node().wait_for(LOOK, |engine| {
                let list = self.list();
                list.is_over || list.has_news(engine)
            });
            self.tell();
        }
    }

    /// Wakes the tasks of ended requests, and frees memory that is no longer used.
    fn tell(&self) {
        let (wakers, left) = self.session.node().with(|engine| {
            let mut list = self.list();
            let has_ended = |request: RequestId| engine.has_ended(request) != Some(false);
            let ended: Vec<RequestId> = list.wakers.keys().copied().filter(|id| has_ended(*id)).collect();
            let wakers: Vec<Waker> = ended.iter().filter_map(|id| list.wakers.remove(id)).collect();
            let all = std::mem::take(&mut list.left);
            let (left, kept): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(request, _)| has_ended(*request));
            list.left = kept;
            (wakers, left)
        });
        wakers.into_iter().for_each(Waker::wake);
        for (request, _) in &left {
            // The result is dropped; the engine forgets the request.
            let _ = self.session.node().wait_any_within(&[*request], Some(Duration::ZERO));
        }
    }
}
