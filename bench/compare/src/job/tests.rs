use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn heard(script: &str, silence_ms: u64) -> (Vec<Said>, Result<(), Failure>) {
    let mut all = Vec::new();
    // START_MIN covers the time before the first line, so scripts say one first.
    let ended = run(shell(script), Duration::from_millis(silence_ms), &mut |said| all.push(said));
    (all, ended)
}

#[test]
fn lines_are_handed_on_and_those_of_libraries_are_not() {
    let script = r"printf 'library\tX 1\nwarning: something\nbegin\t0\ncell\t0\t1.5\t1.0\t2.0\n';
                   printf 'begin\t1\nskip\t1\tno such\ncell\tx\t1\t1\t1\ncell\t1\tnan\t1\t1\nend\n'";
    let (said, ended) = heard(script, 5000);
    let expected = [
        Said::Library("X 1".into()),
        Said::Begin(0),
        Said::Cell { number: 0, us: 1.5, low: 1.0, high: 2.0 },
        Said::Begin(1),
        Said::Skip { number: 1, why: "no such".into() },
        Said::End,
    ];
    assert_eq!((said, ended), (expected.to_vec(), Ok(())));
}

#[test]
fn circumstances_and_choices_come_before_the_figure() {
    let script = r"printf 'begin\t0\n'; echo 'nmad: bcast of 8 B over 2 ranks: board, ...' >&2; sleep 0.3;
                   printf 'facts\t0\t0.07\t2.9\t1\t2\t3\t0,1\ncell\t0\t1.5\t1.0\t2.0\nend\n'; exit 0";
    let (said, ended) = heard(script, 5000);
    assert_eq!(ended, Ok(()));
    // The choice may be read before the line that stands before it on the other stream.
    let said: Vec<Said> = said.into_iter().filter(|said| *said != Said::Begin(0)).collect();
    let [Said::Choice(choice), Said::Facts { number: 0, facts }, Said::Cell { .. }, Said::End] = &*said
    else {
        panic!("{said:?}")
    };
    assert_eq!((&*choice.algorithm, facts.line_us, facts.faults), ("board", Some(0.07), 3));
}

#[test]
fn a_job_that_crashes_tells_where_and_with_which_words() {
    let (_, ended) = heard(r"printf 'library\tX\nbegin\t7\n'; echo 'segmentation fault' >&2; exit 139", 5000);
    let failure = ended.unwrap_err();
    assert_eq!(failure.cell, Some(7));
    assert!(failure.why.contains("139") && failure.why.contains("segmentation fault"), "{}", failure.why);
}

#[test]
fn a_job_that_hangs_is_ended_with_all_that_it_has_started() {
    // The child of the child ignores what its parent is asked, and keeps the pipe open.
    let script =
        r"printf 'library\tX\nbegin\t3\n'; trap '' TERM; (trap '' TERM; sleep 300) & echo pid $! >&2; wait";
    let begun = Instant::now();
    let (_, ended) = heard(script, 300);
    let failure = ended.unwrap_err();
    assert_eq!(failure.cell, Some(3));
    assert!(failure.why.contains("said nothing"), "{}", failure.why);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let pid: u32 = failure.why.rsplit("pid ").next().unwrap().trim().parse().unwrap();
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(10);
    while state().contains("(sh)") && !state().contains(") Z ") {
        assert!(Instant::now() < deadline, "{}", state());
        std::thread::sleep(TICK);
    }
}

#[test]
fn what_cannot_be_started_says_so() {
    let ended = run(Command::new("/no/such/mpiexec"), TICK, &mut |_| {});
    let failure = ended.unwrap_err();
    assert!(failure.cell.is_none() && failure.why.contains("/no/such/mpiexec"), "{}", failure.why);
}

#[test]
fn output_is_bounded_in_time() {
    assert_eq!(output(&mut shell("echo hello"), END_LIMIT), Ok("hello\n".into()));
    let error = output(&mut shell("echo no >&2; exit 4"), END_LIMIT).unwrap_err();
    assert!(error.contains("no") && error.contains('4'), "{error}");
    assert!(output(&mut shell("exec sleep 60"), TICK).unwrap_err().contains("not done"));
}
