//! Messages that go past the window into a rail that takes them at once.

mod common;
#[path = "common/short.rs"]
mod short;

use common::{Pair, bytes, leave_to_inner, pattern, segments};
use nmad_engine::{
    Config, Context, Driver, Envelope, Event, Hints, Instant, Key, LandingId, Limits, Order, PeerId,
    Registry, Segments, Sent, Source, Tag, TagMatch, pump,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A rail that takes a packet at once, unless its place in the sequence of those says otherwise.
struct Passing {
    inner: Box<dyn Driver>,
    refuses: fn(u32) -> bool,
    asked: u32,
    /// Posted and not reported as sent, so that nothing may pass.
    waiting: u32,
    passed: Arc<AtomicU32>,
}

impl Driver for Passing {
    leave_to_inner!("passing");
    fn pass(&mut self, to: PeerId, head: &[u64], data: &Segments) -> bool {
        assert_eq!(self.waiting, 0, "the engine remembers what was posted, and numbers what passes");
        self.asked += 1;
        if (self.refuses)(self.asked) {
            return false;
        }
        short::carry(&mut *self.inner, to, short::whole(head, data));
        self.passed.fetch_add(1, Ordering::Relaxed);
        true
    }
    fn send_now(&mut self, to: PeerId, _: u32, head: &[u64], data: &Segments) -> Sent {
        assert_eq!(self.waiting, 0, "the engine remembers what was posted, and numbers what leaves at once");
        short::carry(&mut *self.inner, to, short::whole(head, data));
        Sent::Done
    }
    fn post(&mut self, order: Order) {
        self.waiting += u32::from(matches!(order, Order::Packet { .. }));
        self.inner.post(order);
    }
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let waiting = &mut self.waiting;
        short::poll(&mut *self.inner, |event| {
            *waiting -= u32::from(matches!(event, Event::Sent { packet: Some(_), .. }));
            report(event);
        });
    }
}

/// Two hosts whose rail from the first to the second takes packets at once.
fn pair(refuses: fn(u32) -> bool, config: Config) -> (Pair, Arc<AtomicU32>) {
    let mut pair = Pair::with(1, config, Limits { passes: true, ..common::limits() });
    let passed = Arc::<AtomicU32>::default();
    let inner = pair.hosts[0].rails.pop().expect("one rail");
    let passing = Passing { inner, refuses, asked: 0, waiting: 0, passed: passed.clone() };
    pair.hosts[0].rails.push(Box::new(passing));
    pair.settle();
    (pair, passed)
}

/// Sends without waiting, past the window if that goes; whether it went there.
fn send(pair: &mut Pair, tag: u64, data: &'static [u8]) -> bool {
    let host = &mut pair.hosts[0];
    let data = segments(data);
    let to = (PeerId(1), Context(0), Tag(tag));
    let hints = Hints::default();
    let sent = pump::send_directly(&mut host.engine, &mut host.rails, to, &data, hints, None);
    match sent {
        Some(seq) => {
            let (peer, context, tag) = to;
            host.engine.ended(Envelope { peer, context, tag, len: data.len(), seq });
        }
        None => drop(host.engine.send(to.0, to.1, to.2, data, hints)),
    }
    sent.is_some()
}

fn receive_all(pair: &mut Pair, lens: &[usize]) {
    let receives: Vec<_> =
        lens.iter().map(|&len| pair.recv(1, Source::Peer(PeerId(0)), 0, TagMatch::Any, len.max(1))).collect();
    pair.settle();
    for (number, ((request, memory), &len)) in receives.into_iter().zip(lens).enumerate() {
        let envelope = pair.result(1, request).expect("it has ended").expect("and well");
        assert_eq!((envelope.tag.0, envelope.len), (number as u64, len as u64), "in order");
        assert!(bytes(memory)[..len] == pattern(len)[..], "message {number} is intact");
    }
}

#[test]
fn order_is_kept_whatever_the_rail_refuses() {
    let lens: Vec<usize> = (0..400).map(|n| n * n * 13 % 3000).collect();
    for refuses in [|_| false, |n| n % 3 == 0, |n| n % 7 > 2, |_| true] {
        let (mut pair, passed) = pair(refuses, Config::default());
        let mut past = 0;
        for (tag, &len) in lens.iter().enumerate() {
            past += u32::from(send(&mut pair, tag as u64, pattern(len)));
            if tag % 11 == 10 {
                pair.hosts[0].turn(true);
                pair.hosts[0].turn(true);
            }
        }
        assert_eq!(past, passed.load(Ordering::Relaxed));
        receive_all(&mut pair, &lens);
        assert_eq!(pair.hosts[0].engine.pending(), 0);
        let told = pair.hosts[0].done.len() + past as usize;
        assert_eq!(told, lens.len(), "each request ended once, those that passed when they were made");
        let counters = pair.hosts[0].engine.counters(nmad_engine::RailId(0));
        assert!(counters.entries >= lens.len() as u64 && counters.packets >= u64::from(past));
    }
}

#[test]
fn without_credit_nothing_passes_and_all_arrives() {
    let (mut pair, passed) = pair(|_| false, Config { credit: 0, ..Config::default() });
    let lens = vec![1000; 600];
    for (tag, &len) in lens.iter().enumerate() {
        send(&mut pair, tag as u64, pattern(len));
    }
    let past = passed.load(Ordering::Relaxed);
    assert!(past > 100 && past < 400, "256 KiB go ahead, and no more: {past}");
    pair.settle();
    receive_all(&mut pair, &lens);
}

#[test]
fn what_waits_is_not_overtaken_and_who_waits_may_have_a_call_made() {
    // Long data, too: whether it is copied is the rail's affair then.
    let config = Config { in_place_min: Some(256), ..Config::default() };
    let (mut pair, passed) = pair(|_| true, config);
    let (data, now) = (pattern(8), Instant::from_ns(0));
    // The first one tells the peer how much it may send.
    send(&mut pair, 0, data);
    pair.settle();
    let host = &mut pair.hosts[0];
    for (tag, len) in [(1, 8), (2, 4000)] {
        let (to, data) = ((PeerId(1), Context(0), Tag(tag)), segments(pattern(len)));
        let mut clock = || now;
        let waits = Some(&mut clock as &mut dyn FnMut() -> Instant);
        let hints = Hints::default();
        let sent = pump::send_directly(&mut host.engine, &mut host.rails, to, &data, hints, waits);
        assert!(sent.is_some(), "the rail made a call instead");
    }
    assert!(!send(&mut pair, 3, data), "who does not wait has none made");
    assert!(!send(&mut pair, 4, data), "the window is not empty");
    receive_all(&mut pair, &[8, 8, 4000, 8, 8]);
    assert_eq!(passed.load(Ordering::Relaxed), 0);
}

#[test]
fn every_strategy_lets_a_lone_message_pass() {
    for name in Registry::default().names() {
        let (mut pair, _) = pair(|_| false, Config { strategy: name.into(), ..Config::default() });
        // The first one tells the peer how much it may send.
        send(&mut pair, 0, pattern(8));
        pair.settle();
        assert!(send(&mut pair, 1, pattern(8)), "{name}");
        receive_all(&mut pair, &[8; 2]);
    }
}
