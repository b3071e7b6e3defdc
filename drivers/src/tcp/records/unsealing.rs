//! The receiving side: decrypts records and passes their data to the stream.
//!
//! The data of a chunk is read and decrypted in its receive region, if that is contiguous. Everything else is
//! decrypted in the buffer into which it was read, and copied from there.

use super::direct::Direct;
use super::{HEAD, LONGEST, record_len, whole};
use crate::tcp::read::{AHEAD, Ended, PacketPoll, ReadResult, nothing, poll_once};
use crate::tcp::scratch::{Kept, Scratch};
use crate::tcp::stream::{Broken, POOLED, Place, Stream, is_packet};
use crate::tcp::sys;
use nmad_engine::packet::RegionId;
use nmad_engine::transfer::driver::Event;
use nmad_seal::Unsealer;
use nmad_wire::Malformed;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::ops::ControlFlow;

/// Decrypts the stream that one side receives.
#[derive(Debug)]
pub struct Unsealing {
    unsealer: Unsealer,
    /// An incomplete record, unless it is in a receive region.
    partial: Vec<u8>,
    /// Records in a receive region.
    direct: Direct,
    /// Bytes that were read together with the end of a chunk, for the next poll.
    behind: Kept,
}

impl Unsealing {
    /// Creates the receiving side of a new link.
    pub fn new(unsealer: Unsealer) -> Unsealing {
        let (partial, behind) = (Vec::new(), Kept::default());
        Unsealing { unsealer, partial, direct: Direct::default(), behind }
    }

    /// Returns whether bytes are stored for the next poll, still encrypted.
    pub fn has_kept(&self) -> bool {
        !self.behind.bytes().is_empty()
    }

    /// Reads once and reports completed packets and chunks.
    ///
    /// # Errors
    /// The stream has ended.
    pub fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        stream: &mut Stream,
        scratch: &mut Scratch,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<ReadResult, Ended> {
        if matches!(stream, Stream::Held(_) | Stream::Kept(_)) {
            let goes_on = stream.resume(scratch, place, report)?;
            return Ok(if goes_on { self.kept() } else { ReadResult::Nothing });
        }
        if self.has_kept() {
            let mut kept = std::mem::take(&mut self.behind);
            let taken = self.take_all(kept.bytes_mut(), stream, place, report)?;
            kept.advance(taken);
            match kept.bytes().is_empty() {
                true => scratch.give_back(kept),
                false => self.behind = kept,
            }
            return Ok(self.kept());
        }
        if self.partial.is_empty()
            && let Some(result) = self.read_direct(fd, stream, scratch, place, report)?
        {
            return Ok(result);
        }
        let missing = self.missing()?;
        // Until the head is complete, it is unknown where the next record begins.
        let ahead = if matches!(self.partial.len(), 1..HEAD) { 0 } else { AHEAD };
        let read = match missing {
            0 => net::recv(fd, &mut scratch[..ahead], RecvFlags::empty()).map(|(_, got)| (0, got)),
            _ => sys::read_onto(fd, &mut self.partial, missing, &mut scratch[..ahead])
                .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        };
        let (onto, more) = match read {
            Ok((0, 0)) => return Err(Ended::Closed),
            Ok(got) => got,
            Err(e) => return nothing(e),
        };
        let stops = onto > 0 && self.complete(stream, place, report)?;
        let taken = if stops { 0 } else { self.take_all(&mut scratch[..more], stream, place, report)? };
        if taken < more {
            self.behind = scratch.detach(taken..more);
        }
        Ok(if onto + more == missing + ahead { ReadResult::Full } else { ReadResult::All })
    }

    /// Reads records of a chunk straight into its receive region. `None`: there is no chunk, or no contiguous
    /// memory for the rest of it.
    fn read_direct(
        &mut self,
        fd: BorrowedFd<'_>,
        stream: &mut Stream,
        scratch: &mut Scratch,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<ReadResult>, Ended> {
        let Some(target) = stream.target(place)? else { return Ok(None) };
        let Unsealing { unsealer, direct, .. } = self;
        let read = sys::with_bytes(&target, |data| {
            let (got, asked) = match direct.read(fd, data, &mut scratch[..AHEAD]) {
                Ok((0, _)) => return Err(Ended::Closed),
                Ok(read) => read,
                Err(e) => return nothing(e).map(|result| (result, 0)),
            };
            let opened = direct.open(data, unsealer)?;
            Ok((if got == asked { ReadResult::Full } else { ReadResult::All }, opened))
        });
        let Some(read) = read else { return Ok(None) };
        let (result, opened) = read?;
        if opened as u64 == target.len() {
            let behind = direct.take_behind();
            if behind > 0 {
                self.behind = scratch.detach(0..behind);
            }
        }
        stream.filled(opened as u32, place, report);
        Ok(Some(result))
    }

    /// Moves the beginning of a record out of a receive region that is about to be closed.
    pub fn leave(&mut self, region: RegionId, stream: &Stream, place: &mut Place<'_>) {
        if self.direct.has_part()
            && matches!(stream, Stream::Chunk(header, _) if header.region == region.0)
            && let Ok(Some(target)) = stream.target(place)
        {
            self.partial = place.pool.pop().unwrap_or_default();
            sys::with_bytes(&target, |data| self.direct.leave(data, &mut self.partial));
        }
    }

    /// Reads once, for a thread that waits for one packet.
    ///
    /// # Errors
    /// The stream has ended.
    pub fn read_packet(
        &mut self,
        fd: BorrowedFd<'_>,
        stream: &mut Stream,
        scratch: &mut Scratch,
    ) -> Result<PacketPoll, Ended> {
        if !matches!(stream, Stream::Between) || self.has_kept() || !self.partial.is_empty() {
            return Ok(PacketPoll::Other);
        }
        let got = match poll_once(fd, scratch)? {
            ControlFlow::Continue(got) => got,
            ControlFlow::Break(poll) => return Ok(poll),
        };
        if whole(&scratch[..got])? != Some(got) {
            self.behind = scratch.detach(0..got);
            return Ok(PacketPoll::Other);
        }
        let len = self.open(&mut scratch[..got])?.len();
        let data = HEAD..HEAD + len;
        if is_packet(&scratch[data.clone()]) {
            return Ok(PacketPoll::Packet(data));
        }
        stream.keep(scratch.detach(data));
        Ok(PacketPoll::Other)
    }

    /// Returns the result of a read without a system call.
    fn kept(&self) -> ReadResult {
        if self.has_kept() { ReadResult::Full } else { ReadResult::Kept }
    }

    /// Returns the number of missing bytes of the incomplete record: of its head first, then of the whole.
    fn missing(&self) -> Result<usize, Malformed> {
        match self.partial.len() {
            0 => Ok(0),
            len => Ok(record_len(&self.partial)?.unwrap_or(HEAD) - len),
        }
    }

    /// Handles the incomplete record if it is complete now; returns whether further bytes must wait for the
    /// next poll.
    fn complete(
        &mut self,
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Broken> {
        if whole(&self.partial)?.is_none() {
            return Ok(false);
        }
        let mut record = std::mem::take(&mut self.partial);
        let stops = self.take(&mut record, stream, place, report)?;
        if place.pool.len() < POOLED {
            record.clear();
            place.pool.push(record);
        }
        Ok(stops)
    }

    /// Handles complete records, and stores an incomplete one; returns the number of bytes used.
    fn take_all(
        &mut self,
        bytes: &mut [u8],
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, Broken> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &mut bytes[taken..];
            let Some(len) = whole(rest)? else {
                self.keep_part(rest, stream, place)?;
                return Ok(bytes.len());
            };
            taken += len;
            if self.take(&mut rest[..len], stream, place, report)? {
                break;
            }
        }
        Ok(taken)
    }

    /// Stores the beginning of a record, in the receive region if its data belongs to a chunk.
    fn keep_part(&mut self, part: &[u8], stream: &Stream, place: &mut Place<'_>) -> Result<(), Broken> {
        if self.partial.is_empty()
            && let Some(target) = stream.target(place)?
            && let Some(begun) = sys::with_bytes(&target, |data| self.direct.begin(part, data))
        {
            return begun;
        }
        if self.partial.capacity() == 0 {
            self.partial = place.pool.pop().unwrap_or_default();
        }
        self.partial.extend_from_slice(part);
        Ok(())
    }

    /// Decrypts a record and passes its data to the stream; returns whether further bytes must wait for the
    /// next poll.
    fn take(
        &mut self,
        record: &mut [u8],
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Broken> {
        let data = self.open(record)?;
        let was_in_chunk = matches!(stream, Stream::Chunk(..));
        if let Stream::Chunk(header, done) = stream
            && data.len() != LONGEST.min((header.len - *done) as usize)
        {
            return Err(Malformed("record that does not end where its chunk requires").into());
        }
        if stream.feed(data, place, report)? < data.len() {
            return Err(Malformed("record continues behind a chunk").into());
        }
        let has_ended = was_in_chunk && matches!(stream, Stream::Between);
        Ok(has_ended || matches!(stream, Stream::Held(_)))
    }

    /// Decrypts a whole record; returns its data.
    fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<&'r mut [u8], Broken> {
        let (head, sealed) = record.split_at_mut(HEAD);
        self.unsealer.open_next(head, sealed).ok_or(Broken::Forged)
    }
}
