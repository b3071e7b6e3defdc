//! Who sleeps is woken by the rails, whoever else looks at them meanwhile.

mod common;

use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, LandingId};
use nmad_engine::transfer::driver::{Driver, Event, Limits, Order};
use nmad_engine::{Config, Context, Engine, PeerId, Source, TagMatch};
use nmad_progress::{Idle, Node};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A rail on which nothing happens. As the real ones, it wakes who sleeps only if it was asked to since
/// somebody looked at it last.
#[derive(Debug, Default)]
struct Silent {
    asked: Arc<AtomicBool>,
    looks: Arc<AtomicU32>,
}

impl Driver for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn limits(&self) -> Limits {
        common::LIMITS
    }

    fn open(&mut self, _: LandingId, _: PeerId, _: Segments) -> Key {
        Key(1)
    }

    fn close(&mut self, _: LandingId) {}

    fn room(&self) -> usize {
        1
    }

    fn post(&mut self, order: Order) {
        panic!("nobody sends: {order:?}");
    }

    fn poll(&mut self, _: &mut dyn FnMut(Event<'_>)) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.asked.store(false, Ordering::Release);
    }

    fn descriptor(&self) -> Option<i32> {
        self.asked.store(true, Ordering::Release);
        Some(-1)
    }
}

#[test]
fn the_rails_wake_who_sleeps_although_another_thread_looks_at_them() {
    let rail = Silent::default();
    let (asked, looks) = (rail.asked.clone(), rail.looks.clone());
    let mut engine = Engine::new(Config::default()).expect("the default strategy exists");
    engine.add_rail(rail.limits());
    let node = Node::new(engine, vec![Box::new(rail)], Idle::SHARED, |_| {}).expect("a thread");
    // Something is pending, so the ticking thread does not rest.
    let request =
        node.submit(|engine| engine.recv(Source::Any, Context(0), TagMatch::Any, Segments::empty()));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(node.wait_for(Duration::from_secs(20), |_| over.load(Ordering::Relaxed)));
        });
        // As soon as the other thread sleeps, nobody but the ticking one looks; and sometimes this one.
        let (begun, mut calm) = (Instant::now(), 0);
        while calm < 40 {
            if calm == 20 {
                node.turn();
            }
            let before = looks.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(3));
            // Who sleeps wakes from time to time, and looks.
            let is_calm = looks.load(Ordering::Relaxed) <= before + 1;
            calm += u32::from(is_calm && asked.load(Ordering::Acquire));
            assert!(begun.elapsed() < Duration::from_secs(10), "the rails wake nobody");
        }
        over.store(true, Ordering::Relaxed);
        node.rouse();
    });
    assert!(node.submit(|engine| engine.cancel(request)));
}
