//! The state that the lock of a node protects: the engine, its rails, and flags that threads leave for each
//! other.

use crate::core_sharing::CoreSharing;
use crate::receipts::Listener;
use crate::service::{Service, Services};
use crate::standby::Standby;
use crate::watch::Watch;
use nmad_engine::profile::estimate::burst::Bursts;
use nmad_engine::{Driver, Duration, Engine, Envelope, Error, Instant, Interest, Notice, RailId, RequestId};
use std::sync::Arc;

/// Reports a notice to the user.
pub type Tell = fn(&Notice);

/// Result of a request.
pub type Outcome = Result<Envelope, Error>;

/// Result of a check in a wait: the awaited answer, or the request that has to end first, if known.
pub(crate) type Looked<R> = Result<R, Option<RequestId>>;

/// Longest sleep without a look at the rails, some of which have timers of their own.
const SLEEP_MAX: Duration = Duration::from_ms(50);
/// Longest sleep while a service has work that no rail announces.
const SLEEP_SERVING: Duration = Duration::from_ms(1);
/// Longest sleep if a rail has no wakeup descriptor.
const SLEEP_BLIND: Duration = Duration::from_us(200);

/// State that only the holder of the lock uses.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    /// The rails in their places; `None` while a thread works with the rail ([`crate::apart`]).
    pub(crate) rails: Vec<Option<Box<dyn Driver>>>,
    /// Rails and tasks that are handed to other cores.
    pub(crate) standby: Arc<Standby>,
    /// A thread found a rail out of its place since this was last cleared.
    pub(crate) missed: bool,
    /// Request that the thread that turns the pump waits for, and takes when it has ended.
    pub(crate) awaited: Option<RequestId>,
    /// Ended requests for which no thread waited.
    pub(crate) ended: u32,
    pub(crate) tell: Tell,
    /// The time of one of the last turns.
    pub(crate) now: Instant,
    /// Polls for an expected message since the last turn.
    pub(crate) looks: u32,
    /// All rails are armed to wake a sleeping thread, and no thread has polled them since.
    pub(crate) is_armed: bool,
    pub(crate) bursts: Bursts,
    pub(crate) core_sharing: CoreSharing,
    /// Wakeup descriptor for an application with an event loop; `None` until it asks for one.
    pub(crate) watch: Option<Watch>,
    pub(crate) on_receipt: Vec<Listener>,
    /// Runs after each look at the rails.
    pub(crate) services: Services,
    /// The service must run again soon, whatever arrives.
    pub(crate) service_waits: bool,
    /// Runs after looks of the helper while the application computes.
    pub(crate) background: Option<Box<dyn Service>>,
}

impl Core {
    /// Records that an event has ended a wait or a part of it.
    #[inline]
    pub(crate) fn happened(&mut self) {
        self.core_sharing.happened(self.now);
    }
}

impl Core {
    pub(crate) fn new(engine: Engine, rails: Vec<Box<dyn Driver>>, tell: Tell) -> Core {
        let standby = Arc::new(Standby::new(engine.inspect().cores().clone()));
        Core {
            engine,
            standby,
            rails: rails.into_iter().map(Some).collect(),
            missed: false,
            awaited: None,
            ended: 0,
            tell,
            now: Instant::default(),
            looks: 0,
            is_armed: false,
            bursts: Bursts::default(),
            core_sharing: CoreSharing::default(),
            watch: None,
            on_receipt: Vec::new(),
            services: Services::default(),
            service_waits: false,
            background: None,
        }
    }

    /// Returns whether orders wait for a rail, or events for a listener.
    #[inline]
    pub(crate) fn has_work(&mut self) -> bool {
        self.may_feed() || self.engine.has_news()
    }

    /// Returns whether orders wait for a rail.
    #[inline]
    pub(crate) fn may_feed(&mut self) -> bool {
        self.engine.has_orders(self.now) || self.engine.has_errands()
    }

    /// Takes the result of a request, for a thread that waits for it.
    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Looked<Outcome> {
        self.engine.take(request).ok_or(Some(request))
    }

    /// Arms the rails to wake a thread that sleeps now. Returns their descriptors, and for how long nothing
    /// else needs a look at the rails.
    pub(crate) fn prepare_sleep(&mut self) -> (Vec<i32>, Duration) {
        // A rail that another thread works with has no wakeup descriptor now.
        let told: Vec<Option<i32>> =
            self.rails.iter_mut().map(|rail| rail.as_mut()?.wakeup(Interest::Traffic)).collect();
        self.is_armed = !told.contains(&None);
        let mut bound = if !self.is_armed {
            SLEEP_BLIND
        } else if self.service_waits {
            SLEEP_SERVING
        } else {
            SLEEP_MAX
        };
        if let Some(deadline) = self.engine.inspect().next_deadline() {
            bound = bound.min(deadline.since(self.now).max(Duration::from_us(1)));
        }
        (told.into_iter().flatten().filter(|&fd| fd >= 0).collect(), bound)
    }

    #[cold]
    pub(crate) fn tell_receipts(&mut self) {
        if self.on_receipt.is_empty() {
            return;
        }
        while let Some(receipt) = self.engine.next_receipt() {
            let peer = receipt.envelope.peer;
            let cipher = |rail: RailId| self.rails.get(rail.index())?.as_ref()?.cipher(Some(peer));
            self.on_receipt.iter_mut().for_each(|(_, tell)| tell(&receipt, &cipher));
        }
    }
}
