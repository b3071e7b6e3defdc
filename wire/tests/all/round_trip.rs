//! Encoded values decode to themselves, and every decodable text is the encoding of its value.

use crate::common;
use nmad_wire::{
    Blocks, ChunkHeader, Cipher, Control, Eager, Frame, Header, Hello, Kind, MAX_LEN, Offer, Refusal,
    RefusalCode, Rts, flags, frames,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Packet), Just(Kind::Chunk), Just(Kind::Control), Just(Kind::Notice)]
}

proptest! {
    #[test]
    fn a_header_comes_back(kind in kind(), len in Header::LEN as u32..=MAX_LEN, number: u32, ack: u32) {
        let header = Header { kind, len, number, ack };
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn a_chunk_header_comes_back(
        (number, ack, region, key) in any::<(u32, u32, u64, u64)>(),
        len in 0..=MAX_LEN - ChunkHeader::LEN as u32,
        offset: u64,
    ) {
        let offset = offset.min(u64::MAX - u64::from(len));
        let chunk = ChunkHeader { number, ack, region, key, offset, len };
        let bytes = chunk.encode();
        let header = Header::decode(&bytes).unwrap();
        prop_assert_eq!((header.kind, header.len), (Kind::Chunk, len + ChunkHeader::LEN as u32));
        prop_assert_eq!(ChunkHeader::decode(header, &bytes), Ok(chunk));
    }

    #[test]
    fn frames_come_back_in_their_order(list in vec(common::frame(), 0..12)) {
        let bytes: Vec<u8> = list.iter().flat_map(|frame| frame.bytes()).collect();
        let back: Vec<Frame<'_>> = frames(&bytes).map(|frame| frame.unwrap()).collect();
        prop_assert_eq!(back, list.iter().map(|frame| frame.frame()).collect::<Vec<_>>());
    }

    /// The short way in finds what the long way finds, or nothing.
    #[test]
    fn a_message_that_is_alone_is_found_at_once(
        frame in common::frame(),
        (number, ack) in any::<(u32, u32)>(),
        change in any::<Option<(prop::sample::Index, u8)>>(),
    ) {
        let body = frame.bytes();
        let len = (Header::LEN + body.len()) as u32;
        let mut packet = Header { kind: Kind::Packet, len, number, ack }.encode().to_vec();
        packet.extend_from_slice(&body);
        if let Some((at, byte)) = change {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if let Some((header, eager, data)) = Eager::alone(&packet) {
            prop_assert_eq!(Header::decode(&packet), Ok(header));
            let all: Vec<_> = frames(&packet[Header::LEN..]).map(Result::unwrap).collect();
            prop_assert_eq!(all, vec![Frame::Eager(eager, data)]);
        } else {
            let plain = matches!(frame.frame(), Frame::Eager(Eager { flags: 0, .. }, _));
            prop_assert!(!plain || change.is_some());
        }
    }

    /// Two ways to write one frame would be two packets that look alike in a trace and differ for a peer.
    #[test]
    fn changed_bytes_are_refused_or_are_another_frame(
        frame in common::frame(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = frame.bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut again = Vec::new();
        let mut whole = true;
        for frame in frames(&bytes) {
            match frame {
                Ok(frame) => frame.encode(&mut again),
                Err(_) => whole = false,
            }
        }
        prop_assert!(bytes.starts_with(&again));
        prop_assert!(!whole || again == bytes);
    }

    #[test]
    fn a_hello_comes_back(
        (from, to, rail, nonce, mac) in any::<(u32, u32, u8, [u8; 32], [u8; 32])>(),
        key in any::<Option<[u8; 32]>>(),
    ) {
        let offer = key.map(|key| Offer { cipher: Cipher::Aes256Gcm, key });
        let hello = Control::Hello(Hello { from, to, rail, nonce, offer, mac });
        let bytes = hello.encode();
        prop_assert_eq!(Control::decode(&bytes), Ok(hello));
    }

    #[test]
    fn a_refusal_comes_back_cut_at_a_character(text in "\\PC{0,300}") {
        let packet = Control::Refuse(Refusal { code: RefusalCode::Rank, text: &text }).encode();
        let Ok(Control::Refuse(back)) = Control::decode(&packet) else { panic!() };
        prop_assert!(text.starts_with(back.text));
        prop_assert!(back.text.len() <= 512);
        prop_assert!(back.text.len() == text.len() || back.text.len() > 508);
    }
}

#[test]
fn every_control_message_comes_back() {
    for control in common::controls() {
        let bytes = control.encode();
        let header = Header::decode(&bytes).unwrap();
        assert_eq!((header.kind, header.len as usize), (Kind::Control, bytes.len()));
        assert_eq!(Control::decode(&bytes), Ok(control));
    }
}

#[test]
fn the_number_of_a_frame_is_part_of_the_format() {
    let first: Vec<u8> = common::one_of_each().iter().map(|frame| frame.bytes()[0]).collect();
    assert_eq!(first, [1, 1, 13, 8, 2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 9, 10, 11, 16, 12, 14, 15, 2]);
}

#[test]
fn a_request_that_leaves_at_once_is_the_same_alone_and_among_others() {
    let rts = Rts {
        flags: flags::PUSHED,
        context: 0x0102_0304,
        tag: 0x1112_1314_1516_1718,
        seq: 0x2122_2324,
        len: 1 << 40,
        request: 0x3132_3334_3536_3738,
        region: 0,
        pushed: 1 << 20,
        address: 0,
    };
    let packet = rts.alone(7, 9);
    let header = Header { kind: Kind::Packet, len: packet.len() as u32, number: 7, ack: 9 };
    assert_eq!(packet[..], [&header.encode()[..], &Frame::Rts(rts, Blocks::NONE).to_vec()].concat());
    let flags = flags::READ | flags::FIN;
    let rts = Rts { flags, pushed: 0, address: 0x4142_4344_4546_4748, ..rts };
    let packet = rts.alone_to_read(7, 9).map(u64::to_ne_bytes).concat();
    let header = Header { kind: Kind::Packet, len: packet.len() as u32, number: 7, ack: 9 };
    assert_eq!(packet[..], [&header.encode()[..], &Frame::Rts(rts, Blocks::NONE).to_vec()].concat());
}
