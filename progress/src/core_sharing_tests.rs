//! Tests of the decision in virtual time: the system is a function that says how long a yield takes.

use super::*;

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// A wait in virtual time.
#[derive(Debug, Default)]
struct Wait {
    now_us: u64,
    /// Time spent in yields, and their number.
    yielded_us: u64,
    yields: u32,
    /// Time after which the thread sleeps.
    sleeps_after_us: Option<u64>,
}

/// Waits for `span_us` from `from_us` on, or until the thread sleeps. A poll takes a microsecond, a yield as
/// long as `yield_us` says.
fn wait(sharing: &mut CoreSharing, kind: Sharing, from_us: u64, span_us: u64, yield_us: u64) -> Wait {
    let mut wait = Wait { now_us: from_us, ..Wait::default() };
    while wait.now_us < from_us + span_us {
        match sharing.stage(kind, at(wait.now_us), us(wait.now_us - from_us)) {
            Stage::Spin => wait.now_us += 1,
            Stage::Yield => {
                wait.now_us += yield_us.max(1);
                wait.yielded_us += yield_us;
                wait.yields += 1;
                sharing.yielded(at(wait.now_us), Duration::from_ns(yield_us * 1_000 + 300));
            }
            Stage::Sleep => {
                wait.sleeps_after_us = Some(wait.now_us - from_us);
                break;
            }
        }
    }
    sharing.happened(at(wait.now_us));
    sharing.begins();
    wait
}

#[test]
fn a_thread_with_a_core_of_its_own_polls_then_sleeps_and_never_yields() {
    let mut sharing = CoreSharing::default();
    for round in 0..10 {
        let waited = wait(&mut sharing, Sharing::Never, round * 10_000, 10_000, 4_000);
        assert_eq!((waited.yields, waited.sleeps_after_us), (0, Some(500)));
    }
}

#[test]
fn a_thread_that_sees_events_all_the_time_gives_way_now_and_then() {
    let yields = |yield_us: u64| {
        let (mut sharing, mut now_us, mut yields) = (CoreSharing::default(), 1_000, 0);
        while now_us < 101_000 {
            now_us += 5;
            sharing.happened(at(now_us));
            if sharing.gives_way(at(now_us)) {
                now_us += yield_us;
                yields += 1;
                sharing.yielded(at(now_us), us(yield_us));
            }
        }
        yields
    };
    let often = yields(3);
    assert!((1_700..=2_000).contains(&often), "{often} in 100 ms");
    let beside_others = yields(4_000);
    assert!(beside_others <= 8, "something else keeps the core: {beside_others}");
    let mut sharing = CoreSharing::default();
    sharing.slept(at(1_000));
    assert!(!sharing.gives_way(at(1_040)), "others had the core meanwhile");
}

#[test]
fn a_thread_that_was_taken_off_its_core_looks_once_and_sleeps() {
    let mut sharing = CoreSharing::default();
    for kind in [Sharing::Never, Sharing::Perhaps, Sharing::Always(2)] {
        assert_ne!(sharing.stage(kind, at(100), us(0)), Stage::Sleep);
        // The system gave the core to something else for 4 ms.
        assert_eq!(sharing.stage(kind, at(4_100), us(4_000)), Stage::Sleep);
        sharing.happened(at(4_100));
    }
}

/// Beside foreign work a thread that polls for long loses the core for a time slice. It then sleeps earlier,
/// and polls for long again when the work has ended.
#[test]
fn a_thread_that_loses_its_core_while_it_polls_sleeps_earlier_for_a_while() {
    let (mut sharing, mut now_us, mut lost) = (CoreSharing::default(), 0, 0);
    // A message each 300 us; a thread that has polled for 2 ms without a sleep loses its core for 4 ms.
    let mut polled_us = 0;
    while now_us < 2_000_000 {
        let waited = wait(&mut sharing, Sharing::Never, now_us, 300, 0);
        polled_us += waited.now_us - now_us;
        now_us = waited.now_us;
        if polled_us > 2_000 {
            (polled_us, lost) = (0, lost + 1);
            sharing.stage(Sharing::Never, at(now_us), us(100));
            now_us += 4_000;
            sharing.happened(at(now_us));
        }
        if let Some(after_us) = waited.sleeps_after_us {
            assert_eq!(after_us, SPIN_FOREIGN.as_ns() / 1_000);
            now_us += 300 - after_us;
            polled_us = 0;
        }
    }
    assert!(lost < 50, "{lost} slices of 4 ms of 2 s; without sleeps about 330");
    let later = wait(&mut sharing, Sharing::Never, now_us + 1_000_000, 10_000, 0);
    assert_eq!(later.sleeps_after_us, Some(500));
}

#[test]
fn ranks_that_perhaps_share_a_core_yield_now_and_then_while_that_is_cheap() {
    let mut sharing = CoreSharing::default();
    let short = wait(&mut sharing, Sharing::Perhaps, 0, 20, 0);
    assert_eq!(short.yields, 0, "a short wait does not");
    let long = wait(&mut sharing, Sharing::Perhaps, 1_000, 10_000, 0);
    assert_eq!((long.yields, long.sleeps_after_us), (24, Some(500)));
    let next = wait(&mut sharing, Sharing::Perhaps, 20_000, 50, 0);
    assert_eq!(next.yields, 2, "each wait begins anew");
}

/// Beside a process that computes, whichever ranks share the core: yields take one part in PART of the time,
/// and each wait without a yield ends in a sleep.
#[test]
fn beside_foreign_work_yields_become_rare_and_waits_end_in_sleep() {
    for (kind, spin_us) in [(Sharing::Perhaps, 500), (Sharing::Always(2), 1)] {
        let (mut sharing, mut now_us, mut yielded_us, mut asleep) = (CoreSharing::default(), 0, 0, 0);
        while now_us < 10_000_000 {
            let waited = wait(&mut sharing, kind, now_us, 20_000, 4_000);
            yielded_us += waited.yielded_us;
            if waited.yields == 0 {
                assert!(waited.sleeps_after_us.expect("it sleeps") <= spin_us, "{kind:?} {waited:?}");
                asleep += 1;
            }
            // The message comes when the thread sleeps.
            now_us = waited.now_us + 30;
        }
        // The pauses double until they are PART times as long as a yield.
        assert!(yielded_us <= now_us / PART + 8 * 4_000, "{kind:?}: {yielded_us} of {now_us} us");
        assert!(asleep > 1_000, "{kind:?}");
    }
}

#[test]
fn a_thread_yields_again_when_the_foreign_work_is_gone() {
    let (mut sharing, mut now_us) = (CoreSharing::default(), 0);
    while now_us < 2_000_000 {
        now_us = wait(&mut sharing, Sharing::Always(2), now_us, 20_000, 4_000).now_us + 30;
    }
    let early = (0..100).map(|round| wait(&mut sharing, Sharing::Always(2), now_us + 10 * round, 1_000, 3));
    assert_eq!(early.map(|wait| wait.yields).sum::<u32>(), 0);
    let late = wait(&mut sharing, Sharing::Always(2), now_us + (PART + 1) * 4_001, 1_000, 3);
    assert!(late.yields > 100 && late.sleeps_after_us.is_none(), "{late:?}");
}

/// Of ranks that share a core, one computes to the end of its time slice now and then.
#[test]
fn a_long_yield_among_many_changes_nothing() {
    let (mut sharing, mut now_us) = (CoreSharing::default(), 0);
    for round in 0..1_000 {
        let yield_us = if round % 10 == 9 { 4_000 } else { 3 };
        let waited = wait(&mut sharing, Sharing::Always(2), now_us, 60, yield_us);
        assert!(waited.yields > 0 && waited.sleeps_after_us.is_none(), "round {round}: {waited:?}");
        now_us = waited.now_us + 10;
    }
}

#[test]
fn a_thread_that_shares_a_core_stops_polling_until_messages_come_without_a_switch() {
    let mut sharing = CoreSharing::default();
    let stage = |sharing: &mut CoreSharing| sharing.stage(Sharing::Perhaps, at(1_000), us(10));
    for _ in 0..SURE {
        assert_eq!(stage(&mut sharing), Stage::Spin);
        sharing.yielded(at(1_000), us(50));
        sharing.happened(at(1));
    }
    assert_eq!(stage(&mut sharing), Stage::Yield);
    sharing.yielded(at(1_000), us(50));
    sharing.happened(at(1));
    (0..MOST).for_each(|_| sharing.happened(at(1)));
    assert_eq!(stage(&mut sharing), Stage::Yield, "what was there at once tells nothing");
    for _ in 0..MOST {
        sharing.yielded(at(1_000), Duration::from_ns(300));
        sharing.happened(at(1));
    }
    assert_eq!(stage(&mut sharing), Stage::Spin);
}

/// After a time slice of something else every message is there, so this says nothing of the peer's core.
#[test]
fn a_long_yield_does_not_count_as_a_shared_core() {
    let mut sharing = CoreSharing::default();
    for _ in 0..10 {
        sharing.yielded(at(0), us(4_000));
        sharing.happened(at(1));
    }
    assert!(sharing.switches == 0);
    assert_eq!(sharing.stage(Sharing::Perhaps, at(1), us(10)), Stage::Spin);
}

#[test]
fn an_oversubscribed_thread_polls_now_and_then_although_it_needs_switches() {
    let mut sharing = CoreSharing::default();
    let mut polled = 0;
    for _ in 0..10 * TRIAL {
        let stage = sharing.stage(Sharing::Always(2), at(1), Duration::from_ns(100));
        polled += usize::from(stage == Stage::Spin);
        sharing.yielded(at(1), us(50));
        sharing.happened(at(1));
    }
    assert!((10..15).contains(&polled), "{polled} of {}", 10 * TRIAL);
}

#[test]
fn yields_of_an_unshared_core_change_nothing() {
    let mut sharing = CoreSharing::default();
    for _ in 0..10 {
        sharing.yielded(at(0), us(1));
        sharing.happened(at(1));
    }
    assert_eq!(sharing.stage(Sharing::Perhaps, at(1), us(10)), Stage::Spin);
}
