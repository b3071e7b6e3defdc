//! The helper moves messages while nobody calls, as its setting says, and ends when the node does.

use crate::common::{self, Special};
use nmad_engine::transfer::driver::Event;
use nmad_engine::{Context, RequestId, Segments, Source, Tag, TagMatch};
use nmad_progress::{Doing, Node, Progress, Sharing, own_cores};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Polls of the rail before a message arrives on it.
const POLLS: u32 = 5_000;

/// A rail that has something only after many polls, as a transfer that needs the processor again and again.
#[derive(Debug, Default)]
struct Slow {
    polls: Arc<AtomicU32>,
}

impl Special for Slow {
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        if self.polls.fetch_add(1, Ordering::Relaxed) == POLLS {
            report(Event::Arrived { from: common::PEER, packet: &common::message(0) });
        }
    }
}

fn recv(node: &Node) -> RequestId {
    node.submit_recv((Source::Peer(common::PEER), Context(0), TagMatch::Exact(Tag(7))), Segments::empty())
}

/// Whether it comes true before the test gives up.
fn comes(mut what: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn on_a_core_of_its_own_it_ends_a_request_without_any_call() {
    let node = common::node(Slow::default(), Sharing::Never);
    let core = *own_cores().last().expect("this test runs on some core");
    node.set_progress(Progress::Dedicated(vec![core])).expect("it is one of ours");
    let request = recv(&node);
    assert!(comes(|| node.has_ended(request) == Ok(true)));
    let helped = node.helped();
    assert_eq!((helped.setting, helped.cores), (Progress::Dedicated(vec![core]), vec![core]));
    assert!(helped.turns > u64::from(POLLS) / 2 && helped.moved > 0, "{} turns", helped.turns);
}

#[test]
fn switched_off_it_leaves_the_rails_alone_and_can_be_switched_on_again() {
    let rail = Slow::default();
    let polls = rail.polls.clone();
    let node = common::node(rail, Sharing::Never);
    node.set_progress(Progress::Off).expect("it needs no core");
    let request = recv(&node);
    let (mut before, mut quiet) = (u32::MAX, 0);
    // The bells that tell of the setting and of the request may end the first rests, late on a busy machine.
    assert!(comes(|| {
        let now = polls.load(Ordering::Relaxed);
        let is_quiet = std::mem::replace(&mut before, now) == now && node.helped().doing == Doing::Rests;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        quiet == 20
    }));
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    // It looks four times in a second whether a peer wants a link.
    let looks = polls.load(Ordering::Relaxed) - before;
    assert!(u128::from(looks) <= 2 + begun.elapsed().as_millis() / 100, "{looks} looks");
    assert_eq!(node.has_ended(request), Ok(false));
    node.set_progress(Progress::Idle).expect("it needs no core");
    assert!(comes(|| polls.load(Ordering::Relaxed) > before + 10));
    assert!(node.wait(request).is_ok());
}

#[test]
fn a_core_that_the_process_may_not_use_is_refused_and_changes_nothing() {
    let node = common::node(Slow::default(), Sharing::Never);
    let why = node.set_progress(Progress::Dedicated(vec![1023])).expect_err("there is no such core here");
    assert!(why.contains("core 1023"), "{why}");
    assert_eq!(node.helped().setting, Progress::Auto);
}

#[test]
fn a_node_may_end_while_its_helper_polls() {
    for _ in 0..20 {
        let node = common::node(Slow::default(), Sharing::Never);
        node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
        recv(&node);
        while node.helped().turns < 3 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn calls_and_a_helper_that_polls_share_the_node() {
    let node = common::node(Slow::default(), Sharing::Never);
    node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
    let never = node.submit_recv((Source::Any, Context(1), TagMatch::Any), Segments::empty());
    for _ in 0..200 {
        node.turn();
        std::thread::yield_now();
    }
    let request = recv(&node);
    assert!(node.wait(request).is_ok());
    assert_eq!(node.has_ended(never), Ok(false));
}

/// The application has the only core, so none is idle.
#[test]
fn with_a_mask_of_one_core_the_helper_still_looks_once_in_a_while() {
    let mine = std::thread::spawn(|| {
        let all = own_cores();
        let mut one = rustix::thread::CpuSet::new();
        one.set(all[0]);
        rustix::thread::sched_setaffinity(None, &one).expect("it is one of ours");
        let rail = Slow::default();
        let polls = rail.polls.clone();
        // The helper has the mask of the thread that makes the node.
        let node = common::node(rail, Sharing::Never);
        let request = recv(&node);
        let before = polls.load(Ordering::Relaxed);
        assert!(comes(|| polls.load(Ordering::Relaxed) > before + 10));
        assert_eq!(node.helped().allowed, [all[0]]);
        assert!(node.wait(request).is_ok());
    });
    mine.join().expect("it does not panic");
}

/// As the system does when the cpuset of a process shrinks.
#[test]
fn a_helper_whose_cores_are_taken_away_goes_on_where_it_is_left() {
    let node = common::node(Slow::default(), Sharing::Never);
    node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
    let mut one = rustix::thread::CpuSet::new();
    one.set(own_cores()[0]);
    let tasks = std::fs::read_dir("/proc/self/task").expect("the system tells of threads").flatten();
    for task in tasks {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let number = task.file_name().to_string_lossy().parse().ok().and_then(rustix::thread::Pid::from_raw);
        if name.trim() == "nmad-progress" {
            // A helper of another test may be gone by now.
            let _ = rustix::thread::sched_setaffinity(number, &one);
        }
    }
    let request = recv(&node);
    assert!(comes(|| node.has_ended(request) == Ok(true)));
}
