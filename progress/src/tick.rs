//! The tick: a thread that turns the pump while the application computes.
//!
//! It sleeps in periods of a millisecond while there is traffic, and is parked when there was none for a
//! while. It is woken only by a submission that leaves something pending after such a silence, never by
//! somebody who waits, since waking costs 12 to 16 us (DESIGN section 12).

use crate::node::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What stays in the window leaves after at most this long, whatever the application does.
const PERIOD: Duration = Duration::from_millis(1);
/// Periods without anything pending after which the thread parks.
const PATIENCE: u32 = 200;

/// The ticking thread; it ends with this value.
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    parked: AtomicBool,
    stop: AtomicBool,
}

impl Ticker {
    pub(crate) fn start(shared: Arc<Shared>) -> std::io::Result<Ticker> {
        let state = Arc::<State>::default();
        let own = state.clone();
        let thread = thread::Builder::new().name("nmad-tick".into()).spawn(move || tick(&shared, &own))?;
        Ok(Ticker { state, thread: Some(thread) })
    }

    /// Something is pending: makes sure that the thread ticks.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.state.parked.load(Ordering::Relaxed) {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        self.state.parked.store(false, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tick(shared: &Shared, state: &State) {
    let mut quiet = 0;
    while !state.stop.load(Ordering::Acquire) {
        thread::sleep(PERIOD);
        // Whoever holds the lock turns the pump better than we could.
        let Some(mut core) = shared.try_lock() else {
            quiet = 0;
            continue;
        };
        shared.waits(&mut core);
        let happened = shared.turn(&mut core, true);
        let needed = core.engine.pending() > 0 || core.engine.next_deadline().is_some();
        quiet = if happened || needed { 0 } else { quiet + 1 };
        if quiet >= PATIENCE {
            state.parked.store(true, Ordering::Release);
            drop(core);
            quiet = 0;
            while state.parked.load(Ordering::Acquire) && !state.stop.load(Ordering::Acquire) {
                thread::park();
            }
        }
    }
}
