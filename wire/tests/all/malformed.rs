//! Malformed bytes are refused, never read past their end, and never cause a panic.

use crate::common;
use nmad_wire::{
    Block, Blocks, ChunkHeader, Control, Frame, Header, Kind, MAX_LEN, MAX_RAILS, Part, Rts, VERSION,
    explain, flags, frames, rts_of,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Whether some frame of `bytes` is refused.
fn is_refused(bytes: &[u8]) -> bool {
    frames(bytes).any(|frame| frame.is_err())
}

/// What a field of `N` bytes is tried with.
const EXTREMES: [u64; 9] =
    [0, 1, 0x7f, 0xff, 0xffff, MAX_LEN as u64, MAX_LEN as u64 + 1, u32::MAX as u64, u64::MAX];

#[test]
fn every_frame_cut_short_is_refused() {
    for frame in common::one_of_each() {
        let bytes = frame.bytes();
        for len in 1..bytes.len() {
            assert!(is_refused(&bytes[..len]), "{frame:?} cut to {len} B");
        }
        assert!(!is_refused(&bytes));
    }
}

#[test]
fn nothing_is_decoded_behind_a_refused_frame() {
    for frame in common::one_of_each() {
        let bytes = [&[200, 0][..], &frame.bytes()].concat();
        assert_eq!(frames(&bytes).count(), 1);
    }
}

#[test]
fn every_header_and_control_message_cut_short_is_refused() {
    let header = Header { kind: Kind::Packet, len: 20, number: 1, ack: 2 }.encode();
    for len in 0..header.len() {
        assert!(Header::decode(&header[..len]).is_err());
    }
    for control in common::controls() {
        let bytes = control.encode();
        let shortest = if matches!(control, Control::Refuse(_)) { Header::LEN + 8 } else { bytes.len() };
        for len in 0..shortest {
            assert!(Control::decode(&bytes[..len]).is_err(), "{control:?} cut to {len} B");
        }
        if !matches!(control, Control::Refuse(_)) {
            assert!(Control::decode(&[&bytes[..], &[0]].concat()).is_err(), "{control:?} and a byte");
        }
    }
}

#[test]
fn a_chunk_header_cut_short_or_out_of_range_is_refused() {
    let chunk = ChunkHeader { number: 1, ack: 2, region: 3, key: 4, offset: 5, len: 6 };
    let bytes = chunk.encode();
    let header = Header::decode(&bytes).unwrap();
    for len in 0..bytes.len() {
        assert!(ChunkHeader::decode(header, &bytes[..len]).is_err());
    }
    for len in 0..ChunkHeader::LEN as u32 {
        assert!(ChunkHeader::decode(Header { len, ..header }, &bytes).is_err());
    }
    let last = |offset| ChunkHeader { offset, ..chunk }.encode();
    assert!(ChunkHeader::decode(header, &last(u64::MAX - 6)).is_ok());
    assert!(ChunkHeader::decode(header, &last(u64::MAX - 5)).is_err());
    assert!(ChunkHeader::decode(header, &last(u64::MAX)).is_err());
}

#[test]
fn lengths_of_packets_out_of_range_are_refused() {
    let good = Header { kind: Kind::Packet, len: 16, number: 1, ack: 2 }.encode();
    for (len, accepted) in [
        (0, false),
        (1, false),
        (15, false),
        (16, true),
        (MAX_LEN, true),
        (MAX_LEN + 1, false),
        (u32::MAX, false),
    ] {
        let mut bytes = good;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        assert_eq!(Header::decode(&bytes).is_ok(), accepted, "{len}");
    }
}

#[test]
fn lengths_inside_of_frames_are_checked_against_the_packet() {
    for frame in common::one_of_each() {
        let good = frame.bytes();
        // Any field may be the length: all of them are tried, at every place and in every width.
        for at in 0..good.len() {
            for width in [1, 2, 4, 8] {
                for extreme in EXTREMES.iter().filter(|_| at + width <= good.len()) {
                    let mut bytes = good.clone();
                    bytes[at..at + width].copy_from_slice(&extreme.to_le_bytes()[..width]);
                    let read: usize = frames(&bytes)
                        .filter_map(|frame| {
                            let mut again = Vec::new();
                            frame.ok()?.encode(&mut again);
                            Some(again.len())
                        })
                        .sum();
                    assert!(read <= bytes.len());
                    explain(&common::packet(&bytes)).to_string();
                }
            }
        }
    }
}

/// A request to send a message of 100 B.
fn rts(flags: u8, pushed: u64) -> Rts {
    Rts { flags, context: 1, tag: 2, seq: 3, len: 100, request: 4, region: 0, pushed, address: 0 }
}

#[test]
fn what_an_rts_pushes_is_no_longer_than_its_message() {
    for (pushed, is_wrong) in [(0, false), (100, false), (101, true), (u64::MAX, true)] {
        let rts = rts(flags::PUSHED, pushed);
        assert_eq!(is_refused(&Frame::Rts(rts, Blocks::NONE).to_vec()), is_wrong, "{pushed} B of 100 B");
    }
}

#[test]
fn blocks_with_an_rts_are_ascending_and_inside_of_their_message() {
    let is_wrong = |rts: Rts, places: &[(u64, u32)]| {
        let blocks: Vec<Block> = places.iter().map(|&(offset, len)| Block { offset, len }).collect();
        is_refused(&common::with_blocks(rts, &blocks).bytes())
    };
    let plain = rts(0, 0);
    assert!(!is_wrong(plain, &[(0, 10), (10, 5), (90, 10)]), "blocks may touch each other and the ends");
    assert!(is_wrong(plain, &[]), "none where some are announced");
    assert!(is_wrong(plain, &[(10, 5), (0, 10)]), "descending");
    assert!(is_wrong(plain, &[(0, 10), (9, 5)]), "overlapping");
    assert!(is_wrong(plain, &[(0, 10), (20, 0)]), "empty");
    assert!(is_wrong(plain, &[(95, 6)]), "across the end");
    assert!(is_wrong(plain, &[(u64::MAX, 1)]), "across the end of all numbers");
    assert!(is_wrong(plain, &[(0, 100)]), "nothing is left");
    assert!(!is_wrong(rts(flags::PUSHED, 90), &[(0, 10)]));
    assert!(is_wrong(rts(flags::PUSHED, 91), &[(0, 10)]), "more is pushed than is left");
    assert!(!is_wrong(rts(flags::READ, 0), &[(0, 10)]));
    assert!(is_wrong(rts(flags::INVITED, 0), &[(0, 10)]), "the region of an Rtr is for the whole message");
    assert!(is_wrong(rts(flags::PARTS, 0), &[(0, 10)]));
    let eager = [&[1, flags::BLOCKS][..], &[0; 22]].concat();
    assert!(is_refused(&eager), "only requests to send have blocks");
}

#[test]
fn the_head_of_an_rts_is_read_without_its_blocks() {
    let rts = rts(flags::BLOCKS, 0);
    let bytes = common::with_blocks(rts, &[Block { offset: 7, len: 9 }]).bytes();
    assert_eq!(rts_of(&bytes[..bytes.len() - 9]), Some(rts));
    assert_eq!(rts_of(&bytes[..20]), None);
    assert_eq!(rts_of(&Frame::Bye.to_vec()), None);
    let Some(Ok(Frame::Rts(_, blocks))) = frames(&bytes).next() else { panic!("no request to send") };
    assert_eq!(blocks.iter().collect::<Vec<_>>(), [(7, &[8; 9][..])]);
    assert_eq!((blocks.count(), blocks.data().len()), (1, 9));
}

#[test]
fn a_part_lies_inside_of_its_message() {
    for (offset, is_wrong) in [(0, false), (96, false), (97, true), (u64::MAX, true)] {
        let part = Part { request: 1, offset, total: 100, len: 4 };
        assert_eq!(is_refused(&Frame::Part(part, &[7; 4]).to_vec()), is_wrong, "4 B at {offset} of 100 B");
    }
}

#[test]
fn data_or_replays_longer_than_their_packet_are_refused() {
    for (frame, at) in [(0, 20), (1, 20), (2, 4), (3, 8)] {
        let good = common::one_of_each()[frame].bytes();
        for (len, refused) in [(0, true), (4, true), (5, false), (6, true), (MAX_LEN, true), (u32::MAX, true)]
        {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(is_refused(&bytes), refused, "frame {frame}, {len} B");
        }
    }
}

#[test]
fn unknown_kinds_versions_and_reserved_bits_are_refused() {
    let good = Header { kind: Kind::Packet, len: 16, number: 1, ack: 2 }.encode();
    let with = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        Header::decode(&bytes).is_ok()
    };
    for byte in 0..=255 {
        assert_eq!(with(4, byte), (1..=4).contains(&byte), "kind {byte}");
        assert_eq!(with(5, byte), byte == VERSION, "version {byte}");
        assert_eq!(with(6, byte), byte == 0);
        assert_eq!(with(7, byte), byte == 0);
    }
}

#[test]
fn unknown_frames_and_flags_are_refused() {
    for kind in (0..=255).filter(|kind| !(1..=16).contains(kind)) {
        assert!(is_refused(&[&[kind, 0][..], &[0; 200]].concat()), "frame {kind}");
    }
    for frame in common::one_of_each() {
        let good = frame.bytes();
        for bits in 0..=255u8 {
            let mut bytes = good.clone();
            bytes[1] = bits;
            let known = match good[0] {
                1 => bits & !3 == 0,
                2 => bits & 128 == 0 && (bits & 60).count_ones() <= 1 && (bits & 64 == 0 || bits & 20 == 0),
                8 | 9 | 14 | 15 => usize::from(bits) < MAX_RAILS,
                3 | 5 | 11 | 16 => bits <= 1,
                _ => bits == 0,
            };
            // Known bits may still ask for fields that are not there.
            assert!(known || is_refused(&bytes), "{frame:?} with flags {bits:#x}");
            assert!(known != is_refused(&bytes) || matches!(good[0], 1 | 2), "{frame:?}, {bits:#x}");
        }
        if matches!(good[0], 1 | 8 | 13) {
            for at in [2, 3] {
                let mut bytes = good.clone();
                bytes[at] = 1;
                assert!(is_refused(&bytes), "reserved byte {at} of {frame:?}");
            }
        }
    }
}

#[test]
fn keys_of_impossible_or_repeated_rails_are_refused() {
    let kinds = common::one_of_each().into_iter().map(|owned| owned.bytes());
    let good = kinds.into_iter().find(|bytes| bytes[0] == 3).expect("a Cts");
    let count = good.len() - 3 * 9 - 1;
    for (at, byte) in
        [(count, 17), (count, 255), (count, 4), (count + 1, 16), (count + 1, 1), (count + 1, 255)]
    {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert!(is_refused(&bytes), "byte {at} is {byte}");
    }
}

#[test]
fn control_messages_with_wrong_fields_are_refused() {
    for control in common::controls() {
        let good = control.encode();
        let refuses = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Control::decode(&bytes).is_err()
        };
        (16..20).for_each(|at| assert!(refuses(at, b'x'), "magic, byte {at}"));
        [0, 5, 255].into_iter().for_each(|what| assert!(refuses(20, what), "message {what}"));
        assert!(refuses(21, VERSION + 1));
        (8..16).for_each(|at| assert!(refuses(at, 1), "number, byte {at}"));
        assert!(refuses(23, 3), "reserved, or a cipher that is none");
        match control {
            Control::Refuse(_) => assert!(refuses(22, 0) && refuses(22, 6), "reason"),
            Control::Proof(_) => assert!(refuses(22, 1), "a proof has no detail"),
            Control::Hello(_) | Control::Welcome(_) => {}
        }
        if !matches!(control, Control::Refuse(_)) {
            let mut longer = good.clone();
            longer.push(0);
            let len = longer.len() as u32;
            longer[..4].copy_from_slice(&len.to_le_bytes());
            assert!(Control::decode(&longer).is_err(), "a byte too many");
        }
    }
    let mut text = common::controls().pop().unwrap().encode();
    text.push(0xff);
    assert!(Control::decode(&text).is_err(), "not UTF-8");
    text.pop();
    text.extend([b'a'; 513]);
    assert!(Control::decode(&text).is_err(), "too long");
}

proptest! {
    #[test]
    fn any_bytes_are_explained_in_one_line(bytes in vec(any::<u8>(), 0..300)) {
        let text = explain(&bytes).to_string();
        prop_assert!(!text.is_empty() && !text.contains(char::is_control), "{:?}", text);
    }

    #[test]
    fn any_body_is_explained_in_one_line(body in vec(any::<u8>(), 0..300)) {
        let text = explain(&common::packet(&body)).to_string();
        prop_assert!(text.starts_with("packet #1") && !text.contains(char::is_control), "{:?}", text);
    }

    #[test]
    fn any_frames_are_explained_one_by_one(list in vec(common::frame(), 0..6)) {
        let body: Vec<u8> = list.iter().flat_map(|frame| frame.bytes()).collect();
        let text = explain(&common::packet(&body)).to_string();
        prop_assert_eq!(text.matches(" | ").count(), list.len());
        prop_assert!(!text.contains("malformed") && !text.contains(char::is_control));
    }
}

#[test]
fn every_control_message_and_chunk_is_explained_in_one_line() {
    let chunk = ChunkHeader { number: 1, ack: 2, region: 3, key: 4, offset: 5, len: 6 }.encode();
    assert_eq!(explain(&chunk).to_string(), "chunk #1 of 6 B to region 0x3 at 5");
    for control in common::controls() {
        let text = explain(&control.encode()).to_string();
        assert!(!text.contains("malformed") && !text.contains(char::is_control), "{text}");
    }
}

#[test]
fn words_of_a_stranger_do_not_break_the_line() {
    let refusal = nmad_wire::Refusal { code: nmad_wire::RefusalCode::Rank, text: "a\nrefused: b\u{1b}[2J" };
    let text = explain(&Control::Refuse(refusal).encode()).to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
}
