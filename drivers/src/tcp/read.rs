//! Receiving: each read places bytes from a peer's socket directly at their destination where possible.
//!
//! Between two packets, data is read into the rail's scratch buffer, and whole packets are reported from
//! there. Once the header of a chunk is known, the rest of it is read directly into user memory, and the
//! same call reads the bytes behind it into the scratch buffer, where they stay until the next poll.

use super::PACKET;
use super::scratch::Scratch;
use super::stream::{Broken, Place, Stream, is_packet};
use super::sys;
use nmad_engine::transfer::driver::Event;
use nmad_wire::Malformed;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};

/// Bytes that one read takes into the scratch buffer: the longest packet, whose beginning would otherwise be
/// copied before the rest is read. Reading the header of a chunk alone would save a copy of the data behind
/// it, but acknowledges a piece of the kernel (64 KiB) that is half read while its sender is busy with the
/// next one (measured: 1.3 us for each message).
pub const AHEAD: usize = PACKET;
/// While the peer is faster than this side, limits how many bytes behind a chunk or long packet one read
/// takes: its length divided by this. Those bytes must be copied, and in that state our copies are the
/// bottleneck.
const BEHIND: u32 = 16;

/// Result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadResult {
    /// No byte.
    Nothing,
    /// All available data.
    All,
    /// As much as the buffers hold; there may be more.
    Full,
    /// Bytes that an earlier call had read.
    Kept,
}

/// Reason for the end of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The peer has closed the connection.
    Closed,
    /// The system reports an error.
    Failed(Errno),
    /// The content of the stream ends it.
    Broken(Broken),
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        Ended::Broken(broken)
    }
}

impl From<Malformed> for Ended {
    fn from(malformed: Malformed) -> Self {
        Ended::Broken(malformed.into())
    }
}

impl fmt::Display for Ended {
    /// Writes the reason for the user; the name of the peer precedes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Closed => f.write_str("closed the link (has it ended?)"),
            Ended::Failed(e) => f.write_str(&failed(*e)),
            Ended::Broken(Broken::Refused(text)) => write!(f, "closed the link: {text}"),
            Ended::Broken(Broken::Forged) => f.write_str(
                "has lost its link: a record was changed on its way, or another host sent it (who can write \
                 to this network?); its data is not used",
            ),
            Ended::Broken(Broken::Malformed(e)) => write!(f, "broke the protocol: {e}"),
        }
    }
}

/// Returns the reason for the user if a system call failed.
pub fn failed(e: Errno) -> String {
    format!("failed: {e} (has it died?)")
}

/// Reads once and reports completed packets and chunks. `backlog`: the last read did not take all available
/// data.
#[inline]
pub fn read(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    backlog: bool,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<ReadResult, Ended> {
    match stream {
        Stream::Between => read_scratch(fd, stream, scratch, place, report),
        Stream::Partial(_) => read_partial(fd, stream, backlog, scratch, place, report),
        Stream::Chunk(header, _) => {
            let behind = if backlog { (header.len / BEHIND) as usize } else { AHEAD };
            read_chunk(fd, stream, behind.min(AHEAD), scratch, place, report)
        }
        Stream::Held(_) | Stream::Kept(_) => {
            let goes_on = stream.resume(scratch, place, report)?;
            Ok(if goes_on { ReadResult::Kept } else { ReadResult::Nothing })
        }
    }
}

/// Result of polling for one packet.
pub enum PacketPoll {
    /// No data.
    Nothing,
    /// One packet, in this range of the scratch buffer.
    Packet(Range<usize>),
    /// Other data, which is kept for the next poll.
    Other,
}

/// Reads once into the scratch buffer, for a thread that waits for one packet. Returns the number of bytes,
/// or what the poll has found instead.
#[inline]
pub fn poll_once(fd: BorrowedFd<'_>, scratch: &mut Scratch) -> Result<ControlFlow<PacketPoll, usize>, Ended> {
    match net::recv(fd, &mut scratch[..AHEAD], RecvFlags::empty()) {
        // The next read reports the end of the stream.
        Ok((_, 0)) => Ok(ControlFlow::Break(PacketPoll::Other)),
        Ok((_, got)) => Ok(ControlFlow::Continue(got)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(ControlFlow::Break(PacketPoll::Nothing)),
        Err(e) => Err(Ended::Failed(e)),
    }
}

/// Reads once, for a thread that waits for one packet.
#[inline]
pub fn read_packet(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    scratch: &mut Scratch,
) -> Result<PacketPoll, Ended> {
    if !matches!(stream, Stream::Between) {
        return Ok(PacketPoll::Other);
    }
    let got = match poll_once(fd, scratch)? {
        ControlFlow::Continue(got) => got,
        ControlFlow::Break(poll) => return Ok(poll),
    };
    if is_packet(&scratch[..got]) {
        return Ok(PacketPoll::Packet(0..got));
    }
    stream.keep(scratch.detach(0..got));
    Ok(PacketPoll::Other)
}

#[inline]
fn read_scratch(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<ReadResult, Ended> {
    let got = match net::recv(fd, &mut scratch[..AHEAD], RecvFlags::empty()) {
        Ok((_, 0)) => return Err(Ended::Closed),
        Ok((_, got)) => got,
        Err(e) => return nothing(e),
    };
    feed(stream, scratch, got, place, report)?;
    Ok(if got == AHEAD { ReadResult::Full } else { ReadResult::All })
}

fn read_partial(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    backlog: bool,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<ReadResult, Ended> {
    let Some((partial, missing)) = stream.partial(place.longest)? else { return Ok(ReadResult::Nothing) };
    let whole = partial.len() + missing;
    let is_long = backlog && whole > AHEAD;
    let behind = &mut scratch[..if is_long { whole / BEHIND as usize } else { AHEAD }];
    let asked = missing + behind.len();
    let (onto, more) = match sys::read_onto(fd, partial, missing, behind) {
        Ok((0, 0)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    stream.grown(place, report)?;
    feed(stream, scratch, more, place, report)?;
    Ok(if onto + more == asked { ReadResult::Full } else { ReadResult::All })
}

fn read_chunk(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    behind: usize,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<ReadResult, Ended> {
    let Some(into) = stream.target(place)?.filter(|into| !into.is_finer_than(scratch.block_min)) else {
        return read_scratch(fd, stream, scratch, place, report);
    };
    let behind = &mut scratch[..behind];
    let (got, asked) = match sys::read_into(fd, &into, behind) {
        Ok((0, _)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    let filled = (got as u64).min(into.len()) as usize;
    stream.filled(filled as u32, place, report);
    if got > filled {
        stream.keep(scratch.detach(0..got - filled));
    }
    Ok(if got == asked { ReadResult::Full } else { ReadResult::All })
}

/// Passes the data in the scratch buffer to the stream.
#[inline]
fn feed(
    stream: &mut Stream,
    scratch: &mut Scratch,
    len: usize,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<(), Broken> {
    let taken = stream.feed(&scratch[..len], place, report)?;
    if taken < len {
        stream.keep(scratch.detach(taken..len));
    }
    Ok(())
}

/// Returns the result of a read that failed with this error.
pub fn nothing(e: Errno) -> Result<ReadResult, Ended> {
    match e {
        Errno::AGAIN | Errno::INTR => Ok(ReadResult::Nothing),
        e => Err(Ended::Failed(e)),
    }
}

fn errno(e: &io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}
