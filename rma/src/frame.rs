//! Frames: what the origin of an operation asks of the target's service, in a message of its own.
//!
//! A frame is a head, the runs of its place if it has several, and data. The messages of one origin are in
//! order.

use crate::place::Place;
use nmad_engine::Tag;

/// The tag of messages with frames.
pub const FRAMES: Tag = Tag(0);
/// Of data that a put sends in a message of their own.
const DATA: u64 = 1 << 32;
/// Of answers.
const ANSWER: u64 = 2 << 32;

/// Bytes of a head.
const HEAD: usize = 24;
/// The kind of a frame whose place has several runs has this bit.
const RUNS: u8 = 0x80;

/// The request of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Write the data that follow.
    Put = 1,
    /// Write the data that come in a message of their own.
    PutFar,
    /// Send what is there.
    Get,
    /// Combine the data that follow with what is there.
    Accumulate,
    /// The same, and send what was there.
    Fetch,
    /// If the first of two elements is there, write the second one; send what was there.
    Swap,
    /// Say when all that was asked before is done.
    Flush,
    /// Say when the lock is ours.
    Lock,
    /// As flush; then the lock is free.
    Unlock,
    /// An access epoch may begin.
    Post,
    /// An access epoch has ended.
    Complete,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        use Kind::{Accumulate, Complete, Fetch, Flush, Get, Lock, Post, Put, PutFar, Swap, Unlock};
        let all = [Put, PutFar, Get, Accumulate, Fetch, Swap, Flush, Lock, Unlock, Post, Complete];
        all.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether it is served when everything before is done.
    pub(crate) fn follows_all(self) -> bool {
        matches!(self, Kind::Flush | Kind::Unlock | Kind::Complete)
    }
}

/// The tag of data that a put sends in a message of their own, by the name that its frame has.
pub fn data_tag(id: u32) -> Tag {
    Tag(DATA | u64::from(id))
}

/// The tag of an answer, by the name that the frame has that asks for it.
pub fn answer_tag(id: u32) -> Tag {
    Tag(ANSWER | u64::from(id))
}

/// What a frame says before its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The request.
    pub kind: Kind,
    /// The operator's number; of a lock: whether it is exclusive.
    pub op: u8,
    /// The number of the predefined type that all data are of.
    pub basic: u8,
    /// Names the answer, or the message with the data.
    pub id: u32,
    /// Where it goes.
    pub place: Place,
}

impl Frame {
    /// Without operator, type and place.
    pub fn plain(kind: Kind, id: u32) -> Frame {
        Frame { kind, op: 0, basic: 0, id, place: Place::One(0, 0) }
    }

    /// Bytes on its way, without data.
    pub fn len(&self) -> usize {
        HEAD + self.place.encoded_len()
    }

    /// Appends it.
    #[inline]
    pub fn encode(&self, into: &mut Vec<u8>) {
        let (is_list, offset, number) = self.place.head();
        let kind = self.kind as u8 | if is_list { RUNS } else { 0 };
        into.extend([kind, self.op, self.basic, 0]);
        into.extend(self.id.to_le_bytes());
        into.extend(offset.to_le_bytes());
        into.extend(number.to_le_bytes());
        self.place.encode(into);
    }

    /// Of a message: it and its data. None: no origin of ours has sent it.
    pub fn decode(message: &[u8]) -> Option<(Frame, &[u8])> {
        let (head, rest) = message.split_first_chunk::<HEAD>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let kind = Kind::of(head[0] & !RUNS)?;
        let (place, data) = Place::decode((head[0] & RUNS != 0, word(8), word(16)), rest)?;
        let id = (word(0) >> 32) as u32;
        Some((Frame { kind, op: head[1], basic: head[2], id, place }, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_way() {
        let places = [Place::One(7, 9), Place::Many(vec![(1, 2), (30, 4)])];
        for (kind, place) in [Kind::Put, Kind::Fetch, Kind::Complete].into_iter().zip(places.iter().cycle()) {
            let frame = Frame { kind, op: 1, basic: 0x47, id: 0xdead_beef, place: place.clone() };
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            assert_eq!(bytes.len(), frame.len());
            bytes.extend(b"data");
            assert_eq!(Frame::decode(&bytes), Some((frame, &b"data"[..])));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(Frame::decode(&[1; HEAD - 1]), None);
        assert_eq!(Frame::decode(&[0; HEAD]), None);
        assert_eq!(Frame::decode(&[RUNS | 1; HEAD]), None);
    }
}
