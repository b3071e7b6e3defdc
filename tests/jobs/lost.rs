//! Ranks that are gone, or are not who they say.

use crate::cases::open;
use newmadeleine::progress::Progress;
use newmadeleine::{Session, SessionError};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Rank 1 ends without a word.
pub fn peer_killed() {
    let session = open();
    if session.rank() == 1 {
        session.send(0, 1, b"here").unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    ignore_termination();
    session.recv(1, 1, &mut [0; 4]).unwrap();
    let begun = Instant::now();
    let error = session.recv(1, 2, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { rank: 1, .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let error = session.send(1, 2, &[]).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { rank: 1, .. }), "{error}");
}

/// The exit code of a rank that exits without leaving the job.
pub const EXITED: i32 = 9;

/// Rank 1 exits while long messages are under way both ways and the helper moves them.
pub fn exits_in_the_middle() {
    let session = open();
    ignore_termination();
    let (other, data) = (1 - session.rank(), vec![7; 16 << 20]);
    let mut into = vec![0; 16 << 20];
    session.node().set_progress(Progress::Idle).expect("it needs no core");
    let ended = session.scope(|scope| {
        scope.recv(other, 1, &mut into)?;
        scope.send(other, 1, &data)?;
        if session.rank() == 1 {
            // Some of it has moved.
            session.node().wait_for(Duration::from_millis(2), |_| false);
            std::process::exit(EXITED);
        }
        Ok(())
    });
    assert!(matches!(ended, Err(SessionError::PeerLost { rank: 1, .. }) | Ok(())), "{ended:?}");
    let error = session.recv(1, 2, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { rank: 1, .. }), "{error}");
}

/// The launcher ends the rest of a job when a rank dies; this rank wants to see it first.
pub fn ignore_termination() {
    let set = signal_hook::flag::register(signal_hook::consts::SIGTERM, Default::default());
    set.expect("the signal may be caught");
}

/// No link was ever opened between the two.
pub fn left_unheard() {
    let session = open();
    if session.rank() == 0 {
        return session.close().unwrap();
    }
    let error = session.recv(0, 1, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { rank: 0, .. }), "{error}");
}

/// Rank 1 joins with another secret than the job's: neither side talks to the other, and both say why.
pub fn wrong_secret() {
    const AGAIN: &str = "NMAD_TEST_AGAIN";
    if std::env::var_os("PMI_RANK").is_some_and(|rank| rank == "1") && std::env::var_os(AGAIN).is_none() {
        let own = std::env::current_exe().expect("this program has a path");
        let error = Command::new(own).env(AGAIN, "1").env("NMAD_SECRET", "5a".repeat(32)).exec();
        panic!("{error}");
    }
    let session = open();
    let other = 1 - session.rank();
    let error = session.send(other, 1, b"anybody there?").unwrap_err();
    let SessionError::PeerLost { rank, why } = error else { panic!("{error}") };
    assert!(rank == other && why.contains("secret"), "{why}");
    // The other side shall hear it too.
    session.node().wait_for(Duration::from_secs(2), |_| false);
}

/// Rank 1 cannot join, and does not end; rank 0 waits for it, without a session of its own.
pub fn invalid_environment() {
    if std::env::var("PMI_RANK").is_ok_and(|rank| rank == "0") {
        let mut job = newmadeleine::launch::bootstrap().expect("it joins");
        job.fence().expect("the launcher ends this process");
        return;
    }
    let error = Session::open().err().expect("the setting is invalid");
    assert!(matches!(error, SessionError::Setting { .. }), "{error}");
    std::thread::sleep(Duration::from_secs(600));
}
