//! The cases: what ranks do, and how their jobs end.

use crate::{
    Case, capture, datagrams, lost, node, pattern, profiles, refused, runtime, strangers, strategies,
};
use newmadeleine::{Hints, Session, SessionError, Source, TagMatch};
use nmad_testbed::{Rate, What};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const UNEQUAL: &[Rate] = &[Rate::Limited(4_000_000_000), Rate::Limited(2_800_000_000)];
const ONE: &[Rate] = &[Rate::Unlimited];
const SLOW: &[Rate] = &[Rate::Limited(4_000_000_000)];
const KILLED: i32 = 128 + 9;

/// Nobody copies straight from process to process.
const DIRECTLY_NOT: &[(&str, &str)] = &[("NMAD_CROSS_MEMORY", "off")];

/// Interfaces are rails of datagrams.
const DATAGRAMS: &[(&str, &str)] = &[("NMAD_DRIVER", "udp")];
/// Raw Ethernet.
const FRAMES: &[(&str, &str)] = &[("NMAD_DRIVER", "packet")];

/// All links over interfaces are encrypted.
const ENCRYPTED: &[(&str, &str)] = &[("NMAD_ENCRYPT", "on")];

/// A case on this host that ends well.
const fn here(name: &'static str, ranks: u32, rank: fn()) -> Case {
    Case { name, ranks, rails: &[], env: &[], before: || (), rank, code: 0, rounds: 1 }
}

/// A case of two ranks on two hosts that ends well.
const fn apart(name: &'static str, rails: &'static [Rate], rank: fn()) -> Case {
    Case { rails, ..here(name, 2, rank) }
}

/// Two ranks of a node to which the system refuses a call.
const fn denied(name: &'static str, env: &'static [(&'static str, &'static str)]) -> Case {
    Case { env, ..here(name, 2, refused::nothing_is_lost) }
}

/// Every case.
pub const ALL: &[Case] = &[
    here("everybody says hello to rank 0", 5, hello),
    here("a rank talks to itself", 1, myself),
    here("a request that is waited for twice is a panic, and the others go on", 1, told_twice),
    here("more ranks than cores all talk to all", 8, all_to_all),
    here("a process of a node that ends after its last send has sent it", 2, ends_at_once),
    here("pieces of a message are unpacked one after the other", 2, pieces),
    here("a message that is too long is an error and loses nothing else", 2, truncated),
    here("messages of a node are futures of tokio", 2, runtime::futures),
    apart("messages between hosts are futures of tokio", ONE, runtime::futures),
    here("a loop of tokio sleeps on the descriptor", 2, runtime::descriptor),
    apart("a loop of tokio sleeps on the descriptor, between hosts", ONE, runtime::descriptor),
    here("values go as they are, and buffers come back before the scope ends", 2, runtime::values),
    apart("a message of very short pieces arrives whole", ONE, crumbs),
    Case { env: DATAGRAMS, ..apart("udp: a message of very short pieces arrives whole", ONE, crumbs) },
    Case { env: FRAMES, ..apart("packet: a message of very short pieces arrives whole", ONE, crumbs) },
    Case {
        env: &[("NMAD_CHUNK", "16384")],
        ..here("in a node a message of very short pieces arrives whole, chunk by chunk", 2, crumbs)
    },
    apart("messages leave while their sender computes", ONE, computes),
    apart("a process that ends after its last send has sent it", ONE, ends_at_once),
    apart("a receive from a rank that has left without a word is an error", ONE, lost::left_unheard),
    Case {
        rails: UNEQUAL,
        ..here(
            "in a node a receive from a rank that has left without a word is an error",
            2,
            lost::left_unheard,
        )
    },
    apart("a loop of sends without a wait arrives in order", ONE, no_wait),
    apart("two unequal rails carry one message", UNEQUAL, both_rails),
    apart("a rail that goes down in the middle loses nothing", UNEQUAL, rail_down),
    Case { rails: ONE, code: KILLED, ..here("a killed peer is an error within 5 s", 2, lost::peer_killed) },
    Case {
        rails: ONE,
        code: lost::EXITED,
        ..here("a process that exits with messages under way ends", 2, lost::exits_in_the_middle)
    },
    Case {
        code: lost::EXITED,
        ..here("in a node a process that exits with messages under way ends", 2, lost::exits_in_the_middle)
    },
    Case { rails: ONE, ..here("a wrong secret is refused on both sides", 2, lost::wrong_secret) },
    Case {
        env: &[("NMAD_STRATEGY", "nosuch")],
        ..here("an unknown strategy is named with the known ones", 1, strategies::unknown)
    },
    apart("the strategy of the documents carries its messages", UNEQUAL, strategies::documented),
    Case {
        env: &[("NMAD_EAGER_MAX", "32768")],
        ..apart("strategies that fail are named and replaced", UNEQUAL, strategies::faulty)
    },
    Case { rails: UNEQUAL, env: &[("NMAD_FEED", "prepare")], ..here("prepared packets leave", 2, no_wait) },
    Case {
        rails: UNEQUAL,
        env: &[("NMAD_FEED", "backlog:4096")],
        ..here("a backlog is released", 2, no_wait)
    },
    Case { rails: ONE, ..here("shared memory inside hosts and tcp between them", 4, node::mixed) },
    here("every size between two ranks of a node", 2, node::over_memory),
    Case { env: DIRECTLY_NOT, ..here("every size without cross-memory access", 2, node::over_memory) },
    here("every size across user namespaces", 2, node::other_namespace),
    denied("writing across is refused from the beginning", &[(refused::SETTING, "write early 1")]),
    denied("writing across is refused to one from some time on", &[(refused::SETTING, "write late 1")]),
    denied("reading across is refused to one from some time on", &[(refused::SETTING, "read late 0")]),
    denied("reaching across is refused to one from some time on", &[(refused::SETTING, "both late 0")]),
    denied("reaching across is refused to both from some time on", &[(refused::SETTING, "both late 01")]),
    Case {
        rank: refused::nothing_is_lost_over_memory,
        ..denied("files in memory are refused: others are shared", &[(refused::SETTING, "memfd early 01")])
    },
    Case {
        rank: refused::nothing_is_lost_over_a_network,
        ..denied("all shared memory is refused: a network serves", &[(refused::SETTING, "memory early 01")])
    },
    denied("files in memory are refused to one", &[(refused::SETTING, "memfd early 1")]),
    Case {
        before: refused::refuse_binding,
        ..here("where nothing may be bound ranks run on all processors", 2, refused::unbound)
    },
    Case {
        code: refused::NO_LONG_FILE,
        ..here("where no file may be long a link is an error that says so", 2, refused::no_long_file)
    },
    Case {
        env: &[("NMAD_RAILS", "lo"), ("NMAD_ENCRYPT", "on"), (refused::SETTING, "0")],
        code: refused::NO_RANDOM_BYTES,
        ..here("without random bytes a rank opens no link", 2, refused::no_random_bytes)
    },
    Case {
        env: &[("NMAD_RAILS", "lo"), ("NMAD_ENCRYPT", "on"), (refused::SETTING, "1")],
        code: refused::NO_RANDOM_BYTES,
        ..here("without random bytes a rank answers no link", 2, refused::no_random_bytes)
    },
    Case {
        env: &[("NMAD_RAILS", "lo")],
        ..here("every size over the loopback interface", 2, node::over_loopback_interface)
    },
    Case {
        env: &[("NMAD_RAILS", "lo")],
        ..here("links open late while strangers hold 300 connections at each port", 3, strangers::hold_ports)
    },
    Case {
        env: &[("NMAD_RAILS", "lo"), ("NMAD_DRIVER", "udp")],
        ..here("udp: what strangers send is counted", 2, datagrams::strangers)
    },
    Case { env: DATAGRAMS, ..apart("udp: messages leave while their sender computes", ONE, computes) },
    Case {
        env: DATAGRAMS,
        ..apart("udp: a process that ends after its last send has sent it", ONE, ends_at_once)
    },
    Case { env: DATAGRAMS, ..apart("udp: a loop of sends without a wait arrives in order", ONE, no_wait) },
    Case { env: DATAGRAMS, ..apart("udp: two shaped rails carry one message", UNEQUAL, both_rails) },
    Case {
        env: DATAGRAMS,
        ..apart("udp: a rail that goes down in the middle loses nothing", UNEQUAL, rail_down)
    },
    Case {
        env: DATAGRAMS,
        code: KILLED,
        ..apart("udp: a killed peer is an error within 5 s", ONE, lost::peer_killed)
    },
    Case {
        env: DATAGRAMS,
        ..apart("udp: a firewall that begins to swallow is an error in time", ONE, datagrams::swallowed)
    },
    Case { env: DATAGRAMS, ..apart("udp: a rank that computes is not lost", ONE, datagrams::computes_long) },
    Case { env: DATAGRAMS, ..apart("udp: an interface that goes down is named", ONE, datagrams::down) },
    Case {
        env: FRAMES,
        ..apart("packet: a network that begins to swallow is an error in time", ONE, datagrams::swallowed)
    },
    Case { env: FRAMES, ..apart("packet: a rank that computes is not lost", ONE, datagrams::computes_long) },
    Case {
        env: DATAGRAMS,
        ..apart("udp: over a shaped rail hardly anything is sent twice", SLOW, datagrams::shaped)
    },
    Case {
        env: DATAGRAMS,
        ..apart("udp: what crosses a lossy rail is whole", ONE, datagrams::bulk_over_loss)
    },
    Case { env: DATAGRAMS, ..apart("udp: a rail becomes narrower in the middle", ONE, datagrams::narrower) },
    Case { env: FRAMES, ..apart("packet: a rail becomes narrower in the middle", ONE, datagrams::narrower) },
    Case {
        env: FRAMES,
        ..apart("packet: what crosses a lossy rail is whole", ONE, datagrams::bulk_over_loss)
    },
    Case { env: FRAMES, ..apart("packet: messages leave while their sender computes", ONE, computes) },
    Case { env: FRAMES, ..apart("packet: a loop of sends without a wait arrives in order", ONE, no_wait) },
    Case { env: FRAMES, ..apart("packet: two shaped rails carry one message", UNEQUAL, both_rails) },
    Case {
        env: FRAMES,
        ..apart("packet: a rail that goes down in the middle loses nothing", UNEQUAL, rail_down)
    },
    Case {
        env: FRAMES,
        code: KILLED,
        ..apart("packet: a killed peer is an error within 5 s", ONE, lost::peer_killed)
    },
    Case {
        env: &[("NMAD_DRIVER", "tcp,udp"), ("NMAD_SAMPLE", "auto")],
        ..apart("two ways to one NIC are used for what each is good at", ONE, datagrams::two_ways)
    },
    Case { env: DIRECTLY_NOT, ..here("more ranks than cores, without cross-memory access", 8, all_to_all) },
    here("a receiver alone copies while the sender computes", 2, node::sender_computes),
    here("a sender alone copies while the receiver computes", 2, node::receiver_computes),
    Case { env: DIRECTLY_NOT, ..here("progress without either calling", 2, node::receiver_computes) },
    Case { code: KILLED, ..here("a killed peer of the node is an error within 5 s", 2, lost::peer_killed) },
    Case {
        code: KILLED,
        ..here(
            "a peer of the node killed in the middle is an error within 5 s",
            2,
            node::killed_in_the_middle,
        )
    },
    here("a wrong secret is refused inside a node", 2, lost::wrong_secret),
    Case { env: AUTO, rounds: 2, ..apart("rails are measured once", UNEQUAL, profiles::once) },
    Case {
        env: AUTO,
        rounds: 2,
        ..here("more ranks than two share what a pair measures", 4, profiles::once)
    },
    Case {
        env: AUTO,
        rounds: 4,
        ..here("what is known provisionally is measured again", 2, profiles::provisional)
    },
    Case { env: AUTO, rounds: 2, ..here("a damaged profile is measured again", 2, profiles::damaged) },
    Case {
        env: AUTO,
        rounds: 2,
        ..here("what shared memory has learnt is known to the next job", 2, profiles::learnt)
    },
    Case {
        env: &[("NMAD_SAMPLE", "force")],
        rounds: 2,
        ..here("what is known is measured anew if that is asked for", 2, profiles::measured)
    },
    here("nothing is measured if that is not wanted", 2, profiles::nothing),
    Case {
        env: &[("NMAD_SAMPLE", "auto"), ("XDG_CACHE_HOME", "/dev/null/no/folder")],
        rounds: 2,
        ..here("without a folder each job measures", 2, profiles::measured)
    },
    Case { env: AUTO, rounds: 3, ..here("a shipped profile is used", 2, profiles::shipped) },
    Case {
        env: &[("NMAD_RAILS", "lo"), ("NMAD_SAMPLE", "auto")],
        ..here("a link that only the peer encrypts has no profile", 2, profiles::of_unlike_settings)
    },
    Case {
        env: &[("NMAD_DRIVER", "udp"), ("NMAD_SAMPLE", "auto")],
        rounds: 2,
        ..apart("what is measured while a rail loses is provisional", ONE, profiles::while_it_loses)
    },
    Case {
        env: AUTO,
        code: KILLED,
        ..apart("a peer killed while rails are measured is an error within 5 s", ONE, profiles::killed)
    },
    Case { env: AUTO, ..here("a job that stands still while it measures goes on", 2, profiles::stopped) },
    apart("each message has a receipt", UNEQUAL, profiles::receipts),
    apart("a capture shows messages that are not encrypted", ONE, capture::readable),
    Case { env: ENCRYPTED, ..apart("a capture shows no encrypted message", ONE, capture::encrypted) },
    Case {
        env: DATAGRAMS,
        ..apart("udp: a capture shows messages that are not encrypted", ONE, capture::readable)
    },
    Case {
        env: &[ENCRYPTED[0], DATAGRAMS[0]],
        ..apart("udp: a capture shows no encrypted message", ONE, capture::encrypted)
    },
    Case {
        env: FRAMES,
        ..apart("packet: a capture shows messages that are not encrypted", ONE, capture::readable)
    },
    Case {
        env: &[ENCRYPTED[0], FRAMES[0]],
        ..apart("packet: a capture shows no encrypted message", ONE, capture::encrypted)
    },
];

const AUTO: &[(&str, &str)] = &[("NMAD_SAMPLE", "auto")];

pub fn open() -> Session {
    Session::open().unwrap_or_else(|e| panic!("{e}"))
}

fn hello() {
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

fn myself() {
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

fn told_twice() {
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

fn all_to_all() {
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

fn pieces() {
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

fn truncated() {
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
fn computes() {
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

fn ends_at_once() {
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

fn no_wait() {
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

fn both_rails() {
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
fn crumbs() {
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

fn rail_down() {
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
