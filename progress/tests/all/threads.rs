//! Several threads of one node post at once, each over a rail of its own.

use crate::common::{self, PEER, Special};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::{How, Limits, Sent};
use nmad_engine::{Config, Context, Hints, RailId, Tag};
use nmad_progress::Sharing;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How many rails work at this moment, and how many did at most.
#[derive(Debug, Default)]
struct Works {
    count: Mutex<(u32, u32)>,
    changed: Condvar,
}

/// A rail that is done with what it is given when another rail works too, or after this long.
const ALONE: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct Slow(Arc<Works>);

impl Slow {
    fn work(&self) {
        let mut count = self.0.count.lock().unwrap();
        count.0 += 1;
        count.1 = count.1.max(count.0);
        self.0.changed.notify_all();
        let alone = |count: &mut (u32, u32)| count.1 < 2;
        let (mut count, _) = self.0.changed.wait_timeout_while(count, ALONE, alone).unwrap();
        count.0 -= 1;
    }
}

impl Special for Slow {
    fn limits(&self) -> Limits {
        Limits { gather: 0, ..common::LIMITS }
    }

    fn message(&mut self, _: How) -> Sent {
        self.work();
        Sent::Done
    }

    fn posted(&mut self) {
        self.work();
    }
}

#[test]
fn two_threads_post_over_two_rails_at_once() {
    let works = Arc::new(Works::default());
    let node = common::node_over(vec![Slow(works.clone()), Slow(works.clone())], Sharing::Always(2));
    let send = |rail: u8| {
        let hints = Hints { rail: Some(RailId(rail)), ..Hints::default() };
        let to = (PEER, Context(u32::from(rail)), Tag(3));
        assert!(node.send(&to, &Segments::empty(), hints).is_ok());
    };
    // So that the node knows that it has several threads.
    std::thread::scope(|scope| drop(scope.spawn(|| send(0))));
    works.count.lock().unwrap().1 = 0;
    std::thread::scope(|scope| {
        for rail in [0, 1] {
            scope.spawn(move || send(rail));
        }
    });
    assert_eq!(works.count.lock().unwrap().1, 2, "one rail worked after the other");
}

/// How long a thread waits at most for what another one does meanwhile.
const MEANWHILE: Duration = Duration::from_secs(10);

/// Tells when it is at work, waits for the word to go on, and notes the numbers of packets.
struct Numbers {
    at_work: Sender<()>,
    go_on: Receiver<()>,
    numbers: Arc<Mutex<Vec<u32>>>,
}

impl Special for Numbers {
    fn limits(&self) -> Limits {
        common::LIMITS
    }

    fn numbered(&mut self, number: u32) {
        self.numbers.lock().unwrap().push(number);
    }

    fn message(&mut self, how: How) -> Sent {
        if how != How::Send {
            return Sent::Retry;
        }
        self.at_work.send(()).unwrap();
        self.go_on.recv_timeout(MEANWHILE).expect("another thread submits, although this one has the rail");
        Sent::Done
    }
}

#[test]
fn a_message_that_is_submitted_while_another_one_leaves_gets_the_next_number() {
    let (at_work, works) = channel();
    let (goes_on, go_on) = channel();
    let numbers = Arc::new(Mutex::new(Vec::new()));
    // With the credit that both sides assume, no message carries a limit, which would leave from the window.
    let config = Config { credit: Config::CREDIT_MIN, ..Config::default() };
    let special = Numbers { at_work, go_on, numbers: numbers.clone() };
    let node = common::node_of(config, vec![special], Sharing::Always(2));
    let send = |tag| node.send(&(PEER, Context(0), Tag(tag)), &Segments::empty(), Hints::default());
    std::thread::scope(|scope| {
        // The first one of another thread shows that the node has several.
        for tag in 0..2 {
            let first = scope.spawn(move || send(tag));
            works.recv_timeout(MEANWHILE).expect("the first message leaves in the call");
            let to = (PEER, Context(0), Tag(9));
            let second = (tag > 0).then(|| node.submit_send(&to, &Segments::empty(), Hints::default()));
            goes_on.send(()).unwrap();
            assert!(first.join().unwrap().is_ok());
            if let Some(second) = second {
                assert!(node.wait(second).is_ok());
            }
        }
    });
    assert_eq!(*numbers.lock().unwrap(), [0, 1, 2]);
}
