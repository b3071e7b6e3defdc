//! Two ways to one NIC: a short latency or a high bandwidth. `auto` takes the better one at each size, and
//! never both for one message.

use nmad_sim::golden::card::Card;
use nmad_sim::golden::machines::E5420;
use nmad_sim::golden::networks::MX_10G;
use nmad_sim::golden::ping_pong::{Exchange, Stage};
use nmad_sim::golden::sampling::Bench;

/// As datagrams are: little to pay for each message, more for each byte.
static BRISK: Card =
    Card { name: "brisk", latency_ns: 1_000, bandwidth: 400 << 20, setup_ns: 2_000, ..MX_10G };
/// As a stream is.
static BROAD: Card = Card { name: "broad", latency_ns: 9_000, bandwidth: 1_100 << 20, ..MX_10G };

fn stage(cards: &[&'static Card], wires: &[usize]) -> Stage {
    let mut stage = Stage::new(E5420, cards, "auto");
    stage.wires = wires.to_vec();
    stage.config.eager_max = None;
    let profile =
        |card: &&'static Card| Some(Bench { machine: E5420, card, hand_off_ns: 0 }.profile(4 << 20));
    stage.profiles = cards.iter().map(profile).collect();
    stage
}

#[test]
fn each_size_goes_the_better_way_and_none_goes_both() {
    let both = stage(&[&BRISK, &BROAD], &[0, 0]);
    let (brisk, broad) = (stage(&[&BRISK], &[0]), stage(&[&BROAD], &[0]));
    for len in [8, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20] {
        let outcome = both.run(&Exchange::one(len));
        let alone = [brisk.half_ns(len), broad.half_ns(len)];
        let best = *alone.iter().min().unwrap();
        // Several rails are looked at, and what is sent is kept until it is acknowledged.
        let bound = best + best / 20 + 1_000;
        assert!(outcome.half_ns <= bound, "{len} B: {} ns, alone {alone:?}", outcome.half_ns);
        let ways = outcome.shares.iter().filter(|(bytes, _)| *bytes > 0).count();
        assert!(ways <= 1, "{len} B over {ways} ways: {:?}", outcome.shares);
    }
}

#[test]
fn a_wire_of_two_ways_is_one_rail_to_the_split() {
    let len = 4 << 20;
    let two = stage(&[&BROAD, &MX_10G], &[0, 1]).run(&Exchange::one(len));
    let three = stage(&[&BRISK, &BROAD, &MX_10G], &[0, 0, 2]).run(&Exchange::one(len));
    assert!(three.shares[0].0 < len as u64 / 100, "the worse way carries at most the short end: {three:?}");
    assert!(three.shares[1].0.abs_diff(two.shares[0].0) < len as u64 / 50, "{three:?}, without it {two:?}");
    assert!(three.half_ns < two.half_ns + two.half_ns / 20, "{three:?}, without it {two:?}");
}
