//! Encrypted links: offers, refusals and keys of both sides.

use super::by_hand::{DATAGRAMS, Hand, fresh, hello, refused, sealed};
use crate::handshake::Ends;
use crate::opening::{Action, Id, Medium};
use nmad_engine::packet::PeerId;
use nmad_seal::exchange::Scalar;
use nmad_seal::{Keys, Policy};
use nmad_wire::{Cipher, Control, Hello, Offer, Refusal, RefusalCode};

const CIPHER: Cipher = Cipher::ChaCha20Poly1305;
const SECRET: [u8; 32] = super::by_hand::SECRET;
const MEDIA: [Medium; 2] = [Medium::Connections, DATAGRAMS];

/// Returns the policy of a side of a simulated world, and whether its peers count as far. Depending on the
/// seed no link is encrypted, or some sides encrypt and the others accept that.
pub(super) fn policy(seed: u64, side: usize) -> (Policy, bool) {
    match (seed % 3, (seed / 3 + side as u64) % 3) {
        (0, _) => (Policy::Off, true),
        (1, 0) => (Policy::Auto, false),
        (1, _) => (Policy::Auto, true),
        (_, 0) => (Policy::Auto, false),
        _ => (Policy::On, false),
    }
}

fn offer(scalar: &Scalar) -> Option<Offer> {
    Some(Offer { cipher: CIPHER, key: scalar.public() })
}

/// Returns a hello with the public key of this scalar.
fn keyed(from: u32, scalar: &Scalar) -> Hello {
    sealed(Hello { offer: offer(scalar), ..hello(from) })
}

fn failed(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        Action::Failed { why, .. } => Some(&**why),
        _ => None,
    })
}

/// Returns the answer of an attempt's peer: the data that both sides share, the peer's keys, and its welcome.
fn welcome(hello: Hello, scalar: &Scalar) -> (Ends, Keys, Control<'static>) {
    let ends = Ends { hello, rail: 0, nonce: [6; 32], offer: offer(scalar) };
    let theirs = hello.offer.expect("the hello has an offer");
    let keys = ends.keys(&SECRET, scalar, &theirs.key).expect("a valid key");
    let message = ends.welcome(keys.confirmation());
    (ends, keys, message)
}

#[test]
fn both_sides_have_the_same_keys_whoever_begins() {
    for medium in MEDIA {
        let scalar = Scalar::new([8; 32]);
        let mut hand = Hand::with(medium, Policy::On);
        let (id, hello) = hand.greet(0);
        let (ends, keys, message) = welcome(hello, &scalar);
        let actions = hand.handle(id, message, 9_000);
        let proof = Action::Send { id, message: ends.proof(keys.confirmation()), len: 9_000 };
        assert!(actions.contains(&proof), "{actions:?}");
        assert!(hand.machine.finished(id).is_some_and(|opened| opened.keys == Some(keys)));

        let mut hand = Hand::with(medium, Policy::Auto);
        let hello = keyed(2, &scalar);
        let (id, actions) = hand.accept_hello(hello);
        let [Action::Send { message: Control::Welcome(welcome), .. }] = &actions[..] else {
            panic!("no welcome: {actions:?}")
        };
        let ends = Ends::new(hello, welcome);
        let keys = ends.keys(&SECRET, &scalar, &fresh(9).scalar.public()).expect("a valid key");
        assert!(ends.welcomes(welcome, keys.confirmation()));
        let plain = ends.proof(&SECRET);
        let actions = hand.handle(id, plain, 9_000);
        assert!(!actions.iter().any(|action| matches!(action, Action::Finish { .. })), "{actions:?}");
        if medium == Medium::Connections {
            continue;
        }
        hand.handle(id, ends.proof(keys.confirmation()), 9_000);
        assert!(hand.machine.finished(id).is_some_and(|opened| opened.keys == Some(keys)));
    }
}

#[test]
fn a_side_that_encrypts_refuses_one_that_does_not_and_the_other_way_round() {
    let scalar = Scalar::new([8; 32]);
    for medium in MEDIA {
        for (policy, hello, without) in [(Policy::On, hello(2), 2), (Policy::Off, keyed(2, &scalar), 1)] {
            let (_, actions) = Hand::with(medium, policy).accept_hello(hello);
            let (code, text) = refused(&actions).expect("a refusal");
            assert_eq!(code, RefusalCode::Encryption);
            assert!(text.contains(&format!("rank {without} does not")), "{text}");
        }
        // Under `Auto` the other side decides.
        for hello in [hello(2), keyed(2, &scalar)] {
            let (_, actions) = Hand::with(medium, Policy::Auto).accept_hello(hello);
            assert_eq!(refused(&actions), None);
        }
    }
}

fn refusal() -> Control<'static> {
    Control::Refuse(Refusal { code: RefusalCode::Encryption, text: "rank 1 does not" })
}

#[test]
fn an_attempt_that_is_refused_for_want_of_encryption_begins_again_with_it_once() {
    for medium in MEDIA {
        let mut hand = Hand::with(medium, Policy::Auto);
        let (id, hello) = hand.greet(0);
        assert_eq!(hello.offer, None, "the peer is near");
        assert_eq!(hand.handle(id, refusal(), 0), [Action::Drop { id }]);
        let id = super::by_hand::reach(&hand.step(0)).expect("it begins again");
        hand.machine.reached(id, 9_000, hand.now_ms, fresh(4));
        let [Action::Send { message: Control::Hello(hello), .. }] = hand.actions()[..] else {
            panic!("no hello is sent")
        };
        assert!(hello.offer.is_some());
        let actions = hand.handle(id, refusal(), 0);
        assert!(failed(&actions).is_some_and(|why| why.contains("refused the link")), "{actions:?}");
        // A side that never encrypts ignores a refusal that asks for encryption.
        let mut hand = Hand::with(medium, Policy::Off);
        let (id, _) = hand.greet(0);
        assert!(failed(&hand.handle(id, refusal(), 0)).is_some());
    }
}

/// Sends a welcome to an attempt that encrypts; returns whether the link would open.
fn opens(medium: Medium, of: impl Fn(Hello) -> Control<'static>) -> bool {
    let mut hand = Hand::with(medium, Policy::On);
    let (id, hello): (Id, Hello) = hand.greet(0);
    let actions = hand.handle(id, of(hello), 9_000);
    actions.iter().any(|action| matches!(action, Action::Finish { .. }))
}

#[test]
fn a_welcome_that_is_not_quite_right_opens_nothing() {
    let scalar = Scalar::new([8; 32]);
    for medium in MEDIA {
        assert!(opens(medium, |hello| welcome(hello, &scalar).2));
        let plain = |hello| Ends { hello, rail: 0, nonce: [6; 32], offer: None };
        assert!(!opens(medium, |hello| plain(hello).welcome(&SECRET)), "encryption is left out");
        let unconfirmed = |hello| Ends { offer: offer(&scalar), ..plain(hello) }.welcome(&SECRET);
        assert!(!opens(medium, unconfirmed), "the secret alone is not enough");
        let void = |hello| {
            let offer = Some(Offer { cipher: CIPHER, key: [0; 32] });
            Ends { offer, ..plain(hello) }.welcome(&SECRET)
        };
        assert!(!opens(medium, void), "a key that leads to zero");
        for (what, change) in [
            ("key", (|offer: &mut Offer| offer.key[3] ^= 1) as fn(&mut Offer)),
            ("cipher", |offer| offer.cipher = Cipher::Aes256Gcm),
        ] {
            let changed = |hello| {
                let Control::Welcome(mut welcome) = welcome(hello, &scalar).2 else { unreachable!() };
                welcome.offer.as_mut().into_iter().for_each(change);
                Control::Welcome(welcome)
            };
            assert!(!opens(medium, changed), "another {what}");
        }
    }
}

#[test]
fn a_hello_with_a_void_or_changed_key_gets_no_welcome() {
    let scalar = Scalar::new([8; 32]);
    let void = sealed(Hello { offer: Some(Offer { cipher: CIPHER, key: [0; 32] }), ..hello(2) });
    let mut changed = keyed(2, &scalar);
    changed.offer.as_mut().expect("an offer").key[0] ^= 1;
    for medium in MEDIA {
        for hello in [void, changed, Hello { offer: None, ..changed }] {
            let mut hand = Hand::with(medium, Policy::On);
            let (_, actions) = hand.accept_hello(hello);
            assert!(!actions.iter().any(|action| matches!(action, Action::Send { .. })), "{actions:?}");
        }
    }
}

/// Each try has new keys, so a link that opens again has no key of the link before.
#[test]
fn each_attempt_has_a_key_of_its_own() {
    let mut hand = Hand::with(Medium::Connections, Policy::On);
    let (_, first) = hand.greet(0);
    hand.machine.forget(PeerId(0));
    hand.actions();
    hand.machine.connect(PeerId(0), hand.now_ms);
    let id = super::by_hand::reach(&hand.step(0)).expect("it begins");
    hand.machine.reached(id, 0, hand.now_ms, fresh(5));
    let [Action::Send { message: Control::Hello(second), .. }] = hand.actions()[..] else {
        panic!("no hello is sent")
    };
    assert_ne!(first.offer, second.offer);
}
