//! The system stops letting ranks of a node reach each other's memory: before they meet, or in the middle.

use super::cases::open;
use super::pattern;
use newmadeleine::{Session, SessionError};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Which call is refused, from when on, and to which ranks: "write early 1".
pub const SETTING: &str = "NMAD_TEST_REFUSED";

const LENGTHS: [usize; 7] = [5_000, 20_000, 65_535, 100_000, 262_143, 1_000_000, 5_000_000];
/// Messages of each length that go one way.
const IN_A_ROW: usize = 12;

/// All lengths in one direction, in both, and at once, before and after: whichever call is refused, the right
/// data arrives.
pub fn nothing_is_lost() {
    let setting = std::env::var(SETTING).expect("the case says what is refused");
    let words: Vec<&str> = setting.split(' ').collect();
    let [what, when, ranks] = words[..] else { panic!("three words: {setting}") };
    let refuse_to = |rank: u32| {
        if ranks.contains(&rank.to_string()) {
            refuse(what);
        }
    };
    if when == "early" {
        refuse_to(std::env::var("PMI_RANK").expect("the launcher says it").parse().expect("a number"));
    }
    let session = open();
    traffic(&session, 0);
    if when == "late" {
        refuse_to(session.rank());
    }
    (1..4).for_each(|turn| traffic(&session, turn));
    session.close().unwrap();
}

/// The exit code of [`no_long_file`].
pub const NO_LONG_FILE: i32 = 3;

/// Beyond the limit of a file's length the system kills who makes one; nobody gets there.
pub fn no_long_file() {
    let little = Rlimit { current: Some(4096), maximum: Some(4096) };
    setrlimit(Resource::Fsize, little).expect("less is always permitted");
    let session = open();
    if session.rank() == 1 {
        // The sender opens the link; the other rank is there until the job ends.
        let Err(SessionError::PeerLost { .. }) = session.recv(0, 1, &mut [0; 100]) else {
            panic!("nothing can be sent here");
        };
        // It may hear of the end before the other one has ended.
        std::process::exit(NO_LONG_FILE);
    }
    let error = session.send(1, 1, &[0; 100]).and_then(|()| session.recv(1, 2, &mut []).map(drop));
    let Err(SessionError::PeerLost { ref why, .. }) = error else { panic!("{error:?}") };
    assert!(why.contains("ulimit -f"), "{why}");
    std::process::exit(NO_LONG_FILE);
}

/// From now on the system refuses these calls to all threads of this process.
fn refuse(what: &str) {
    let calls = match what {
        "read" => vec![libc::SYS_process_vm_readv],
        "write" => vec![libc::SYS_process_vm_writev],
        "both" => vec![libc::SYS_process_vm_readv, libc::SYS_process_vm_writev],
        _ => panic!("{what} is none of read, write, both"),
    };
    let rules = calls.into_iter().map(|call| (call, vec![])).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let machine = std::env::consts::ARCH.try_into().expect("a machine that filters are made for");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a short program");
    seccompiler::apply_filter_all_threads(&program).expect("a process may filter its own calls");
}

fn traffic(session: &Session, turn: usize) {
    for (place, len) in LENGTHS.into_iter().enumerate() {
        let seed = 100 * turn + 10 * place;
        for sender in [0, 1] {
            one_way(session, sender, len, seed);
        }
        at_once(session, len, seed);
    }
}

/// Several messages of one length, of which none may be taken for another.
fn one_way(session: &Session, sender: u32, len: usize, seed: usize) {
    let peer = 1 - session.rank();
    for number in 0..IN_A_ROW {
        let data = pattern(len, seed + number);
        if session.rank() == sender {
            session.send(peer, 1, &data).unwrap();
        } else {
            let mut into = vec![0; len];
            session.recv(peer, 1, &mut into).unwrap();
            assert!(into == data, "{len} B, message {number} of turn {seed}");
        }
    }
}

/// Both send and receive at the same time.
fn at_once(session: &Session, len: usize, seed: usize) {
    let (me, peer) = (session.rank() as usize, 1 - session.rank());
    let (out, mut into) = (pattern(len, seed + me), vec![0; len]);
    let exchange = session.scope(|scope| {
        scope.recv(peer, 2, &mut into)?;
        scope.send(peer, 2, &out)?;
        Ok(())
    });
    exchange.unwrap();
    assert!(into == pattern(len, seed + peer as usize), "{len} B at once, turn {seed}");
}
