use super::*;
use alloc::vec::Vec;

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1000)
}

const RTT: (Duration, Duration) = (Duration::from_us(300), Duration::from_us(100));

fn snapshot(first: Option<(u32, Instant)>, moved: u32) -> Snapshot {
    Snapshot { first, moved, round_trip: RTT, carries: Duration::ZERO }
}

/// Checks number 7, sent at time zero, every millisecond from `from` on for `ms`; the peer answers each
/// query by `answer`. Returns when the link was given up, if it was, and the number of queries.
fn watched(
    suspicion: &mut Suspicion,
    (from, ms): (u64, u64),
    moved: impl Fn(u64) -> u32,
    answer: impl Fn(u64) -> Option<(u32, u64, u32)>,
) -> (Option<u64>, u32) {
    let mut questions = 0;
    for now in from..from + ms {
        match suspicion.check(at(now * 1000), snapshot(Some((7, at(0))), moved(now))) {
            Action::Nothing => {}
            Action::Ask(question) => {
                questions += 1;
                answer(now).into_iter().for_each(|told| suspicion.answered(question, told, false));
            }
            Action::Leave(_) => return (Some(now), questions),
        }
    }
    (None, questions)
}

#[test]
fn a_silent_link_is_given_up_within_15_ms_if_its_peer_answers() {
    let (left, questions) = watched(&mut Suspicion::default(), (0, 100), |_| 0, |_| Some((7, 0, 3)));
    assert!(left.is_some_and(|ms| (8..15).contains(&ms)), "{left:?}");
    assert_eq!(questions, ANSWERS);
}

#[test]
fn a_silent_peer_is_never_suspected_and_rarely_queried() {
    let (left, questions) = watched(&mut Suspicion::default(), (0, 10_000), |_| 0, |_| None);
    assert_eq!(left, None);
    assert!(questions < 200, "{questions} questions in 10 s");
}

#[test]
fn a_stopped_peer_is_not_suspected_when_it_continues() {
    // The peer is stopped after the first answer, and its next answer reports that all has arrived.
    let mut suspicion = Suspicion::default();
    let (left, _) = watched(&mut suspicion, (0, 10_000), |_| 0, |ms| (ms < 6).then_some((7, 0, 3)));
    assert_eq!(left, None);
    suspicion.answered(suspicion.question, (8, 0, 3), false);
    assert_eq!(suspicion.check(at(10_001_000), snapshot(None, 0)), Action::Nothing);
}

#[test]
fn answers_to_old_questions_and_second_ones_do_not_count() {
    let mut suspicion = Suspicion::default();
    let (_, questions) = watched(&mut suspicion, (0, 20), |_| 0, |_| None);
    let (left, _) = watched(&mut suspicion, (20, 3), |_| 1, |_| None);
    (1..=questions).for_each(|question| suspicion.answered(question, (7, 0, 3), false));
    assert_eq!((left, suspicion.answers), (None, 0));
    assert!(matches!(suspicion.check(at(40_000), snapshot(Some((7, at(0))), 1)), Action::Ask(_)));
    (0..5).for_each(|_| suspicion.answered(suspicion.question, (7, 0, 3), false));
    assert_eq!(suspicion.answers, 1);
}

#[test]
fn a_slow_link_is_kept() {
    for far in [false, true] {
        let moved = |ms: u64| if far { 0 } else { (ms / 4) as u32 };
        let told = |ms: u64| Some((7, 0, if far { (ms / 4) as u32 } else { 3 }));
        let (left, _) = watched(&mut Suspicion::default(), (0, 10_000), moved, told);
        assert_eq!(left, None, "parts {} this side", if far { "reach the other side, not" } else { "leave" });
    }
}

#[test]
fn a_long_path_gets_more_time_and_a_varying_one_a_little() {
    let suspicion = Suspicion { seen: Some((7, 0)), ..Suspicion::default() };
    let due = |usual, shortest| {
        let round_trip = (Duration::from_ms(usual), Duration::from_ms(shortest));
        let snapshot = Snapshot { round_trip, ..snapshot(Some((7, at(0))), 0) };
        suspicion.doubted_at(snapshot).as_ns() / 1_000_000
    };
    assert_eq!((due(1, 1), due(8, 1), due(80, 1), due(90, 50), due(900, 800)), (5, 8, 10, 100, 120));
}

#[test]
fn a_link_acknowledged_only_over_others_is_given_up() {
    let mut suspicion = Suspicion::default();
    let mut left = None;
    for ms in 0..200 {
        let first = 7 + ms as u32 / 10;
        match suspicion.check(at(ms * 1000), snapshot(Some((first, at(ms / 10 * 10_000))), 0)) {
            Action::Nothing => {}
            Action::Ask(question) => suspicion.answered(question, (first + 1, 0, 0), true),
            Action::Leave(_) => left = left.or(Some(ms)),
        }
    }
    assert!(left.is_some_and(|ms| ms < 60), "{left:?}");
}

/// Returns when the retries of a link that was given up at `from` begin within `ms`; each fails by its time
/// limit.
fn tries(suspicion: &mut Suspicion, from: u64, ms: u64) -> Vec<u64> {
    let mut begun = Vec::new();
    for now in from..from + ms {
        if suspicion.check_down(at(now * 1000)) == Try::Begin {
            begun.push(now - from);
        }
    }
    begun
}

#[test]
fn retry_pauses_grow_up_to_two_seconds() {
    let mut suspicion = Suspicion::default();
    suspicion.left(at(0), true, false);
    let begun = tries(&mut suspicion, 0, 20_000);
    assert_eq!(begun[..3], [100, 600, 1300], "{begun:?}");
    assert!(begun.windows(2).all(|pair| pair[1] - pair[0] <= 2000), "{begun:?}");
    suspicion.retry_now(at(20_000_000));
    suspicion.failed(at(20_000_000));
    assert!(suspicion.retry_at() <= at(20_500_000));
}

#[test]
fn an_unopened_link_is_retried_rarely_until_its_carrier_appears() {
    let mut suspicion = Suspicion::default();
    suspicion.left(at(0), false, false);
    assert_eq!(suspicion.retry_at(), at(5_000_000));
    suspicion.retry_now(at(1_000_000));
    assert_eq!(suspicion.check_down(at(1_000_000)), Try::Begin);
}

#[test]
fn a_down_link_is_retried_soon_when_it_is_needed() {
    let mut suspicion = Suspicion::default();
    suspicion.left(at(0), false, true);
    assert_eq!(suspicion.retry_at(), at(15_000_000));
    suspicion.retry_soon();
    assert_eq!((suspicion.check_down(at(99_000)), suspicion.retry_at()), (Try::Nothing, at(100_000)));
    assert_eq!(suspicion.check_down(at(100_000)), Try::Begin);
    suspicion.failed(at(200_000));
    suspicion.retry_soon();
    assert_eq!(suspicion.retry_at(), at(300_000));
}

#[test]
fn the_other_side_retries_later() {
    let (mut one, mut other) = (Suspicion::default(), Suspicion::default());
    one.left(at(0), true, false);
    other.left(at(0), true, true);
    assert!(other.retry_at() > one.retry_at());
}

#[test]
fn a_flapping_link_is_used_less_until_it_stays_up() {
    let (mut suspicion, mut now) = (Suspicion::default(), 0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        suspicion.left(at(now * 1000), true, false);
        let pause = suspicion.retry_at().since(at(now * 1000)).as_ns() / 1_000_000;
        pauses.push(pause);
        now += pause;
        assert_eq!(suspicion.check_down(at(now * 1000)), Try::Begin);
        assert_eq!(suspicion.back(at(now * 1000)).as_ns() / 1_000_000, pause);
        now += 500;
    }
    assert_eq!((pauses[0], pauses[1], pauses[4]), (100, 200, 1600), "{pauses:?}");
    assert!(pauses.iter().all(|ms| *ms <= 30_000) && pauses[11] == 30_000, "{pauses:?}");
    suspicion.left(at((now + 60_000) * 1000), true, false);
    let pause = suspicion.retry_at().since(at((now + 60_000) * 1000)).as_ns() / 1_000_000;
    assert_eq!(pause, 100, "six times ten seconds halve it to nothing");
}

/// Whether a link is given up that loses `lost` of 100 orders, each of `datagrams` datagrams.
fn is_left_at(lost: u32, datagrams: u32) -> bool {
    let mut suspicion = Suspicion::default();
    (1..=20).any(|round| suspicion.loses(round * (100 - lost), round * lost, datagrams).is_some())
}

#[test]
fn a_link_that_loses_a_third_is_given_up_and_a_better_one_kept() {
    assert!(is_left_at(30, 1) && is_left_at(60, 3));
    assert!(!is_left_at(10, 1) && !is_left_at(30, 3) && !is_left_at(60, 16));
    let mut suspicion = Suspicion::default();
    let bad_now_and_then = (1..=20).any(|round| suspicion.loses(100 * round, round / 2 * 80, 1).is_some());
    assert!(!bad_now_and_then, "a burst of losses is none that lasts");
}
