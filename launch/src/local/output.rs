//! Output: ranks' bytes in; whole lines with a tag, or the bytes as they are, out; and never a blocked
//! launcher.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::stamp;

/// A line longer than this comes in pieces, each with a beginning of its own: lines wait here for their ends.
const LINE_MAX: usize = 16 << 20;

/// With more than this waiting for a slow reader, ranks' output is left in their pipes.
const BACKLOG_MAX: usize = 1 << 20;

/// POSIX promises that a pipe that is ready takes this much without blocking (PIPE_BUF on Linux).
const WRITE_MAX: usize = 4096;

/// The readers of the output of ranks.
pub trait Taker {
    /// Takes bytes.
    fn push(&mut self, bytes: &[u8]);
}

impl Taker for Vec<u8> {
    fn push(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What each line of a rank's output begins with. Nothing: bytes pass as they come.
#[derive(Debug, Clone, Default)]
pub struct LineStart {
    /// Who wrote it.
    pub tag: String,
    /// Whether the time comes before that.
    pub timestamp: bool,
}

/// What one rank writes to one of its streams.
pub struct Source {
    fd: OwnedFd,
    start: LineStart,
    /// A line without its end yet.
    partial: Vec<u8>,
}

impl Source {
    /// `fd` must not block.
    pub fn new(fd: OwnedFd, start: LineStart) -> Source {
        Source { fd, start, partial: Vec::new() }
    }

    /// Moves what there is, one read. False: the stream is at its end, and all of it was moved.
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

    /// Moves all that is in the pipe of a rank that is gone, however many of its children still hold it.
    pub fn drain(mut self, sink: &mut impl Taker) {
        let mut bytes = [0; 16 * 1024];
        // Bounded, should an escaped process keep writing: a pipe holds 64 KiB unless it was enlarged.
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

    /// Sends what there is as a line of its own.
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
    /// How much of the queue is written.
    written: usize,
    closed: bool,
}

impl Sink {
    /// A sink into `fd`, which may be shared with others: its flags are left alone.
    pub fn new(fd: OwnedFd) -> Sink {
        Sink { fd, queue: Vec::new(), written: 0, closed: false }
    }

    /// Whether nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the queue has room for more output.
    pub fn has_room(&self) -> bool {
        self.queue.len() - self.written < BACKLOG_MAX
    }

    /// Whether the reader has gone (`nmad run ... | head`).
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops what waits, and all that comes.
    pub fn give_up(&mut self) {
        self.closed = true;
        self.queue.clear();
        self.written = 0;
    }

    /// Writes a piece; to be called when `poll(2)` says that the descriptor takes one.
    ///
    /// # Errors
    /// Nothing that waits, nor what comes, can be written: the reader has gone, or the disk is full.
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
    /// Queues bytes; lost if nobody reads any more.
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
