//! A process that exits in the middle of things ends, with its exit code: no thread of the library keeps it.

#[path = "all/common/mod.rs"]
mod common;

use common::Special;
use nmad_engine::memory::together::{Kind, LEAST, together};
use nmad_engine::{Context, Pair, Segments, Source, TagMatch};
use nmad_progress::{Node, Progress, Sharing, own_cores};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What the process does that exits.
const HOW: &str = "NMAD_TEST_EXITS";
/// It ends with this code.
const CODE: i32 = 9;
/// The test gives up after this long.
const LONG: Duration = Duration::from_secs(20);

/// Whether this is a thread of the library's own.
fn is_helper() -> bool {
    let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
    name.trim() == "nmad-progress"
}

/// A rail that may end the process when the helper looks at it.
struct Rail {
    exits: bool,
}

impl Special for Rail {
    fn poll(&mut self, _: &mut dyn FnMut(nmad_engine::transfer::driver::Event<'_>)) {
        if self.exits && is_helper() {
            std::process::exit(CODE);
        }
    }
}

fn node(exits: bool) -> Node {
    let node = common::node(Rail { exits }, Sharing::Never);
    node.set_hand_offs([Some(1); Pair::ALL.len()]);
    node.set_progress(Progress::Dedicated(own_cores())).expect("they are ours");
    node
}

fn receive(node: &Node) -> nmad_engine::RequestId {
    node.submit_recv((Source::Any, Context(0), TagMatch::Any), Segments::empty())
}

/// The helper polls for a request that never ends.
fn with_a_request_under_way() {
    let node = node(false);
    receive(&node);
    while node.helped().turns < 100 {
        thread::yield_now();
    }
    std::process::exit(CODE);
}

/// The helper has the lock of the node, which another thread waits for.
fn in_a_look_of_the_helper() {
    let node = node(true);
    let request = receive(&node);
    let _ = node.wait(request);
}

/// The helper does a piece of work, and the caller waits for it.
fn in_a_piece_of_the_helpers_work() {
    let _node = node(false);
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        together(Kind::Reduce, 64, LEAST, &|_| {
            if is_helper() {
                std::process::exit(CODE);
            }
            thread::sleep(Duration::from_micros(100));
        });
    }
}

/// The caller exits in its own piece, while the helper does others.
fn in_a_piece_of_the_callers_work() {
    let node = node(false);
    loop {
        let helped = node.helped().shared > 0;
        together(Kind::Reduce, 64, LEAST, &|_| {
            if helped && !is_helper() {
                std::process::exit(CODE);
            }
            thread::sleep(Duration::from_micros(100));
        });
    }
}

const WAYS: [(&str, fn()); 4] = [
    ("request", with_a_request_under_way),
    ("look", in_a_look_of_the_helper),
    ("helper", in_a_piece_of_the_helpers_work),
    ("caller", in_a_piece_of_the_callers_work),
];

/// Runs this test in a process of its own.
fn exits(how: &str) -> ExitStatus {
    let mut own = Command::new(std::env::current_exe().expect("this program has a path"));
    let mut child = own.env(HOW, how).stdout(Stdio::null()).spawn().expect("it starts again");
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status;
        }
        if begun.elapsed() > 2 * LONG {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_process_that_exits_in_the_middle_of_things_ends() {
    if let Ok(how) = std::env::var(HOW) {
        let way = WAYS.iter().find(|(name, _)| *name == how).expect("it is one of them");
        way.1();
        panic!("it does not exit");
    }
    for (how, _) in WAYS {
        assert_eq!(exits(how).code(), Some(CODE), "{how}");
    }
}
