//! A process that was forked has the node and no helper: it can drop the node, and ends.
#![allow(unsafe_code)]

#[path = "all/common/mod.rs"]
mod common;

use common::Special;
use nmad_engine::{Context, Segments, Source, TagMatch};
use nmad_progress::{Progress, Sharing, own_cores};
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Silent;

impl Special for Silent {}

#[test]
fn a_forked_process_drops_the_node_and_its_parent_goes_on() {
    let node = common::node(Silent, Sharing::Never);
    node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
    let request = node.submit_recv((Source::Any, Context(0), TagMatch::Any), Segments::empty());
    let turns = node.helped().turns;
    // SAFETY: the child uses memory and descriptors of its own, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(node);
        // SAFETY: it ends the child alone, without what the test harness does at an exit.
        unsafe { libc::_exit(7) };
    }
    assert!(child > 0, "the system starts no process");
    let (begun, mut status) = (Instant::now(), 0);
    // SAFETY: the status is a place of ours.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            // SAFETY: it is our child, and still there.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "the child hangs: {status}");
    assert!(node.submit(|engine| engine.cancel(request)));
    assert!(node.wait(request).is_err());
    while node.helped().turns <= turns {
        std::thread::yield_now();
    }
}
