//! What the user should know of rails and peers: to the log, and to the program if it asks.

use nmad_engine::Notice;
use std::sync::Mutex;

/// Is given the rank that a notice is about, and its text. It is called with the lock of the node held: it
/// must not call the session.
pub type OnNotice = Box<dyn Fn(u32, &str) + Send>;

static LISTENER: Mutex<Option<OnNotice>> = Mutex::new(None);

/// From now on `listener` is given each notice of this process, besides the log; none ends it.
pub fn on_notice(listener: Option<OnNotice>) {
    *LISTENER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = listener;
}

/// A lost rail or peer is no secret.
pub(crate) fn tell(notice: &Notice) {
    log::warn!("{}", notice.text);
    if let Some(listener) = &*LISTENER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        listener(notice.peer.0, &notice.text);
    }
}
