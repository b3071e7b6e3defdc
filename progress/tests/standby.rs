//! A thread that sends over several rails is helped by the helper and its workers, each of which posts on
//! one of them.

#[path = "all/common/mod.rs"]
mod common;

use common::{PEER, Special};
use nmad_engine::{
    Context, Hints, Method, Pair, Profile, Protocol, Provenance, RailId, Sample, Segments, Tag,
};
use nmad_progress::{Node, Progress, Sharing, go_to, own_cores};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Some rails, and whether all have been posted to at the same time.
#[derive(Debug)]
struct Meeting {
    rails: usize,
    inside: AtomicUsize,
    met: AtomicBool,
}

impl Meeting {
    fn of(rails: usize) -> Arc<Meeting> {
        Arc::new(Meeting { rails, inside: AtomicUsize::new(0), met: AtomicBool::new(false) })
    }
}

/// How long a post waits for those on the other rails: long enough for a helper whose core others use, too.
const PATIENCE: Duration = Duration::from_millis(5);
/// Nodes that are tried.
const NODES: usize = 20;

/// A rail whose posts wait a while for those on the other rails.
#[derive(Debug, Clone)]
struct Patient(Arc<Meeting>);

impl Special for Patient {
    fn posted(&mut self) {
        let Patient(meeting) = self;
        meeting.inside.fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !meeting.met.load(Ordering::SeqCst) {
            if meeting.inside.load(Ordering::SeqCst) == meeting.rails {
                meeting.met.store(true, Ordering::SeqCst);
            }
            std::thread::yield_now();
        }
        meeting.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A node over such rails, whose helper has a core of its own, and a further one for each rail beyond two.
fn node(meeting: &Arc<Meeting>) -> Node {
    let node = node_with(meeting, Pair::Unknown);
    let cores = own_cores().into_iter().rev().take(meeting.rails - 1).collect();
    node.set_progress(Progress::Dedicated(cores)).expect("they are ours");
    node
}

/// A node over such rails, between whose cores only this hand-off was measured.
fn node_with(meeting: &Arc<Meeting>, pair: Pair) -> Node {
    let node = common::node_over(vec![Patient(meeting.clone()); meeting.rails], Sharing::Never);
    let sample = |method, len: u64, ns| (method, Sample::of(len, &mut [ns]).expect("a time"));
    let copies = [(1, 1_000), (1024, 11_240)].map(|(len, ns)| sample(Method::Copy, len, ns));
    let own = [(Method::HandOff(pair), 0, 200), (Method::Memcpy, 1, 1), (Method::Memcpy, 1024, 10)];
    let samples = copies.into_iter().chain(own.map(|(method, len, ns)| sample(method, len, ns)));
    let profile = Arc::new(Profile::new(Provenance::default(), samples).expect("there are two sizes"));
    node.with(|engine| {
        engine.setup().set_strategy(None, "auto").expect("it is there");
        (0..meeting.rails as u8)
            .for_each(|rail| engine.setup().set_profile(RailId(rail), None, profile.clone()));
        engine.setup().record_receipts(Some(0));
    });
    node
}

/// Threads that compute, one on each core.
struct Computing(Arc<AtomicBool>, Vec<std::thread::JoinHandle<()>>);

impl Computing {
    fn everywhere() -> Computing {
        let stop = Arc::new(AtomicBool::new(false));
        let compute = |core: usize| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                go_to(&[core]);
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = own_cores().into_iter().map(compute).collect();
        Computing(stop, threads)
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|thread| thread.join().expect("it only computes"));
    }
}

/// Sends messages until both rails have been posted to at the same time; false: they never were. Together
/// they take less than the credit of a peer that says nothing.
fn send_until_met(node: &Node, meeting: &Meeting) -> bool {
    send_with_pauses(node, meeting, Duration::ZERO)
}

/// The same, with a pause after each message.
fn send_with_pauses(node: &Node, meeting: &Meeting, pause: Duration) -> bool {
    // Longer ones are announced, and the peer says nothing.
    let mut memory = vec![7; 500];
    // SAFETY: the memory outlives the calls, which wait for the end of their messages.
    #[allow(unsafe_code)]
    let data = unsafe { Segments::from_raw(memory.as_mut_ptr(), memory.len()) };
    (0..60).any(|_| {
        let begun = Instant::now();
        node.send(&(PEER, Context(0), Tag(1)), &data, Hints::default()).expect("the peer is there");
        // A rail is busy for as long again as a post took, and takes no part as long as it is.
        std::thread::sleep(pause.max(2 * begun.elapsed()));
        meeting.met.load(Ordering::SeqCst)
    })
}

#[test]
fn the_helper_posts_on_one_rail_while_the_sender_posts_on_the_other() {
    let meeting = Meeting::of(2);
    let node = node(&meeting);
    assert!(send_until_met(&node, &meeting), "{:?}", node.helped());
    let begun = Instant::now();
    while node.helped().posted == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(node.helped().posted > 0, "{:?}", node.helped());
    let mut receipts = std::iter::from_fn(|| node.with(|engine| engine.next_receipt()));
    assert!(receipts.any(|receipt| receipt.protocol == Protocol::EagerParallel));
}

/// On a machine of one core there is none for a worker.
#[test]
fn a_worker_posts_on_the_third_rail_while_sender_and_helper_post_on_the_others() {
    let meeting = Meeting::of(own_cores().len().clamp(1, 2) + 1);
    // Where other programs use the cores, too, they may be late for all messages for which there is credit.
    assert!((0..NODES).any(|_| send_until_met(&node(&meeting), &meeting)));
}

#[test]
fn a_node_ends_while_others_post() {
    for _ in 0..5 {
        let meeting = Meeting::of(3);
        let node = node(&meeting);
        send_until_met(&node, &meeting);
        drop(node);
        assert_eq!(meeting.inside.load(Ordering::SeqCst), 0, "nobody posts any more");
    }
}

/// Every core computes, so none stands by. On a machine of one core there is none to be preempted.
#[test]
fn a_core_that_computes_is_preempted_to_post_on_the_other_rail() {
    if own_cores().len() == 1 {
        return;
    }
    let _computing = Computing::everywhere();
    // Where other programs use the cores, too, a node may find none of them busy, or be late for all messages
    // for which there is credit.
    let has_preempted = |_| {
        let meeting = Meeting::of(2);
        let node = node_with(&meeting, Pair::Busy);
        node.set_progress(Progress::Idle).expect("any process may have it");
        // The helper looks ten times a second which cores are idle.
        let met = send_with_pauses(&node, &meeting, Duration::from_millis(10));
        let begun = Instant::now();
        while met && node.helped().preempted == 0 && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        node.helped().preempted > 0
    };
    assert!((0..NODES).any(has_preempted));
}
