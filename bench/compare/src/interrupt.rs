//! Signals that end a run: the running job is ended and the folders of the run are removed first.

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// The signal that was caught; zero: none.
static CAUGHT: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Catches the first signal until it is dropped. A second signal, or one after the drop, ends the process
/// at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    has_default: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on.
    pub(crate) fn catch() -> io::Result<Interrupt> {
        let has_default = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // They run in this order: the first signal sets the flag only after it was read.
            flag::register_conditional_default(signal, has_default.clone())?;
            flag::register(signal, has_default.clone())?;
            flag::register_usize(signal, CAUGHT.clone(), signal as usize)?;
        }
        Ok(Interrupt { has_default })
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.has_default.store(true, Ordering::Relaxed);
    }
}

/// Returns the signal that has ended the run.
pub(crate) fn caught() -> Option<i32> {
    let signal = CAUGHT.load(Ordering::Relaxed) as i32;
    (signal != 0).then_some(signal)
}

/// Returns the name of a signal.
pub(crate) fn name(signal: i32) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("a signal")
}
