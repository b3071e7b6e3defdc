//! Which way a long message leaves.

use crate::common::{self, PEER, Special};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::{Limits, Sent};
use nmad_engine::{Context, Hints, Tag};
use nmad_progress::Sharing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LEN: usize = 100_000;

/// A rail with an open link that takes everything; what it was given, and how.
#[derive(Debug, Default)]
struct Hungry {
    injects: bool,
    /// How it takes what is to be pushed.
    takes: Option<Sent>,
    pushed: Arc<AtomicU32>,
    posted: Arc<AtomicU32>,
}

impl Special for Hungry {
    fn limits(&self) -> Limits {
        Limits { push: 1 << 20, inject: self.injects, ..common::LIMITS }
    }

    fn push(&mut self) -> Sent {
        self.pushed.fetch_add(1, Ordering::Relaxed);
        self.takes.unwrap_or(Sent::Retry)
    }

    fn posted(&mut self) {
        self.posted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Begins to send a long message over the rail: whether that has ended at once, how often the rail was asked
/// to take it so, and how often it was given something else.
fn begin(rail: Hungry) -> (bool, u32, u32) {
    let (pushed, posted) = (rail.pushed.clone(), rail.posted.clone());
    let is_to_be_posted = !rail.injects || rail.takes.is_none();
    let node = common::node(rail, Sharing::Never);
    // The first message tells the peer besides how much it may send.
    let short = node.begin_send(&(PEER, Context(0), Tag(3)), &Segments::empty(), Hints::default());
    while node.turn() {}
    assert!(short.is_none_or(|request| node.has_ended(request) == Ok(true)), "it has left");
    let before = posted.load(Ordering::Relaxed);
    let mut memory = vec![7; LEN];
    // SAFETY: the memory outlives the node, which is dropped first.
    #[allow(unsafe_code)]
    let data = unsafe { Segments::from_raw(memory.as_mut_ptr(), LEN) };
    let ended = node.begin_send(&(PEER, Context(0), Tag(3)), &data, Hints::default()).is_none();
    // The rail may be taken for busy with the first message.
    let begun = Instant::now();
    while is_to_be_posted && posted.load(Ordering::Relaxed) == before {
        node.turn();
        assert!(begun.elapsed() < Duration::from_secs(20), "it is never posted");
    }
    drop(node);
    (ended, pushed.load(Ordering::Relaxed), posted.load(Ordering::Relaxed) - before)
}

#[test]
fn it_leaves_at_once_over_a_rail_without_system_calls() {
    let rail = Hungry { injects: true, takes: Some(Sent::Done), ..Hungry::default() };
    assert_eq!(begin(rail), (true, 1, 0));
    let rail = Hungry { injects: true, takes: Some(Sent::Posted), ..Hungry::default() };
    assert_eq!(begin(rail), (false, 1, 0), "the rail has still some of it");
}

#[test]
fn it_is_posted_where_the_rail_refuses_or_a_call_may_serve_several() {
    let (ended, pushed, posted) = begin(Hungry { injects: true, ..Hungry::default() });
    assert!(!ended && pushed == 1 && posted >= 1, "refused: {posted}");
    let rail = Hungry { takes: Some(Sent::Done), ..Hungry::default() };
    let (ended, pushed, posted) = begin(rail);
    assert!(!ended && pushed == 0 && posted >= 1, "not asked: {posted}");
}
