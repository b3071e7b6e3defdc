//! Frames: the requests of an origin to its target. A message has one or several.
//!
//! A frame is a head, the runs of its place if it has several, data, and bytes up to a multiple of eight. The
//! messages of one origin are in order.

use crate::place::Place;
use nmad_engine::{Segments, Tag};

/// Of data that a put sends in a message of their own.
const DATA: u64 = 1 << 32;
/// Of answers.
const ANSWER: u64 = 2 << 32;

/// Bytes of a head.
const HEAD: usize = 32;
/// Frames begin at multiples of this number of bytes.
const ALIGNMENT: usize = 8;
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
    /// Keep what follows until the lock is ours.
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
    /// The operator's number; of a lock: its kind, or when it is given back whether it was had alone.
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

    /// Appends it and data behind it.
    #[inline]
    pub fn encode(&self, data: &Segments, into: &mut Vec<u8>) {
        let (is_list, offset, number) = self.place.head();
        let kind = self.kind as u8 | if is_list { RUNS } else { 0 };
        into.extend([kind, self.op, self.basic, 0]);
        into.extend(self.id.to_le_bytes());
        into.extend(offset.to_le_bytes());
        into.extend(number.to_le_bytes());
        into.extend(data.len().to_le_bytes());
        self.place.encode(into);
        data.append_to(into);
        into.resize(into.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// The first one of a message, its data, and the bytes of both. None: there is no further one, or no
    /// origin of ours has sent it.
    pub fn decode(message: &[u8]) -> Option<(Frame, &[u8], usize)> {
        let (head, rest) = message.split_first_chunk::<HEAD>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let kind = Kind::of(head[0] & !RUNS)?;
        let (place, rest) = Place::decode((head[0] & RUNS != 0, word(8), word(16)), rest)?;
        let data = rest.get(..usize::try_from(word(24)).ok()?)?;
        let id = (word(0) >> 32) as u32;
        let len = (message.len() - rest.len() + data.len()).next_multiple_of(ALIGNMENT);
        Some((Frame { kind, op: head[1], basic: head[2], id, place }, data, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::lent;

    #[test]
    fn the_frames_of_a_message_survive_the_way() {
        let places = [Place::One(7, 9), Place::Many(vec![(1, 2), (30, 4)])];
        let data = [&b"data"[..], b"", b"eight in"];
        let frames: Vec<Frame> = [Kind::Put, Kind::Fetch, Kind::Complete]
            .into_iter()
            .zip(places.iter().cycle())
            .map(|(kind, place)| Frame { kind, op: 1, basic: 0x47, id: 0xdead_beef, place: place.clone() })
            .collect();
        let mut bytes = Vec::new();
        frames.iter().zip(data).for_each(|(frame, data)| frame.encode(&lent(data), &mut bytes));
        let mut rest = &bytes[..];
        for (frame, data) in frames.iter().zip(data) {
            let (found, found_data, len) = Frame::decode(rest).expect("a frame");
            assert_eq!((&found, found_data), (frame, data));
            rest = &rest[len..];
        }
        assert_eq!(Frame::decode(rest), None);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(Frame::decode(&[1; HEAD - 1]), None);
        assert_eq!(Frame::decode(&[0; HEAD]), None);
        assert_eq!(Frame::decode(&[RUNS | 1; HEAD]), None);
        // There are fewer data than it says.
        assert_eq!(Frame::decode(&[1; HEAD]), None);
    }
}
