//! A barrier in all processes that share memory with this one, made by whoever goes to sleep.
//!
//! A fence between leaving something and looking whether the other side sleeps makes the sender wait until
//! its line has come over from the other core: about 200 ns for each packet between cores that are not near
//! to each other. Since sleeping is rare and slow anyway, who goes to sleep has the system make that fence on
//! all cores where a process of ours runs (membarrier(2), global expedited), and the sender needs none.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// Whether barriers of others reach this process, and its own reach others that asked for it, too. Asks the
/// system for that the first time.
pub fn is_shared() -> bool {
    static SHARED: OnceLock<bool> = OnceLock::new();
    let ask = || {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
            && membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    };
    *SHARED.get_or_init(ask)
}

/// Makes the barrier: all earlier stores of whoever asked for it are visible, all later loads are made anew.
pub fn make() {
    if is_shared() {
        let _ = membarrier(MembarrierCommand::GlobalExpedited);
    }
}
