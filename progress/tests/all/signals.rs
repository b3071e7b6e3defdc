//! Signals of the program are handled by its own threads, whatever the helper is at.

#![allow(unsafe_code)] // a handler of signals

use crate::common::{self, Special};
use nmad_engine::transfer::driver::Event;
use nmad_engine::{Context, Segments, Source, Tag, TagMatch};
use nmad_progress::{Progress, Sharing, own_cores};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Signals that were handled, and those of them that the helper has handled.
static HANDLED: AtomicU32 = AtomicU32::new(0);
static BY_HELPER: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: i32) {
    let mut name = [0u8; 16];
    // SAFETY: the system writes at most sixteen bytes there.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    HANDLED.fetch_add(1, Ordering::Relaxed);
    BY_HELPER.fetch_add(u32::from(name.starts_with(b"nmad-progress")), Ordering::Relaxed);
}

/// A rail that is looked at for long, and has something after many signals, once.
#[derive(Default)]
struct Slow {
    is_over: bool,
}

impl Special for Slow {
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        if HANDLED.load(Ordering::Relaxed) >= 100 && !std::mem::replace(&mut self.is_over, true) {
            report(Event::Arrived { from: common::PEER, packet: &common::message(0) });
        }
    }
}

#[test]
fn signals_that_come_while_the_helper_works_are_handled_by_other_threads() {
    // SAFETY: the handler makes a system call and counts.
    unsafe { libc::signal(libc::SIGUSR1, handle as *const () as libc::sighandler_t) };
    let node = common::node(Slow::default(), Sharing::Never);
    node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
    let from = (Source::Peer(common::PEER), Context(0), TagMatch::Exact(Tag(7)));
    let request = node.submit_recv(from, Segments::empty());
    let begun = Instant::now();
    while node.has_ended(request) == Ok(false) {
        // SAFETY: a signal to this process, which handles it.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", node.helped());
        std::thread::sleep(Duration::from_micros(50));
    }
    assert!(node.helped().turns > 0 && HANDLED.load(Ordering::Relaxed) >= 100);
    assert_eq!(BY_HELPER.load(Ordering::Relaxed), 0);
}
