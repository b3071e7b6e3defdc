//! Tests that processes without the secret take neither the places nor the attempts of peers.

use super::by_hand::{DATAGRAMS, Hand, hello, is_welcomed, reach, refused, sealed};
use crate::opening::{Action, FailureKind, Id, Medium, Origin};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, RefusalCode};
use std::net::{IpAddr, Ipv4Addr};

fn at(host: u8, is_known: bool) -> Origin {
    let host = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    Origin { text: host.to_string(), host: Some(host), is_known }
}

/// Accepts silent strangers while there is room, at most this number; returns the accepted and the dropped
/// ones.
fn accept_silent(hand: &mut Hand, origin: &Origin, most: usize) -> (Vec<Id>, Vec<Id>) {
    let mut ids = Vec::new();
    while ids.len() < most && hand.machine.has_room(hand.now_ms) {
        ids.push(hand.machine.accepted(origin.clone(), hand.now_ms));
    }
    let gone = hand.actions().into_iter().filter_map(|action| match action {
        Action::Drop { id } => Some(id),
        _ => None,
    });
    (ids, gone.collect())
}

#[test]
fn a_hello_without_the_secret_is_sent_away_and_holds_no_attempt_back() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let forged = Hello { mac: [0; 32], ..hello(2) };
        let (id, actions) = hand.accept_hello(forged);
        match medium {
            Medium::Connections => {
                assert_eq!(refused(&actions).map(|(code, _)| code), Some(RefusalCode::Secret));
            }
            Medium::Datagrams(_) => assert_eq!(actions, [Action::Drop { id }], "not a word"),
        }
        assert!(hand.machine.is_idle(), "nothing is kept");
        hand.accept_hello(forged);
        hand.machine.connect(PeerId(2), hand.now_ms);
        assert!(reach(&hand.step(0)).is_some());
    }
}

#[test]
fn strangers_from_elsewhere_leave_room_for_peers_and_the_oldest_goes_first() {
    let mut hand = Hand::new(Medium::Connections);
    let (ids, gone) = accept_silent(&mut hand, &at(9, false), 1000);
    assert!(ids.len() == 1000 && gone == ids[..1000 - 64], "each new one takes the oldest one's place");
    let (ids, gone) = accept_silent(&mut hand, &at(1, true), 64);
    assert_eq!((ids.len(), gone.len()), (64, 0));
    let (peer, actions) = hand.accept_hello(hello(2));
    assert!(is_welcomed(&actions), "{actions:?}");
    // All places are taken; strangers from unknown addresses are dropped after a short while, the peer is
    // not.
    assert!(!hand.machine.has_room(hand.now_ms));
    hand.now_ms += 50;
    let (_, gone) = accept_silent(&mut hand, &at(1, true), 20);
    assert!(gone.len() >= 20 && !gone.contains(&peer), "{gone:?}");
}

#[test]
fn few_silent_strangers_of_a_host_have_more_time_than_many() {
    let mut hand = Hand::new(Medium::Connections);
    let few = hand.machine.accepted(at(1, true), hand.now_ms);
    hand.now_ms += 1;
    accept_silent(&mut hand, &at(2, true), 127);
    hand.now_ms += 200;
    let (_, gone) = accept_silent(&mut hand, &at(2, true), 127);
    assert!(gone.len() == 127 && !gone.contains(&few), "{gone:?}");
    hand.now_ms += 49;
    let (_, gone) = accept_silent(&mut hand, &at(2, true), 1);
    assert_eq!(gone, [few]);
}

#[test]
fn a_recorded_hello_takes_no_more_than_the_places_of_its_own_rank() {
    let mut hand = Hand::new(Medium::Connections);
    let (first, _) = hand.accept_hello(hello(2));
    hand.now_ms += 1;
    let of_two = |nonce| sealed(Hello { nonce: [nonce; 32], ..hello(2) });
    let (second, _) = hand.accept_hello(of_two(76));
    hand.now_ms += 1;
    let (other, _) = hand.accept_hello(hello(7));
    let (third, actions) = hand.accept_hello(of_two(77));
    assert!(actions.contains(&Action::Drop { id: first }), "{actions:?}");
    assert!(![second, other].into_iter().any(|id| actions.contains(&Action::Drop { id })), "{actions:?}");
    let (again, actions) = hand.accept_hello(of_two(77));
    assert_eq!(actions, [Action::Drop { id: again }], "not a word");
    for id in [second, other, third] {
        hand.fail(id, FailureKind::Ended);
    }
    hand.step(1000);
    assert!(hand.machine.is_idle());
    // Over datagrams a hello is repeated, until another one has replaced it.
    let mut hand = Hand::new(DATAGRAMS);
    hand.accept_hello(hello(2));
    let (id, _) = hand.accept_hello(of_two(76));
    let (again, actions) = hand.accept_hello(hello(2));
    assert_eq!(actions, [Action::Drop { id: again }], "not a word");
    assert!(is_welcomed(&hand.handle(id, Control::Hello(of_two(76)), 9_000)));
}
