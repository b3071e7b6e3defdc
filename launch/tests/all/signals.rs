//! Signals to the launcher reach all ranks.

use crate::probe::Launcher;
use rustix::process::Signal;

/// Two bash ranks that set a trap, say `up`, and wait.
fn trapped(trap: &str) -> Launcher {
    let script = format!("trap {trap}; sleep 600 & echo up; while :; do wait; done");
    let launcher = Launcher::start(&["-n", "2", "bash", "-c", &script], &[]);
    assert_eq!((launcher.line(), launcher.line()), ("up\n".into(), "up\n".into()));
    launcher
}

#[test]
fn user_signals_are_forwarded() {
    let launcher = trapped("'echo usr1; exit 0' USR1");
    launcher.signal(Signal::USR1);
    let done = launcher.done();
    assert_eq!((done.code, done.out.as_str()), (0, "usr1\nusr1\n"), "{done:?}");
}

#[test]
fn an_interrupt_ends_the_ranks_without_a_lecture() {
    let launcher = trapped("- INT");
    launcher.signal(Signal::INT);
    let done = launcher.done();
    assert_eq!((done.code, done.err.as_str()), (130, ""));
}

#[test]
fn ranks_may_answer_an_interrupt_in_their_own_way() {
    let launcher = trapped("'echo cleaning; exit 0' INT");
    launcher.signal(Signal::INT);
    let done = launcher.done();
    assert_eq!((done.code, done.out.as_str()), (0, "cleaning\ncleaning\n"), "{done:?}");
}

#[test]
fn the_second_interrupt_kills_at_once() {
    let launcher = trapped("'echo no' INT TERM");
    launcher.signal(Signal::INT);
    assert_eq!((launcher.line(), launcher.line()), ("no\n".into(), "no\n".into()));
    launcher.signal(Signal::INT);
    assert_eq!(launcher.done().code, 130);
}

#[test]
fn termination_is_forwarded() {
    let launcher = trapped("- TERM");
    launcher.signal(Signal::TERM);
    assert_eq!(launcher.done().code, 128 + 15);
}

#[test]
fn stop_and_continue() {
    let launcher = trapped("'echo again; exit 0' CONT");
    launcher.signal(Signal::TSTP);
    launcher.stopped();
    launcher.signal(Signal::CONT);
    let done = launcher.done();
    assert_eq!((done.code, done.out.as_str()), (0, "again\nagain\n"), "{done:?}");
}
