//! Jobs of one node to which the system refuses calls: access to each other's memory, before the links open
//! or between messages; shared memory; and binding threads to processors.

use super::cases::open;
use super::pattern;
use newmadeleine::{Session, SessionError};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::path::Path;
use std::time::{Duration, Instant};

/// The refused call, since when, and to which ranks: "write early 1".
pub const SETTING: &str = "NMAD_TEST_REFUSED";

const LENGTHS: [usize; 7] = [5_000, 20_000, 65_535, 100_000, 262_143, 1_000_000, 5_000_000];
/// Number of messages of each length in one direction.
const IN_A_ROW: usize = 12;

/// Messages of all lengths in each direction and in both at once, before and after the refusal: whichever
/// call is refused, the right data arrives.
pub fn nothing_is_lost() {
    nothing_is_lost_over("");
}

/// The ranks still share memory, which they get by another call.
pub fn nothing_is_lost_over_memory() {
    nothing_is_lost_over("shm");
}

/// The ranks share no memory.
pub fn nothing_is_lost_over_a_network() {
    nothing_is_lost_over("tcp/lo");
}

/// `kind` is the kind of the rail that must carry all messages.
fn nothing_is_lost_over(kind: &str) {
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
    super::node::only(&session, kind);
    session.close().unwrap();
}

/// The rank runs on all processors that the launcher may use.
pub fn unbound() {
    let session = open();
    let list = |of: &str| {
        let status = std::fs::read_to_string(format!("/proc/{of}/status")).expect("a process");
        status.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("a list").to_string()
    };
    let launcher = rustix::process::getppid().expect("a launcher").as_raw_nonzero().to_string();
    assert_eq!(list("self"), list(&launcher));
    traffic(&session, 0);
    session.close().unwrap();
}

/// Forbids this process and all processes that it starts to bind threads.
pub fn refuse_binding() {
    refuse("binding");
}

/// The exit code of [`no_long_file`].
pub const NO_LONG_FILE: i32 = 3;

/// The system kills a process that makes a file longer than the limit; no rank may be killed.
pub fn no_long_file() {
    let little = Rlimit { current: Some(4096), maximum: Some(4096) };
    setrlimit(Resource::Fsize, little).expect("less is always permitted");
    let session = open();
    if session.rank() == 1 {
        // The sender opens the link; the other rank stays until the job ends.
        let Err(SessionError::PeerLost { .. }) = session.recv(0, 1, &mut [0; 100]) else {
            panic!("nothing can be sent here");
        };
        // The sender may report the end before the other rank has ended.
        std::process::exit(NO_LONG_FILE);
    }
    let error = session.send(1, 1, &[0; 100]).and_then(|()| session.recv(1, 2, &mut []).map(drop));
    let Err(SessionError::PeerLost { ref why, .. }) = error else { panic!("{error:?}") };
    assert!(why.contains("ulimit -f"), "{why}");
    std::process::exit(NO_LONG_FILE);
}

/// The exit code of [`no_random_bytes`].
pub const NO_RANDOM_BYTES: i32 = 4;

/// Without random bytes a rank has no keys and no nonces, so it opens no link and answers none.
pub fn no_random_bytes() {
    let setting = std::env::var(SETTING).expect("the case says which rank gets none");
    let session = open();
    // Another thread of rank 1 could answer a link that comes before the refusal.
    let refused = Path::new(&std::env::var("XDG_CACHE_HOME").expect("the case names one")).join("refused");
    if session.rank().to_string() == setting {
        refuse("random");
        std::fs::write(&refused, "").expect("it can be written");
    }
    let begun = Instant::now();
    while !refused.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the other rank has refused nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Rank 0 opens the link.
    let error = match session.rank() {
        0 => session.send(1, 1, &[0; 100]).and_then(|()| session.recv(1, 2, &mut []).map(drop)),
        _ => session.recv(0, 1, &mut [0; 100]).map(drop),
    };
    let Err(SessionError::PeerLost { ref why, .. }) = error else { panic!("{error:?}") };
    if session.rank().to_string() == setting {
        assert!(why.contains("no random bytes from the system: "), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }
    std::process::exit(NO_RANDOM_BYTES);
}

/// Makes the system refuse these calls to all threads of this process, and to threads and processes that they
/// start.
fn refuse(what: &str) {
    let all = |call: libc::c_long| (call, vec![]);
    let calls = match what {
        "read" => vec![all(libc::SYS_process_vm_readv)],
        "write" => vec![all(libc::SYS_process_vm_writev)],
        "both" => vec![all(libc::SYS_process_vm_readv), all(libc::SYS_process_vm_writev)],
        "binding" => vec![all(libc::SYS_sched_setaffinity)],
        "random" => vec![all(libc::SYS_getrandom)],
        "memfd" => vec![all(libc::SYS_memfd_create)],
        "memory" => vec![
            all(libc::SYS_memfd_create),
            (libc::SYS_openat, vec![without_a_name(2)]),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, vec![without_a_name(1)]),
        ],
        _ => panic!("{what} is nothing that can be refused"),
    };
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let machine = std::env::consts::ARCH.try_into().expect("a machine that filters are made for");
    let calls = calls.into_iter().collect();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, machine).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a short program");
    seccompiler::apply_filter_all_threads(&program).expect("a process may filter its own calls");
}

/// Returns the rule for opening a file without a name; `argument` is the place of the flags in the call.
fn without_a_name(argument: u8) -> SeccompRule {
    let flag = libc::O_TMPFILE as u64;
    let is_set = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag);
    SeccompRule::new(vec![is_set.expect("a call has six arguments")]).expect("a rule")
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

/// Sends several messages of one length with different data.
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

/// Both ranks send and receive at the same time.
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
