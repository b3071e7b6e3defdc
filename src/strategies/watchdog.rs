//! The watchdog ends the process if a call of foreign code does not return for seconds. The calling thread
//! holds the lock of the engine, so no message can progress, and the job would hang without a diagnostic.

use nmad_words::tell_user;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};

/// Interval between two checks of the watchdog.
const INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Number of intervals after which the watchdog ends the process during a call of a strategy.
const INTERVALS_MAX: u32 = 5;
/// Number of intervals for loading a library. It is longer, since the file system may be slow.
const INTERVALS_TO_LOAD: u32 = 60;

/// Counts the calls of one strategy, or the call that loads a library.
#[derive(Debug)]
pub(super) struct Calls {
    /// Number of calls and returns, so odd during a call.
    count: AtomicU64,
    /// Name of the called code, for the message; set when the watchdog begins to check.
    name: OnceLock<String>,
    /// Intervals after which a call counts as endless.
    intervals: u32,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { count: AtomicU64::new(0), name: OnceLock::new(), intervals: INTERVALS_MAX }
    }
}

impl Calls {
    /// Returns a counter for the call that loads a library; the watchdog already checks it.
    pub(super) fn to_load(file: &str) -> Arc<Calls> {
        let calls = Arc::new(Calls { intervals: INTERVALS_TO_LOAD, ..Calls::default() });
        calls.watch(|| format!("the plug-in {file}"));
        calls
    }

    /// Runs `call` as a call of foreign code.
    pub(super) fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        self.count.fetch_add(1, Ordering::Relaxed);
        let answer = call();
        self.count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Makes the watchdog check these calls from now on; `name` names the called code in the message.
    pub(super) fn watch(self: &Arc<Calls>, name: impl FnOnce() -> String) {
        static WATCHED: Mutex<Vec<Weak<Calls>>> = Mutex::new(Vec::new());
        static THREAD: Once = Once::new();
        if self.name.get().is_some() || self.name.set(name()).is_err() {
            return;
        }
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(self));
        THREAD.call_once(|| {
            // Wait until the thread runs: its start takes a lock that the dynamic loader holds while it
            // runs code of a library, so a watchdog that starts during a load would block until that code
            // returns.
            let (started, starts) = std::sync::mpsc::channel();
            let run = move || {
                let _ = started.send(());
                watch_all(&WATCHED)
            };
            let spawned = std::thread::Builder::new().name("nmad-strategies".into()).spawn(run);
            if let Err(why) = spawned {
                log::warn!("strategies that loop are not noticed: no thread can be started ({why})");
            }
            // An error means that the thread could not be started.
            let _ = starts.recv();
        });
    }

    /// Ends the process, since a call does not return.
    fn end(&self) -> ! {
        let name = self.name.get().map_or("a strategy", String::as_str);
        let intervals = self.intervals;
        tell_user(format_args!(
            "nmad: {name} has not answered for {intervals} s: it loops. This process ends, since it can send \
             no message during the call; NMAD_STRATEGY=auto avoids this strategy"
        ));
        std::process::abort()
    }
}

/// Checks all calls once per interval until the process ends.
fn watch_all(watched: &Mutex<Vec<Weak<Calls>>>) -> ! {
    let mut open: Vec<(Weak<Calls>, u64, u32)> = Vec::new();
    loop {
        std::thread::sleep(INTERVAL);
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend(watched.drain(..).map(|calls| (calls, 0, 0)));
        drop(watched);
        open.retain_mut(|(calls, before, intervals)| {
            let Some(calls) = calls.upgrade() else { return false };
            let count = calls.count.load(Ordering::Relaxed);
            *intervals = if count == *before && count % 2 == 1 { *intervals + 1 } else { 0 };
            *before = count;
            if *intervals >= calls.intervals {
                calls.end();
            }
            true
        });
    }
}
