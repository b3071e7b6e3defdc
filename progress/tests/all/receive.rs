//! A thread that waits for a message of one peer looks for it there, and elsewhere now and then.

use crate::common::{self, PEER, Special};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::{Event, Limits};
use nmad_engine::{Context, Duration, Hints, Source, Tag, TagMatch};
use nmad_progress::{Node, Outcome, Sharing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a receive names.
type Names = (Source, Context, TagMatch);

/// Longer than anything takes here.
const BOUND: Option<Duration> = Some(Duration::from_ms(20_000));
/// Looks in vain before the message is there.
const LATE: u32 = 1000;

/// A rail that brings empty messages of one peer, late, to a thread that looks in the expected way.
#[derive(Debug)]
struct Late {
    /// A look for a packet finds it; otherwise only a poll does.
    finds: bool,
    came: u32,
    looks: Arc<AtomicU32>,
    polls: Arc<AtomicU32>,
}

impl Special for Late {
    fn limits(&self) -> Limits {
        Limits { looks: true, ..common::LIMITS }
    }

    fn look_for(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if self.finds && looks >= LATE {
            report(Event::Arrived { from: PEER, packet: &common::message(self.came) });
            self.came += 1;
        }
        true
    }

    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        assert!(self.polls.fetch_add(1, Ordering::Relaxed) < 1_000_000, "nobody looks for the message");
        if !self.finds && self.looks.load(Ordering::Relaxed) > LATE {
            report(Event::Arrived { from: PEER, packet: &common::message(self.came) });
            self.came += 1;
        }
    }
}

/// Receives over the rail in this way, several times: looks for the packet alone, and turns of the pump.
fn receive(finds: bool, recv: fn(&Node, Names) -> Outcome) -> (u32, u32) {
    let (looks, polls) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let rail = Late { finds, came: 0, looks: looks.clone(), polls: polls.clone() };
    let node = common::node(rail, Sharing::Never);
    // The first message tells the peer besides how much it may send.
    let told = node.send(&(PEER, Context(0), Tag(3)), &Segments::empty(), Hints::default());
    told.expect("the rail takes it");
    for _ in 0..5 {
        looks.store(0, Ordering::Relaxed);
        polls.store(0, Ordering::Relaxed);
        let names = (Source::Peer(PEER), Context(0), TagMatch::Exact(Tag(7)));
        let envelope = recv(&node, names).expect("it comes");
        assert_eq!((envelope.peer, envelope.tag), (PEER, Tag(7)));
    }
    (looks.load(Ordering::Relaxed), polls.load(Ordering::Relaxed))
}

/// The ways to receive: wait at once, or post the receive and wait for it later in some way.
const WAYS: [fn(&Node, Names) -> Outcome; 6] = [
    |node, names| node.recv(names, Segments::empty()),
    |node, names| node.wait(node.submit_recv(names, Segments::empty())),
    |node, names| {
        let request = node.submit_recv(names, Segments::empty());
        let mut ended = None;
        node.wait_all(&[request], |outcome| ended = Some(outcome));
        ended.expect("there is one")
    },
    |node, names| {
        let request = node.submit_recv(names, Segments::empty());
        node.wait_unless(request, || false).expect("nothing interrupts it")
    },
    |node, names| {
        let request = node.submit_recv(names, Segments::empty());
        let ended = node.wait_any_within(&[request], BOUND).expect("it is known");
        ended.expect("it comes").1
    },
    |node, names| {
        let request = node.submit_recv(names, Segments::empty());
        let mut ended = node.wait_all_within(&[request], BOUND).expect("it is known").expect("it comes");
        ended.remove(0)
    },
];

/// Tries on a machine on which others want the cores.
const TRIES: u32 = 20;

#[test]
fn a_look_for_it_finds_it_and_the_rest_is_not_forgotten() {
    for recv in WAYS {
        let polls = || {
            let (looks, polls) = receive(true, recv);
            assert!(
                (LATE + 1..=LATE + 2).contains(&looks),
                "{looks}: it is met at once when it can be found"
            );
            polls
        };
        // A thread that has to give its core away looks at all rails each time it has it again.
        let least = (0..TRIES).map(|_| polls()).find(|polls| *polls < LATE / 2);
        assert!(least.is_some_and(|polls| polls >= 5), "{least:?} polls");
    }
}

#[test]
fn what_only_a_poll_finds_is_found() {
    for recv in WAYS {
        let (looks, polls) = receive(false, recv);
        assert!((LATE..LATE + 100).contains(&looks) && polls >= 5, "{looks} looks, {polls} polls");
    }
}
