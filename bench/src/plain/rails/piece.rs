//! A piece of a message on its way: its place (offset and length, 16 bytes, little endian), then its bytes.
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::ops::Range;

use crate::plain::wait::moved;

const HEAD: usize = 16;

/// A piece being sent.
pub(super) struct Outgoing<'a> {
    head: [u8; HEAD],
    body: &'a [u8],
    /// Bytes of head and body that the kernel has taken.
    done: usize,
}

impl<'a> Outgoing<'a> {
    /// The piece `body`, which begins at `at` in the message.
    pub fn new(at: usize, body: &'a [u8]) -> Outgoing<'a> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&(at as u64).to_le_bytes());
        head[8..].copy_from_slice(&(body.len() as u64).to_le_bytes());
        Outgoing { head, body, done: 0 }
    }

    /// Offers what remains to the kernel, at most `allowed` bytes of the body. Returns the bytes of the body
    /// it took, `None` if nothing.
    pub fn push(&mut self, mut stream: &TcpStream, allowed: usize) -> io::Result<Option<usize>> {
        if allowed == 0 {
            return Ok(None);
        }
        let head = &self.head[self.done.min(HEAD)..];
        let before = self.done.saturating_sub(HEAD);
        let body = &self.body[before..self.body.len().min(before.saturating_add(allowed))];
        let Some(len) = moved(stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]))? else {
            return Ok(None);
        };
        self.done += len;
        Ok(Some(self.done.saturating_sub(HEAD) - before))
    }

    /// Whether the kernel has all of it.
    pub fn is_done(&self) -> bool {
        self.done == HEAD + self.body.len()
    }
}

/// What one socket is receiving: the rest of a piece, and the head of the next one in the same call.
#[derive(Default)]
pub(super) struct Incoming {
    /// Where the rest of the current piece goes; empty between pieces.
    rest: Range<usize>,
    head: [u8; HEAD],
    head_len: usize,
}

impl Incoming {
    /// Takes what the kernel has, straight into `message`. Returns the bytes of the message among it, `None`
    /// if there was nothing.
    pub fn pull(&mut self, mut stream: &TcpStream, message: &mut [u8]) -> io::Result<Option<usize>> {
        let body = &mut message[self.rest.clone()];
        let asked = body.len();
        let head = &mut self.head[self.head_len..];
        let Some(len) = moved(stream.read_vectored(&mut [IoSliceMut::new(body), IoSliceMut::new(head)]))?
        else {
            return Ok(None);
        };
        let into_body = len.min(asked);
        self.rest.start += into_body;
        self.head_len += len - into_body;
        if self.head_len == HEAD {
            self.rest = place(&self.head, message.len())?;
            self.head_len = 0;
        }
        Ok(Some(into_body))
    }
}

/// The place a head names, if it lies within a message of `len` bytes.
fn place(head: &[u8; HEAD], len: usize) -> io::Result<Range<usize>> {
    let field = |at: usize| {
        let bytes = head[at..at + 8].try_into().unwrap_or_default();
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let range = field(0).zip(field(8)).and_then(|(at, count)| Some(at..at.checked_add(count)?));
    range.filter(|range| range.end <= len && !range.is_empty()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "a piece lies outside of the message: do both sides use one plan?",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_of_the_message_are_refused() {
        let head = |at: u64, count: u64| {
            let mut head = [0; HEAD];
            head[..8].copy_from_slice(&at.to_le_bytes());
            head[8..].copy_from_slice(&count.to_le_bytes());
            head
        };
        assert_eq!(place(&head(2, 8), 10).ok(), Some(2..10));
        for (at, count) in [(3, 8), (u64::MAX, 1), (1, u64::MAX), (0, 0)] {
            assert!(place(&head(at, count), 10).is_err(), "{at} + {count}");
        }
    }
}
