//! Output of ranks: complete lines with a prefix, or unchanged bytes, without ever blocking the launcher.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::{Output, stamp};

/// Longest buffered line; a longer line comes in pieces, each with its own prefix.
const LINE_MAX: usize = 16 << 20;

/// Backlog for a slow reader at which ranks' output stays in their pipes.
const BACKLOG_MAX: usize = 1 << 20;

/// Largest write: POSIX promises that a ready pipe takes this much without blocking (PIPE_BUF on Linux).
const WRITE_MAX: usize = 4096;

/// A receiver of the ranks' output.
pub trait Taker {
    /// Takes bytes.
    fn push(&mut self, bytes: &[u8]);
}

impl Taker for Vec<u8> {
    fn push(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Prefix of each line of a rank's output. If empty, bytes pass unchanged.
#[derive(Debug, Clone, Default)]
pub struct LineStart {
    /// The tag of the rank.
    pub tag: String,
    /// Whether the time comes before the tag.
    pub timestamp: bool,
}

impl LineStart {
    /// Returns the prefix of a rank's lines; `job` is 0 for the job of the user, or the number of a spawned
    /// job.
    pub fn of(output: &Output, job: u32, rank: u32) -> LineStart {
        let tag = match job {
            _ if !output.tag => String::new(),
            0 => format!("[{rank}] "),
            job => format!("[{job}.{rank}] "),
        };
        LineStart { tag, timestamp: output.timestamp }
    }
}

/// One output stream of one rank.
pub struct Source {
    fd: OwnedFd,
    start: LineStart,
    /// An incomplete line.
    partial: Vec<u8>,
}

impl Source {
    /// `fd` must not block.
    pub fn new(fd: OwnedFd, start: LineStart) -> Source {
        Source { fd, start, partial: Vec::new() }
    }

    /// Moves the available bytes with one read. False: the stream has ended, and all of it was moved.
    pub fn pump(&mut self, sink: &mut impl Taker) -> bool {
        let mut bytes = [0; 16 * 1024];
        match rustix::io::read(&self.fd, &mut bytes) {
            Err(Errno::AGAIN | Errno::INTR) => true,
            Ok(0) | Err(_) => {
                self.finish(sink);
                false
            }
            Ok(count) => {
                self.take(&bytes[..count], sink);
                true
            }
        }
    }

    /// Moves everything from the pipe of an ended rank, even if its children still hold the pipe open.
    pub fn drain(mut self, sink: &mut impl Taker) {
        let mut bytes = [0; 16 * 1024];
        // Bounded in case an escaped process keeps writing: a pipe holds 64 KiB unless it was enlarged.
        for _ in 0..64 {
            match rustix::io::read(&self.fd, &mut bytes) {
                Ok(count) if count > 0 => self.take(&bytes[..count], sink),
                Err(Errno::INTR) => {}
                _ => break,
            }
        }
        self.finish(sink);
    }

    fn take(&mut self, bytes: &[u8], sink: &mut impl Taker) {
        if self.start.tag.is_empty() && !self.start.timestamp {
            return sink.push(bytes);
        }
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LINE_MAX {
                self.finish(sink);
            }
        }
    }

    /// Writes the incomplete line as a line of its own.
    fn finish(&mut self, sink: &mut impl Taker) {
        if self.partial.is_empty() {
            return;
        }
        if self.partial.last() != Some(&b'\n') {
            self.partial.push(b'\n');
        }
        if self.start.timestamp {
            sink.push(format!("{} ", stamp::now()).as_bytes());
        }
        sink.push(self.start.tag.as_bytes());
        sink.push(&self.partial);
        self.partial.clear();
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Our standard output or error: a queue, written when the descriptor is ready.
pub struct Sink {
    fd: OwnedFd,
    queue: Vec<u8>,
    /// Number of bytes of the queue that were written.
    written: usize,
    closed: bool,
}

impl Sink {
    /// Makes a sink for `fd`, whose flags are not changed, since other processes may share it.
    pub fn new(fd: OwnedFd) -> Sink {
        Sink { fd, queue: Vec::new(), written: 0, closed: false }
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether the queue has room for more output.
    pub fn has_room(&self) -> bool {
        self.queue.len() - self.written < BACKLOG_MAX
    }

    /// Returns whether the reader is gone (`nmad run ... | head`).
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops the queue and all further output.
    pub fn give_up(&mut self) {
        self.closed = true;
        self.queue.clear();
        self.written = 0;
    }

    /// Writes a piece; call it when `poll(2)` says that the descriptor is ready.
    ///
    /// # Errors
    /// The reader is gone or the disk is full; neither the queue nor further output can be written.
    pub fn write(&mut self) -> std::io::Result<()> {
        let rest = &self.queue[self.written..];
        match rustix::io::write(&self.fd, &rest[..rest.len().min(WRITE_MAX)]) {
            Ok(count) => self.written += count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => {
                self.give_up();
                return Err(error.into());
            }
        }
        if self.written == self.queue.len() {
            self.queue.clear();
            self.written = 0;
        } else if self.written > BACKLOG_MAX {
            self.queue.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

impl Taker for Sink {
    /// Queues bytes; they are dropped if the reader is gone.
    fn push(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.queue.extend_from_slice(bytes);
        }
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, OwnedFd) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        (ours, theirs.into())
    }

    #[test]
    fn lines_stay_whole_and_the_last_one_gets_its_end() {
        let (mut rank, fd) = pair();
        let (mut reader, out) = pair();
        let (mut source, mut sink) =
            (Source::new(fd, LineStart { tag: "[7] ".into(), timestamp: false }), Sink::new(out));
        rank.write_all(b"one\ntw").unwrap();
        assert!(source.pump(&mut sink));
        rank.write_all(b"o\nthree").unwrap();
        drop(rank);
        while source.pump(&mut sink) {}
        while !sink.is_empty() {
            sink.write().expect("it is taken");
        }
        drop(sink);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "[7] one\n[7] two\n[7] three\n");
    }

    #[test]
    fn a_reader_that_left_closes_the_sink() {
        let (reader, out) = pair();
        let mut sink = Sink::new(out);
        drop(reader);
        sink.push(b"x");
        let error = sink.write().expect_err("nobody takes it");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        assert!(sink.is_closed() && sink.is_empty());
    }
}
