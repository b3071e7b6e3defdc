//! What the user should know of rails and peers: to the log, and to the program if it asks.
//!
//! The end of a peer usually ends the job, and the launcher says why. What the others see of it, that links
//! are closed, says less and would come before that, so it is held back: it is told when this process has
//! outlived the end of the job, or leaves in good order.

use crate::trace::lock;
use nmad_engine::{Notice, NoticeKind};
use std::sync::Mutex;
use std::time::Duration;

/// Is given the rank that a notice is about, and its text. It is called with the lock of the node held: it
/// must not call the session.
pub type OnNotice = Box<dyn Fn(u32, &str) + Send>;

/// A launcher ends a job within this time after one of its processes has failed.
const LATER: Duration = Duration::from_secs(1);

static LISTENER: Mutex<Option<OnNotice>> = Mutex::new(None);
static HELD: Held = Held(Mutex::new(Vec::new()));

/// From now on `listener` is given each notice of this process, besides the log; none ends it.
pub fn on_notice(listener: Option<OnNotice>) {
    *lock(&LISTENER) = listener;
}

/// A lost rail or peer is no secret.
pub(crate) fn tell(notice: &Notice) {
    match notice.kind {
        NoticeKind::Detail => log::info!("{}", notice.text),
        NoticeKind::Trouble => log::warn!("{}", notice.text),
        // The launcher has said it.
        NoticeKind::End if nmad_launch::deaths::are_reported() => log::info!("{}", notice.text),
        NoticeKind::End => HELD.hold(&notice.text, || {
            let later = || {
                std::thread::sleep(LATER);
                tell_held();
            };
            std::thread::Builder::new().name("nmad-notices".into()).spawn(later).is_ok()
        }),
    }
    if let Some(listener) = &*lock(&LISTENER) {
        listener(notice.peer.0, &notice.text);
    }
}

/// Tells what was held back.
pub(crate) fn tell_held() {
    HELD.take().iter().for_each(|text| log::warn!("{text}"));
}

/// Notices that are held back.
struct Held(Mutex<Vec<String>>);

impl Held {
    /// Holds one back. `later` sees to it that all are told, and is called with the first; if it fails they
    /// are told at once.
    fn hold(&self, text: &str, later: impl FnOnce() -> bool) {
        let mut held = lock(&self.0);
        held.push(text.to_string());
        if held.len() == 1 && !later() {
            held.drain(..).for_each(|text| log::warn!("{text}"));
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_told_once_in_its_order() {
        let (held, mut started) = (Held(Mutex::new(Vec::new())), 0);
        let mut hold = |text, works| {
            held.hold(text, || {
                started += 1;
                works
            });
        };
        hold("peer 1 closed the link", true);
        hold("peer 2 closed the link", true);
        assert_eq!(held.take(), ["peer 1 closed the link", "peer 2 closed the link"]);
        assert!(held.take().is_empty());
        hold("peer 3 closed the link", false);
        assert!(held.take().is_empty(), "there was no thread, so it was told at once");
        hold("peer 4 closed the link", true);
        assert_eq!((held.take().len(), started), (1, 3));
    }
}
