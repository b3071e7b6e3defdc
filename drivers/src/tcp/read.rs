//! Receiving: one read from a peer's socket, to where the bytes belong.
//!
//! Between two packets a read goes to the rail's scratch buffer, and whole packets are reported from
//! there. Once the header of a chunk is known the rest of it is read straight into user memory, and the
//! same call takes what follows it into the scratch buffer.

use super::stream::{Broken, Place, Stream};
use super::sys;
use nmad_engine::transfer::driver::Event;
use nmad_wire::Malformed;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::io;

/// Bytes read into the scratch buffer while a landing is open: little of a chunk shall arrive there.
const SHORT: usize = 1 << 10;

/// What one read has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// No byte.
    Nothing,
    /// All there was.
    All,
    /// As much as was asked for; there may be more.
    Full,
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

/// Reads once and reports what is complete. `expecting`: a chunk will probably come.
#[inline]
pub fn read(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    expecting: bool,
    scratch: &mut [u8],
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    match stream {
        Stream::Between => {
            let asked = if expecting { SHORT.min(scratch.len()) } else { scratch.len() };
            read_scratch(fd, stream, &mut scratch[..asked], place, report)
        }
        Stream::Partial(_) => read_partial(fd, stream, &mut scratch[..SHORT], place, report),
        Stream::Chunk(..) => read_chunk(fd, stream, scratch, place, report),
        Stream::Held(_) => Ok(if stream.resume(place, report)? { Brought::Full } else { Brought::Nothing }),
    }
}

#[inline]
fn read_scratch(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    scratch: &mut [u8],
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let got = match net::recv(fd, &mut *scratch, RecvFlags::empty()) {
        Ok((_, 0)) => return Err(Ended::Closed),
        Ok((_, got)) => got,
        Err(e) => return nothing(e),
    };
    stream.feed(&scratch[..got], place, report)?;
    Ok(if got == scratch.len() { Brought::Full } else { Brought::All })
}

fn read_partial(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    behind: &mut [u8],
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let Some((partial, missing)) = stream.partial(place.longest)? else { return Ok(Brought::Nothing) };
    let (onto, more) = match sys::read_onto(fd, partial, missing, behind) {
        Ok((0, 0)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    stream.grown(place, report)?;
    stream.feed(&behind[..more], place, report)?;
    Ok(if onto + more == missing + behind.len() { Brought::Full } else { Brought::All })
}

fn read_chunk(
    fd: BorrowedFd<'_>,
    stream: &mut Stream,
    scratch: &mut [u8],
    place: &mut Place<'_>,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Brought, Ended> {
    let Some(into) = stream.target(place)? else {
        return read_scratch(fd, stream, scratch, place, report);
    };
    let behind = &mut scratch[..SHORT];
    let (got, asked) = match sys::read_into(fd, &into, behind) {
        Ok((0, _)) => return Err(Ended::Closed),
        Ok(got) => got,
        Err(e) => return nothing(errno(&e)),
    };
    let filled = (got as u64).min(into.len());
    stream.filled(filled as u32, place, report);
    stream.feed(&behind[..got - filled as usize], place, report)?;
    Ok(if got == asked { Brought::Full } else { Brought::All })
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
