//! Messages that bypass the window, into a rail that takes them at once.

use crate::common::{self, Pair, bytes, leave_to_inner, pattern, segments};
use crate::short;
use nmad_engine::{
    Caller, Config, Context, Departure, Driver, Envelope, Event, Hints, How, Instant, Key, Limits, Order,
    PeerId, PollScope, RegionId, Registry, Segments, Sent, Source, Submitted, Tag, TagMatch, pump,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A rail that takes a packet at once, unless `refuses` is true for its number among such packets.
struct Taking {
    inner: Box<dyn Driver>,
    injects: bool,
    refuses: fn(u32) -> bool,
    asked: u32,
    /// Posted and not reported as sent; until then nothing may be sent at once.
    waiting: u32,
    injected: Arc<AtomicU32>,
}

impl Driver for Taking {
    leave_to_inner!("taking");
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, head, data, how, .. } => {
                let why = "the engine remembers what was posted, and numbers what leaves at once";
                assert_eq!(self.waiting, 0, "{why}");
                assert_eq!(how, if self.injects { How::Inject } else { How::Send });
                self.asked += 1;
                if (self.refuses)(self.asked) {
                    return Sent::Retry;
                }
                short::carry(&mut *self.inner, to, short::whole(head, data));
                self.injected.fetch_add(u32::from(self.injects), Ordering::Relaxed);
                Sent::Done
            }
            departure => {
                let waits = matches!(departure, Departure::Order(Order::Packet { .. }));
                self.waiting += u32::from(waits);
                self.inner.send(departure)
            }
        }
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let waiting = &mut self.waiting;
        short::poll(&mut *self.inner, scope, |event| {
            *waiting -= u32::from(matches!(event, Event::Sent { packet: Some(_), .. }));
            report(event);
        })
    }
}

/// Two hosts whose rail from the first to the second takes packets at once, without a system call.
fn pair(refuses: fn(u32) -> bool, config: Config) -> (Pair, Arc<AtomicU32>) {
    pair_of(true, refuses, config)
}

fn pair_of(injects: bool, refuses: fn(u32) -> bool, config: Config) -> (Pair, Arc<AtomicU32>) {
    let mut pair = Pair::with(1, config, Limits { inject: injects, ..common::limits() });
    let injected = Arc::<AtomicU32>::default();
    let inner = pair.hosts[0].rails.pop().expect("one rail");
    let taking = Taking { inner, injects, refuses, asked: 0, waiting: 0, injected: injected.clone() };
    pair.hosts[0].rails.push(Box::new(taking));
    pair.settle();
    (pair, injected)
}

/// Sends without waiting; returns whether the message bypassed the window.
fn send(pair: &mut Pair, tag: u64, data: &'static [u8]) -> bool {
    send_as(pair, tag, data, Caller::GoesOn)
}

fn send_as(pair: &mut Pair, tag: u64, data: &'static [u8], caller: Caller) -> bool {
    let host = &mut pair.hosts[0];
    let (data, now) = (segments(data), Instant::from_ns(0));
    let to @ (peer, context, tag) = (PeerId(1), Context(0), Tag(tag));
    let hints = Hints::default();
    let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
    let sent = pump::send_at_once(node, &to, (&data, hints), caller, &mut || now);
    match sent {
        Ok(Submitted::Ended(seq)) => {
            host.engine.ended(Envelope { peer, context, tag, len: data.len(), seq });
            true
        }
        Ok(Submitted::Request(request)) => panic!("{request:?}: nothing is pushed here"),
        Err(refused) => {
            host.engine.send_as(to, data, hints, refused);
            false
        }
    }
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
fn order_is_kept_when_the_rail_refuses() {
    let lens: Vec<usize> = (0..400).map(|n| n * n * 13 % 3000).collect();
    for refuses in [|_| false, |n| n % 3 == 0, |n| n % 7 > 2, |_| true] {
        let (mut pair, injected) = pair(refuses, Config::default());
        let mut past = 0;
        for (tag, &len) in lens.iter().enumerate() {
            past += u32::from(send(&mut pair, tag as u64, pattern(len)));
            if tag % 11 == 10 {
                pair.hosts[0].turn(true);
                pair.hosts[0].turn(true);
            }
        }
        assert_eq!(past, injected.load(Ordering::Relaxed));
        receive_all(&mut pair, &lens);
        assert_eq!(pair.hosts[0].engine.inspect().pending(), 0);
        let told = pair.hosts[0].done.len() + past as usize;
        assert_eq!(told, lens.len(), "each request ended once, those that left at once when they were made");
        let counters = pair.hosts[0].engine.inspect().counters(nmad_engine::RailId(0));
        assert!(counters.entries >= lens.len() as u64 && counters.packets >= u64::from(past));
    }
}

#[test]
fn without_credit_nothing_is_sent_at_once_and_all_arrives() {
    let (mut pair, injected) = pair(|_| false, Config { credit: 0, ..Config::default() });
    let lens = vec![1000; 600];
    for (tag, &len) in lens.iter().enumerate() {
        send(&mut pair, tag as u64, pattern(len));
    }
    let past = injected.load(Ordering::Relaxed);
    assert!(past > 100 && past < 400, "256 KiB go ahead, and no more: {past}");
    pair.settle();
    receive_all(&mut pair, &lens);
}

#[test]
fn waiting_messages_are_not_overtaken_and_a_waiting_caller_may_use_a_call() {
    // Long data, too: the rail decides whether to copy it.
    let config = Config { in_place_min: Some(256), ..Config::default() };
    let (mut pair, injected) = pair_of(false, |_| false, config);
    let data = pattern(8);
    // The first message carries the credit limit to the peer.
    send(&mut pair, 0, data);
    pair.settle();
    for (tag, len, caller) in [(1, 8, Caller::Steps), (2, 4000, Caller::Waits)] {
        assert!(send_as(&mut pair, tag, pattern(len), caller), "the rail makes a call");
    }
    assert!(!send(&mut pair, 3, data), "who does not wait has none made");
    assert!(!send(&mut pair, 4, data), "the window is not empty");
    receive_all(&mut pair, &[8, 8, 4000, 8, 8]);
    assert_eq!(injected.load(Ordering::Relaxed), 0);
}

#[test]
fn every_strategy_lets_a_lone_message_be_sent_at_once() {
    for name in Registry::default().names() {
        let (mut pair, _) = pair(|_| false, Config { strategy: name.into(), ..Config::default() });
        // The first message carries the credit limit to the peer.
        send(&mut pair, 0, pattern(8));
        pair.settle();
        assert!(send(&mut pair, 1, pattern(8)), "{name}");
        receive_all(&mut pair, &[8; 2]);
    }
}
