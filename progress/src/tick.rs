//! The tick: a thread that turns the pump while the application computes.
//!
//! It sleeps in periods of a millisecond while there is traffic, and rests when there was none for a
//! while. While a thread of the application sleeps in a call it leaves the rails alone: they wake that
//! thread; when that has slept for a while, periods are longer. It is woken only by a submission that leaves
//! something pending after such a silence, never by a thread that waits, since waking costs 12 to 16 us (two
//! hosts on 2 cores); and by a peer that wants a link, which would take a process that computes for long,
//! and answers nobody, for dead.

use crate::idle::block_on;
use crate::lock::Guard;
use crate::node::{Core, Shared};
use crate::watch::Watch;
use nmad_engine::{Duration as Span, Interest};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Turns of the pump at each look at rails that lose: where some links were busy lately a rail looks at the
/// others once in a few dozen turns only.
const LOOKS: u32 = 64;
/// What stays in the window leaves after at most this long, whatever the application does.
const PERIOD: Duration = Duration::from_millis(1);
/// The same when a thread of the application has slept for a while: should it go on and compute, or another
/// one look at the rails and compute, something may be this late.
const LONG_PERIOD: Duration = Duration::from_millis(10);
/// The same while the application computes and a service watches the rails, whose descriptors end the sleep.
const WATCH: Span = Span::from_ms(1);
/// Periods without anything pending after which the thread rests.
const PATIENCE: u32 = 200;
/// It rests until it is woken; a sleep has to have a length.
const REST: Span = Span::from_ms(3_600_000);
/// With a rail that loses it looks so often: there only this process itself acknowledges and says that it
/// lives, and peers give up who leaves them without an answer for some seconds.
const LOOK: Span = Span::from_ms(250);

/// The ticking thread; it ends with this value.
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    resting: AtomicBool,
    stop: AtomicBool,
    /// Ends a rest.
    bell: OwnedFd,
}

impl Ticker {
    pub(crate) fn start(shared: Arc<Shared>) -> std::io::Result<Ticker> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let state = Arc::new(State { resting: AtomicBool::new(false), stop: AtomicBool::new(false), bell });
        let own = state.clone();
        let thread = thread::Builder::new().name("nmad-tick".into()).spawn(move || tick(&shared, &own))?;
        Ok(Ticker { state, thread: Some(thread) })
    }

    /// Something is pending: makes sure that the thread ticks.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.state.resting.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        self.state.resting.store(false, Ordering::Release);
        let _ = rustix::io::write(&self.state.bell, &1u64.to_ne_bytes());
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// One turn of the pump by who does so only because nobody else might. Whoever sleeps is woken for what
    /// there is; but once somebody has looked at the rails they take the sleeper for awake and wake nobody,
    /// so that they have to be asked again.
    fn turn_aside(&self, core: &mut Guard<'_, Core>) -> bool {
        core.now = self.clock.now();
        let sleeps = self.sleepers.load(Ordering::Relaxed) > 0;
        if sleeps && core.is_armed && !core.has_work() && !core.is_due() {
            return false;
        }
        let happened = self.turn(core, true);
        if sleeps || core.watch.as_ref().is_some_and(Watch::is_armed) {
            core.prepare_sleep();
        }
        happened
    }
}

impl Core {
    /// Whether the engine wants to be looked after by now: perhaps for what another thread has submitted
    /// since somebody went to sleep.
    fn is_due(&self) -> bool {
        self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now)
    }
}

fn tick(shared: &Shared, state: &State) {
    let mut quiet = 0;
    // What wakes us before the period is over.
    let mut watched: Vec<i32> = Vec::new();
    let mut turns = 0;
    while !state.stop.load(Ordering::Acquire) {
        match watched.is_empty() {
            true => thread::sleep(if quiet < PATIENCE { PERIOD } else { LONG_PERIOD }),
            false => block_on(&watched, &state.bell, WATCH),
        }
        watched.clear();
        // Whoever holds the lock turns the pump better than we could.
        let Some(mut core) = shared.try_lock() else {
            quiet = 0;
            continue;
        };
        shared.waits(&mut core);
        let is_left_alone = core.turns == turns;
        let happened = shared.turn_aside(&mut core);
        turns = core.turns;
        // The application computes, and others may want to be served: they need not wait for a tick.
        if core.service.is_some() && is_left_alone && shared.sleepers.load(Ordering::Relaxed) == 0 {
            watched = core.prepare_sleep().0;
        }
        let needed =
            core.engine.pending() > 0 || core.engine.next_deadline().is_some() || core.service.is_some();
        let is_alone = shared.sleepers.load(Ordering::Relaxed) == 0;
        quiet = if happened || (needed && is_alone) { 0 } else { PATIENCE.min(quiet + 1) };
        if quiet == PATIENCE && !needed {
            quiet = if rest(shared, core, state) { 0 } else { PATIENCE - 1 };
        }
    }
}

/// Sleeps until something is submitted, a peer is at the door, or it is time to look at rails that lose;
/// whether there may be more to do.
fn rest(shared: &Shared, mut core: Guard<'_, Core>, state: &State) -> bool {
    // While the lock is held, so that no submission is missed.
    state.resting.store(true, Ordering::Release);
    let doors = doors(&mut core);
    let loses = core.rails.iter().flatten().any(|rail| rail.limits().lossy);
    drop(core);
    block_on(&doors, &state.bell, if loses { LOOK } else { REST });
    let woken = !state.resting.swap(false, Ordering::AcqRel);
    let _ = rustix::io::read(&state.bell, &mut [0u8; 8]);
    // The thread that holds the lock instead looks at the doors itself, sooner or later.
    let Some(mut core) = shared.try_lock() else { return true };
    self::doors(&mut core);
    let turns = if loses { LOOKS } else { 1 };
    let happened = (0..turns).fold(false, |happened, _| shared.turn_aside(&mut core) || happened);
    happened || woken || !loses
}

fn doors(core: &mut Core) -> Vec<i32> {
    core.rails
        .iter_mut()
        .flatten()
        .filter_map(|rail| rail.wakeup(Interest::Links))
        .filter(|&fd| fd >= 0)
        .collect()
}
