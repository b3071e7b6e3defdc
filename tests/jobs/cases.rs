//! The cases: what their ranks do, where, and how their jobs end.

use crate::messages::{
    all_to_all, both_rails, computes, crumbs, ends_at_once, hello, myself, no_wait, pieces, rail_down,
    told_twice, truncated,
};
use crate::{
    Case, capture, ciphers, datagrams, lost, node, profiles, refused, runtime, strangers, strategies,
};
use newmadeleine::Session;
use nmad_testbed::Rate;

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
    Case { name, ranks, rails: &[], env: &[], before: || (), rank, code: 0, rounds: 1, waits: false }
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
    Case {
        env: &[("NMAD_CHUNK", "much")],
        code: 1,
        ..here("a rank whose environment is invalid ends the job of the others", 2, lost::invalid_environment)
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
        env: &[("NMAD_RAILS", "lo"), ENCRYPTED[0], (refused::SETTING, "0")],
        code: refused::NO_RANDOM_BYTES,
        ..here("without random bytes a rank opens no link", 2, refused::no_random_bytes)
    },
    Case {
        env: &[("NMAD_RAILS", "lo"), ENCRYPTED[0], (refused::SETTING, "1")],
        code: refused::NO_RANDOM_BYTES,
        ..here("without random bytes a rank answers no link", 2, refused::no_random_bytes)
    },
    Case {
        env: &[("NMAD_RAILS", "lo"), ("NMAD_DRIVER", "udp"), ENCRYPTED[0], (refused::SETTING, "0")],
        code: refused::NO_RANDOM_BYTES,
        ..here("udp: without random bytes a rank opens no link", 2, refused::no_random_bytes)
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
        waits: true,
        ..apart("udp: a firewall that begins to swallow is an error in time", ONE, datagrams::swallowed)
    },
    Case {
        env: DATAGRAMS,
        waits: true,
        ..apart("udp: a rank that computes is not lost", ONE, datagrams::computes_long)
    },
    Case { env: DATAGRAMS, ..apart("udp: an interface that goes down is named", ONE, datagrams::down) },
    Case {
        env: FRAMES,
        waits: true,
        ..apart("packet: a network that begins to swallow is an error in time", ONE, datagrams::swallowed)
    },
    Case {
        env: FRAMES,
        waits: true,
        ..apart("packet: a rank that computes is not lost", ONE, datagrams::computes_long)
    },
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
    Case {
        env: AUTO,
        waits: true,
        ..here("a job that stands still while it measures goes on", 2, profiles::stopped)
    },
    apart("each message has a receipt", UNEQUAL, profiles::receipts),
    apart("no other core works on messages that are not encrypted", ONE, ciphers::plain),
    Case { env: ENCRYPTED, ..apart("an idle core encrypts a part of large messages", ONE, ciphers::shared) },
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
