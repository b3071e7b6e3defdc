//! Bounded waits, names that are wrong, and the descriptor for somebody else's loop. Mostly without rails: a
//! receive ends when it is cancelled.

use crate::common::{self, PEER, Special};
use nmad_engine::transfer::driver::Event;
use nmad_engine::{Config, Context, Duration, Engine, Error, RequestId, Segments, Source, TagMatch};
use nmad_progress::{Armed, Node, Sharing, UnknownRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const SHORT: Option<Duration> = Some(Duration::from_ms(5));

fn node() -> Node {
    let engine = Engine::new(Config::default()).expect("the default strategy exists");
    Node::new(engine, Vec::new(), Sharing::Never, |_| {}).expect("a thread")
}

fn recv(node: &Node) -> RequestId {
    node.submit(|engine| engine.recv(Source::Any, Context(0), TagMatch::Any, Segments::empty()))
}

fn cancel(node: &Node, request: RequestId) {
    assert!(node.submit(|engine| engine.cancel(request)));
}

#[test]
fn a_wait_ends_with_its_bound_and_the_request_goes_on() {
    let node = node();
    let request = recv(&node);
    let begun = Instant::now();
    assert_eq!(node.wait_any_within(&[request], SHORT), Ok(None));
    assert!(begun.elapsed().as_millis() >= 5);
    assert_eq!(node.wait_all_within(&[request], Some(Duration::ZERO)), Ok(None));
    assert_eq!(node.has_ended(request), Ok(false));
    cancel(&node, request);
    assert_eq!(node.has_ended(request), Ok(true));
    assert_eq!(node.wait_any_within(&[request], None), Ok(Some((0, Err(Error::Cancelled)))));
}

#[test]
fn an_end_is_told_once() {
    let node = node();
    let (first, second) = (recv(&node), recv(&node));
    cancel(&node, first);
    assert_eq!(node.wait_any_within(&[second, first], None), Ok(Some((1, Err(Error::Cancelled)))));
    assert_eq!(node.wait_any_within(&[second, first], None), Err(UnknownRequest { index: 1 }));
    assert_eq!(node.wait_all_within(&[first, second], None), Err(UnknownRequest { index: 0 }));
    cancel(&node, second);
    assert_eq!(node.wait_all_within(&[second, second], None), Err(UnknownRequest { index: 1 }));
    assert_eq!(node.has_ended(RequestId(0)), Err(UnknownRequest { index: 0 }));
}

#[test]
fn all_are_looked_at_before_one_is_waited_for_and_no_end_is_lost() {
    let node = node();
    let (ended, open, wrong) = (recv(&node), recv(&node), RequestId(0xdead_beef));
    for bound in [None, SHORT, Some(Duration::ZERO)] {
        assert_eq!(node.wait_all_within(&[open, wrong], bound), Err(UnknownRequest { index: 1 }));
        assert_eq!(node.wait_all_within(&[ended, open, open], bound), Err(UnknownRequest { index: 2 }));
        let mut many: Vec<RequestId> = (0..40).map(|_| recv(&node)).collect();
        many.push(many[7]);
        assert_eq!(node.wait_all_within(&many, bound), Err(UnknownRequest { index: 40 }));
    }
    assert_eq!(node.test_all(&[open, wrong]), Err(UnknownRequest { index: 1 }));
    assert_eq!(node.test_all(&[open]), Ok(false));
    cancel(&node, ended);
    cancel(&node, open);
    assert_eq!(node.wait_all_within(&[ended, open, open], None), Err(UnknownRequest { index: 2 }));
    assert_eq!(node.test_all(&[ended, open]), Ok(true));
    let cancelled = || Err(Error::Cancelled);
    assert_eq!(node.wait_all_within(&[ended, open], None), Ok(Some(vec![cancelled(), cancelled()])));
}

/// Whether the node's descriptor is readable within `ms` milliseconds.
fn rings(node: &Node, ms: i64) -> bool {
    let fd = node.descriptor().expect("a descriptor");
    // SAFETY: the node owns the descriptor, and outlives this function.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let bound = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&bound)).expect("it can be polled") > 0
}

fn sleeps(node: &Node) -> bool {
    matches!(node.arm(), Ok(Armed::Sleep(_)))
}

#[test]
fn the_descriptor_rings_once_it_is_armed() {
    let node = node();
    let requests = [recv(&node), recv(&node)];
    assert_eq!(node.arm().ok(), Some(Armed::Busy), "nobody has kept count before");
    assert!(sleeps(&node) && !rings(&node, 1));
    std::thread::scope(|scope| {
        scope.spawn(|| cancel(&node, requests[0]));
        assert!(rings(&node, 900), "a request that ends in another thread");
    });
    assert_eq!(node.arm().ok(), Some(Armed::Busy), "an end that was perhaps not seen yet");
    assert!(sleeps(&node) && !rings(&node, 1), "the bell is quiet again");
    cancel(&node, requests[1]);
    assert!(rings(&node, 900));
}

#[test]
fn no_end_is_missed_between_looking_and_sleeping() {
    let node = node();
    let (hand, take) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let node = &node;
        scope.spawn(move || take.iter().for_each(|request| cancel(node, request)));
        for _ in 0..20_000 {
            let request = recv(node);
            hand.send(request).expect("the other thread waits for it");
            while node.wait_any_within(&[request], Some(Duration::ZERO)) == Ok(None) {
                // The moment in which the other thread shall end it.
                std::thread::yield_now();
                if sleeps(node) {
                    assert!(rings(node, 900), "it has ended, or will");
                }
            }
        }
        drop(hand);
    });
}

/// A rail whose process stands still as it falls asleep, for longer than `SHORT`; a message comes then.
#[derive(Debug, Default)]
struct Stopped {
    taken: u32,
    came: Arc<AtomicU32>,
}

impl Special for Stopped {
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        while self.taken < self.came.load(Ordering::Relaxed) {
            report(Event::Arrived { from: PEER, packet: &common::message(self.taken) });
            self.taken += 1;
        }
    }

    fn wakeup(&mut self) -> Option<i32> {
        std::thread::sleep(std::time::Duration::from_millis(20));
        self.came.fetch_add(1, Ordering::Relaxed);
        Some(-1)
    }
}

#[test]
fn who_stood_still_for_longer_than_the_bound_finds_what_came_meanwhile() {
    let rail = Stopped::default();
    let came = rail.came.clone();
    let node = common::node(rail, Sharing::Always(2));
    let (begun, mut found) = (Instant::now(), 0);
    let mut request = recv(&node);
    while found < 20 {
        match node.wait_any_within(&[request], SHORT).expect("it is known") {
            Some((_, ended)) => {
                assert!(ended.is_ok());
                (found, request) = (found + 1, recv(&node));
            }
            // On a busy machine the time may be over before it ever falls asleep.
            None => assert_eq!(came.load(Ordering::Relaxed), found, "all that has come is found"),
        }
        assert!(begun.elapsed().as_secs() < 30, "it never sleeps");
    }
}
