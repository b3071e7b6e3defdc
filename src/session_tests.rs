//! Tests of the session.

use super::*;
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::{Config, Segments};
use nmad_engine::{Departure, Event, Limits, PollScope, Sent};
use std::sync::Arc;

/// An unused rail that records whether the node was oversubscribed at each call.
#[derive(Debug, Default)]
struct Recorder {
    oversubscribed: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<(&'static str, bool)>>>,
}

impl Recorder {
    fn note(&self, what: &'static str) {
        let answer = (what, self.oversubscribed.load(Ordering::Relaxed));
        self.answers.lock().expect("nobody panicked").push(answer);
    }
}

impl Driver for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn limits(&self) -> Limits {
        self.note("limits");
        Limits::default()
    }

    fn open(&mut self, _: RegionId, _: PeerId, _: Segments) -> Key {
        Key(1)
    }

    fn close(&mut self, _: RegionId) {}

    fn room(&self) -> usize {
        0
    }

    fn send(&mut self, _: Departure<'_>) -> Sent {
        Sent::Retry
    }

    fn poll(&mut self, _: PollScope, _: &mut dyn FnMut(Event<'_>)) -> bool {
        true
    }

    fn know(&mut self, _: PeerId, _: u8, _: &str) -> bool {
        self.note("peer");
        true
    }
}

#[test]
fn a_rail_knows_that_ranks_are_oversubscribed_before_it_is_used() {
    let job = bootstrap().expect("a job of this process alone");
    let engine = Engine::new(Config::default()).expect("the default strategy exists");
    let rail = Recorder::default();
    let (answers, oversubscribed) = (rail.answers.clone(), rail.oversubscribed.clone());
    let driver = Box::new(rail);
    let opened = OpenRail { driver, number: 0, bandwidth: 0, reach: Reach::Myself, wire: 0, trace: None };
    // A rank without known cores has no core of its own.
    let card = crate::card::Card { rails: vec![(0, "here".into())], ..crate::card::Card::default() };
    let cards = [card].into_iter().collect();
    let session = Session::assemble(job.as_ref(), engine, (vec![opened], &oversubscribed), &cards);
    drop(session.expect("a thread"));
    let answers = answers.lock().expect("nobody panicked");
    assert!(["limits", "peer"].iter().all(|what| answers.contains(&(what, true))), "{answers:?}");
    assert!(answers.iter().all(|(_, known)| *known), "{answers:?}");
}
