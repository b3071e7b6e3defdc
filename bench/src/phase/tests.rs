use super::outcome::{CallTimes, Phase, Setting, Turns};
use super::pattern::{Pattern, Step, Way};
use super::predict::predict;
use newmadeleine::engine::Forecast;

/// Rails of a byte in a nanosecond and 10 us.
fn setting(rails: usize, eager_max: u64) -> Setting {
    let rail = Forecast::nominal(10_000, 1_000_000_000, 1);
    Setting::new(vec![rail; rails], eager_max, 72 << 10)
}

fn phase(text: &str, setting: &Setting) -> Phase {
    predict(&text.parse::<Pattern>().unwrap(), setting).unwrap()
}

const OVERLAP: &str = "ranks 2
rank 0: recv 1; send 1 500KB; compute 2ms; wait; compute 1ms
rank 1: recv 0; send 0 50KB; compute 2ms; wait; compute 1ms  # the short one leaves early
";

/// Whether `value` is within a tenth of what is expected.
fn is_about(value: u64, expected: u64) -> bool {
    value.abs_diff(expected) * 10 <= expected
}

#[test]
fn a_message_that_goes_without_asking_costs_its_copy_or_until_rails_have_its_packets() {
    let phase = phase(OVERLAP, &Setting { swallows: 1 << 20, ..setting(2, 1 << 20) });
    // Rails carry 500 KB in 250 us, but the sockets have the last packets of 72 KiB before that. 50 KB are
    // copied in 12.5 us. The messages have arrived by the time that they are waited for.
    assert!(is_about(phase.ranks[0].communication_ns, 250_000 + 18_000 - 72_000), "{phase:?}");
    assert!(is_about(phase.ranks[1].communication_ns, 12_500 + 125_000), "{phase:?}");
    assert_eq!(phase.ranks.iter().map(|rank| rank.asked).sum::<u64>(), 0);
    assert!(is_about(phase.duration_ns(), 3_140_000), "{phase:?}");
}

#[test]
fn a_send_over_several_rails_waits_for_a_receiver_that_computes() {
    let phase = phase(OVERLAP, &setting(2, 1_000));
    // Rank 1 computes when rank 0's 500 KB are there, and says nothing of them. Its own 50 KB wait until rank
    // 0 answers behind those.
    let [long, short] = [&phase.ranks[0], &phase.ranks[1]];
    assert!(long.communication_ns > 2_000_000 && short.communication_ns < 300_000, "{phase:?}");
    assert!(phase.imbalance() > 1.7, "{phase:?}");
    // One rail has it when it has left.
    let one = predict(&OVERLAP.parse().unwrap(), &setting(1, 1_000)).unwrap();
    assert!(one.ranks[0].communication_ns < 700_000, "{one:?}");
}

#[test]
fn a_blocking_send_ends_with_a_copy_once_its_rails_have_all_of_it() {
    let calls = CallTimes { keep_ps: 100, ..CallTimes::default() };
    let phase = phase(OVERLAP, &Setting { calls, swallows: 1 << 20, ..setting(2, 1_000) });
    // The sockets take 500 KB as soon as the receiver has answered, and 100 ps are taken for each byte.
    let [long, short] = [&phase.ranks[0], &phase.ranks[1]];
    assert!(is_about(long.communication_ns, 20_000 + 50_000), "{phase:?}");
    assert!(short.communication_ns < 300_000, "{phase:?}");
}

#[test]
fn a_receiver_reads_what_has_come_while_it_computed() {
    let late = "ranks 2
rank 0: compute 100us; send 1 500KB
rank 1: recv 0; compute 3ms; wait
";
    let calls = CallTimes { body_ps: 1, read_ps: [0, 1_000], ..CallTimes::default() };
    let setting = Setting { swallows: 1 << 20, invites: true, ..setting(1, 1_000) };
    let free = phase(late, &setting);
    let read = phase(late, &Setting { calls, ..setting });
    let took = |phase: &Phase| phase.ranks[1].communication_ns;
    assert!(took(&free) < 50_000 && is_about(took(&read), 500_000), "{free:?} {read:?}");
}

#[test]
fn fragments_pass_a_limit_that_the_message_does_not() {
    let whole = phase(OVERLAP, &setting(2, 64 << 10));
    let cut = phase(OVERLAP, &Setting { fragment: Some(64 << 10), ..setting(2, 64 << 10) });
    assert_eq!((whole.ranks[0].messages, cut.ranks[0].messages), (1, 8));
    assert!(cut.duration_ns() + 1_000_000 < whole.duration_ns(), "{cut:?}");
}

#[test]
fn the_call_that_posts_a_receive_is_made_for_each_fragment() {
    let send = Step::Send { to: 1, len: 1 << 20, blocks: true, way: None, carried: None };
    let receives = vec![Step::Recv(0), Step::Call(5_000), Step::Call(2_000), Step::Wait];
    let pattern = Pattern { ranks: vec![vec![send], receives] };
    let cut = super::fragments::cut(&pattern, 256 << 10);
    assert_eq!(cut.ranks[0].len(), 4);
    assert_eq!(cut.ranks[1][..4], [Step::Recv(0); 4]);
    assert_eq!(cut.ranks[1][4..], [Step::Call(20_000), Step::Call(2_000), Step::Wait]);
}

#[test]
fn parallel_sends_wait_for_the_slowest_receiver_and_not_for_each_in_turn() {
    let late = "ranks 3
rank 0: send 1 1MB; send 2 1MB; compute 1us; wait
rank 1: recv 0; compute 3ms; wait
rank 2: recv 0; wait
";
    let plain = phase(late, &setting(1, 1_000));
    let parallel = phase(late, &Setting { parallel: true, ..setting(1, 1_000) });
    // Rank 2 is there at once: its message goes while rank 1 computes.
    assert!(is_about(plain.ranks[0].end_ns, 5_050_000), "{plain:?}");
    assert!(is_about(parallel.ranks[0].end_ns, 4_020_000), "{parallel:?}");
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let chain = "ranks 4\nrank 0: recv 3; send 1 1MiB; wait\nrank *: send +1 1MiB; recv -1; wait";
    phase(chain, &setting(1, 1_000));
    let cycle = "ranks 3\nrank *: send +1 1MiB; recv -1; wait".parse().unwrap();
    let stuck = predict(&cycle, &setting(1, 1_000)).unwrap_err().to_string();
    assert!(stuck.contains("rank 0 sends 1048576 B to rank 1") && stuck.contains("isend"), "{stuck}");
    assert_eq!(stuck.lines().count(), 5, "{stuck}");
    predict(&cycle, &setting(1, 1 << 20)).expect("without asking it does not wait");
    let missing = "ranks 2\nrank 0: recv 1; wait".parse().unwrap();
    let stuck = predict(&missing, &setting(1, 1_000)).unwrap_err().to_string();
    assert!(stuck.contains("rank 1, which sends no more"), "{stuck}");
}

#[test]
fn what_is_no_pattern_is_refused_with_line_and_remedy() {
    for (text, line, hint) in [
        ("", 1, "ranks N"),
        ("ranks 1", 1, "2 to 4096"),
        ("ranks 2\nrank 2: wait", 2, "ranks are 0 to 1"),
        ("ranks 2\n# nothing\nrank 0: send 7 1KiB", 3, "no rank 7"),
        ("ranks 2\nrank 0: send 0 1KiB", 2, "with itself"),
        ("ranks 2\nrank 0: send 1", 2, "no step"),
        ("ranks 2\nrank 0: send 1 lots", 2, "lots"),
        ("ranks 2\nrank 0: compute 3", 2, "2ms"),
        ("ranks 2\nrank 0: wait\nrank 0: wait", 3, "already"),
        ("ranks 2\nrank 0 wait", 2, "rank R:"),
    ] {
        let error = text.parse::<Pattern>().unwrap_err();
        assert!(error.line == line && error.why.contains(hint), "{text:?}: {error}");
    }
}

#[test]
fn ranks_are_absolute_or_relative() {
    let pattern: Pattern = "ranks 3\nrank *: recv -1; send +1 2KiB\nrank 1: isend 0 8".parse().unwrap();
    let send = |to, len, blocks| Step::Send { to, len, blocks, way: None, carried: None };
    assert_eq!(pattern.ranks[2], [Step::Recv(1), send(0, 2048, true)]);
    assert_eq!(pattern.ranks[1], [send(0, 8, false)]);
}

#[test]
fn two_hundred_and_fifty_six_ranks_with_fifteen_neighbours_are_predicted() {
    let mut line = String::from("ranks 256\nrank *:");
    (1..=15).for_each(|step| line += &format!(" recv -{step};"));
    (1..=15).for_each(|step| line += &format!(" send +{step} {}KiB;", 20 * step));
    line += " compute 1ms; wait";
    let phase = phase(&line, &setting(2, 32 << 10));
    assert!(phase.ranks.iter().all(|rank| rank.messages == 15 && rank.end_ns == phase.duration_ns()));
    assert!((phase.imbalance() - 1.0).abs() < 0.01);
}

#[test]
fn an_invitation_that_crosses_a_request_answers_it() {
    // Rank 1 posts its receive, and computes before the request of rank 0 comes.
    let late = "ranks 2
        rank 0: compute 15us; send 1 500KB; wait
        rank 1: recv 0; compute 2ms; wait";
    let asks = phase(late, &setting(1, 1_000));
    assert!(asks.ranks[0].communication_ns > 1_900_000, "{asks:?}");
    let invited = phase(late, &Setting { invites: true, ..setting(1, 1_000) });
    assert!(is_about(invited.ranks[0].communication_ns, 500_000), "{invited:?}");
}

fn on_core(mut steps: Vec<Step>) -> Vec<Step> {
    steps.insert(0, Step::On(0));
    steps
}

fn shared(ranks: Vec<Vec<Step>>, turns: Turns) -> Phase {
    let ranks = ranks.into_iter().map(on_core).collect();
    predict(&Pattern { ranks }, &Setting { turns, ..setting(1, 1 << 20) }).unwrap()
}

#[test]
fn ranks_on_a_core_compute_one_after_the_other_until_their_slice_is_used_at_a_tick() {
    let compute = |ms: u64| vec![Step::Compute(ms * 1_000_000), Step::Wait];
    // The first tick comes when both are done: the second one waits for the first.
    let late = Turns { first_ns: 5_000_000, tick_ns: 5_000_000, slice_ns: 1_000_000 };
    let phase = shared(vec![compute(2), compute(2)], late);
    assert_eq!([phase.ranks[0].end_ns, phase.ranks[1].end_ns], [2_000_000, 4_000_000], "{phase:?}");
    // With a tick in the middle each takes a turn of 1.5 ms, and what is left.
    let turns = Turns { first_ns: 1_500_000, tick_ns: 1_500_000, ..late };
    let phase = shared(vec![compute(2), compute(2)], turns);
    assert_eq!([phase.ranks[0].end_ns, phase.ranks[1].end_ns], [3_500_000, 4_000_000], "{phase:?}");
    // Cores of their own need no turns.
    let own = Pattern { ranks: vec![compute(2), compute(2)] };
    assert_eq!(predict(&own, &setting(1, 1)).unwrap().duration_ns(), 2_000_000);
}

#[test]
fn a_message_waits_until_its_receiver_gets_the_core() {
    let send = Step::Send { to: 1, len: 8, blocks: true, way: None, carried: None };
    let ranks = vec![
        vec![send, Step::Compute(2_000_000), Step::Wait],
        vec![Step::Recv(0), Step::Wait, Step::Compute(1_000_000)],
    ];
    let turns = Turns { first_ns: 9_000_000, tick_ns: 9_000_000, slice_ns: 5_000_000 };
    let phase = shared(ranks, turns);
    // The sender computes when the message comes, and yields the core when it waits.
    assert!(is_about(phase.ranks[1].communication_ns, 2_000_000), "{phase:?}");
    assert!(is_about(phase.ranks[1].end_ns, 3_000_000), "{phase:?}");
}

#[test]
fn a_rail_that_was_idle_carries_its_burst_beyond_its_rate() {
    let program = "ranks 2\nrank 0: isend 1 500KB; isend 1 500KB; wait\nrank 1: recv 0; recv 0; wait";
    let mut setting = Setting { invites: true, ..setting(1, 1_000) };
    let plain = phase(program, &setting).duration_ns();
    setting.rails[0].burst = 100_000;
    let sooner = plain - phase(program, &setting).duration_ns();
    assert!(is_about(sooner, 100_000), "{sooner}");
}

#[test]
fn no_piece_comes_before_it_is_sent() {
    let program = |len: &str| format!("ranks 2\nrank 0: send 1 {len}\nrank 1: recv 0");
    let mut setting = setting(1, 1_000);
    setting.rails[0].burst = 8 << 20;
    let short = phase(&program("100KB"), &setting).duration_ns();
    assert!(phase(&program("4MB"), &setting).duration_ns() >= short);
}

#[test]
fn nobody_waits_for_a_send_whose_data_is_kept() {
    let program = |way| {
        let send = Step::Send { to: 1, len: 500_000, blocks: false, way: Some(way), carried: None };
        let receiver = vec![Step::Compute(3_000_000), Step::Recv(0), Step::Wait];
        Pattern { ranks: vec![vec![send, Step::Wait, Step::Compute(1_000), Step::Wait], receiver] }
    };
    let waited = |way| predict(&program(way), &setting(1, 1_000)).unwrap().ranks[0].communication_ns;
    assert!(waited(Way::Asks) > 3_000_000 && waited(Way::Kept) < 100_000);
}
