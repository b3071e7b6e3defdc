//! What ranks do in cases about messages: their order, their pieces, several rails.

use crate::cases::open;
use crate::pattern;
use newmadeleine::{Hints, SessionError, Source, TagMatch};
use nmad_testbed::What;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub fn hello() {
    let session = open();
    let mut buffer = [0; 16];
    if session.rank() > 0 {
        session.send(0, 7, &session.rank().to_le_bytes()).unwrap();
    } else {
        let mut seen: Vec<u32> = Vec::new();
        for _ in 1..session.size() {
            let message = session.recv(Source::Any, 7, &mut buffer).unwrap();
            assert_eq!(buffer[..message.len], message.from.to_le_bytes());
            seen.push(message.from);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4]);
    }
    session.close().unwrap();
}

pub fn myself() {
    let session = open();
    let (small, large) = (pattern(8, 1), pattern(1 << 20, 2));
    let (mut first, mut second) = (vec![0; 8], vec![0; 1 << 20]);
    session
        .scope(|scope| {
            scope.send(0, 1, &large)?;
            scope.send(0, 0, &small)?;
            scope.recv(0, 0, &mut first)?;
            scope.recv(0, TagMatch::Any, &mut second)?;
            Ok(())
        })
        .unwrap();
    assert_eq!((first, second), (small, large));
}

pub fn told_twice() {
    let session = open();
    let (mut x, mut y, mut z) = ([0; 1], [0; 1], [0; 1]);
    let sent = session.scope(|scope| {
        let told = scope.recv(0, 1, &mut z)?;
        scope.send(0, 1, b"z")?;
        scope.wait(told)?;
        let (a, b) = (scope.recv(0, 2, &mut x)?, scope.recv(0, 3, &mut y)?);
        let panics = |call: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        panics(&|| drop(scope.wait(told)));
        panics(&|| drop(scope.wait_all(&[a, b, b])));
        panics(&|| drop(scope.wait_all(&[a, told])));
        panics(&|| drop(scope.wait_any(&[a, told])));
        panics(&|| drop(scope.test_any(&[a, told])));
        panics(&|| drop(scope.test(told)));
        panics(&|| assert!(!scope.test_all(&[a, told])));
        scope.send(0, 2, b"x")?;
        scope.send(0, 3, b"y")?;
        scope.wait_all(&[a, b]).map(drop)
    });
    sent.unwrap();
    assert_eq!([x, y, z], [*b"x", *b"y", *b"z"]);
    session.close().unwrap();
}

pub fn all_to_all() {
    let session = open();
    for (round, len) in [8, 5_000, 200_000].into_iter().enumerate() {
        let out = pattern(len, session.rank() as usize);
        let mut into = vec![vec![0; len]; session.size() as usize];
        session
            .scope(|scope| {
                for (rank, buffer) in into.iter_mut().enumerate() {
                    scope.recv(rank as u32, round as u64, buffer)?;
                    scope.send(rank as u32, round as u64, &out)?;
                }
                Ok(())
            })
            .unwrap();
        assert!(into.iter().enumerate().all(|(rank, buffer)| *buffer == pattern(len, rank)));
    }
    session.close().unwrap();
}

pub fn pieces() {
    let session = open();
    let channel = session.channel(3).unwrap();
    let body = pattern(300_000, 5);
    if session.rank() == 0 {
        let service = 42u32.to_le_bytes();
        let sent = channel.scope(|scope| {
            let mut message = scope.begin_packing(1, 9)?;
            let first = scope.pack(&mut message, &service, Hints { priority: 1, ..Hints::default() });
            let second = scope.pack(&mut message, &body, Hints::default());
            scope.end(message, &[first, second])
        });
        sent.unwrap();
    } else {
        let (mut service, mut into) = ([0; 4], vec![0; 300_000]);
        let taken = channel.scope(|scope| {
            let mut message = scope.begin_unpacking(Source::Any, 9)?;
            let first = scope.unpack(&mut message, &mut service);
            assert_eq!(scope.wait(first)?.len, 4);
            let second = scope.unpack(&mut message, &mut into);
            scope.end(message, &[second])
        });
        taken.unwrap();
        assert_eq!((u32::from_le_bytes(service), into), (42, body));
    }
    session.close().unwrap();
}

pub fn truncated() {
    let session = open();
    for len in [100, 300_000] {
        if session.rank() == 0 {
            session.send(1, 1, &pattern(len, 1)).unwrap();
            session.send(1, 1, &pattern(10, 2)).unwrap();
        } else {
            let mut buffer = [0; 50];
            let error = session.recv(0, 1, &mut buffer).unwrap_err();
            assert!(matches!(error, SessionError::Truncated { from: 0, capacity: 50, .. }), "{error}");
            assert_eq!(buffer[..], pattern(len, 1)[..50]);
            assert_eq!(session.recv(0, 1, &mut buffer).unwrap().len, 10);
        }
    }
    session.close().unwrap();
}

/// The sender makes no call for a second after two sends; both must be there long before it ends.
pub fn computes() {
    let session = open();
    if session.rank() == 0 {
        let data = pattern(8, 1);
        session.recv(1, 0, &mut []).unwrap();
        session
            .scope(|scope| {
                scope.send(1, 1, &data)?;
                scope.send(1, 2, &data)?;
                let until = Instant::now() + Duration::from_secs(1);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                Ok(())
            })
            .unwrap();
        session.send(1, 3, &[]).unwrap();
    } else {
        session.send(0, 0, &[]).unwrap();
        let mut buffer = [0; 8];
        for tag in [1, 2] {
            session.recv(0, tag, &mut buffer).unwrap();
        }
        assert!(session.probe(0, 3).is_none(), "both are here while the sender still computes");
        session.recv(0, 3, &mut []).unwrap();
    }
    session.close().unwrap();
}

pub fn ends_at_once() {
    let session = open();
    let len = |tag: u64| if tag % 10 == 9 { 1 << 20 } else { 1000 };
    if session.rank() == 0 {
        session.recv(1, 0, &mut []).unwrap();
        (0..100).for_each(|tag| session.send(1, tag, &pattern(len(tag), tag as usize)).unwrap());
        // Dropped, not closed.
    } else {
        session.send(0, 0, &[]).unwrap();
        let mut buffer = vec![0; 1 << 20];
        for tag in 0..100 {
            let got = session.recv(0, tag, &mut buffer).unwrap_or_else(|e| panic!("{tag}: {e}"));
            assert!(buffer[..got.len as usize] == pattern(len(tag), tag as usize), "{tag}");
        }
        session.close().unwrap();
    }
}

pub fn no_wait() {
    let session = open();
    let count = 20_000;
    if session.rank() == 0 {
        let data: Vec<[u8; 4]> = (0..count as u32).map(u32::to_le_bytes).collect();
        let sent = session.scope(|scope| data.iter().try_for_each(|word| scope.send(1, 1, word).map(drop)));
        sent.unwrap();
    } else {
        let mut word = [0; 4];
        for expected in 0..count as u32 {
            session.recv(0, 1, &mut word).unwrap();
            assert_eq!(u32::from_le_bytes(word), expected);
        }
    }
    session.close().unwrap();
}

pub fn both_rails() {
    let session = open();
    session.set_strategy(None, "iso_split").unwrap();
    let data = pattern(8 << 20, 3);
    if session.rank() == 0 {
        session.recv(1, 0, &mut []).unwrap();
        session.send(1, 1, &data).unwrap();
        let carried: Vec<u64> =
            session.rails().iter().take(2).map(|rail| rail.counters.chunk_bytes).collect();
        assert_eq!(carried, [4 << 20, 4 << 20]);
    } else {
        // A small message first, so that both links are open.
        session.send(0, 0, &[]).unwrap();
        let mut buffer = vec![0; 8 << 20];
        session.recv(0, 1, &mut buffer).unwrap();
        assert!(buffer == data);
    }
    session.close().unwrap();
}

/// Every other byte of a buffer, sent and received: more pieces than systems take at once, in each datagram.
pub fn crumbs() {
    let session = open();
    let (data, mut buffer) = (pattern(200_000, 3), vec![0; 200_000]);
    let ends = session.scope(|scope| match session.rank() {
        0 => scope.send_gather(1, 1, &data.chunks(2).map(|pair| &pair[..1]).collect::<Vec<_>>()),
        _ => scope.recv_scatter(0, 1, buffer.chunks_mut(2).map(|pair| &mut pair[..1]).collect()),
    });
    ends.unwrap_or_else(|e| panic!("{e}"));
    let sent = |(at, byte): (usize, &u8)| if at % 2 == 0 { *byte } else { 0 };
    assert!(session.rank() == 0 || buffer.iter().copied().eq(data.iter().enumerate().map(sent)));
    session.close().unwrap();
}

pub fn rail_down() {
    let session = open();
    let (count, len) = (60, 2 << 20);
    for message in 0..count {
        if session.rank() == 0 {
            if message == 20 {
                nmad_testbed::set(None, 1, What::Down).unwrap_or_else(|e| panic!("{e}"));
            }
            session.send(1, 1, &pattern(len, message)).unwrap_or_else(|e| panic!("{e}"));
        } else {
            let mut buffer = vec![0; len];
            session.recv(0, 1, &mut buffer).unwrap_or_else(|e| panic!("{e}"));
            assert!(buffer == pattern(len, message), "message {message} is whole");
        }
    }
    session.close().unwrap();
}
