//! Tests of the policy with simulated applications; time, cores and the results of looks are numbers.

use super::*;

const MS: u64 = 1_000;

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// A policy that was told of some idle cores.
fn policy(setting: Progress, idle_cores: usize) -> Policy {
    let mut policy = Policy::new(at(0), setting, 1);
    policy.review(at(0), idle_cores, Account::default());
    policy
}

/// The application computes, and has a request in flight.
const COMPUTES: Sight = Sight {
    inside: false,
    sleeps: false,
    alone: true,
    needed: true,
    in_flight: true,
    serves: false,
    moved: false,
    asked: false,
};
const MOVED: Sight = Sight { moved: true, ..COMPUTES };
const INSIDE: Sight = Sight { inside: true, alone: false, ..COMPUTES };
const NOTHING: Sight = Sight { needed: false, in_flight: false, ..COMPUTES };

#[test]
fn beside_computing_an_idle_core_watches_and_polls_while_messages_move() {
    let mut policy = policy(Progress::Idle, 1);
    let first = Sight { alone: false, ..COMPUTES };
    assert_eq!(policy.next(at(10), first), Step::Peek(SHORT), "the call may have ended just now");
    assert_eq!(policy.next(at(110), COMPUTES), Step::Watch(PERIOD));
    assert_eq!(policy.next(at(200), MOVED), Step::Poll);
    assert_eq!(policy.next(at(240), COMPUTES), Step::Poll);
    assert_eq!(
        policy.next(at(250), COMPUTES),
        Step::Watch(PERIOD),
        "nothing has moved for as long as a wakeup"
    );
}

#[test]
fn a_rail_with_spurious_wakeups_is_watched_with_pauses() {
    let mut policy = policy(Progress::Idle, 1);
    assert_eq!(policy.next(at(100), COMPUTES), Step::Watch(PERIOD));
    assert_eq!(policy.next(at(101), COMPUTES), Step::Peek(SHORT));
    assert_eq!(policy.next(at(201), COMPUTES), Step::Watch(PERIOD));
    assert_eq!(policy.next(at(210), MOVED), Step::Poll);
    assert_eq!(policy.next(at(260), COMPUTES), Step::Watch(PERIOD), "it did not wake in vain");
}

#[test]
fn without_an_idle_core_the_pump_is_turned_once_in_a_period() {
    for (idle, ranks_per_core, period) in [(0, 1, PERIOD), (3, 5, Duration::from_ms(5)), (3, 128, LONGEST)] {
        let mut policy = Policy::new(at(0), Progress::Idle, ranks_per_core);
        policy.review(at(0), idle, Account::default());
        for sight in [COMPUTES, MOVED, INSIDE] {
            assert_eq!(policy.next(at(10), sight), Step::Tick(period));
        }
        let serves = Sight { serves: true, ..COMPUTES };
        assert_eq!(policy.next(at(20), serves), Step::Watch(period), "peers that are served wake it");
    }
}

#[test]
fn while_only_a_service_needs_the_helper_it_listens() {
    let serves = Sight { in_flight: false, serves: true, ..COMPUTES };
    for (idle, nap) in [(0, Step::Tick(PERIOD)), (1, Step::Peek(SHORT))] {
        let mut policy = policy(Progress::Idle, idle);
        assert_eq!(policy.next(at(10), Sight { alone: false, ..serves }), nap);
        assert_eq!(policy.next(at(1_010), serves), Step::Listen);
        assert_eq!(policy.next(at(1_011), serves), nap, "the rails woke it without any event");
        assert_eq!(policy.next(at(2_010), serves), Step::Listen);
        assert_eq!(policy.next(at(3_000), Sight { in_flight: true, ..serves }), Step::Watch(PERIOD));
    }
}

#[test]
fn a_thread_in_a_call_is_checked_more_often_after_it_computed_beside_messages() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(policy.next(at(10), INSIDE), Step::Tick(PERIOD));
    let between_calls = Sight { moved: true, alone: false, ..COMPUTES };
    assert_eq!(policy.next(at(15), between_calls), Step::Peek(SHORT));
    assert_eq!(policy.next(at(18), INSIDE), Step::Tick(PERIOD), "it does not compute");
    assert_eq!(policy.next(at(20), MOVED), Step::Poll);
    assert_eq!(policy.next(at(30), INSIDE), Step::Peek(SHORT));
    assert_eq!(policy.next(at(20) + RECENT, INSIDE), Step::Tick(LONG_PERIOD), "it has computed long ago");
}

#[test]
fn an_application_that_communicates_for_long_is_checked_less_often() {
    let mut policy = policy(Progress::Auto, 0);
    let between_calls = Sight { moved: true, alone: false, ..COMPUTES };
    for (ms, sight, next_ms) in [(10, INSIDE, 1), (11, between_calls, 1), (14, INSIDE, 2), (90, INSIDE, 10)] {
        assert_eq!(policy.next(at(ms * MS), sight), Step::Tick(Duration::from_ms(next_ms)), "at {ms} ms");
    }
    assert_eq!(policy.next(at(100 * MS), COMPUTES), Step::Tick(PERIOD), "it computes");
    assert_eq!(policy.next(at(101 * MS), INSIDE), Step::Tick(PERIOD));
}

#[test]
fn the_helper_stands_by_on_an_idle_core_while_a_thread_sends_over_several_rails() {
    let asks = Sight { asked: true, ..INSIDE };
    let mut idle = policy(Progress::Auto, 1);
    assert_eq!(idle.next(at(10), asks), Step::StandBy(SHORT));
    assert_eq!(idle.next(at(110), INSIDE), Step::StandBy(SHORT), "more may come");
    let outside = Sight { in_flight: false, needed: false, ..COMPUTES };
    assert_eq!(idle.next(at(210), outside), Step::StandBy(SHORT), "the next call may begin at any time");
    assert_eq!(idle.next(at(310), COMPUTES), Step::StandBy(SHORT), "and it looks at the rails in between");
    assert_eq!(idle.next(at(320), MOVED), Step::Poll, "where messages move it stays");
    assert_eq!(idle.next(at(320) + RECENT, INSIDE), Step::Tick(PERIOD));
    let mut busy = Policy::new(at(0), Progress::Auto, 1);
    assert_eq!(busy.next(at(10), asks), Step::Tick(PERIOD), "no core is known to be idle");
    assert!(!busy.asks_review(at(10)), "what was before the process began to work says nothing");
    assert!(busy.asks_review(at(10) + REVIEW), "but now it matters");
    let mut shared = Policy::new(at(0), Progress::Auto, 2);
    let twice = Duration::from_ms(2);
    assert_eq!(shared.next(at(10), asks), Step::Tick(twice), "there are more ranks than cores");
    assert_eq!(policy(Progress::Off, 1).next(at(10), asks), Step::Rest);
    let mut own = Policy::new(at(0), Progress::Dedicated(vec![3]), 1);
    assert_eq!(own.next(at(10), asks), Step::StandBy(SHORT));
}

#[test]
fn a_thread_that_sleeps_in_a_call_is_left_to_the_rails() {
    let mut policy = policy(Progress::Auto, 1);
    let sleeps = Sight { sleeps: true, ..COMPUTES };
    assert_eq!(policy.next(at(10), sleeps), Step::Tick(PERIOD));
    let later = at(10) + PATIENCE;
    assert_eq!(policy.next(later, sleeps), Step::Tick(LONG_PERIOD));
    assert!(!policy.asks_review(later), "which cores are idle does not matter");
}

#[test]
fn with_nothing_in_flight_the_helper_rests() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(policy.next(at(10), COMPUTES), Step::Watch(PERIOD));
    assert_eq!(policy.next(at(20), NOTHING), Step::Tick(PERIOD));
    assert_eq!(policy.next(at(10) + PATIENCE, NOTHING), Step::Rest);
    let timer = Sight { needed: true, ..NOTHING };
    assert_eq!(policy.next(at(20) + PATIENCE, timer), Step::Tick(PERIOD), "a timer of the engine runs");
}

#[test]
fn a_helper_that_is_off_always_rests() {
    let mut policy = policy(Progress::Off, 4);
    for sight in [COMPUTES, MOVED, INSIDE, NOTHING] {
        assert_eq!(policy.next(at(10), sight), Step::Rest);
    }
}

#[test]
fn on_a_dedicated_core_the_helper_polls_without_measuring_cores() {
    let mut policy = Policy::new(at(0), Progress::Dedicated(vec![3]), 2);
    assert_eq!(policy.next(at(10), COMPUTES), Step::Poll);
    assert_eq!(policy.next(at(5_000), COMPUTES), Step::Poll);
    assert_eq!(policy.next(at(5_010), INSIDE), Step::Peek(SHORT_DEDICATED));
    assert!(!policy.asks_review(at(5_010)));
}

#[test]
fn a_new_setting_applies_at_once_and_resets_judgements_but_not_observations() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(policy.next(at(10), MOVED), Step::Poll);
    policy.set(Progress::Off);
    assert_eq!(policy.next(at(20), MOVED), Step::Rest);
    policy.set(Progress::Idle);
    assert_eq!(policy.next(at(30), MOVED), Step::Poll, "a core was idle a moment ago");
    let costly =
        Account { given: Duration::ZERO, spent: Duration::from_ms(9), delayed: Duration::from_ms(9) };
    policy.set(Progress::Auto);
    policy.review(at(40), 1, costly);
    assert!(policy.is_suspended(at(50)));
    policy.set(Progress::Auto);
    assert!(!policy.is_suspended(at(50)));
}

/// Runs reviews with the same cost and gain; returns the numbers of those at which the policy helped.
fn judged(policy: &mut Policy, reviews: u64, given: u64, delayed: u64) -> Vec<u64> {
    let mut helped = Vec::new();
    for review in 1..=reviews {
        let now = at(review * 100 * MS);
        let helps = policy.next(now, MOVED) == Step::Poll;
        let us = |us| if helps { Duration::from_us(us) } else { Duration::ZERO };
        policy.review(now, 1, Account { given: us(given), spent: us(20 * MS), delayed: us(delayed) });
        helped.extend(helps.then_some(review));
    }
    helped
}

#[test]
fn help_that_costs_more_than_it_gains_is_tried_at_growing_intervals() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(judged(&mut policy, 40, 5 * MS, 9 * MS), [1, 3, 7, 15, 31]);
    assert!(policy.is_suspended(at(4_000 * MS)));
}

#[test]
fn help_that_gains_more_than_it_costs_continues() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(judged(&mut policy, 20, 10 * MS, 9 * MS).len(), 20);
}

#[test]
fn delays_longer_than_the_helper_ran_are_not_its_cost() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(judged(&mut policy, 20, 20 * MS, 900 * MS).len(), 20, "others took the core");
}

#[test]
fn the_setting_idle_helps_without_judgement() {
    let mut policy = policy(Progress::Idle, 1);
    assert_eq!(judged(&mut policy, 20, 1, 20 * MS).len(), 20);
}

/// Cores come and go: the helper follows at the next review.
#[test]
fn helping_stops_without_an_idle_core_and_resumes_with_one() {
    let mut policy = policy(Progress::Auto, 1);
    assert_eq!(policy.next(at(MS), COMPUTES), Step::Watch(PERIOD));
    for (review, idle, step) in [(1, 0, Step::Tick(PERIOD)), (2, 2, Step::Watch(PERIOD))] {
        let now = at(review * 100 * MS);
        assert!(policy.asks_review(now));
        policy.review(now, idle, Account::default());
        assert!(!policy.asks_review(now));
        assert_eq!(policy.next(now, COMPUTES), step);
    }
}

/// A simulated application. It computes for `compute_us` beside a transfer of `turns` turns of the pump,
/// each `each_us` after the one before; its calls make the remaining turns, which take as long.
struct Simulated {
    compute_us: u64,
    turns: u64,
    each_us: u64,
}

/// Returns the microseconds until both are over, and the number of looks of the helper.
fn round(policy: &mut Policy, from: u64, app: &Simulated) -> (u64, u64) {
    let (mut now, mut step, mut moved_at, mut left, mut looks) =
        (from, Step::Tick(PERIOD), from, app.turns, 0);
    let over = from + app.compute_us;
    let mut first = true;
    while now < over {
        let due = if left > 0 { moved_at + app.each_us } else { u64::MAX };
        now = match step {
            Step::Poll => now + 1,
            Step::Watch(bound) => due.clamp(now + 1, now + bound.as_ns() / 1_000),
            Step::StandBy(nap) | Step::Peek(nap) | Step::Tick(nap) => now + nap.as_ns() / 1_000,
            Step::Listen => due.max(now + 1),
            Step::Rest => over,
        };
        if now >= over {
            break;
        }
        looks += 1;
        let moved = left > 0 && now >= due;
        if moved {
            (left, moved_at) = (left - 1, now);
        }
        step = policy.next(at(now), Sight { moved, alone: !std::mem::take(&mut first), ..COMPUTES });
    }
    policy.next(at(over), INSIDE);
    (app.compute_us + left * app.each_us, looks)
}

#[test]
fn a_transfer_of_many_turns_is_hidden_behind_computing() {
    let app = Simulated { compute_us: 2 * MS, turns: 16, each_us: 60 };
    let mut helped = policy(Progress::Auto, 1);
    let times: Vec<u64> = (0..10).map(|index| round(&mut helped, index * 10 * MS, &app).0).collect();
    assert_eq!(times[1..], [2 * MS; 9]);
    let alone = round(&mut policy(Progress::Auto, 0), 0, &app).0;
    assert!(alone > 2 * MS + 14 * app.each_us, "ticks alone move {alone}");
}

#[test]
fn a_helper_that_finds_nothing_looks_a_thousand_times_a_second_at_most() {
    let app = Simulated { compute_us: 100 * MS, turns: 0, each_us: 1 };
    let (time, looks) = round(&mut policy(Progress::Auto, 1), 0, &app);
    assert!(time == 100 * MS && looks <= 102, "{looks} looks");
}
