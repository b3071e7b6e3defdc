//! A service goes on in whichever thread looks at the rails: one that waits, or the helper.

use nmad_engine::{Config, Context, Engine, Error, RequestId, Segments, Source, TagMatch};
use nmad_progress::{Node, Served, Service, Sharing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Cancels a request, if it has one, after some looks.
struct Cancels {
    looks: Arc<AtomicU32>,
    after: u32,
    request: Option<RequestId>,
}

impl Service for Cancels {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let looks = self.looks.fetch_add(1, Ordering::AcqRel) + 1;
        let due = self.request.take_if(|_| looks >= self.after);
        due.iter().for_each(|request| assert!(engine.cancel(*request)));
        Served { worked: due.is_some(), waits: self.request.is_some() }
    }
}

fn node() -> Node {
    let engine = Engine::new(Config::default()).expect("the default strategy exists");
    Node::new(engine, Vec::new(), Sharing::Always(2), |_| {}).expect("a thread")
}

#[test]
fn a_thread_that_waits_serves_and_what_the_service_ends_is_seen() {
    let node = node();
    let receive =
        |engine: &mut Engine| engine.recv(Source::Any, Context(0), TagMatch::Any, Segments::empty());
    for after in [1, 100] {
        let request = node.submit(receive);
        let looks = Arc::new(AtomicU32::new(0));
        node.set_service("test", Some(Box::new(Cancels { looks, after, request: Some(request) })));
        assert_eq!(node.wait(request), Err(Error::Cancelled));
    }
}

#[test]
fn the_helper_serves_while_nobody_calls() {
    let node = node();
    let looks = Arc::new(AtomicU32::new(0));
    node.set_service("test", Some(Box::new(Cancels { looks: looks.clone(), after: 0, request: None })));
    while looks.load(Ordering::Acquire) < 5 {
        std::thread::yield_now();
    }
    node.set_service("test", None);
    let before = looks.load(Ordering::Acquire);
    node.turn();
    assert_eq!(looks.load(Ordering::Acquire), before, "nobody is served any more");
}
