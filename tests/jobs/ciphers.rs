//! Cases in which another core encrypts a part of large messages.

use crate::cases::open;
use crate::pattern;
use newmadeleine::progress::own_cores;
use newmadeleine::{Progress, Session};
use nmad_engine::Pair;
use std::time::{Duration, Instant};

/// Length of a message in bytes.
const LEN: usize = 1 << 20;
/// Messages without encryption, of which no other core does a part.
const PLAIN: u32 = 200;
/// Rank 0 gives up after this long.
const LONG: Duration = Duration::from_secs(20);

/// Without encryption the helper of the sender has nothing to do, so the case below can fail.
pub fn plain() {
    messages(|session, count| {
        assert_eq!(session.helped().shared, 0);
        count == PLAIN
    });
}

/// With encryption the helper of the sender encrypts some records.
pub fn shared() {
    let begun = Instant::now();
    messages(|session, _| {
        assert!(begun.elapsed() < LONG, "{:?}", session.helped());
        session.helped().shared > 0
    });
}

/// Rank 0 sends messages while its helper stands by, until `is_last` of their count; rank 1 checks them.
fn messages(is_last: impl Fn(&Session, u32) -> bool) {
    let session = open();
    let (data, mut buffer) = (pattern(LEN, 7), vec![0; LEN]);
    if session.rank() == 0 {
        session.node().set_hand_offs([Some(1); Pair::ALL.len()]);
        let core = *own_cores().last().expect("this process runs on some core");
        session.set_progress(Progress::Dedicated(vec![core])).unwrap_or_else(|e| panic!("{e}"));
    }
    for count in 1.. {
        let mut last = [0];
        if session.rank() == 0 {
            session.send(1, 0, &data).unwrap_or_else(|e| panic!("{e}"));
            last = [u8::from(is_last(&session, count))];
            session.send(1, 1, &last).unwrap_or_else(|e| panic!("{e}"));
        } else {
            session.recv(0, 0, &mut buffer).unwrap_or_else(|e| panic!("{e}"));
            assert!(buffer == data, "message {count} arrives unchanged");
            session.recv(0, 1, &mut last).unwrap_or_else(|e| panic!("{e}"));
        }
        if last == [1] {
            break;
        }
    }
    session.close().unwrap();
}
