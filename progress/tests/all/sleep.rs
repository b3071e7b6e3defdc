//! A sleeping thread is woken by the rails, whichever other thread looks at them meanwhile.

use crate::common::{self, PEER, Special};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::{Event, Limits};
use nmad_engine::{Context, Hints, RailId, Source, Tag, TagMatch};
use nmad_progress::{Node, Sharing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A rail on which nothing happens but what somebody looks for alone. As the real ones, it wakes a sleeper
/// only if it was asked to since somebody looked at it last.
#[derive(Debug, Default)]
struct Silent {
    came: u32,
    asked: Arc<AtomicBool>,
    /// How often the helper has asked.
    ticks: Arc<AtomicU32>,
    looks: Arc<AtomicU32>,
}

impl Special for Silent {
    fn limits(&self) -> Limits {
        Limits { looks: true, ..common::LIMITS }
    }

    fn look_for(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.asked.store(false, Ordering::Release);
        report(Event::Arrived { from: PEER, packet: &common::message(self.came) });
        self.came += 1;
        true
    }

    fn poll(&mut self, _: &mut dyn FnMut(Event<'_>)) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.asked.store(false, Ordering::Release);
    }

    fn wakeup(&mut self) -> Option<i32> {
        let is_tick = std::thread::current().name() == Some("nmad-progress");
        self.ticks.fetch_add(u32::from(is_tick), Ordering::Relaxed);
        self.asked.store(true, Ordering::Release);
        Some(-1)
    }
}

/// Runs this while one thread sleeps, and something is pending, so that the helper does not rest.
fn beside_a_sleeper(rail: Silent, run: impl FnOnce(&Node)) {
    let node = common::node(rail, Sharing::Always(2));
    // Its receiver never answers. Besides, it carries a new limit of credit, which nothing else has to.
    let hints = Hints { synchronous: true, ..Hints::default() };
    let request = node.submit_send(&(PEER, Context(0), Tag(3)), &Segments::empty(), hints);
    while node.turn() {}
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(node.wait_for(Duration::from_secs(20), |_| over.load(Ordering::Relaxed)));
        });
        run(&node);
        over.store(true, Ordering::Relaxed);
        node.rouse();
    });
    assert_eq!(node.has_ended(request), Ok(false));
}

#[test]
fn the_rails_wake_who_sleeps_although_another_thread_looks_at_them() {
    let rail = Silent::default();
    let (asked, looks) = (rail.asked.clone(), rail.looks.clone());
    beside_a_sleeper(rail, |node| {
        // As soon as the other thread sleeps, nobody but the helper looks; and sometimes this one.
        let (begun, mut calm) = (Instant::now(), 0);
        while calm < 40 {
            if calm == 20 {
                node.turn();
            }
            let before = looks.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(3));
            // A sleeper wakes from time to time, and looks.
            let is_calm = looks.load(Ordering::Relaxed) <= before + 1;
            calm += u32::from(is_calm && asked.load(Ordering::Acquire));
            assert!(begun.elapsed() < Duration::from_secs(10), "the rails wake nobody");
        }
    });
}

#[test]
fn the_rails_wake_who_sleeps_although_another_thread_looks_for_its_own_message() {
    let rail = Silent::default();
    let (asked, ticks) = (rail.asked.clone(), rail.ticks.clone());
    let wait_for_sleeper = || {
        while !asked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    };
    beside_a_sleeper(rail, |node| {
        wait_for_sleeper();
        // In as few looks as do without a turn of the pump. A sleeper wakes by itself and asks again, fifty
        // times as seldom as the other thread ticks.
        let is_asked_anew = (0..20).any(|_| {
            let before = ticks.load(Ordering::Relaxed);
            let names = (Source::Peer(PEER), Context(0), TagMatch::Exact(Tag(7)));
            assert!(node.recv(names, Segments::empty()).is_ok());
            wait_for_sleeper();
            ticks.load(Ordering::Relaxed) > before
        });
        assert!(is_asked_anew, "the rails wake nobody");
    });
}

/// Ranks that share memory wake each other when it has changed.
#[test]
fn a_peer_is_woken_by_a_packet_that_says_nothing_else() {
    let node = common::node(Silent::default(), Sharing::Never);
    let packets = || node.with(|engine| engine.inspect().counters(RailId(0)).packets);
    let before = packets();
    node.submit(|engine| engine.wake(PEER));
    assert_eq!(packets(), before + 1);
    node.turn();
    assert_eq!(packets(), before + 1, "once");
}

/// How often the helper of each node of this process has slept, by its number.
fn naps() -> Vec<(std::ffi::OsString, u64)> {
    let threads = std::fs::read_dir("/proc/self/task").expect("the system tells of threads").flatten();
    let nap = |thread: std::fs::DirEntry| {
        let read = |what: &str| std::fs::read_to_string(thread.path().join(what)).ok();
        let status =
            read("status").filter(|_| read("comm").is_some_and(|name| name.trim() == "nmad-progress"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((thread.file_name(), line.trim().parse().ok()?))
    };
    threads.filter_map(nap).collect()
}

#[test]
fn while_one_sleeps_for_long_hardly_anybody_ticks() {
    beside_a_sleeper(Silent::default(), |_| {
        std::thread::sleep(Duration::from_millis(700));
        let before = naps();
        std::thread::sleep(Duration::from_secs(1));
        let after = naps();
        let took = |(name, count): &(_, u64)| {
            after.iter().find(|(other, _)| other == name).map(|(_, later)| later - count)
        };
        // Other tests have nodes of their own.
        let fewest = before.iter().filter_map(took).min().expect("a helper");
        assert!(fewest < 500, "{fewest} times in a second, in periods of a millisecond");
    });
}
