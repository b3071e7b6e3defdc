//! Memory of the engine for data that arrives before its receive is posted. It is reused: fresh memory from
//! the system costs several times as much as a copy, since each page is mapped and cleared when it is first
//! touched.

use super::Segments;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

/// Bytes kept for reuse: as much as one peer may send without a posted receive.
const MOST: usize = 4 << 20;
/// Lengths are multiples of this number of bytes; shorter data uses the allocator.
pub(crate) const UNIT: usize = 4 << 10;

/// A reusable piece of memory.
///
/// The maker of segments of it must keep the buffer until no rail uses them.
#[derive(Debug)]
pub struct Buffer {
    memory: Box<[UnsafeCell<u8>]>,
    /// Bytes in use.
    len: usize,
}

// SAFETY: its bytes are only reached through segments, whose reason applies.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn new(len: usize) -> Buffer {
        let zeros: Box<[u8]> = vec![0; len.next_multiple_of(UNIT)].into();
        // SAFETY: a cell has the layout of its content; the box is rebuilt from its own pointer.
        let memory = unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [UnsafeCell<u8>]) };
        Buffer { memory, len }
    }

    fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Returns its bytes.
    pub(crate) fn segments(&self) -> Segments {
        let start = UnsafeCell::raw_get(self.memory.as_ptr());
        // SAFETY: valid as long as the buffer, which its receive region keeps until the rails have closed it;
        // the cells may be written through a shared reference.
        unsafe { Segments::from_raw(start, self.len) }
    }
}

/// Unused buffers, the most recently used ones at the end.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    buffers: Vec<Buffer>,
    bytes: usize,
}

impl Spare {
    /// Returns a buffer for `len` bytes. A buffer of more than twice that length is left for longer data.
    pub(crate) fn take(&mut self, len: usize) -> Buffer {
        let fits = |buffer: &Buffer| (len..=(2 * len).max(UNIT)).contains(&buffer.capacity());
        match self.buffers.iter().rposition(fits) {
            Some(place) => {
                let buffer = self.buffers.remove(place);
                self.bytes -= buffer.capacity();
                Buffer { len, ..buffer }
            }
            None => Buffer::new(len),
        }
    }

    /// Keeps a buffer for reuse. Drops the oldest ones until all fit into [`MOST`].
    pub(crate) fn give(&mut self, buffer: Buffer) {
        if buffer.capacity() > MOST {
            return;
        }
        self.bytes += buffer.capacity();
        self.buffers.push(buffer);
        let mut gone = 0;
        while self.bytes > MOST {
            self.bytes -= self.buffers[gone].capacity();
            gone += 1;
        }
        self.buffers.drain(..gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(spare: &Spare) -> Vec<usize> {
        spare.buffers.iter().map(Buffer::capacity).collect()
    }

    #[test]
    fn a_buffer_is_used_again_for_data_of_about_its_length() {
        let mut spare = Spare::default();
        let (short, long) = (spare.take(1), spare.take(100_000));
        let start = |buffer: &Buffer| buffer.segments().iter().next().map(|segment| segment.start);
        let first = start(&long);
        spare.give(long);
        spare.give(short);
        assert_eq!((lens(&spare), spare.bytes), (vec![102_400, 4096], 106_496));
        let again = spare.take(60_000);
        assert_eq!((start(&again), again.segments().len()), (first, 60_000));
        assert_eq!(lens(&spare), [4096]);
        // It would be too long.
        spare.give(again);
        assert_eq!(spare.take(5000).capacity(), 8192);
        assert_eq!(spare.take(4000).capacity(), 4096);
    }

    #[test]
    fn no_more_is_kept_than_a_peer_may_send_unexpected() {
        let mut spare = Spare::default();
        spare.give(Buffer::new(MOST + 1));
        assert!(lens(&spare).is_empty());
        let all: Vec<Buffer> = [1 << 20, 2 << 20, 3 << 20].map(Buffer::new).into();
        all.into_iter().for_each(|buffer| spare.give(buffer));
        assert_eq!((lens(&spare), spare.bytes), (vec![3 << 20], 3 << 20));
    }
}
