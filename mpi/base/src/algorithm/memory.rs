//! Places become addresses: the buffers and the scratch memory of one run.
//!
//! The promise that buffers stay valid while a collective runs is the caller's of MPI (5.12: "the user must
//! not access the buffers until the operation has completed"); it enters the library where a run is
//! started.

use super::operator::Operator;
use super::place::{Buffer, Place, Span, Spot};
use super::schedule::Action;
use nmad_engine::memory::copy_overlapping;
use nmad_engine::memory::together::LEAST;
use nmad_engine::{Segment, Segments};
use std::cell::UnsafeCell;

/// The addresses of the caller's buffers.
#[derive(Debug, Clone, Copy)]
pub struct Buffers {
    /// The send buffer.
    pub send: *mut u8,
    /// The receive buffer.
    pub recv: *mut u8,
}

// SAFETY: plain addresses; the caller's buffers are lent to the library, not to a thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// No buffers.
    pub const NONE: Buffers = Buffers { send: std::ptr::null_mut(), recv: std::ptr::null_mut() };
}

/// Where the buffers of a run are.
pub struct Memory {
    buffers: Buffers,
    /// In units of the strictest alignment that an operand may need.
    scratch: Box<[UnsafeCell<u128>]>,
}

impl Memory {
    /// No buffers yet, and `scratch` bytes of scratch.
    pub fn new(scratch: usize) -> Memory {
        // Zeroed by the system when it is touched, which much of it may never be.
        let zeros: Box<[u128]> = vec![0; scratch.div_ceil(size_of::<u128>())].into();
        // SAFETY: a cell has the layout of what is in it; the box is rebuilt from its own pointer.
        let scratch = unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [UnsafeCell<u128>]) };
        Memory { buffers: Buffers::NONE, scratch }
    }

    /// Binds the caller's buffers.
    pub fn bind(&mut self, buffers: Buffers) {
        self.buffers = buffers;
    }

    #[inline]
    fn address(&self, spot: Spot) -> *mut u8 {
        let base = match spot.buffer {
            Buffer::Send => self.buffers.send,
            Buffer::Recv => self.buffers.recv,
            Buffer::Scratch => UnsafeCell::raw_get(self.scratch.as_ptr()).cast(),
        };
        base.wrapping_add(spot.offset as usize)
    }

    /// The memory of a place, for a message.
    #[inline]
    pub fn segments(&self, place: &Place) -> Segments {
        let start = self.address(place.spot);
        match &place.span {
            // SAFETY: within a buffer that is lent until the run ends, or within scratch, which the run keeps
            // until its messages have ended.
            Span::Bytes(len) => unsafe { Segments::from_raw(start, *len as usize) },
            Span::Elements { .. } => {
                let list = self.pieces(place);
                // SAFETY: as above; pieces of a datatype to receive do not overlap, or the program is wrong.
                let all = unsafe { Segments::from_list(&list) };
                match &place.span {
                    Span::Elements { from, len, .. } => all.slice(*from, *len),
                    Span::Bytes(_) => all,
                }
            }
        }
    }

    /// All pieces of a place, also those outside of its part.
    fn pieces(&self, place: &Place) -> Vec<Segment> {
        let start = self.address(place.spot);
        let mut list = Vec::new();
        if let Span::Elements { count, datatype, .. } = &place.span {
            datatype.for_each_run(*count, |run| {
                list.push(Segment { start: start.wrapping_add(run.offset as usize), len: run.len as usize });
            });
        }
        list
    }

    /// Does a step that needs no message.
    #[inline]
    pub fn work(&self, action: &Action, operator: Option<&Operator>) {
        match action {
            Action::Copy { from, into } => self.copy(from, into),
            Action::Write { data, into } => self.write(data, *into),
            Action::Reduce { from, into, count } => {
                if let Some(operator) = operator {
                    self.reduce(operator, *from, *into, *count);
                }
            }
            Action::Join | Action::Send { .. } | Action::Recv { .. } | Action::Compare { .. } => {}
        }
    }

    /// Copies data from one place to another that holds as much.
    fn copy(&self, from: &Place, into: &Place) {
        if let (Span::Bytes(len), Span::Bytes(room)) = (&from.span, &into.span) {
            copy_piece(self.address(from.spot), self.address(into.spot), (*len).min(*room) as usize);
            return;
        }
        let (from, into) = (self.segments(from), self.segments(into));
        let (mut sources, mut targets) = (from.iter(), into.iter());
        let (mut source, mut target) = (sources.next(), targets.next());
        while let (Some(s), Some(t)) = (source, target) {
            let len = s.len.min(t.len);
            copy_piece(s.start, t.start, len);
            source = rest(s, len).or_else(|| sources.next());
            target = rest(t, len).or_else(|| targets.next());
        }
    }

    /// `into := from operator into`, for `count` elements.
    #[inline]
    fn reduce(&self, operator: &Operator, from: Spot, into: Spot, count: i64) {
        // SAFETY: both hold that many elements, by construction of the schedule, and no message is under way
        // into either of them.
        unsafe { operator.apply(self.address(from), self.address(into), count) }
    }

    /// Writes bytes.
    fn write(&self, data: &[u8], into: Spot) {
        copy_piece(data.as_ptr(), self.address(into), data.len());
    }

    /// The bytes of a place in a row, to look at.
    pub(super) fn read(&self, place: &Place) -> &[u8] {
        debug_assert!(place.is_contiguous());
        // SAFETY: within a buffer of the run, and no message is under way into it.
        unsafe { std::slice::from_raw_parts(self.address(place.spot), place.len() as usize) }
    }
}

/// `into := from operator into`, for elements in a row; `into` is one piece.
#[inline]
pub(super) fn combine(operator: &Operator, from: &[u8], into: &Segments, count: i64) {
    for piece in into.iter().take(1) {
        // SAFETY: both have as many bytes as the elements, which lie without gaps; the piece is lent to the
        // collective.
        unsafe { operator.apply(from.as_ptr(), piece.start, count) };
    }
}

/// Memory in which operands are combined, aligned as strictly as an operand may need.
#[derive(Debug)]
pub(super) struct Scratch(Box<[u128]>);

impl Scratch {
    /// Scratch of `len` bytes.
    pub(super) fn new(len: usize) -> Scratch {
        Scratch(vec![0; len.div_ceil(size_of::<u128>())].into())
    }

    /// The first `len` bytes, until it is lent again.
    pub(super) fn lend(&mut self, len: usize) -> Segments {
        assert!(len <= size_of_val(&*self.0), "inside the scratch memory");
        // SAFETY: as was just checked; who lends it combines operands in it, one thread at a time, and keeps
        // it meanwhile.
        unsafe { Segments::from_raw(self.0.as_mut_ptr().cast(), len) }
    }
}

/// The rest of a piece behind `used` bytes; none if nothing is left.
fn rest(piece: Segment, used: usize) -> Option<Segment> {
    let left = piece.len - used;
    (left > 0).then(|| Segment { start: piece.start.wrapping_add(used), len: left })
}

#[inline]
fn copy_piece(from: *const u8, into: *mut u8, len: usize) {
    if len as u64 >= LEAST {
        // SAFETY: both are pieces of buffers of the run; the source is only read.
        let (from, into) =
            unsafe { (Segments::from_raw(from.cast_mut(), len), Segments::from_raw(into, len)) };
        into.copy_from(&from);
    } else if len > 0 && from != into {
        // SAFETY: both are pieces of buffers of the run, which may overlap.
        unsafe { copy_overlapping(from, into, len) };
    }
}
