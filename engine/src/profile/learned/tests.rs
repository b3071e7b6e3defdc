//! Tests of learning, on rails given by formulas.

use super::*;

/// The nanoseconds that a rail takes for this method and length.
type Rail = fn(Way, u64) -> u64;

/// A rail of 1 GB/s with 2 us of latency, on which pieces in place cost 300 ns and save a copy.
fn rail(way: Way, len: u64) -> u64 {
    match way {
        Way::Copy => 2_000 + len + len / 4,
        Way::InPlace => 2_300 + len,
        Way::Body => 2_500 + len,
    }
}

/// Sends messages of these lengths by the methods that the learner requests, until it requests none.
fn learn(learned: &mut Learned, lens: &[u64], rail: Rail) -> u32 {
    (0..ENOUGH).for_each(|_| {
        learned.note_empty(4_000);
    });
    let mut messages = 0;
    for &len in lens {
        while let Some(way) = learned.next_method(len, (64 << 10, 0), true) {
            learned.attempt(Some(way), len);
            if learned.note(way, len, rail(way, len) + 2_000, 1.0) != Learnt::Nothing {
                learned.profile();
            }
            messages += 1;
        }
    }
    messages
}

fn near(a: u64, b: u64, part: f64) -> bool {
    (a as f64 / b as f64 - 1.0).abs() < part
}

#[test]
fn nominal_figures_converge_to_the_rail_and_thresholds_follow() {
    let mut learned = Learned::new(&Profile::nominal(10_000, 500_000_000), 16 << 10, false);
    assert_eq!(learned.profile(), None, "nothing is known yet");
    let lens: Vec<u64> = (3..=21).map(|bits| 1 << bits).collect();
    let messages = learn(&mut learned, &lens, rail);
    assert!(messages < 200, "{messages} messages");
    let profile = learned.profile().expect("enough is known");
    for len in lens {
        let eager = rail(Way::Copy, len).min(rail(Way::InPlace, len));
        let (ours, body) = (profile.eager().ns(len), profile.body().ns(len));
        assert!(len > 32 << 10 || near(ours, eager, 0.05), "{len} B: {ours} against {eager} ns");
        assert!(len < 2048 || near(body, rail(Way::Body, len), 0.1), "a body of {len} B: {body} ns");
    }
    // Equal at 1200 B; the points lie an octave apart.
    let thresholds = profile.thresholds().expect("they follow");
    assert!((900..2_048).contains(&thresholds.in_place_min), "{thresholds:?}");
}

#[test]
fn changes_of_the_network_are_learnt_and_a_late_receiver_ignored() {
    fn half(way: Way, len: u64) -> u64 {
        rail(way, 2 * len)
    }
    let len = 1 << 20;
    let mut learned = Learned::new(&Profile::nominal(2_000, 1_000_000_000), 16 << 10, false);
    learn(&mut learned, &[8, len], rail);
    let ns = |learned: &mut Learned| learned.profile().expect("known").body().ns(len);
    assert!(near(ns(&mut learned), rail(Way::Body, len), 0.05));
    let late = learned.note(Way::Body, len, 9 * rail(Way::Body, len), 1.0);
    assert_eq!(late, Learnt::Nothing);
    let slow: Vec<Learnt> =
        (0..5).map(|_| learned.note(Way::Body, len, half(Way::Body, len) + 2_000, 1.0)).collect();
    // The late answer counts as slow, too.
    assert!(slow[..3].iter().all(|learnt| *learnt == Learnt::Nothing), "{slow:?}");
    assert_eq!(slow[3], Learnt::Change);
    assert!(near(ns(&mut learned), half(Way::Body, len), 0.05));
    learned.restart();
    let fast = learned.note(Way::Body, len, rail(Way::Body, len) + 2_000, 1.0);
    assert_eq!(fast, Learnt::Change);
    assert!(near(ns(&mut learned), rail(Way::Body, len), 0.05));
}

#[test]
fn transfers_behind_others_give_the_rate_of_longer_ones() {
    let mut learned = Learned::new(&Profile::nominal(2_000, 4_000_000_000), 16 << 10, false);
    learn(&mut learned, &[8, 64 << 10], rail);
    let learnt: Vec<Learnt> = (0..6 * ENOUGH).map(|_| learned.note_behind(1 << 20, 1 << 20, 1.0)).collect();
    assert!(learnt.contains(&Learnt::News), "{learnt:?}");
    let profile = learned.profile().expect("known");
    assert!(near(profile.body().ns(16 << 20), 16 << 20, 0.05), "{} ns", profile.body().ns(16 << 20));
    assert!(near(profile.body().bandwidth(), 1_000_000_000, 0.05), "{} B/s", profile.body().bandwidth());
}

/// Returns the profile that a sampling pass makes of the rail.
fn sampled() -> Profile {
    let sample = |method, len: u64, ns| (method, exactly(len, ns));
    let samples = (0..22).map(|bits| 1 << bits).flat_map(|len| {
        let body = (len >= BODY_FROM).then(|| sample(Method::Rendezvous, len, rail(Way::Body, len) + 4_000));
        let short = len.min(1 << 16);
        let ways = [(Method::Copy, Way::Copy), (Method::InPlace, Way::InPlace)];
        let packets = ways.map(|(method, way)| Some(sample(method, short, rail(way, short))));
        packets.into_iter().chain([body]).flatten()
    });
    Profile::new(Provenance::default(), samples).expect("many sizes")
}

/// Returns the results of forty bodies of 1 MiB that take `ns` nanoseconds each, while the other rails are
/// slower by `common`.
fn checked(ns: impl Fn(u64) -> u64, common: f64) -> (Vec<Learnt>, Option<Refuted>) {
    let mut learned = Learned::new(&sampled(), 0, false);
    assert_eq!(learn(&mut learned, &[8, 1 << 20], rail), 0, "nothing is tried while it is trusted");
    let mut learnt = Vec::new();
    for turn in 0..40 {
        if learned.wants(Way::Body, 1 << 20) {
            learnt.push(learned.note(Way::Body, 1 << 20, ns(turn) + 2_000, common));
        }
    }
    (learnt, learned.refuted())
}

#[test]
fn a_wrong_measured_profile_is_refuted_and_a_right_one_is_not() {
    let of = |times: u64| rail(Way::Body, times << 20);
    assert_eq!(checked(|_| of(1), 1.0), (alloc::vec![Learnt::Nothing], None));
    let (learnt, refuted) = checked(|_| of(3), 1.0);
    let followed = learnt.iter().position(|learnt| *learnt == Learnt::Change);
    assert_eq!(followed, Some(14), "after fifteen");
    let Refuted { len, factor } = refuted.expect("three times as slow");
    assert!(len == Some(1 << 20) && (2.5..3.5).contains(&factor), "{len:?} {factor}");
}

#[test]
fn a_late_receiver_refutes_no_profile() {
    let late = |turn: u64| rail(Way::Body, 1 << 20) + (turn * 5 % 8 + 1) * 700_000;
    assert_eq!(checked(late, 1.0).1, None, "each is late by another time");
    assert_eq!(checked(|_| rail(Way::Body, 3 << 20), 2.8).1, None, "so are the other rails");
    assert_eq!(checked(|_| rail(Way::Body, 1 << 19), 1.0).1, None, "a shaper has saved something up");
}

/// After a pause, a shaper lets less than ten milliseconds of data pass at once.
#[test]
fn long_rows_of_data_that_are_faster_than_measured_refute_a_profile_and_short_ones_do_not() {
    let refuted = |mib: u64| {
        let mut learned = Learned::new(&sampled(), 0, false);
        (0..ENOUGH).for_each(|_| _ = learned.note_empty(4_000));
        for _ in 0..60 {
            learned.note_pause();
            (0..mib).for_each(|_| _ = learned.note_behind(1 << 20, 1 << 19, 1.0));
        }
        learned.refuted()
    };
    assert_eq!(refuted(8), None);
    let Refuted { len, factor } = refuted(32).expect("twice as fast");
    assert!(len.is_none() && (0.45..0.55).contains(&factor), "{len:?} {factor}");
}

#[test]
fn more_latency_shifts_all_methods_alike_and_goes_back() {
    let base = sampled();
    let mut learned = Learned::new(&base, 0, false);
    let mut answers = |ns: [u64; 5]| {
        learned.recheck_latency();
        let news = ns.map(|ns| learned.note_empty(ns)).contains(&Learnt::News);
        (news, learned.profile().expect("a profile"))
    };
    let thresholds = *base.thresholds().expect("it was measured");
    let (news, same) = answers([5_000, 4_100, 5_900, 4_700, 4_000]);
    assert!(!news && same.thresholds() == Some(&thresholds), "a quiet network scatters by as much");
    assert!(!answers([40_000, 9_000, 90_000, 15_000, 25_000]).0, "the receiver computes");
    let (news, later) = answers([8_000, 8_200, 8_100, 8_000, 8_300]);
    let grown = |way: &dyn Fn(&Profile) -> u64| way(&later) - way(&base);
    assert!(news && (1_900..=2_100).contains(&grown(&|profile| profile.eager().ns(8))));
    assert!((1_900..=2_100).contains(&grown(&|profile| profile.body().ns(1 << 20))));
    assert!((3_800..=4_200).contains(&grown(&Profile::handshake_ns)), "there and back");
    let now = later.thresholds().expect("they follow");
    assert_eq!(now.in_place_min, thresholds.in_place_min, "both ways have become slower");
    assert!(now.rendezvous_min >= thresholds.rendezvous_min, "{now:?} after {thresholds:?}");
    let (news, again) = answers([4_000; 5]);
    assert!(news && again.thresholds() == Some(&thresholds));
}
