//! Tests of each rule, event by event.

use crate::handshake::{self, Ends, Fresh};
use crate::opening::{Action, Content, Facts, FailureKind, Id, Linked, Local, Medium, Opening, Origin};
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use nmad_seal::exchange::Scalar;
use nmad_wire::{Control, Hello, Malformed, Proof, Refusal, RefusalCode};
use std::time::Duration;

pub(super) const SECRET: [u8; 32] = [5; 32];
pub(super) const BOUND_MS: u64 = 600;
const LENGTHS: &[usize] = &[1_400, 528];
pub(super) const DATAGRAMS: Medium = Medium::Datagrams(LENGTHS);

/// The rail numbers of the peer's addresses, and the link to it.
struct Known(Vec<u8>, Option<Linked>);

impl Facts for Known {
    fn remotes(&self, _: PeerId) -> Vec<u8> {
        self.0.clone()
    }

    fn linked(&self, _: PeerId) -> Option<Linked> {
        self.1
    }

    fn is_far(&self, _: PeerId) -> bool {
        false
    }

    fn no_address(&self) -> &'static str {
        "has no address"
    }

    fn no_answer(&self, _: PeerId) -> String {
        "did not answer".into()
    }
}

/// One side, driven by hand. Rank 1; its peers are rank 0, the lower, and rank 2, the higher.
pub(super) struct Hand {
    pub(super) machine: Opening,
    known: Known,
    pub(super) now_ms: u64,
}

impl Hand {
    pub(super) fn new(medium: Medium) -> Hand {
        Hand::with(medium, Policy::Off)
    }

    /// Creates one with this policy of encryption.
    pub(super) fn with(medium: Medium, encrypt: Policy) -> Hand {
        let bound = Duration::from_millis(BOUND_MS);
        let local = Local {
            name: "test".into(),
            rank: PeerId(1),
            rail: 3,
            secret: SECRET,
            bound,
            encrypt,
            within_host: false,
        };
        Hand { machine: Opening::new(local, medium), known: Known(vec![0], None), now_ms: 10_000 }
    }

    pub(super) fn step(&mut self, after_ms: u64) -> Vec<Action> {
        self.now_ms += after_ms;
        self.machine.step(self.now_ms, &self.known);
        self.actions()
    }

    pub(super) fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.machine.next_action()).collect()
    }

    pub(super) fn handle(&mut self, id: Id, message: Control<'_>, len: usize) -> Vec<Action> {
        let at = (self.now_ms, fresh(9));
        self.machine.handle_message(id, Content::Message(message), len, at, &self.known);
        self.actions()
    }

    pub(super) fn fail(&mut self, id: Id, kind: FailureKind) -> Vec<Action> {
        self.machine.failed(id, kind, format!("{kind:?}"), self.now_ms, &self.known);
        self.actions()
    }

    /// Requests a link and starts the attempt; returns its conversation.
    fn begin(&mut self, peer: u32) -> Id {
        self.machine.connect(PeerId(peer), self.now_ms);
        reach(&self.step(0)).expect("it begins")
    }

    /// Requests a link and continues until the hello was sent.
    pub(super) fn greet(&mut self, peer: u32) -> (Id, Hello) {
        let id = self.begin(peer);
        self.machine.reached(id, 9_000, self.now_ms, fresh(4));
        let [Action::Send { message: Control::Hello(hello), .. }] = self.actions()[..] else {
            panic!("no hello is sent")
        };
        (id, hello)
    }

    /// Accepts a stranger and handles its hello.
    pub(super) fn accept_hello(&mut self, hello: Hello) -> (Id, Vec<Action>) {
        let id = self.machine.accepted(somewhere(), self.now_ms);
        (id, self.handle(id, Control::Hello(hello), 9_000))
    }
}

/// Nonce and scalar from a constant byte, instead of random bytes.
pub(super) fn fresh(byte: u8) -> Fresh {
    Fresh { nonce: [byte; 32], scalar: Scalar::new([byte; 32]) }
}

pub(super) fn reach(actions: &[Action]) -> Option<Id> {
    actions.iter().find_map(|action| if let Action::Reach { id, .. } = action { Some(*id) } else { None })
}

pub(super) fn hello(from: u32) -> Hello {
    sealed(Hello { from, to: 1, rail: 0, nonce: [from as u8; 32], offer: None, mac: [0; 32] })
}

pub(super) fn sealed(hello: Hello) -> Hello {
    handshake::sealed(hello, &SECRET)
}

/// The host of a peer.
fn somewhere() -> Origin {
    Origin { text: "somewhere".into(), host: None, is_known: true }
}

/// The welcome of an attempt's peer.
fn welcome(hello: Hello) -> (Ends, Control<'static>) {
    let ends = Ends { hello, rail: 0, nonce: [6; 32], offer: None };
    (ends, ends.welcome(&SECRET))
}

/// The shared data of this side and a stranger that got a welcome.
fn answered(hello: Hello) -> Ends {
    Ends { hello, rail: 3, nonce: [9; 32], offer: None }
}

fn failed(actions: &[Action]) -> Option<&str> {
    actions
        .iter()
        .find_map(|action| if let Action::Failed { why, .. } = action { Some(&**why) } else { None })
}

pub(super) fn refused(actions: &[Action]) -> Option<(RefusalCode, &str)> {
    actions.iter().find_map(|action| match action {
        Action::Refuse { code, text, .. } => Some((*code, &**text)),
        _ => None,
    })
}

pub(super) fn is_welcomed(actions: &[Action]) -> bool {
    matches!(actions, [Action::Send { message: Control::Welcome(_), .. }, ..])
}

#[test]
fn an_attempt_opens_by_hello_welcome_and_proof() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (id, hello) = hand.greet(2);
        assert_eq!((hello.from, hello.to, hello.rail), (1, 2, 3));
        let (ends, welcome) = welcome(hello);
        let actions = hand.handle(id, welcome, 9_000);
        let proof = Action::Send { id, message: ends.proof(&SECRET), len: 9_000 };
        assert_eq!(actions, [proof, Action::Finish { id, is_attempt: true }]);
        let opened = hand.machine.finished(id).expect("it is open");
        assert_eq!((opened.peer, opened.remote, opened.is_attempt), (PeerId(2), 0, true));
        assert!(hand.machine.is_idle());
    }
}

#[test]
fn a_stranger_that_proves_itself_gets_a_link_once() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (id, actions) = hand.accept_hello(hello(2));
        assert!(is_welcomed(&actions), "{actions:?}");
        assert!(hand.machine.finished(id).is_none(), "not yet");
        let proof = answered(hello(2)).proof(&SECRET);
        assert_eq!(hand.handle(id, proof.clone(), 9_000), [Action::Finish { id, is_attempt: false }]);
        let opened = hand.machine.finished(id).expect("it is open");
        assert_eq!((opened.peer, opened.is_attempt), (PeerId(2), false));
        assert!(hand.machine.finished(id).is_none() && hand.handle(id, proof, 9_000).is_empty(), "once");
    }
}

#[test]
fn another_secret_is_refused_by_connections_and_not_heard_over_datagrams() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (id, hello_of_ours) = hand.greet(2);
        let other = Ends { hello: hello_of_ours, rail: 0, nonce: [6; 32], offer: None }.welcome(&[1; 32]);
        let actions = hand.handle(id, other, 9_000);
        let (stranger, _) = hand.accept_hello(hello(0));
        let answers = hand.handle(stranger, Control::Proof(Proof { mac: [0; 32] }), 9_000);
        if medium == DATAGRAMS {
            assert_eq!((actions, answers), (vec![], vec![]));
            continue;
        }
        assert_eq!(refused(&actions).map(|(code, _)| code), Some(RefusalCode::Secret));
        assert!(failed(&actions).is_some_and(|why| why.contains("another secret")), "{actions:?}");
        assert_eq!(refused(&answers).map(|(code, _)| code), Some(RefusalCode::Secret));
        assert!(hand.machine.is_idle());
    }
}

#[test]
fn a_proof_of_another_conversation_proves_nothing() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (id, _) = hand.accept_hello(hello(2));
        let replayed = Ends { nonce: [8; 32], ..answered(hello(2)) }.proof(&SECRET);
        assert!(!hand.handle(id, replayed, 9_000).contains(&Action::Finish { id, is_attempt: false }));
        assert!(hand.machine.finished(id).is_none());
    }
}

#[test]
fn of_two_crossing_hellos_that_of_the_lower_rank_is_answered() {
    // Our rank is the lower one.
    let mut hand = Hand::new(Medium::Connections);
    hand.greet(2);
    let (_, actions) = hand.accept_hello(hello(2));
    assert_eq!(refused(&actions).map(|(code, _)| code), Some(RefusalCode::Crossed));
    let mut hand = Hand::new(DATAGRAMS);
    hand.greet(2);
    let (id, actions) = hand.accept_hello(hello(2));
    assert_eq!(actions, [Action::Drop { id }], "no answer");
    // Our rank is the higher one.
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (ours, _) = hand.greet(0);
        let (id, actions) = hand.accept_hello(hello(0));
        assert!(is_welcomed(&actions), "{actions:?}");
        assert_eq!(hand.step(100), [], "no hello of ours meanwhile");
        hand.handle(id, answered(hello(0)).proof(&SECRET), 9_000);
        assert!(hand.machine.finished(id).is_some());
        assert_eq!(hand.actions(), [Action::Drop { id: ours }], "ours is given up");
        assert!(hand.machine.is_idle());
    }
}

#[test]
fn the_higher_rank_holds_its_proof_back_until_the_other_connection_has_ended() {
    let mut hand = Hand::new(Medium::Connections);
    let (ours, hello_of_ours) = hand.greet(0);
    let (id, _) = hand.accept_hello(hello(0));
    let (_, welcome) = welcome(hello_of_ours);
    assert_eq!(hand.handle(ours, welcome, 0), []);
    assert_eq!(hand.step(50), []);
    hand.fail(id, FailureKind::Ended);
    let actions = hand.step(0);
    assert!(actions.contains(&Action::Finish { id: ours, is_attempt: true }), "{actions:?}");
}

#[test]
fn over_datagrams_a_welcome_of_the_lower_rank_is_believed() {
    let mut hand = Hand::new(DATAGRAMS);
    let (ours, hello_of_ours) = hand.greet(0);
    let (id, _) = hand.accept_hello(hello(0));
    let (_, welcome) = welcome(hello_of_ours);
    let actions = hand.handle(ours, welcome, 9_000);
    assert!(actions.contains(&Action::Finish { id: ours, is_attempt: true }), "{actions:?}");
    assert!(hand.machine.finished(ours).is_some());
    assert_eq!(hand.actions(), [Action::Drop { id }], "the other hello was outdated");
}

#[test]
fn a_side_that_answered_a_hello_sends_none_meanwhile() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        let (id, _) = hand.accept_hello(hello(2));
        hand.machine.connect(PeerId(2), hand.now_ms);
        assert_eq!(hand.step(0), []);
        assert_eq!(hand.step(100), []);
        hand.handle(id, answered(hello(2)).proof(&SECRET), 9_000);
        assert!(hand.machine.finished(id).is_some() && hand.machine.is_idle());
    }
}

#[test]
fn a_dead_stranger_does_not_keep_an_attempt_from_its_bound() {
    let mut hand = Hand::new(DATAGRAMS);
    let bound = Duration::from_secs(5);
    let local = Local { bound, ..hand.machine.local().clone() };
    hand.machine = Opening::new(local, DATAGRAMS);
    let (id, _) = hand.accept_hello(hello(2));
    hand.machine.connect(PeerId(2), hand.now_ms);
    assert_eq!(hand.step(999), []);
    let actions = hand.step(1);
    assert!(actions.contains(&Action::Drop { id }) && reach(&actions).is_some(), "{actions:?}");
}

#[test]
fn while_a_link_is_unproved_a_hello_of_the_higher_rank_gets_no_answer() {
    for (peer, is_answered) in [(0, true), (2, false)] {
        let mut hand = Hand::new(DATAGRAMS);
        hand.known.1 = Some(Linked { remote: 0, is_unproved: true });
        let (_, actions) = hand.accept_hello(hello(peer));
        assert_eq!(is_welcomed(&actions), is_answered, "rank {peer}");
    }
}

#[test]
fn a_repeated_hello_is_answered_again_in_its_length_and_another_one_takes_its_place() {
    let mut hand = Hand::new(DATAGRAMS);
    let (id, _) = hand.accept_hello(hello(2));
    let again = hand.machine.accepted(somewhere(), hand.now_ms);
    let actions = hand.handle(again, Control::Hello(hello(2)), 1_400);
    let [Action::Send { id: to, len: 1_400, .. }, Action::Drop { id: gone }] = actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!((to, gone), (id, again));
    assert!(matches!(hand.handle(id, Control::Hello(hello(2)), 528)[..], [Action::Send { len: 528, .. }]));
    let (_, actions) = hand.accept_hello(sealed(Hello { nonce: [77; 32], ..hello(2) }));
    assert!(actions.contains(&Action::Drop { id }), "{actions:?}");
}

#[test]
fn hellos_become_shorter_and_then_go_to_the_next_address() {
    let mut hand = Hand::new(DATAGRAMS);
    hand.known.0 = vec![0, 1];
    let (first, _) = hand.greet(2);
    let mut lengths = vec![9_000];
    let second = loop {
        match hand.step(25)[..] {
            [Action::Send { len, .. }] => lengths.push(len),
            [Action::Drop { id }] => {
                assert_eq!(id, first);
                break hand.step(0);
            }
            ref other => panic!("{other:?}"),
        }
    };
    let expected: Vec<_> = [9_000, 1_400, 528].into_iter().flat_map(|len| [len; 4]).collect();
    assert_eq!(lengths, expected);
    assert!(matches!(second[..], [Action::Reach { address: 1, .. }]), "{second:?}");
}

#[test]
fn a_hello_too_long_for_the_path_is_shortened_at_once() {
    let mut hand = Hand::new(DATAGRAMS);
    let (id, _) = hand.greet(2);
    hand.machine.too_long(id, hand.now_ms);
    assert!(matches!(hand.step(0)[..], [Action::Send { len: 1_400, .. }]));
}

#[test]
fn an_answer_that_is_too_short_to_carry_anything_opens_no_link() {
    let mut hand = Hand::new(DATAGRAMS);
    let (id, hello) = hand.greet(2);
    let actions = hand.handle(id, welcome(hello).1, 527);
    assert!(failed(&actions).is_some_and(|why| why.contains("too short")), "{actions:?}");
}

#[test]
fn an_attempt_fails_after_the_bound() {
    for medium in [Medium::Connections, DATAGRAMS] {
        let mut hand = Hand::new(medium);
        hand.begin(2);
        assert_eq!(failed(&hand.step(BOUND_MS - 1)), None);
        assert!(failed(&hand.step(1)).is_some_and(|why| why.contains("did not answer")));
        assert!(hand.machine.is_idle());
    }
}

#[test]
fn a_connection_that_stands_is_waited_for_and_another_address_is_tried() {
    let mut hand = Hand::new(Medium::Connections);
    let (id, _) = hand.greet(2);
    assert_eq!(hand.step(100 * BOUND_MS), [], "the peer is there");
    hand.known.0 = vec![0, 1];
    assert_eq!(hand.step(0), [Action::Drop { id }]);
    assert!(matches!(hand.step(0)[..], [Action::Reach { address: 1, .. }]));
}

#[test]
fn addresses_share_the_bound_and_three_tries_of_each_are_enough() {
    let mut hand = Hand::new(Medium::Connections);
    hand.known.0 = vec![0, 1];
    let first = hand.begin(2);
    let actions = hand.step(BOUND_MS / 2);
    assert_eq!(actions, [Action::Drop { id: first }], "half of the time for the first of two");
    let mut hand = Hand::new(Medium::Connections);
    let mut id = hand.begin(2);
    for _ in 0..2 {
        assert_eq!(hand.fail(id, FailureKind::Unreachable), []);
        assert_eq!(hand.step(99), [], "a rest");
        id = reach(&hand.step(1)).expect("another try");
    }
    assert_eq!(failed(&hand.fail(id, FailureKind::Unreachable)), Some("Unreachable"));
}

#[test]
fn a_peer_that_is_busy_is_waited_for_and_one_that_ends_every_connection_is_not() {
    let mut hand = Hand::new(Medium::Connections);
    let mut id = hand.begin(2);
    for _ in 0..50 {
        assert_eq!(hand.fail(id, FailureKind::Busy), []);
        id = reach(&hand.step(100)).expect("another try");
    }
    let mut ended = 0;
    while failed(&hand.fail(id, FailureKind::Ended)).is_none() {
        ended += 1;
        id = reach(&hand.step(100)).expect("another try");
    }
    assert_eq!(ended, 19);
}

#[test]
fn refusals_and_other_versions_end_an_attempt_and_a_crossing_does_not() {
    let refusal = |code| Control::Refuse(Refusal { code, text: "so it is" });
    let mut hand = Hand::new(Medium::Connections);
    let (id, _) = hand.greet(2);
    assert_eq!(hand.handle(id, refusal(RefusalCode::Crossed), 0), [Action::Drop { id }]);
    assert_eq!(hand.step(499), []);
    assert!(reach(&hand.step(1)).is_some());
    let mut hand = Hand::new(DATAGRAMS);
    let (id, _) = hand.greet(2);
    assert_eq!(failed(&hand.handle(id, refusal(RefusalCode::Rank), 0)), Some("refused the link: so it is"));
    let (id, _) = hand.greet(2);
    hand.machine.handle_message(id, Content::OtherVersion(9), 0, (hand.now_ms, fresh(0)), &hand.known);
    assert!(failed(&hand.actions()).is_some_and(|why| why.starts_with("speaks version 9")));
}

#[test]
fn strangers_that_are_wrong_here_learn_why() {
    let wrong = [
        (sealed(Hello { to: 7, ..hello(2) }), None, "rank 1 was reached, not rank 7"),
        (hello(1), None, "rank 1 was reached"),
        (hello(2), Some(Linked { remote: 4, is_unproved: false }), "is linked to rail 4 already"),
    ];
    for medium in [Medium::Connections, DATAGRAMS] {
        for (hello, linked, text) in wrong {
            let mut hand = Hand::new(medium);
            hand.known.1 = linked;
            let (_, actions) = hand.accept_hello(hello);
            assert!(refused(&actions).is_some_and(|(_, why)| why.contains(text)), "{actions:?}");
        }
        let mut hand = Hand::new(medium);
        let foreign = [(Content::OtherVersion(9), "version 9"), (Content::Foreign(Malformed("odd")), "odd")];
        for (content, text) in foreign {
            let id = hand.machine.accepted(somewhere(), hand.now_ms);
            hand.machine.handle_message(id, content, 0, (hand.now_ms, fresh(0)), &hand.known);
            let actions = hand.actions();
            assert!(refused(&actions).is_some_and(|(_, why)| why.contains(text)), "{actions:?}");
        }
    }
    let mut hand = Hand::new(Medium::Connections);
    let id = hand.machine.accepted(somewhere(), hand.now_ms);
    let actions = hand.handle(id, answered(hello(2)).proof(&SECRET), 0);
    assert!(refused(&actions).is_some_and(|(_, why)| why.contains("out of turn")));
}

#[test]
fn strangers_expire_and_the_silent_ones_make_room() {
    let mut hand = Hand::new(Medium::Connections);
    let (welcomed, _) = hand.accept_hello(hello(2));
    while hand.machine.has_room(hand.now_ms) {
        hand.machine.accepted(somewhere(), hand.now_ms);
    }
    hand.now_ms += 49;
    assert!(!hand.machine.has_room(hand.now_ms), "the right one may be slow, too");
    hand.now_ms += 1;
    assert!(hand.machine.has_room(hand.now_ms));
    assert!(!hand.actions().contains(&Action::Drop { id: welcomed }));
    assert!(!hand.step(2 * BOUND_MS).contains(&Action::Drop { id: welcomed }), "its system tells its end");
    hand.fail(welcomed, FailureKind::Ended);
    hand.step(1000);
    assert!(hand.machine.is_idle(), "the last line of the log is written, too");
    let mut hand = Hand::new(DATAGRAMS);
    let (oldest, _) = hand.accept_hello(hello(100));
    let last = (101..=356).map(|rank| hand.accept_hello(hello(rank)).1).last().expect("many");
    assert!(last.contains(&Action::Drop { id: oldest }) && is_welcomed(&last[1..]), "{last:?}");
}

#[test]
fn a_withdrawn_request_opens_no_connection() {
    let mut hand = Hand::new(Medium::Connections);
    let (id, hello) = hand.greet(2);
    hand.handle(id, welcome(hello).1, 0);
    hand.machine.forget(PeerId(2));
    assert_eq!(hand.actions(), [Action::Drop { id }]);
    assert!(hand.machine.finished(id).is_none() && hand.machine.is_idle());
    hand.known.0.clear();
    hand.machine.connect(PeerId(2), hand.now_ms);
    assert_eq!(failed(&hand.step(0)), Some("has no address"));
}
