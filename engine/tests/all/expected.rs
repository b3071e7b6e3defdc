//! Blocking receives without an entry in the tables, during which no other thread uses the engine.

use crate::common::{Pair, bytes, memory, pattern};
use nmad_engine::{Config, Context, Hints, Met, PeerId, RailId, Segments, Source, Tag, TagMatch};

const FROM: Source = Source::Peer(PeerId(0));
const TAG: TagMatch = TagMatch::Exact(Tag(5));

/// Two hosts whose link is open and that have exchanged their control frames.
fn connected_pair() -> Pair {
    connect(Pair::new(1, Config::default()))
}

fn connect(mut pair: Pair) -> Pair {
    pair.connect();
    pair
}

fn expect(pair: &mut Pair, into: &Segments) {
    assert_eq!(pair.hosts[1].engine.expect(FROM, Context(0), TAG, into), Some(PeerId(0)));
}

/// Checks that the expected message of this many bytes has arrived.
fn check_received(pair: &mut Pair, place: *const [u8], len: usize) {
    let Met::Message(envelope) = pair.hosts[1].engine.met() else { panic!("round {len}: not met") };
    assert_eq!((envelope.tag, envelope.len), (Tag(5), len as u64));
    assert!(bytes(place)[..len] == *pattern(len));
}

#[test]
fn the_expected_message_is_received_and_others_are_kept() {
    let mut pair = connected_pair();
    let (into, place) = memory(100);
    for round in 0..100 {
        expect(&mut pair, &into);
        assert_eq!(pair.hosts[1].engine.met(), Met::Not);
        pair.send(0, 0, 5, pattern(round));
        pair.settle();
        check_received(&mut pair, place, round);
        assert_eq!(pair.hosts[1].engine.met(), Met::Not, "told once");
    }
    expect(&mut pair, &into);
    pair.send(0, 0, 6, pattern(10));
    pair.send(0, 1, 5, pattern(11));
    pair.settle();
    assert_eq!(pair.hosts[1].engine.inspect().unexpected(), 2, "of another tag and another context");
    pair.hosts[1].engine.post_expected();
    let Met::Request(request) = pair.hosts[1].engine.met() else { panic!("not posted") };
    pair.send(0, 0, 5, pattern(12));
    pair.settle();
    let envelope = pair.result(1, request).expect("it has ended").expect("and well");
    assert_eq!(envelope.len, 12);
}

/// Long messages, and several in one packet, use the general path, which matches posted receives.
#[test]
fn messages_that_need_the_general_path_arrive() {
    for (lens, room) in [(&[100_000][..], 100_000), (&[50], 20), (&[1, 2, 3], 3), (&[0; 40], 0)] {
        let mut pair = connected_pair();
        let (into, place) = memory(room);
        expect(&mut pair, &into);
        for &len in lens {
            pair.send(0, 0, 5, pattern(len));
        }
        pair.settle();
        let len = lens[0].min(room);
        match pair.hosts[1].engine.met() {
            Met::Message(envelope) => assert_eq!(envelope.len, len as u64),
            Met::Request(request) => {
                let ended = pair.result(1, request).expect("it has ended");
                assert_eq!(ended.is_ok(), lens[0] <= room, "{ended:?}");
            }
            Met::Not => panic!("{lens:?} did not come"),
        }
        assert!(bytes(place)[..len] == pattern(lens[0])[..len]);
    }
}

#[test]
fn earlier_receives_match_first() {
    let mut pair = Pair::new(1, Config::default());
    let (into, _) = memory(8);
    let (request, _) = pair.recv(1, FROM, 0, TagMatch::Any, 8);
    assert!(pair.hosts[1].engine.expect(FROM, Context(0), TAG, &into).is_none(), "somebody waits");
    pair.send(0, 0, 5, pattern(8));
    pair.settle();
    assert!(pair.result(1, request).is_some());
    pair.send(0, 0, 5, pattern(8));
    pair.settle();
    assert!(pair.hosts[1].engine.expect(FROM, Context(0), TAG, &into).is_none(), "it is here already");
    for (from, tag) in [(Source::Any, TAG), (FROM, TagMatch::Any), (Source::Peer(PeerId(7)), TAG)] {
        let mut pair = Pair::new(1, Config::default());
        let expected = pair.hosts[1].engine.expect(from, Context(0), tag, &into);
        assert!(expected.is_none(), "{from:?} {tag:?}");
    }
}

/// Sends as a host that does not poll.
fn leave(pair: &mut Pair, tag: u64, lens: &[usize]) {
    for &len in lens {
        pair.send(0, 0, tag, pattern(len));
    }
    (0..2).for_each(|_| pair.hosts[0].turn(true));
}

#[test]
fn polling_a_peer_takes_its_next_packet_whatever_it_contains() {
    let mut pair = connected_pair();
    let (into, place) = memory(50_000);
    for round in 0..200 {
        expect(&mut pair, &into);
        assert_eq!(pair.look_for(), Some(false));
        leave(&mut pair, 6, &[round]);
        assert_eq!((pair.look_for(), pair.hosts[1].engine.met()), (Some(true), Met::Not));
        assert_eq!(pair.hosts[1].engine.inspect().unexpected(), 1, "one of another tag");
        leave(&mut pair, 5, &[round]);
        assert_eq!(pair.look_for(), Some(true));
        check_received(&mut pair, place, round);
        let (other, _) = pair.recv(1, FROM, 0, TagMatch::Any, round);
        // The acknowledgement is sent in the next pass.
        pair.hosts[1].turn(true);
        assert!(pair.result(1, other).is_some_and(|ended| ended.is_ok()));
    }
    for lens in [&[1, 2, 3][..], &[50_000], &[60_000]] {
        let mut pair = connected_pair();
        expect(&mut pair, &into);
        leave(&mut pair, 5, lens);
        assert_eq!(pair.look_for(), Some(true), "and is taken");
        pair.settle();
        let is_whole = match pair.hosts[1].engine.met() {
            Met::Message(envelope) => envelope.len == lens[0] as u64,
            Met::Request(request) => pair.result(1, request).expect("it has ended").is_ok(),
            Met::Not => panic!("{lens:?}: neither met nor posted"),
        };
        assert_eq!(is_whole, lens[0] <= 50_000, "{lens:?}");
    }
}

/// The arrival time of an acknowledgement matters, and a poll of one peer does not read the clock.
#[test]
fn all_rails_are_polled_while_an_acknowledgement_is_awaited() {
    let mut pair = connected_pair();
    let (into, _) = memory(8);
    pair.send(1, 0, 1, pattern(8));
    pair.hosts[1].turn(true);
    expect(&mut pair, &into);
    leave(&mut pair, 5, &[8]);
    assert_eq!(pair.look_for(), None);
    pair.settle();
    assert!(matches!(pair.hosts[1].engine.met(), Met::Message(_)));
}

/// Of several rails, the one over which the last few packets arrived is polled.
#[test]
fn with_several_rails_the_last_used_one_is_polled() {
    let mut pair = connect(Pair::new(2, Config { strategy: "fifo".into(), ..Config::default() }));
    let (into, place) = memory(100);
    // Enough messages, independent of earlier ones.
    for _ in 0..5 {
        pair.recv(1, FROM, 0, TAG, 8);
        leave(&mut pair, 5, &[8]);
        pair.settle();
    }
    for (round, rail) in [0, 0, 1, 1, 1, 1, 1, 0].into_iter().enumerate() {
        expect(&mut pair, &into);
        let looks = matches!(round, 0..=2 | 6..=7);
        assert_eq!(pair.look_for(), if looks { Some(false) } else { None }, "{round}");
        let hints = Hints { rail: Some(RailId(rail)), ..Hints::default() };
        pair.send_with(0, 0, 5, pattern(round), hints);
        (0..2).for_each(|_| pair.hosts[0].turn(true));
        let comes_there = looks && !matches!(round, 2 | 7);
        assert_eq!(pair.look_for() == Some(true), comes_there, "{round}");
        pair.settle();
        check_received(&mut pair, place, round);
    }
}

#[test]
fn polling_a_peer_completes_a_posted_receive() {
    let mut pair = connected_pair();
    let (request, place) = pair.recv(1, FROM, 0, TAG, 100);
    let awaited = |pair: &Pair| pair.hosts[1].engine.inspect().awaited_from(request);
    assert_eq!((awaited(&pair), pair.look_for()), (Some(PeerId(0)), Some(false)));
    leave(&mut pair, 5, &[100]);
    assert_eq!(pair.look_for(), Some(true));
    assert_eq!(awaited(&pair), None, "it has ended");
    pair.hosts[1].turn(true);
    assert!(pair.result(1, request).is_some_and(|ended| ended.is_ok()) && *bytes(place) == *pattern(100));
    let (anybody, _) = pair.recv(1, Source::Any, 0, TAG, 100);
    assert_eq!(pair.hosts[1].engine.inspect().awaited_from(anybody), None);
}
