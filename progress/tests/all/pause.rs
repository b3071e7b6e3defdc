//! Waiting for what the node does not know. No rails: a receive ends when it is cancelled.

use nmad_engine::{Config, Context, Engine, Error, RequestId, Segments, Source, TagMatch};
use nmad_progress::{Node, Patience, Sharing};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn node() -> Node {
    let engine = Engine::new(Config::default()).expect("the default strategy exists");
    Node::new(engine, Vec::new(), Sharing::Never, |_| {}).expect("a thread")
}

fn recv(node: &Node) -> RequestId {
    node.submit(|engine| engine.recv(Source::Any, Context(0), TagMatch::Any, Segments::empty()))
}

#[test]
fn who_sleeps_sees_what_another_thread_has_done() {
    let (node, done, pauses) = (node(), AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut patience = Patience::default();
            while !done.load(Ordering::Acquire) {
                node.pause(&mut patience, || true);
                pauses.fetch_add(1, Ordering::Release);
            }
        });
        while pauses.load(Ordering::Acquire) < 100 {
            node.rouse();
        }
        done.store(true, Ordering::Release);
        node.rouse();
    });
}

#[test]
fn a_wait_is_interrupted_and_the_request_goes_on() {
    let node = node();
    let request = recv(&node);
    assert_eq!(node.wait_unless(request, || true), None);
    assert_eq!(node.take(request), None);
    assert!(node.submit(|engine| engine.cancel(request)));
    assert_eq!(node.wait_unless(request, || true), Some(Err(Error::Cancelled)));
    assert_eq!(node.take(request), None, "it is told once");
}

#[test]
fn a_look_is_repeated_until_it_answers() {
    let (node, mut looks) = (node(), 0);
    let request = recv(&node);
    let answer = node.wait_look(|engine| {
        looks += 1;
        if looks == 100 { Ok(engine.inspect().pending()) } else { Err(request) }
    });
    assert_eq!((answer, looks), (1, 100));
    assert!(node.submit(|engine| engine.cancel(request)));
}
