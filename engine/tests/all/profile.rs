//! Profiles: curves and their inverses, thresholds derived from samples, and text that is refused if
//! damaged.

use nmad_engine::profile::curve::Curve;
use nmad_engine::profile::doubt::Doubt;
use nmad_engine::profile::measured::{Profile, Provenance, TooFew};
use nmad_engine::profile::sample::{Method, Pair, Sample};
use proptest::collection::vec;
use proptest::prelude::*;

fn points() -> impl Strategy<Value = Vec<(u64, u64)>> {
    vec((1..1u64 << 24, 1..1u64 << 32), 1..40).prop_map(|mut points| {
        points.sort_unstable();
        points
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn more_bytes_take_longer_and_more_time_carries_more(
        points in points(),
        lens in vec(0..1u64 << 26, 2..20),
        times in vec(0..1u64 << 36, 2..20),
    ) {
        let curve = Curve::through(points).unwrap();
        let (mut lens, mut times) = (lens, times);
        lens.sort_unstable();
        times.sort_unstable();
        prop_assert!(lens.windows(2).all(|w| curve.ns(w[0]) <= curve.ns(w[1])));
        prop_assert!(times.windows(2).all(|w| curve.bytes(w[0]) <= curve.bytes(w[1])));
    }

    #[test]
    fn the_inverse_is_an_inverse(points in points(), len in 0..1u64 << 26) {
        let curve = Curve::through(points).unwrap();
        let ns = curve.ns(len);
        // Both round down: the bytes fit into the time, and one byte more would not.
        let fits = curve.bytes(ns);
        prop_assert!(curve.ns(fits) <= ns);
        prop_assert!(curve.ns(fits + 1) + 1 >= ns, "{len} B in {ns} ns, {fits} B in {}", curve.ns(fits));
    }

    #[test]
    fn extremes_overflow_nothing(points in points(), any: u64) {
        let curve = Curve::through(points).unwrap();
        prop_assert!(curve.ns(any) <= curve.ns(u64::MAX));
        prop_assert!(curve.bytes(any) <= curve.bytes(u64::MAX));
    }
}

fn sample(len: u64, ns: u64) -> Sample {
    Sample { len, ns, low_ns: ns - ns / 50, high_ns: ns + ns / 20, count: 30 }
}

/// Samples of a rail with a latency of 3 us and 1 GB/s: copies at 4 GB/s, an iovec costs 200 ns.
fn samples() -> Vec<(Method, Sample)> {
    let mut samples = Vec::new();
    for len in (0..17).map(|k| 1u64 << k) {
        samples.push((Method::Copy, sample(len, 3_000 + len + len / 4)));
        samples.push((Method::InPlace, sample(len, 3_200 + len)));
        samples.push((Method::Pair, sample(len, 4_000 + 2 * len)));
        samples.push((Method::Aggregate, sample(len, 3_000 + 2 * len + len / 4)));
        samples.push((Method::Memcpy, sample(len, 10 + len / 4)));
    }
    for len in (12..23).map(|k| 1u64 << k) {
        samples.push((Method::Rendezvous, sample(len, 9_500 + len)));
    }
    samples.push((Method::HandOff(Pair::Cache), sample(0, 180)));
    samples.push((Method::HandOff(Pair::Across), sample(0, 450)));
    samples
}

fn provenance() -> Provenance {
    let text = |text: &str| String::from(text);
    Provenance {
        key: text("tcp r0"),
        when: text("now"),
        place: text("h0 h1"),
        how: text("a test"),
        doubt: None,
    }
}

#[test]
fn thresholds_are_where_the_methods_cross() {
    let profile = Profile::new(provenance(), samples()).unwrap();
    let thresholds = profile.thresholds().unwrap();
    let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 50;
    // 200 ns are a copy of 800 B; 1000 ns one of 4000 B.
    assert!(near(thresholds.in_place_min, 800), "{thresholds:?}");
    assert!(near(thresholds.aggregate_max, 4_000), "{thresholds:?}");
    // In place 3200 ns and a copy of len/4 on the other side, against 9500 ns.
    assert!(near(thresholds.rendezvous_min, 25_160), "{thresholds:?}");
    // The bytes of two copies of 400 B cost 200 ns.
    assert!(near(thresholds.block_min, 400), "{thresholds:?}");
    // A body starts after 3100 ns: what a rendezvous of 9500 ns takes beyond two short messages, and more.
    assert!(near(thresholds.chunk_min, 3_100), "{thresholds:?}");
    let hand_offs = Pair::ALL.map(|pair| profile.hand_off_ns(pair));
    assert_eq!(
        hand_offs,
        [Some(180), Some(450), Some(450), Some(450), None],
        "what was not measured is as what is further apart"
    );
    assert_eq!(profile.least_hand_off_ns(), Some(180));
}

/// If an adapter needs 6 us before the first byte of a large transfer, every body takes that time.
#[test]
fn the_start_of_a_large_transfer_is_not_part_of_the_handshake() {
    let sample = |len, ns| Sample { len, ns, low_ns: ns, high_ns: ns, count: 1 };
    let eager = [8, 4096].map(|len| (Method::Copy, sample(len, 1_000 + len)));
    let large = [64, 1 << 20].map(|len| (Method::Rendezvous, sample(len, 2 * 1_000 + 7_000 + len)));
    let profile = Profile::new(Provenance::default(), eager.into_iter().chain(large)).unwrap();
    assert!(profile.body().ns(64).abs_diff(7_064) < 50, "{}", profile.body().ns(64));
    assert!(profile.body().ns(1 << 20).abs_diff(7_000 + (1 << 20)) < 50);
}

#[test]
fn a_body_is_a_rendezvous_without_its_handshake() {
    let profile = Profile::new(provenance(), samples()).unwrap();
    assert!(profile.body().ns(1 << 20).abs_diff(9_500 - 2 * 3_000 + (1 << 20)) < 100);
    assert!(profile.rendezvous_ns(1 << 20).abs_diff(9_500 + (1 << 20)) < 500);
}

#[test]
fn a_message_that_took_longer_than_a_longer_one_contradicts_it() {
    assert_eq!(Profile::new(provenance(), samples()).unwrap().contradiction(), 0.0);
    // Methods are not compared with each other: an eager message may take longer than a rendezvous.
    let mut disturbed = samples();
    disturbed.extend([(Method::Copy, sample(64, 18_000)), (Method::Rendezvous, sample(4096, 13_000))]);
    let contradiction = Profile::new(provenance(), disturbed).unwrap().contradiction();
    // The next longer one is of 128 B or of less.
    assert!((4.0..5.0).contains(&contradiction), "{contradiction}");
}

#[test]
fn too_few_samples_are_no_profile() {
    assert_eq!(Profile::new(provenance(), []), Err(TooFew));
    assert_eq!(Profile::new(provenance(), [(Method::Memcpy, sample(8, 3))]), Err(TooFew));
    assert_eq!(Profile::new(provenance(), [(Method::Copy, sample(8, 3))]), Err(TooFew));
    let two = [8, 64].map(|len| (Method::Copy, sample(len, 1_000 + len)));
    let profile = Profile::new(provenance(), two).unwrap();
    assert_eq!(profile.body().ns(64), 1_064, "eager times stand in for what was not measured");
}

fn profile_with(learnt: &[&str]) -> Profile {
    let lines = learnt.iter().map(|line| String::from(*line)).collect();
    Profile::new(provenance(), samples()).unwrap().with_learnt(lines)
}

#[test]
fn text_is_read_as_it_was_written() {
    let profile = Profile::new(provenance(), samples()).unwrap();
    let text = profile.print();
    assert_eq!(Profile::parse(&text).as_ref(), Ok(&profile), "{text}");
    let doubt = Doubt { count: 2, degree: 350, why: "the machine was busy".into() };
    let provisional = profile.doubted(Some(doubt.clone()));
    assert_eq!(Profile::parse(&provisional.print()).as_ref(), Ok(&provisional), "{}", provisional.print());
    assert_eq!(provisional.provenance().doubt, Some(doubt));
    let learnt = profile_with(&["near bounce 8.1", "far\nkey x"]);
    let read = Profile::parse(&learnt.print()).unwrap();
    assert_eq!(
        (read.learnt(), &*read.provenance().key),
        (&["near bounce 8.1", "far key x"].map(String::from)[..], "tcp r0")
    );
    let strange = Provenance { key: "a\nkey b".into(), ..provenance() };
    let profile = Profile::new(strange, samples()).unwrap();
    assert_eq!(Profile::parse(&profile.print()).unwrap().provenance().key, "a key b");
}

#[test]
fn a_damaged_text_is_refused_wherever_it_is_cut_or_changed() {
    let text = Profile::new(provenance(), samples()).unwrap().print();
    for cut in 0..text.len() - 1 {
        assert!(Profile::parse(&text[..cut]).is_err(), "cut at {cut}: {}", &text[..cut]);
    }
    for at in 0..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(Profile::parse(&changed).is_err(), "changed at {at}: {changed}");
    }
}

#[test]
fn a_wrong_line_is_reported() {
    let refused = |line: &str, words: &str| {
        let body = format!("nmad profile 3\nkey k\n{line}\ncopy 8 9 9 9 1\ncopy 9 10 10 10 1\n");
        let text = format!("{body}check {:016x}\n", fnv(&body));
        let error = Profile::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with("line 3: ") && error.contains(words), "{line}: {error}");
    };
    refused("eager 8 3 3 3 1", "'eager' is no method");
    refused("copy 8 3 3 1", "is not bytes");
    refused("memcpy 8 3 4 5 1", "cannot have been measured");
    refused("memcpy 8 3 2 4 0", "cannot have been measured");
    refused("memcpy 99999999999999 3 2 4 1", "cannot have been measured");
    refused("rendezvous 1048576 9 8 10 1", "cannot have been measured");
    refused("rendezvous 8 -9 8 10 1", "is not bytes");
    refused("rendezvous 8 9 8 99999999999999999999 1", "is not bytes");
    refused("rendezvous 8 9 8 9999999999999999999 1", "cannot have been measured");
    for version in [2, 7] {
        let other = Profile::parse(&format!("nmad profile {version}\n")).unwrap_err().to_string();
        assert!(other.contains(&format!("version {version} of profiles; 3 is understood")), "{other}");
        assert!(other.contains("measure again with nmad sample"), "{other}");
    }
    assert!(Profile::parse("[settings]\n").unwrap_err().to_string().contains("not a profile"));
    let body = "nmad profile 3\nkey k\n";
    let empty = Profile::parse(&format!("{body}check {:016x}\n", fnv(body))).unwrap_err().to_string();
    assert!(empty.contains("at two sizes"), "{empty}");
}

fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
