//! Packets that violate the protocol close only the peer that sent them, with one message; other peers are
//! not affected.

use crate::lone::{Lone, encoded, packet};
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Context, Event, Hints, Instant, PeerId, RailId, RegionId, Tag};
use nmad_wire::{
    Blocks, Control, Cts, Eager, Fin, Frame, Header, Hello, Keys, Kind, MAX_LEN, Replay, Rts, Withdrawn,
    flags, frames,
};

const STRANGER: u32 = 1;
const FRIEND: u32 = 2;

/// An engine with traffic to both peers.
fn victim() -> Lone {
    let mut lone = Lone::new(STRANGER..FRIEND + 1, Config::default());
    for peer in [STRANGER, FRIEND] {
        lone.recv(Some(peer), 0, Some(1), 100);
    }
    lone
}

/// Returns whether the violator is closed, and checks the invariants of both cases.
fn is_closed(mut lone: Lone) -> bool {
    lone.message(FRIEND, 0, 1, &[5; 20]);
    lone.turn();
    let ended = std::iter::from_fn(|| lone.engine.next_completion());
    let friendly = ended.filter(|c| c.result.is_ok_and(|envelope| envelope.peer == PeerId(FRIEND))).count();
    assert_eq!(friendly, 1, "the receive of the other peer");
    let all = std::iter::from_fn(|| lone.engine.next_notice());
    let notices: Vec<_> = all.filter(|notice| notice.text.contains("malformed")).collect();
    assert_eq!(lone.engine.inspect().failure(PeerId(FRIEND)), None);
    let closed = lone.engine.inspect().failure(PeerId(STRANGER)).is_some();
    assert_eq!(notices.len(), usize::from(closed), "{notices:?}");
    for notice in notices {
        assert!(notice.peer == PeerId(STRANGER) && !notice.text.contains('\n'), "{notice:?}");
    }
    closed
}

/// Returns whether an engine closes the peer that sends these bytes, consistently.
fn closes(bytes: &[u8]) -> bool {
    let mut lone = victim();
    lone.arrive_bytes(STRANGER, bytes);
    let first = lone.engine.inspect().failure(PeerId(STRANGER)).is_some();
    if first {
        lone.arrive_bytes(STRANGER, bytes);
    }
    assert_eq!(is_closed(lone), first);
    first
}

fn frames_close(list: &[Frame<'_>]) -> bool {
    let mut lone = victim();
    lone.arrive(STRANGER, list);
    is_closed(lone)
}

/// Packets of a real run, one per kind of frame.
fn recorded() -> Vec<Vec<u8>> {
    let mut net = Net::pair(2, Config { strategy: "greedy".into(), ..Config::default() });
    net.carried();
    for round in 0..3 {
        for (tag, len) in [(1, 8), (2, 3_000), (3, 100_000)] {
            net.recv(0, from(1), 0, exact(tag), len);
            net.settle();
            let hints = Hints { synchronous: round == 1, ..Hints::default() };
            net.send_with(1, 0, 0, tag, &pattern(len, tag), hints);
            net.settle();
            net.send(0, 1, 0, tag, &pattern(len, tag));
            net.settle();
        }
    }
    for _ in 0..40 {
        net.send(1, 0, 0, 9, &[1; 10]);
    }
    net.kill(0, 0, 1);
    net.recv(1, from(0), 0, exact(3), 100_000);
    net.settle();
    let mut packets: Vec<Vec<u8>> =
        net.carried().into_iter().filter(|c| c.is_packet).map(|c| c.bytes).collect();
    packets.sort_by_key(|bytes| (bytes.get(Header::LEN).copied(), bytes.len()));
    packets.dedup_by_key(|bytes| bytes.get(Header::LEN).copied());
    assert!(packets.len() >= 6, "kinds of frames: {}", packets.len());
    packets
}

fn set_len(bytes: &mut [u8]) {
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
}

#[test]
fn a_packet_cut_anywhere_closes_its_peer() {
    for bytes in recorded() {
        for len in 0..bytes.len().min(400) {
            assert!(closes(&bytes[..len]), "{len} B of {}", nmad_wire::explain(&bytes));
        }
    }
}

#[test]
fn a_packet_cut_with_its_length_closes_its_peer_unless_only_frames_are_missing() {
    for bytes in recorded() {
        for len in Header::LEN..bytes.len().min(400) {
            let mut cut = bytes[..len].to_vec();
            set_len(&mut cut);
            let malformed = frames(&cut[Header::LEN..]).any(|frame| frame.is_err());
            assert!(closes(&cut) || !malformed, "{len} B of {}", nmad_wire::explain(&bytes));
        }
    }
}

#[test]
fn extreme_fields_close_their_peer_or_are_harmless() {
    for bytes in recorded() {
        // Sequence numbers of packets (bytes 8 to 16) are not checked by frames: packets out of order are
        // skipped.
        for at in (0..8).chain(16..bytes.len().min(200)) {
            for (width, extreme) in [
                (1, 0),
                (1, 1),
                (1, 0xff),
                (4, 0),
                (4, u64::from(MAX_LEN)),
                (4, u64::from(u32::MAX)),
                (8, 0),
                (8, u64::MAX),
                (8, u64::from(u32::MAX)),
            ] {
                let mut changed = bytes.clone();
                let width = width.min(if at < 8 { 8 } else { bytes.len() } - at);
                changed[at..at + width].copy_from_slice(&u64::to_le_bytes(extreme)[..width]);
                let header = Header::decode(&changed);
                let fits = header.is_ok_and(|h| h.len as usize == changed.len());
                let malformed = !fits || frames(&changed[Header::LEN..]).any(|frame| frame.is_err());
                assert!(closes(&changed) || !malformed, "{}", nmad_wire::explain(&changed));
            }
        }
    }
}

fn eager(seq: u32, len: u32) -> Eager {
    Eager { flags: 0, context: 0, tag: 9, seq, len, request: 0 }
}

fn rts(seq: u32) -> Rts {
    Rts { flags: 0, context: 0, tag: 9, seq, len: 1, request: 1, region: 0, pushed: 0, address: 0 }
}

#[test]
fn a_sequence_number_of_an_earlier_message_closes_its_peer() {
    let [a, b] = [Frame::Eager(eager(0, 1), &[1]), Frame::Rts(rts(0), Blocks::NONE)];
    for (first, second) in [(a, b), (a, a), (b, a), (b, b)] {
        assert!(!frames_close(&[first]));
        assert!(frames_close(&[first, second]));
    }
    assert!(frames_close(&[Frame::Rts(rts(u32::MAX), Blocks::NONE)]), "numbers do not run backwards");
}

#[test]
fn a_sequence_number_used_twice_closes_its_peer_even_early() {
    let [a, b] = [Frame::Eager(eager(5, 1), &[1]), Frame::Rts(rts(5), Blocks::NONE)];
    for (first, second) in [(a, b), (a, a), (b, a), (b, b)] {
        assert!(!frames_close(&[first]));
        assert!(frames_close(&[first, second]));
    }
}

#[test]
fn eager_data_beyond_the_credit_closes_its_peer() {
    let data = [1; 10_000];
    // 256 KiB are assumed at first; each message is charged 128 B more than its data.
    let messages = |count| (0..count).map(|seq| Frame::Eager(eager(seq, 10_000), &data)).collect::<Vec<_>>();
    assert!(!frames_close(&messages(25)));
    assert!(frames_close(&messages(26)));
}

#[test]
fn an_answer_to_a_request_of_another_peer_closes_its_peer() {
    let mut lone = victim();
    let (_, data) = lone.memory.lend(&[7; 100_000], 0);
    let large = lone.engine.send(PeerId(FRIEND), Context(0), Tag(0), data, Hints::default());
    let cts = |len| Frame::Cts(Cts { request: large.0, region: 1, len, keys: Keys::default(), prompt: true });
    lone.arrive(STRANGER, &[cts(10)]);
    assert!(lone.engine.inspect().failure(PeerId(STRANGER)).is_some());
    lone.arrive(FRIEND, &[cts(100_001)]);
    assert!(lone.engine.inspect().failure(PeerId(FRIEND)).is_some(), "more than the message has");
    // An answer to a request that no longer exists may be late.
    assert!(!frames_close(&[Frame::Cts(Cts {
        request: 77,
        region: 1,
        len: 1,
        keys: Keys::default(),
        prompt: true
    })]));
    assert!(!frames_close(&[Frame::Fin(Fin { request: 77, prompt: true })]));
    assert!(!frames_close(&[Frame::Withdrawn(Withdrawn { region: 77, used: false })]));
}

#[test]
fn a_chunk_outside_of_its_region_closes_its_peer() {
    for (offset, len, outside) in [
        (0, 50_000, false),
        (49_999, 1, false),
        (0, 50_001, true),
        (49_999, 2, true),
        (50_001, 0, true),
        (u64::MAX, 1, true),
        (1 << 63, 1 << 63, true),
    ] {
        let mut net = Net::new(3, &[limits()], &Config::default(), 1);
        net.recv(0, from(STRANGER), 0, exact(1), 50_000);
        net.stall(0, 0, true);
        net.send(1, 0, 0, 1, &pattern(50_000, 1));
        for turn in 0..20 {
            net.turn(turn % 2, true);
            net.now += 1_000;
        }
        let engine = &mut net.hosts[0].engine;
        // The only receive region has the first identifier.
        let region = RegionId(1 << 32);
        let chunk = |from| Event::Landed { from, number: 9, ack: 0, region, offset, len, kept: true };
        engine.handle(Instant::from_ns(1), RailId(0), chunk(PeerId(STRANGER)));
        assert_eq!(engine.inspect().failure(PeerId(STRANGER)).is_some(), outside, "{len} B at {offset}");
        if !outside {
            engine.handle(Instant::from_ns(1), RailId(0), chunk(PeerId(FRIEND)));
            assert_eq!(engine.inspect().failure(PeerId(FRIEND)).is_some(), !(offset == 0 && len == 50_000));
        }
    }
}

#[test]
fn replays_nest_as_often_as_there_are_rails() {
    for (depth, closed) in [(1, false), (16, false), (17, true), (1_000, true)] {
        let mut body = encoded(&[Frame::Eager(eager(0, 1), &[1])]);
        for number in 0..depth {
            body = encoded(&[Frame::Replay(Replay { rail: 3, number, frames: &body })]);
        }
        assert_eq!(closes(&packet(Kind::Packet, 0, &body)), closed, "{depth} times");
    }
}

#[test]
fn bytes_that_are_no_packet_close_their_peer() {
    let hello = Control::Hello(Hello { from: 1, to: 0, rail: 0, nonce: [0; 32], offer: None, mac: [0; 32] });
    assert!(closes(&hello.encode()));
    assert!(closes(&packet(Kind::Chunk, 0, &[0; 40])));
    assert!(closes(&[]));
    assert!(closes(&[0; 16]));
    assert!(closes(&[0xff; 100]));
    assert!(!closes(&packet(Kind::Packet, 0, &[])));
    assert!(!closes(&packet(Kind::Notice, 0, &[])));
    let unordered = Eager { flags: flags::UNORDERED, ..eager(77, 1) };
    assert!(!frames_close(&[Frame::Eager(unordered, &[1]), Frame::Eager(unordered, &[1])]));
}
