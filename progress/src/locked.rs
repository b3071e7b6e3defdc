//! The state behind the lock of a node: the engine, its rails, and the notes of threads for each other.

use crate::burst::Bursts;
use crate::crowd::Crowd;
use crate::receipts::Listener;
use crate::service::Service;
use crate::standby::Standby;
use crate::watch::Watch;
use nmad_engine::{Driver, Duration, Engine, Envelope, Error, Instant, Interest, Notice, RequestId};
use std::sync::Arc;

/// Tells the user something.
pub type Tell = fn(&Notice);

/// How a request ended.
pub type Outcome = Result<Envelope, Error>;

/// The result of a wait: the awaited answer, or the request that has to end before, if it is known.
pub(crate) type Looked<R> = Result<R, Option<RequestId>>;

/// Nobody sleeps longer than this without looking at the rails: some have timers of their own.
const SLEEP_MAX: Duration = Duration::from_ms(50);
/// And no longer than this while a service waits for what no rail reports.
const SLEEP_SERVING: Duration = Duration::from_ms(1);
/// And no longer than this when a rail cannot say when it has something.
const SLEEP_BLIND: Duration = Duration::from_us(200);

/// All that one thread at a time works with.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    /// The rails in their places; none while a thread works with one ([`crate::apart`]).
    pub(crate) rails: Vec<Option<Box<dyn Driver>>>,
    /// Rails that other cores post on.
    pub(crate) standby: Arc<Standby>,
    /// A rail was not in its place since this was last cleared.
    pub(crate) missed: bool,
    /// What the thread that turns the pump waits for, and takes when it has ended.
    pub(crate) awaited: Option<RequestId>,
    pub(crate) tell: Tell,
    /// The time, as of one of the last turns.
    pub(crate) now: Instant,
    /// Looks for an expected message since the last turn.
    pub(crate) looks: u32,
    /// All rails wake a sleeping thread: they were asked to, and nobody has looked at them since.
    pub(crate) is_armed: bool,
    pub(crate) bursts: Bursts,
    pub(crate) crowd: Crowd,
    /// For an application with a loop of its own; none until it asks.
    pub(crate) watch: Option<Watch>,
    pub(crate) on_receipt: Vec<Listener>,
    /// Goes on after each look at the rails.
    pub(crate) service: Option<Box<dyn Service>>,
    /// It has to be asked again soon, whatever arrives.
    pub(crate) service_waits: bool,
    /// Goes on after looks of the helper while the application computes.
    pub(crate) background: Option<Box<dyn Service>>,
}

impl Core {
    pub(crate) fn new(engine: Engine, rails: Vec<Box<dyn Driver>>, tell: Tell) -> Core {
        let standby = Arc::new(Standby::new(engine.cores().clone()));
        Core {
            engine,
            standby,
            rails: rails.into_iter().map(Some).collect(),
            missed: false,
            awaited: None,
            tell,
            now: Instant::default(),
            looks: 0,
            is_armed: false,
            bursts: Bursts::default(),
            crowd: Crowd::default(),
            watch: None,
            on_receipt: Vec::new(),
            service: None,
            service_waits: false,
            background: None,
        }
    }

    /// Whether a rail may be fed, or somebody is to be told of something.
    #[inline]
    pub(crate) fn has_work(&mut self) -> bool {
        self.may_feed() || self.engine.has_news()
    }

    /// Whether a rail may be fed.
    #[inline]
    pub(crate) fn may_feed(&mut self) -> bool {
        self.engine.has_orders(self.now) || self.engine.has_errands()
    }

    /// The result of a request, for a thread that waits for it.
    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Looked<Outcome> {
        self.engine.take(request).ok_or(Some(request))
    }

    /// The wakeups of a thread that sleeps now, and for how long nothing else needs a look at the rails.
    pub(crate) fn prepare_sleep(&mut self) -> (Vec<i32>, Duration) {
        // A rail that another thread works with wakes nobody.
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
        if let Some(deadline) = self.engine.next_deadline() {
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
            self.on_receipt.iter_mut().for_each(|(_, tell)| tell(&receipt));
        }
    }
}
