//! Receiving: one read from a peer's socket, to where the bytes belong.
//!
//! Between two packets a read goes to the rail's scratch buffer, and whole packets are reported from
//! there. Once the header of a chunk is known the rest of it is read straight into user memory, and the
//! same call takes what follows it into the scratch buffer, where it waits for the next poll. What follows
//! a long chunk is probably another one: of that no more is taken than precedes its data, which would have
//! to be copied once more.

use super::scratch::Scratch;
use super::stream::{Broken, Place, Stream};
use super::sys;
use nmad_engine::transfer::driver::Event;
use nmad_wire::Malformed;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::io;

/// Bytes that one read takes into the scratch buffer: as much as the kernel usually keeps in one piece.
const AHEAD: usize = 64 << 10;
/// And behind a long chunk: the packet that announces the next one, its header and padding. A read that
/// finds the header alone costs less than a copy of 16 KiB.
const HEAD: usize = 512;
/// Chunks from this length on are long, in bytes.
const LONG: u32 = 16 << 10;

/// What one read has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// No byte.
    Nothing,
    /// All there was.
    All,
    /// As much as was asked for; there may be more.
    Full,
    /// What had been read before.
    Kept,
}

/// Why a stream has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The peer has closed it.
    Closed,
    /// The system says so.
    Failed(Errno),
    /// By what was in it.
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

/// Reads once and reports what is complete. `bulk`: the latest that came was a long chunk.
#[inline]
pub fn read(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    bulk: &mut bool,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    match stream {
        Stream::Between => read_scratch(fd, stream, bulk, scratch, place, report),
        Stream::Partial(_) => read_partial(fd, stream, ahead(*bulk), scratch, place, report),
        Stream::Chunk(header, _) => {
            *bulk = header.len >= LONG;
            read_chunk(fd, stream, bulk, scratch, place, report)
        }
        Stream::Held(_) | Stream::Kept(_) => {
            let goes_on = stream.resume(scratch, place, report)?;
            Ok(if goes_on { Brought::Kept } else { Brought::Nothing })
        }
    }
}

/// How much is read of what is not known yet.
#[inline]
fn ahead(bulk: bool) -> usize {
    if bulk { HEAD } else { AHEAD }
}

#[inline]
fn read_scratch(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    bulk: &mut bool,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let ahead = ahead(*bulk);
    let got = match net::recv(fd, &mut scratch[..ahead], RecvFlags::empty()) {
        Ok((_, 0)) => return Err(Ended::Closed),
        Ok((_, got)) => got,
        Err(e) => return nothing(e),
    };
    *bulk = false;
    feed(stream, scratch, got, place, report)?;
    Ok(if got == ahead { Brought::Full } else { Brought::All })
}

fn read_partial(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    ahead: usize,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let Some((partial, missing)) = stream.partial(place.longest)? else { return Ok(Brought::Nothing) };
    let behind = &mut scratch[..ahead];
    let asked = missing + behind.len();
    let (onto, more) = match sys::read_onto(fd, partial, missing, behind) {
        Ok((0, 0)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    stream.grown(place, report)?;
    feed(stream, scratch, more, place, report)?;
    Ok(if onto + more == asked { Brought::Full } else { Brought::All })
}

fn read_chunk(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    bulk: &mut bool,
    scratch: &mut Scratch,
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let Some(into) = stream.target(place)? else {
        // The chunk is not wanted any more.
        *bulk = false;
        return read_scratch(fd, stream, bulk, scratch, place, report);
    };
    let behind = &mut scratch[..ahead(*bulk)];
    let (got, asked) = match sys::read_into(fd, &into, behind) {
        Ok((0, _)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    let filled = (got as u64).min(into.len()) as usize;
    stream.filled(filled as u32, place, report);
    if got > filled {
        stream.keep(scratch.lend(0..got - filled));
    }
    Ok(if got == asked { Brought::Full } else { Brought::All })
}

/// Gives the stream what has been read into the scratch buffer.
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
        stream.keep(scratch.lend(taken..len));
    }
    Ok(())
}

fn nothing(e: Errno) -> Result<Brought, Ended> {
    match e {
        Errno::AGAIN | Errno::INTR => Ok(Brought::Nothing),
        e => Err(Ended::Failed(e)),
    }
}

fn errno(e: &io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}
