//! The watchdog: ends the process when foreign code does not return for seconds. Such a strategy loops in a
//! thread that holds the lock of the engine, so no message can continue, and the job would hang without a
//! message.

use nmad_words::tell_user;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};

/// Interval of the watchdog.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);
/// Number of intervals in one call of a strategy after which it ends the process.
const LOOKS_MAX: u32 = 5;
/// The same for loading a library, which may come from a slow file system.
const LOOKS_TO_LOAD: u32 = 60;

/// Calls of foreign code: the count is odd during a call.
#[derive(Debug)]
pub(super) struct Calls {
    count: AtomicU64,
    /// What is called; set when it is watched.
    of: OnceLock<String>,
    /// Intervals that one call may take.
    looks: u32,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { count: AtomicU64::new(0), of: OnceLock::new(), looks: LOOKS_MAX }
    }
}

impl Calls {
    /// Returns the one call that loads a library, watched.
    pub(super) fn to_load(file: &str) -> Arc<Calls> {
        let calls = Arc::new(Calls { looks: LOOKS_TO_LOAD, ..Calls::default() });
        calls.watch(|| format!("the plug-in {file}"));
        calls
    }

    /// Makes a call.
    pub(super) fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        self.count.fetch_add(1, Ordering::Relaxed);
        let answer = call();
        self.count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Has the watchdog look at these calls from now on; `of` names what is called.
    pub(super) fn watch(self: &Arc<Calls>, of: impl FnOnce() -> String) {
        static WATCHED: Mutex<Vec<Weak<Calls>>> = Mutex::new(Vec::new());
        static THREAD: Once = Once::new();
        if self.of.get().is_some() || self.of.set(of()).is_err() {
            return;
        }
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(self));
        THREAD.call_once(|| {
            // The thread must have started before a library is loaded: its first steps take a lock that the
            // loader holds while it runs the code of a library.
            let (started, starts) = std::sync::mpsc::channel();
            let run = move || {
                let _ = started.send(());
                look(&WATCHED)
            };
            let spawned = std::thread::Builder::new().name("nmad-strategies".into()).spawn(run);
            if let Err(why) = spawned {
                log::warn!("strategies that loop are not noticed: no thread can be started ({why})");
            }
            // An error means that there is no thread.
            let _ = starts.recv();
        });
    }

    /// Ends the process because a call does not return.
    fn end(&self) -> ! {
        let of = self.of.get().map_or("a strategy", String::as_str);
        let looks = self.looks;
        tell_user(format_args!(
            "nmad: {of} has not answered for {looks} s: it loops. This process ends, since nothing can be \
             sent while it does; NMAD_STRATEGY=auto does without it"
        ));
        std::process::abort()
    }
}

/// Looks at all calls until the process ends.
fn look(watched: &Mutex<Vec<Weak<Calls>>>) -> ! {
    let mut open: Vec<(Weak<Calls>, u64, u32)> = Vec::new();
    loop {
        std::thread::sleep(LOOK);
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend(watched.drain(..).map(|calls| (calls, 0, 0)));
        drop(watched);
        open.retain_mut(|(calls, before, looks)| {
            let Some(calls) = calls.upgrade() else { return false };
            let count = calls.count.load(Ordering::Relaxed);
            *looks = if count == *before && count % 2 == 1 { *looks + 1 } else { 0 };
            *before = count;
            if *looks >= calls.looks {
                calls.end();
            }
            true
        });
    }
}
