//! Sampling while messages go, on networks that change during a run; from nominal figures see the golden
//! table.

use nmad_engine::{Method, Profile, Provenance, Sample};
use nmad_sim::golden::changes::{CHANGES, Phase};
use nmad_sim::golden::machines::TODAY;
use nmad_sim::golden::networks::{TCP_1G, TCP_4G};
use nmad_sim::golden::ping_pong::{Exchange, Stage};
use nmad_sim::golden::sampling::{Bench, LARGE_MAX};
use nmad_sim::outage::{How, Outage};
use std::sync::Arc;

/// Bytes of the messages of which shares are compared.
const LEN: usize = 4 << 20;
const SECOND: u64 = 1_000_000_000;

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

/// Two rails of 4 and 1 Gbit/s, and these profiles of them.
fn two_rails(profiles: [Option<Arc<Profile>>; 2]) -> Stage {
    let mut stage = Stage::shipped(TODAY, &[&TCP_4G, &TCP_1G], "auto");
    stage.config.adapts = true;
    stage.profiles = profiles.to_vec();
    stage
}

fn sampled() -> [Option<Arc<Profile>>; 2] {
    [&TCP_4G, &TCP_1G].map(|card| Some(Bench { machine: TODAY, card, hand_off_ns: 200 }.profile(LARGE_MAX)))
}

/// The profile with all times multiplied and divided.
fn scaled(profile: &Option<Arc<Profile>>, by: u64, over: u64) -> Option<Arc<Profile>> {
    let profile = profile.as_ref()?;
    let samples = Method::ALL.into_iter().flat_map(|method| {
        let scaled = move |sample: &Sample| {
            let [ns, low_ns, high_ns] =
                [sample.ns, sample.low_ns, sample.high_ns].map(|ns| (ns * by / over).max(1));
            (method, Sample { ns, low_ns, high_ns, ..*sample })
        };
        profile.samples(method).iter().map(scaled)
    });
    Some(Arc::new(Profile::new(Provenance::default(), samples).expect("as many sizes")))
}

/// What acknowledgements say when they travel behind the data of the other side spoils no split, whether or
/// not the rails were sampled. A message takes as long as by the sum of the rates, and its handshake.
#[test]
fn messages_in_both_directions_at_once_use_all_of_both_rails() {
    for (profiles, what) in [(sampled(), "sampled"), ([None, None], "nominal")] {
        for (len, count) in [(1 << 20, 120), (LEN, 120), (4 * LEN, 40)] {
            let took = two_rails(profiles.clone()).both_ways(len, count);
            let later = &took[count / 4..];
            let mean_ns = later.iter().sum::<u64>() as f64 / later.len() as f64;
            let slower = mean_ns / (len as f64 / 0.625);
            assert!(slower < 1.12, "{what}, {len} B: {slower:.3} times the time by the rates");
        }
    }
}

/// Each second has a share of its own that is right, and a split that is wrong costs up to a quarter.
#[test]
fn a_rate_that_changes_each_second_is_followed_each_second() {
    const SECONDS: u64 = 6;
    for profiles in [sampled(), [None, None]] {
        let mut stage = two_rails(profiles);
        let outage = |second: u64| Outage {
            fabric: 0,
            a: 0,
            b: 1,
            from: second * SECOND,
            until: (second + 1) * SECOND,
            how: How::Narrow(2),
        };
        stage.outages = (0..SECONDS).filter(|second| second % 2 == 1).map(outage).collect();
        let course = stage.course(&Exchange::one(LEN), 340);
        // By the rates: 4 MiB over 5 and over 3 Gbit/s.
        let ideal_ns = |second: u64| (LEN as f64 / if second % 2 == 1 { 0.375 } else { 0.625 }) as u64;
        let rounds = course.begins.iter().zip(&course.halves);
        let mut seen = [0; SECONDS as usize];
        let mut wrong = seen;
        for (&begin, &half_ns) in rounds {
            let second = begin / SECOND;
            // A round within which the rate changes has no ideal.
            if second >= SECONDS || (begin + 2 * half_ns) / SECOND > second {
                continue;
            }
            seen[second as usize] += 1;
            wrong[second as usize] += u32::from(half_ns > ideal_ns(second) * 11 / 10);
        }
        assert!(course.begins.last() > Some(&((SECONDS - 1) * SECOND)), "too few rounds");
        let is_followed = |(&wrong, &seen): (&u32, &u32)| seen > 30 && wrong < seen / 4;
        assert!(wrong.iter().zip(&seen).all(is_followed), "{wrong:?} of {seen:?}");
    }
}

/// A file that is whole, of this machine, and wrong.
#[test]
fn profiles_that_are_wrong_spoil_the_split_of_some_messages_only() {
    let [fast, slow] = sampled();
    let cases = [
        ("both are the fast one's", [fast.clone(), fast.clone()]),
        ("a hundred times the rate", [fast.clone(), scaled(&slow, 1, 100)]),
        ("the fast one at half of its rate", [scaled(&fast, 2, 1), slow.clone()]),
        ("the fast one at a quarter of its rate", [scaled(&fast, 4, 1), slow.clone()]),
        ("the slow one at a third of its rate", [fast.clone(), scaled(&slow, 3, 1)]),
    ];
    for (what, profiles) in cases {
        let course = two_rails(profiles).course(&Exchange::one(LEN), 150);
        let ideal_ns = (LEN as f64 / 0.625) as u64;
        let wrong: Vec<usize> = (0..150).filter(|&at| course.halves[at] > ideal_ns * 11 / 10).collect();
        assert!(wrong.last() < Some(&100), "{what}: {wrong:?}");
    }
}
