//! Copies our standard input to the ranks that read it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// Bytes that are copied at once.
const CHUNK: usize = 16 * 1024;

/// A rank's pipe, and the number of bytes of the current chunk that it took.
struct Reader {
    pipe: OwnedFd,
    taken: usize,
}

/// Standard input and its readers. Only one chunk is in progress, so the slowest reader determines the
/// rate.
pub struct Input {
    source: Option<OwnedFd>,
    chunk: Vec<u8>,
    readers: Vec<Reader>,
}

impl Input {
    /// Copies `source` into `pipes`, which must not block.
    pub fn new(source: Option<OwnedFd>, pipes: Vec<OwnedFd>) -> Input {
        let readers = pipes.into_iter().map(|pipe| Reader { pipe, taken: 0 }).collect();
        Input { source, chunk: Vec::new(), readers }
    }

    /// Returns the descriptor to wait for, if more can be read now.
    pub fn wants_read(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref()?;
        let idle = self.readers.iter().all(|reader| reader.taken == self.chunk.len());
        (idle && !self.readers.is_empty() && in_foreground(source)).then(|| source.as_fd())
    }

    /// Returns whether reading waits for this process to be in the foreground of its terminal, which no
    /// descriptor reports.
    pub fn is_in_background(&self) -> bool {
        !self.readers.is_empty() && self.source.as_ref().is_some_and(|source| !in_foreground(source))
    }

    /// Returns whether all readers have taken the current chunk.
    pub fn is_idle(&self) -> bool {
        self.readers.iter().all(|reader| reader.taken == self.chunk.len())
    }

    /// Gives bytes from another source to the readers; only while idle.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        self.chunk = bytes;
        self.readers.iter_mut().for_each(|reader| reader.taken = 0);
        self.write();
    }

    /// Ends the input.
    pub fn close(&mut self) {
        self.source = None;
        self.readers.clear();
    }

    /// Returns the pipes that have bytes to write.
    pub fn wants_write(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.readers.iter().filter(|reader| reader.taken < self.chunk.len()).map(|reader| reader.pipe.as_fd())
    }

    /// Reads a chunk; call it when standard input is ready.
    pub fn read(&mut self) {
        let Some(source) = &self.source else { return };
        self.chunk.resize(CHUNK, 0);
        let count = match rustix::io::read(source, &mut self.chunk[..]) {
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(0) | Err(_) => {
                // The end of our input ends the input of the readers.
                self.source = None;
                self.readers.clear();
                None
            }
            Ok(count) => Some(count),
        };
        self.chunk.truncate(count.unwrap_or(0));
        self.readers.iter_mut().for_each(|reader| reader.taken = 0);
    }

    /// Writes as much as the pipes take. A reader that is gone is dropped.
    pub fn write(&mut self) {
        let chunk = &self.chunk;
        self.readers.retain_mut(|reader| {
            while reader.taken < chunk.len() {
                match rustix::io::write(&reader.pipe, &chunk[reader.taken..]) {
                    Ok(count) => reader.taken += count,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return true,
                    Err(_) => return false,
                }
            }
            true
        });
    }
}

/// Returns whether this process may read. Reading a terminal from the background stops the reader
/// (SIGTTIN), and with it the whole job.
pub(crate) fn in_foreground(source: &OwnedFd) -> bool {
    match rustix::termios::tcgetpgrp(source) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn all_readers_get_everything() {
        let (mut user, source) = UnixStream::pair().unwrap();
        let (mut a, a_pipe) = UnixStream::pair().unwrap();
        let (b, b_pipe) = UnixStream::pair().unwrap();
        let mut input = Input::new(Some(source.into()), vec![a_pipe.into(), b_pipe.into()]);
        user.write_all(b"hello").unwrap();
        drop((user, b));
        assert!(input.wants_read().is_some());
        input.read();
        assert_eq!(input.wants_write().count(), 2);
        assert!(input.wants_read().is_none(), "one chunk at a time");
        input.write();
        input.read();
        let mut text = String::new();
        a.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }
}
