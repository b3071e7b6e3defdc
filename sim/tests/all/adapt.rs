//! Sampling while messages go, on networks that change during a run; from nominal figures see the golden
//! table.

use nmad_sim::golden::changes::{CHANGES, Phase};

/// The phases of the change that is shown in this place.
fn followed(place: usize) -> [Phase; 3] {
    let change = &CHANGES[place];
    let phases = change.phases();
    assert!(change.follows(&phases), "{}: {phases:#?}", change.what);
    phases
}

/// Whether what is has changed by at least this factor, and back.
fn changed(phases: &[Phase; 3], factor: f64) -> bool {
    let [before, changed, after] = phases.each_ref().map(|phase| phase.half_ns as f64);
    changed > factor * before && after < 1.1 * before
}

#[test]
fn a_rate_that_is_halved_and_restored_is_followed_both_ways() {
    let phases = followed(0);
    assert!(changed(&phases, 1.5), "{phases:#?}");
}

#[test]
fn messages_one_behind_the_other_tell_that_the_rate_has_changed() {
    let phases = followed(1);
    assert!(changed(&phases, 1.5), "{phases:#?}");
}

#[test]
fn a_measured_profile_that_is_wrong_is_replaced() {
    let phases = followed(2);
    assert!(changed(&phases, 1.5), "{phases:#?}");
}

#[test]
fn a_latency_that_grows_and_shrinks_is_followed_both_ways() {
    let phases = followed(3);
    assert!(changed(&phases, 1.3), "{phases:#?}");
}

#[test]
fn shares_follow_when_the_faster_of_two_rails_is_halved() {
    let [before, changed, after] = followed(4);
    let near = |share: f64, ideal: f64| (share - ideal).abs() < 0.05;
    assert!(near(before.share, 0.8), "4 of 5 Gbit/s: {before:?}");
    assert!(near(changed.share, 2.0 / 3.0), "2 of 3 Gbit/s: {changed:?}");
    assert!(near(after.share, 0.8), "4 of 5 Gbit/s again: {after:?}");
}

/// The profile's way from the network as it was sampled, and back: no threshold between two ways in packets
/// moves with the latency.
#[test]
fn a_sampled_profile_follows_a_latency_and_keeps_its_thresholds() {
    let phases = followed(5);
    assert!(changed(&phases, 1.3), "{phases:#?}");
    let [before, changed, after] = phases.each_ref().map(|phase| phase.in_place_min);
    assert!(before == changed && before == after, "{phases:#?}");
}

#[test]
fn shares_of_sampled_rails_follow_when_the_faster_one_is_halved() {
    let [before, changed, after] = followed(6);
    let near = |share: f64, ideal: f64| (share - ideal).abs() < 0.05;
    let all = [(&before, 0.8), (&changed, 2.0 / 3.0), (&after, 0.8)];
    assert!(all.iter().all(|(phase, ideal)| near(phase.share, *ideal)), "{before:?} {changed:?} {after:?}");
}
