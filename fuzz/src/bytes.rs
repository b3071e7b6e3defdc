//! Any bytes: the decoders accept or refuse, accepted bytes are the one encoding of their value, and an
//! engine that receives them closes that one peer at most.

use crate::victim::Victim;
use nmad_wire::{ChunkHeader, Control, Header, Kind, explain, frames};

/// Feeds `data` to every decoder, and as a stream of packets to an engine.
///
/// # Panics
/// If that shows a bug.
pub fn bytes(data: &[u8]) {
    decoders(data);
    let mut victim = Victim::new();
    for packet in packets(data) {
        decoders(packet);
        victim.receive(packet);
    }
    victim.check(data.len());
}

/// Cuts a stream at the lengths in its headers; the rest without a valid header is the last packet.
fn packets(mut data: &[u8]) -> Vec<&[u8]> {
    let mut list = Vec::new();
    while !data.is_empty() {
        let len = Header::decode(data).map_or(data.len(), |header| header.len as usize);
        let (packet, rest) = data.split_at(len.min(data.len()));
        list.push(packet);
        data = rest;
    }
    list
}

fn decoders(data: &[u8]) {
    let text = explain(data).to_string();
    assert!(!text.chars().any(char::is_control), "an explanation that is not one line: {text:?}");
    assert!(text.len() <= 400 + 100 * data.len(), "an explanation of {} B", text.len());
    let Ok(header) = Header::decode(data) else { return };
    assert_eq!(header.encode()[..], data[..Header::LEN], "another way to write {header:?}");
    match header.kind {
        Kind::Packet | Kind::Notice => body(&data[Header::LEN..]),
        Kind::Chunk => {
            if let Ok(chunk) = ChunkHeader::decode(header, data) {
                assert_eq!(chunk.encode()[..], data[..ChunkHeader::LEN], "another way to write {chunk:?}");
            }
        }
        Kind::Control => {
            if let Ok(control) = Control::decode(data) {
                // The header of a control message has a number and an acknowledgement without a meaning.
                assert_eq!(control.encode()[Header::LEN..], data[Header::LEN..], "{control:?}");
            }
        }
    }
}

fn body(body: &[u8]) {
    let mut again = Vec::new();
    let mut whole = true;
    for frame in frames(body) {
        assert!(whole, "a frame after an error");
        match frame {
            Ok(frame) => frame.encode(&mut again),
            Err(_) => whole = false,
        }
    }
    assert!(body.starts_with(&again), "another way to write some frame of {body:x?}");
    assert!(!whole || again.len() == body.len(), "bytes were passed over");
}
