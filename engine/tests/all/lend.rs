//! Messages that are single-copied to a peer that waits for them.

use crate::common::{self, Pair, bytes, leave_to_inner, memory, pattern, segments};
use nmad_engine::transfer::driver::Remote;
use nmad_engine::{
    Caller, Config, Context, Departure, Driver, Envelope, Event, Hints, How, Instant, Key, Limits, Met,
    PeerId, PollScope, RegionId, Segments, Sent, Source, Tag, TagMatch, pump,
};
use std::sync::{Arc, Mutex};

const FROM: Source = Source::Peer(PeerId(0));
const TAG: TagMatch = TagMatch::Exact(Tag(5));
/// What may be lent.
const LENDS: (u64, u64) = (100, 200_001);

/// The bytes before the data, and the data.
type Loan = (Vec<u8>, Segments);
type Loans = Arc<Mutex<Option<Loan>>>;

/// A rail whose receivers copy by themselves: what its sender believes to be taken lies there until the test
/// has the receiver look.
struct Lending {
    inner: Box<dyn Driver>,
    lent: Loans,
    asked: Arc<Mutex<Vec<u64>>>,
}

impl Driver for Lending {
    leave_to_inner!("lending");
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { head, data, how: How::SingleCopy, .. } => {
                self.asked.lock().unwrap().push(data.len());
                let head = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
                *self.lent.lock().unwrap() = Some((head, data.clone()));
                Sent::Done
            }
            departure => self.inner.send(departure),
        }
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let lent = match scope {
            PollScope::All => None,
            PollScope::Peer(from) => self.lent.lock().unwrap().take().map(|loan| (from, loan)),
        };
        let Some((from, (head, data))) = lent else { return self.inner.poll(scope, report) };
        let mut fetch = |into: &Segments| {
            assert_eq!(into.len(), data.len(), "as much as comes");
            into.copy_from(&data);
            true
        };
        let mut taken = false;
        let message = Remote { head: &head, len: data.len(), fetch: &mut fetch, taken: &mut taken };
        report(Event::Remote { from, message });
        taken
    }
}

/// Two hosts, and what the first is asked to lend.
fn pair() -> (Pair, Arc<Mutex<Vec<u64>>>) {
    let limits = Limits { inject: true, single_copy: LENDS, ..common::limits() };
    let mut pair = Pair::with(1, Config::default(), limits);
    let (lent, asked) = (Loans::default(), Arc::<Mutex<Vec<u64>>>::default());
    for host in &mut pair.hosts {
        let inner = host.rails.pop().expect("one rail");
        host.rails.push(Box::new(Lending { inner, lent: lent.clone(), asked: asked.clone() }));
    }
    pair.acquaint();
    (pair, asked)
}

/// Sends as a caller that waits; returns whether the message was single-copied.
fn send(pair: &mut Pair, tag: u64, data: Segments, hints: Hints) -> bool {
    let host = &mut pair.hosts[0];
    let to = (PeerId(1), Context(0), Tag(tag));
    let (now, caller) = (Instant::from_ns(host.now), Caller::Waits);
    let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
    let sent = pump::send_at_once(node, &to, (&data, hints), caller, &mut || now);
    let Err(refused) = sent else { return true };
    host.engine.send_as(to, data, hints, refused);
    false
}

fn lend(pair: &mut Pair, tag: u64, len: usize) {
    assert!(send(pair, tag, segments(pattern(len)), Hints::default()), "{len} B");
}

#[test]
fn what_is_lent_goes_straight_to_who_waits_for_it_and_is_not_charged() {
    let (mut pair, asked) = pair();
    // Several times what a peer may be sent without having asked for it.
    for round in 0..200 {
        let len = 200_000 - round;
        let (into, place) = memory(200_000);
        let expects = round % 2 == 0;
        let request = match expects {
            true => {
                assert!(pair.hosts[1].engine.expect(FROM, Context(0), TAG, &into).is_some());
                None
            }
            false => Some(pair.hosts[1].engine.recv(FROM, Context(0), TAG, into)),
        };
        lend(&mut pair, 5, len);
        assert_eq!(pair.look_for(), Some(true));
        let envelope = match request {
            None => match pair.hosts[1].engine.met() {
                Met::Message(envelope) => envelope,
                other => panic!("{other:?}"),
            },
            Some(request) => {
                pair.hosts[1].turn(true);
                pair.result(1, request).expect("it has ended").expect("and well")
            }
        };
        assert_eq!((envelope.tag, envelope.len), (Tag(5), len as u64));
        assert!(bytes(place)[..len] == *pattern(len));
    }
    assert_eq!(asked.lock().unwrap().len(), 200);
    // Nor does anything of it count against what goes the usual way.
    pair.send(0, 0, 6, pattern(10_000));
    let (request, _) = pair.recv(1, FROM, 0, TagMatch::Any, 10_000);
    pair.settle();
    assert_eq!(pair.result(1, request).expect("it has ended").expect("and well").len, 10_000);
}

#[test]
fn what_nobody_waits_for_is_not_taken() {
    let posted: [(Source, TagMatch, usize, bool); 5] = [
        (FROM, TAG, 1000, true),
        (Source::Any, TAG, 1000, true),
        (FROM, TagMatch::Any, 2000, true),
        (FROM, TAG, 999, false),
        (FROM, TagMatch::Exact(Tag(6)), 1000, false),
    ];
    for (from, tag, room, takes) in posted {
        let (mut pair, _) = pair();
        let (first, _) = pair.recv(1, FROM, 3, TagMatch::Any, 1);
        let (request, place) = pair.recv(1, from, 0, tag, room);
        lend(&mut pair, 5, 1000);
        let found = pair.look_for();
        assert_eq!(found, takes.then_some(true), "{from:?} {tag:?} {room}");
        pair.hosts[1].turn(true);
        let result = pair.result(1, request);
        assert_eq!(result.is_some(), takes);
        assert_eq!(pair.hosts[1].engine.unexpected(), 0, "and nobody keeps it");
        assert_eq!(bytes(place)[..999] == pattern(1000)[..999], takes);
        assert!(pair.result(1, first).is_none());
    }
}

#[test]
fn a_message_that_comes_before_its_turn_is_not_taken() {
    let (mut pair, _) = pair();
    let (request, place) = pair.recv(1, FROM, 0, TAG, 1000);
    // It left before, and is not there yet.
    pair.send(0, 0, 5, pattern(50));
    pair.hosts[0].turn(true);
    pair.hosts[0].turn(true);
    lend(&mut pair, 5, 1000);
    assert_eq!(pair.look_for(), None);
    pair.settle();
    let envelope: Envelope = pair.result(1, request).expect("it has ended").expect("and well");
    assert!(envelope.len == 50 && bytes(place)[..50] == *pattern(50), "the first one");
}

#[test]
fn only_what_is_long_enough_and_has_nothing_before_it_is_lent() {
    for (len, lends) in [(99, false), (100, true), (200_000, true), (200_001, false)] {
        let (mut pair, asked) = pair();
        send(&mut pair, 5, segments(pattern(len)), Hints::default());
        assert_eq!(!asked.lock().unwrap().is_empty(), lends, "{len} B");
    }
    let (mut pair, asked) = pair();
    pair.send(0, 0, 1, pattern(10));
    assert!(!send(&mut pair, 5, segments(pattern(1000)), Hints::default()), "another one waits");
    pair.settle();
    let hints = Hints { synchronous: true, ..Hints::default() };
    assert!(!send(&mut pair, 5, segments(pattern(1000)), hints), "there is more to be told");
    assert!(asked.lock().unwrap().is_empty());
}
