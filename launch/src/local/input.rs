//! Our standard input, copied to the ranks that read it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// Bytes that go to a rank in one read.
const CHUNK: usize = 16 * 1024;

/// A rank's pipe and how much of the current chunk it took.
struct Reader {
    pipe: OwnedFd,
    taken: usize,
}

/// Standard input and its readers. One chunk is under way at a time, so the slowest reader sets the pace.
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

    /// The descriptor to wait for, if more can be read now.
    pub fn wants_read(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref()?;
        let idle = self.readers.iter().all(|reader| reader.taken == self.chunk.len());
        (idle && !self.readers.is_empty() && in_foreground(source)).then(|| source.as_fd())
    }

    /// Whether we only wait to be brought to the foreground of our terminal, which no descriptor tells.
    pub fn is_in_background(&self) -> bool {
        !self.readers.is_empty() && self.source.as_ref().is_some_and(|source| !in_foreground(source))
    }

    /// Whether all readers have taken what they were given.
    pub fn is_idle(&self) -> bool {
        self.readers.iter().all(|reader| reader.taken == self.chunk.len())
    }

    /// Gives bytes to the readers that did not come from a source of ours; only while it is idle.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        self.chunk = bytes;
        self.readers.iter_mut().for_each(|reader| reader.taken = 0);
        self.write();
    }

    /// No more comes.
    pub fn close(&mut self) {
        self.source = None;
        self.readers.clear();
    }

    /// The pipes that have bytes to come.
    pub fn wants_write(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.readers.iter().filter(|reader| reader.taken < self.chunk.len()).map(|reader| reader.pipe.as_fd())
    }

    /// Reads a chunk; to be called when standard input is ready.
    pub fn read(&mut self) {
        let Some(source) = &self.source else { return };
        self.chunk.resize(CHUNK, 0);
        let count = match rustix::io::read(source, &mut self.chunk[..]) {
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(0) | Err(_) => {
                // The end of our input is the end of theirs.
                self.source = None;
                self.readers.clear();
                None
            }
            Ok(count) => Some(count),
        };
        self.chunk.truncate(count.unwrap_or(0));
        self.readers.iter_mut().for_each(|reader| reader.taken = 0);
    }

    /// Writes what the pipes take. A reader that is gone is forgotten.
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

/// Reading a terminal from the background stops the reader (SIGTTIN), and with it the whole job.
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
