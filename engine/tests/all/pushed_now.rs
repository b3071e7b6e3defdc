//! Large messages sent with one call of a rail, bypassing the window: completely, in part, or not at all.

use crate::net::{self, Net, exact, from, limits, pattern};
use nmad_engine::{Caller, Config, Error, Hints, Limits, Protocol, Refused, Sent, Submitted};
use proptest::collection::vec;
use proptest::prelude::*;

const KIB: usize = 1 << 10;

/// Two hosts whose rail returns these results for pushes at once, in turns.
fn net(at_once: &[Sent], config: Config, seed: u64) -> Net {
    let mut net = Net::new(2, &[Limits { push: u64::MAX, ..limits() }], &config, seed);
    net.wires().at_once = at_once.iter().copied().collect();
    // The link is up, and the sender knows its credit.
    let first = net.recv(1, from(0), 99, exact(0), 1);
    net.send(0, 1, 99, 0, &[1]);
    net.settle();
    assert!(net.got(1, first, &[1]));
    net.carried();
    net
}

fn now(net: &mut Net, tag: u64, data: &[u8]) -> Result<Submitted, Option<Refused>> {
    now_with(net, tag, data, Hints::default())
}

/// Sends as a waiting caller that has polled for credit.
fn now_with(net: &mut Net, tag: u64, data: &[u8], hints: Hints) -> Result<Submitted, Option<Refused>> {
    net.send_at_once(0, (1, 0, tag), data, hints, Caller::Looked)
}

#[test]
fn a_push_ends_at_once_if_sent_completely_and_otherwise_when_reported() {
    for how in [Sent::Done, Sent::Posted] {
        let mut net = net(&[how], Config::default(), 1);
        let (early, late) = (pattern(200 * KIB, 1), pattern(70 * KIB, 2));
        let posted = net.recv(1, from(0), 0, exact(5), early.len());
        for (number, data) in [&early, &late].into_iter().enumerate() {
            match (how, now(&mut net, 5, data).expect("nothing is before it")) {
                (Sent::Done, Submitted::Ended(seq)) => assert_eq!(seq, number as u32),
                (Sent::Posted, Submitted::Request(request)) => {
                    assert_eq!(net.result(0, request), None);
                    net.settle();
                    assert!(matches!(net.result(0, request), Some(Ok(_))));
                }
                (how, other) => panic!("{how:?}: {other:?}"),
            }
        }
        net.settle();
        assert!(net.got(1, posted, &early), "{how:?}");
        let posted = net.recv(1, from(0), 0, exact(5), late.len());
        assert!(net.got(1, posted, &late), "{how:?}: nobody had asked for it");
        assert_eq!(net.pending(), 0);
        let said = net.said(0);
        let pushed = said.iter().filter(|(_, text)| text.contains("pushed")).count();
        assert_eq!((pushed, said.len()), (2, 4), "a request and a chunk each: {said:?}");
    }
}

#[test]
fn a_refused_push_keeps_only_its_sequence_number() {
    let mut net = net(&[Sent::Retry, Sent::Done], Config::default(), 1);
    let (early, late) = (pattern(100 * KIB, 3), pattern(90 * KIB, 4));
    let pending = net.pending();
    let refused = now(&mut net, 5, &early).expect_err("the rail refuses").expect("it was asked");
    assert_eq!((refused.protocol(), net.pending()), (Protocol::Push, pending));
    assert!(net.carried().is_empty());
    net.send_as(0, (1, 0, 5), &early, Some(refused));
    net.settle();
    assert_eq!(now(&mut net, 5, &late).ok(), Some(Submitted::Ended(1)), "the second of its flow");
    let posted = [&early, &late].map(|data| net.recv(1, from(0), 0, exact(5), data.len()));
    net.settle();
    assert!(net.got(1, posted[0], &early) && net.got(1, posted[1], &late));
    assert_eq!(net.pending(), 0);
}

/// Whether no rail was asked.
fn usual(sent: Result<Submitted, Option<Refused>>) -> bool {
    matches!(sent, Err(None))
}

#[test]
fn a_push_uses_the_window_if_it_needs_a_decision_or_a_copy() {
    let some = Hints::default();
    let hints = [
        Hints { synchronous: true, ..some },
        Hints { unordered: true, ..some },
        Hints { rail: Some(nmad_engine::RailId(0)), ..some },
    ];
    let config = || Config { chunk: 300 << 10, ..Config::default() };
    for hints in hints {
        let mut net = net(&[Sent::Done], config(), 1);
        assert!(usual(now_with(&mut net, 5, &pattern(100 * KIB, 1), hints)), "{hints:?}");
    }
    let mut short = net(&[Sent::Done], config(), 1);
    assert!(now(&mut short, 5, &pattern(100, 1)).is_ok());
    let said = short.said(0);
    assert!(said.len() == 1 && !said[0].1.contains("pushed"), "it goes in a packet: {said:?}");
    let mut long = net(&[Sent::Done], config(), 1);
    assert!(usual(now(&mut long, 5, &pattern(400 * KIB, 1))), "longer than a chunk");
    let mut busy = net(&[Sent::Done], config(), 1);
    busy.send(0, 1, 0, 4, &[1]);
    assert!(usual(now(&mut busy, 5, &pattern(100 * KIB, 1))), "the window is not empty");
    let mut several = Net::new(2, &[Limits { push: u64::MAX, ..limits() }; 2], &config(), 1);
    several.wires().at_once = [Sent::Done].into();
    several.send(0, 1, 0, 4, &[1]);
    several.settle();
    assert!(usual(now(&mut several, 5, &pattern(100 * KIB, 1))), "two rails");
}

#[test]
fn unexpected_pushes_stay_within_the_credit_and_new_credit_is_polled_for() {
    let mut net = net(&[Sent::Done], Config { credit: 1 << 20, ..Config::default() }, 1);
    let (data, to) = (pattern(100 * KIB, 4), nmad_engine::PeerId(1));
    assert!(!net.hosts[0].engine.inspect().needs_credit(to, 100), "a short one is none that is pushed");
    let mut went = 0;
    while now(&mut net, went, &data).is_ok() {
        went += 1;
        let needs = net.hosts[0].engine.inspect().needs_credit(to, data.len() as u64);
        assert_eq!(needs, went >= 3, "four more are to be no more than half of what is left: {went}");
    }
    assert!((5..=9).contains(&went), "{went} messages of 100 KiB with 1 MiB of credit");
    let posted: Vec<_> = (0..went).map(|tag| net.recv(1, from(0), 0, exact(tag), data.len())).collect();
    net.settle();
    assert!(posted.into_iter().all(|recv| net.got(1, recv, &data)));
    assert!(now(&mut net, went, &data).is_ok(), "the receiver has told a new limit");
}

#[test]
fn a_push_fails_with_its_link() {
    let mut net = net(&[Sent::Posted], Config::default(), 1);
    let Ok(Submitted::Request(request)) = now(&mut net, 5, &pattern(100 * KIB, 5)) else {
        panic!("the rail takes a part")
    };
    net.kill(0, 0, 1);
    net.settle();
    assert_eq!(net.result(0, request), Some(Err(Error::PeerLost(nmad_engine::PeerId(1)))));
    assert!(usual(now(&mut net, 5, &pattern(100 * KIB, 5))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pushes_among_others_arrive_in_order(
        seed in any::<u64>(),
        credit in prop::sample::select(vec![1u64, 300 << 10, 2 << 20]),
        at_once in vec(prop::sample::select(vec![Sent::Done, Sent::Posted, Sent::Retry]), 1..5),
        messages in vec((prop::sample::select(vec![0, 9, 33, 90, 200, 700]), any::<bool>(), 0..3u8), 1..25),
    ) {
        let config = Config { credit, chunk: 400 << 10, ..Config::default() };
        let mut net = net(&at_once, config, seed);
        net.set_faults(net::rail::Faults { delay_ns: 3_000, ..Default::default() });
        let data = |index: usize, len: usize| pattern(len * KIB, index as u64);
        let (mut receives, mut unasked) = (Vec::new(), Vec::new());
        for (index, &(len, waits, turns)) in messages.iter().enumerate() {
            // All have one tag: their receives are posted in the order of the sends.
            match turns == 0 && unasked.is_empty() {
                true => receives.push(net.recv(1, from(0), 0, exact(5), len * KIB)),
                false => unasked.push(len),
            }
            let sent = if waits { now(&mut net, 5, &data(index, len)) } else { Err(None) };
            if let Err(refused) = sent {
                net.send_as(0, (1, 0, 5), &data(index, len), refused);
            }
            for turn in 0..usize::from(turns) {
                net.turn((index + turn) % 2, waits);
            }
        }
        receives.extend(unasked.into_iter().map(|len| net.recv(1, from(0), 0, exact(5), len * KIB)));
        net.settle();
        for (index, (recv, &(len, ..))) in receives.into_iter().zip(&messages).enumerate() {
            prop_assert!(net.got(1, recv, &data(index, len)), "message {} of {} KiB", index, len);
        }
        prop_assert_eq!(net.pending(), 0);
        prop_assert!(net.wires().own.is_empty());
    }
}
