//! Sends our standard input to ranks on other hosts. Only one piece is in progress, so the slowest host
//! determines the rate.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::message::Down;
use crate::local::input::in_foreground;

/// Bytes that are sent at once.
const CHUNK: usize = 16 * 1024;

/// Standard input and the hosts that read it.
pub struct Feed {
    source: Option<OwnedFd>,
    /// Each host with readers, and whether it has not yet taken the current piece.
    readers: Vec<(u32, bool)>,
}

/// Input for the readers.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end of input.
    End,
}

impl From<Piece> for Down {
    fn from(piece: Piece) -> Down {
        match piece {
            Piece::Bytes(bytes) => Down::Input(bytes),
            Piece::End => Down::InputEnd,
        }
    }
}

impl Feed {
    /// Sends `source` to these hosts.
    pub fn new(source: Option<OwnedFd>, readers: Vec<u32>) -> Feed {
        Feed { source, readers: readers.into_iter().map(|node| (node, false)).collect() }
    }

    /// Returns the descriptor to wait for, if more can be read now.
    pub fn wants_read(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref()?;
        let idle = self.readers.iter().all(|(_, takes)| !takes);
        (idle && !self.readers.is_empty() && in_foreground(source)).then(|| source.as_fd())
    }

    /// Returns whether reading waits for this process to be in the foreground of its terminal, which no
    /// descriptor reports.
    pub fn is_in_background(&self) -> bool {
        !self.readers.is_empty() && self.source.as_ref().is_some_and(|source| !in_foreground(source))
    }

    /// Reads a piece for all readers; call it when standard input is ready.
    pub fn read(&mut self) -> Option<(Piece, Vec<u32>)> {
        let source = self.source.as_ref()?;
        let mut bytes = vec![0; CHUNK];
        let piece = match rustix::io::read(source, &mut bytes[..]) {
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Ok(count) if count > 0 => {
                bytes.truncate(count);
                Piece::Bytes(bytes)
            }
            Ok(_) | Err(_) => {
                self.source = None;
                Piece::End
            }
        };
        self.readers.iter_mut().for_each(|(_, takes)| *takes = piece != Piece::End);
        Some((piece, self.readers.iter().map(|(node, _)| *node).collect()))
    }

    /// Records that a host has taken its piece.
    pub fn taken(&mut self, node: u32) {
        self.readers.iter_mut().filter(|(own, _)| *own == node).for_each(|(_, takes)| *takes = false);
    }

    /// Removes a host.
    pub fn gone(&mut self, node: u32) {
        self.readers.retain(|(own, _)| *own != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_next_piece_waits_for_all_readers() {
        let (source, mut user) = std::io::pipe().expect("a pipe");
        let mut feed = Feed::new(Some(source.into()), vec![0, 3]);
        user.write_all(b"one").expect("it is taken");
        assert!(feed.wants_read().is_some());
        assert_eq!(feed.read(), Some((Piece::Bytes(b"one".to_vec()), vec![0, 3])));
        feed.taken(0);
        assert!(feed.wants_read().is_none());
        feed.gone(3);
        assert!(feed.wants_read().is_some());
        drop(user);
        assert_eq!(feed.read(), Some((Piece::End, vec![0])));
        assert!(feed.wants_read().is_none());
    }
}
