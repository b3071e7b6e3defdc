//! Requests of processes to the owner of a region, and its answers, as bytes.

use crate::fault::{Cause, Fault};
use crate::list;
use crate::piece::Pieces;

/// Bytes of a request before its list of places.
const HEAD: usize = 28;
/// Bytes of an answer before its words.
const ANSWER_HEAD: usize = 16;
/// Bytes of an answer at most; the words of an error are cut off there.
pub const ANSWER: usize = 512;
/// Data of up to this many bytes travel in the request.
pub const INLINE: u64 = 16 << 10;
/// Bytes of the data of one request at most.
pub const DATA: u64 = 1 << 20;
/// Flag of the tags of answers; other messages of the file have smaller tags.
const ANSWERS: u64 = 1 << 40;
/// Flag of the tags of data of writes. Two processes that are owners may ask each other under one number.
const WRITTEN: u64 = 1 << 41;
/// Bytes of a list for each byte of data, at most.
const LIST_MAX: u64 = 32;

/// The operation that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// To write data to places of one region.
    Write(Pieces, Vec<u8>),
    /// The bytes of places of one region.
    Read(Pieces),
    /// To serve only this access until a request of it releases the owner.
    Hold,
    /// Where the file ends.
    End,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub ask: Ask,
    /// What it is a part of.
    pub part: Part,
}

/// The part of an access that a request is. Threads of one process have accesses under way at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// The number of an access that holds the owner ([`Ask::Hold`]); 0: it does not.
    pub access: u32,
    /// Afterwards the owner serves other accesses again.
    pub releases: bool,
}

/// The answer of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was done, and the file ends here, as far as this owner knows; the bytes of a read, of which those
    /// behind the end are 0.
    Done {
        /// The byte behind the last one.
        end: u64,
        /// The bytes of a read.
        data: Vec<u8>,
    },
    /// It could not be done.
    Failed(Fault),
}

/// A request whose data may not be there yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// The number that the answer has.
    pub id: u32,
    /// The request; data that come in a message of their own are missing.
    pub request: Request,
    /// Bytes of data that come in a message of their own.
    pub far: u64,
}

/// The tag of the answer to a request.
pub fn answer_tag(id: u32) -> u64 {
    ANSWERS | u64::from(id) << 1
}

/// The tag of the data of a read, which follow the answer.
pub fn read_tag(id: u32) -> u64 {
    answer_tag(id) | 1
}

/// The tag of data of a write that do not travel in the request.
pub fn written_tag(id: u32) -> u64 {
    WRITTEN | u64::from(id)
}

const WRITE: u8 = 1;
const READ: u8 = 2;
const HOLD: u8 = 3;
const END: u8 = 4;

/// The bytes of a request for places in one region; data of up to [`INLINE`] bytes are appended by the
/// caller.
pub fn encode(id: u32, kind: Kind, pieces: &Pieces, part: Part) -> Vec<u8> {
    let list = list::encode(pieces);
    let mut bytes = vec![kind as u8, u8::from(part.releases), 0, 0];
    bytes.extend(id.to_le_bytes());
    bytes.extend((list.len() as u64).to_le_bytes());
    bytes.extend(pieces.len().to_le_bytes());
    bytes.extend(part.access.to_le_bytes());
    bytes.extend(list);
    bytes
}

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Ask::Write`]
    Write = WRITE as isize,
    /// [`Ask::Read`]
    Read = READ as isize,
    /// [`Ask::Hold`]
    Hold = HOLD as isize,
    /// [`Ask::End`]
    End = END as isize,
}

/// The request of some bytes; `None`: they are none.
pub fn decode(bytes: &[u8]) -> Option<Head> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let [list_len, len] = [8, 16].map(|at| number(&head[at..at + 8]));
    let [id, access] =
        [4, 24].map(|at| head[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)));
    if len > DATA || list_len > len.saturating_mul(LIST_MAX) {
        return None;
    }
    let (list, data) = rest.split_at_checked(usize::try_from(list_len).ok()?)?;
    let pieces = list::decode(list, len)?;
    let mut far = 0;
    let ask = match head[0] {
        WRITE if len > INLINE && data.is_empty() => {
            far = len;
            Ask::Write(pieces, Vec::new())
        }
        WRITE if data.len() as u64 == len => Ask::Write(pieces, data.to_vec()),
        READ => Ask::Read(pieces),
        HOLD => Ask::Hold,
        END => Ask::End,
        _ => return None,
    };
    let part = Part { access, releases: head[1] != 0 };
    Some(Head { id, request: Request { ask, part }, far })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Answer {
    /// Its bytes, but for the data of a read, which go straight to the memory of the program.
    pub fn encode(&self) -> Vec<u8> {
        let (is_done, cause, end, text) = match self {
            Answer::Done { end, .. } => (1, 0, *end, ""),
            Answer::Failed(fault) => (0, fault.cause as u8, 0, &*fault.text),
        };
        let mut bytes = vec![is_done, cause, 0, 0, 0, 0, 0, 0];
        bytes.extend(end.to_le_bytes());
        bytes.extend(text.as_bytes().iter().take(ANSWER - ANSWER_HEAD));
        bytes
    }

    /// The answer of some bytes, without data.
    pub fn decode(bytes: &[u8]) -> Option<Answer> {
        let (head, text) = bytes.split_first_chunk::<ANSWER_HEAD>()?;
        if head[0] == 1 {
            return Some(Answer::Done { end: number(&head[8..]), data: Vec::new() });
        }
        let text = String::from_utf8_lossy(text).into_owned();
        Some(Answer::Failed(Fault { cause: Cause::numbered(head[1]), text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::Piece;
    use proptest::prelude::*;

    fn pieces() -> Pieces {
        [(3, 4), (10, 2)].map(|(offset, len)| Piece { offset, len }).into_iter().collect()
    }

    #[test]
    fn requests_and_answers_survive() {
        let part = Part { access: 5, releases: true };
        let mut bytes = encode(7, Kind::Write, &pieces(), part);
        assert_eq!(decode(&bytes), None, "the data are missing");
        bytes.extend(b"abcdef");
        let ask = Ask::Write(pieces(), b"abcdef".to_vec());
        assert_eq!(decode(&bytes), Some(Head { id: 7, request: Request { ask, part }, far: 0 }));
        let long: Pieces = [Piece { offset: 5, len: INLINE + 1 }].into_iter().collect();
        let far = decode(&encode(1, Kind::Write, &long, Part::default())).unwrap();
        assert_eq!((far.far, far.request.ask), (INLINE + 1, Ask::Write(long, Vec::new())));
        for (kind, ask) in [(Kind::Hold, Ask::Hold), (Kind::End, Ask::End)] {
            let bytes = encode(9, kind, &Pieces::default(), Part::default());
            assert_eq!(decode(&bytes).unwrap().request.ask, ask);
        }
        for answer in [
            Answer::Done { end: 1 << 40, data: Vec::new() },
            Answer::Failed(Fault { cause: Cause::NoSpace, text: "cannot write".into() }),
        ] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(head) = decode(&bytes) {
                prop_assert!(head.far <= DATA);
            }
            let _ = Answer::decode(&bytes);
        }
    }
}
