use super::*;

/// Returns the profile of a rail of 1 GB/s whose points have two visits, plus a single visit `odd`.
fn profile(odd: (Method, u64, u64)) -> Profile {
    let reach = Reach { packet_max: 1 << 16, len_max: 1 << 20, ..Reach::default() };
    let mut sampler = Sampler::new(reach, Effort::QUICK);
    let mut visit = |method, len: u64, ns| {
        sampler.measured(&Probe { method, len, repetitions: 1, round_trips: 1 }, &mut [ns]);
    };
    for _ in 0..2 {
        (0..16).map(|bits| 1 << bits).for_each(|len| visit(Method::Copy, len, 3_000 + len));
        (10..21).map(|bits| 1 << bits).for_each(|len| visit(Method::Rendezvous, len, 9_000 + len));
    }
    visit(odd.0, odd.1, odd.2);
    sampler.stage = Stage::Settle;
    sampler.finish(Provenance::default()).expect("many sizes")
}

#[test]
fn a_point_whose_only_visit_was_disturbed_is_dropped() {
    let disturbed = profile((Method::Copy, 23, 221 * 3_000));
    assert!(disturbed.samples(Method::Copy).iter().all(|sample| sample.len != 23));
    assert!(disturbed.contradiction() < 0.1, "{}", disturbed.contradiction());
}

#[test]
fn an_unconfirmed_sample_has_a_wide_spread() {
    let profile = profile((Method::Copy, 23, 3_023));
    let spread = |len: u64| profile.samples(Method::Copy).iter().find(|s| s.len == len).map(Sample::spread);
    assert_eq!(spread(16), Some(0.0));
    assert!(spread(23).is_some_and(|spread| spread > 0.1), "{:?}", spread(23));
}

#[test]
fn a_disturbed_visit_of_the_longest_message_does_not_change_shorter_ones() {
    let profile = profile((Method::Rendezvous, 4 << 20, 9 * (4 << 20)));
    let found = profile.samples(Method::Rendezvous).iter().find(|sample| sample.len == 1 << 20);
    assert_eq!(found.map(|sample| sample.ns), Some(9_000 + (1 << 20)));
}
