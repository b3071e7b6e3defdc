//! What bare shared memory reaches between two processes of a node: a line that goes back and forth, a
//! ring of lines, and one process that reads the other's memory. The only `unsafe` of the yardsticks.
//!
//! One side [`Memory::offer`]s memory and tells the other the text by which to [`Memory::join`] it. Both
//! then call the same function with the same arguments; the one that offered is the active one.
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of one line.
const LINE: usize = 64;
/// Content of a line, beside the word that tells that it is there.
const CONTENT: usize = LINE - 8;
/// Lines of each ring: enough for any window, so that nobody waits for room.
const LINES: usize = 1 << 14;
/// Longest content of [`Memory::ping_pong`].
const AREA: usize = 1 << 20;
/// Offsets of the parts of each side: its control words, its ring, its bounce buffer.
const TOLD: [usize; 2] = [0, 4 * LINE];
const RINGS: [usize; 2] = [4096, 4096 + LINES * LINE];
const AREAS: [usize; 2] = [4096 + 2 * LINES * LINE, 4096 + 2 * LINES * LINE + AREA];
const LEN: usize = 4096 + 2 * LINES * LINE + 2 * AREA;
/// Nobody waits longer than this for the other.
const LIMIT: Duration = Duration::from_secs(20);

/// Memory that two processes share.
#[derive(Debug)]
pub struct Memory {
    base: *mut u8,
    /// 0: offered it, and is active.
    side: usize,
    /// Things told and heard, which both sides count alike.
    count: [u64; 2],
    _kept: Option<OwnedFd>,
}

impl Memory {
    /// Makes the memory; the text tells the other side where it is.
    ///
    /// # Errors
    /// The system has none.
    pub fn offer() -> io::Result<(Memory, String)> {
        let fd = memfd_create("nmad-yardstick", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, LEN as u64)?;
        let place = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        let base = map(&fd)?;
        Ok((Memory { base, side: 0, count: [0; 2], _kept: Some(fd) }, place))
    }

    /// Joins the memory of the other side.
    ///
    /// # Errors
    /// It cannot be reached from here.
    pub fn join(place: &str) -> io::Result<Memory> {
        let file = File::options().read(true).write(true).open(place)?;
        if file.metadata()?.len() != LEN as u64 {
            return Err(io::Error::other(format!("{place} is something else")));
        }
        Ok(Memory { base: map(&file)?, side: 1, count: [0; 2], _kept: None })
    }

    /// Sends `buffer` back and forth `rounds` times. A message that fits travels in one cache line with the
    /// word that announces it; a longer message is copied in and out.
    ///
    /// # Errors
    /// The other side does not answer within 20 s.
    pub fn ping_pong(&mut self, buffer: &mut [u8], rounds: usize) -> io::Result<()> {
        for _ in 0..rounds {
            if self.side == 0 {
                self.say(buffer);
                self.hear(buffer)?;
            } else {
                self.hear(buffer)?;
                self.say(buffer);
            }
        }
        Ok(())
    }

    /// Sends `rounds` windows of as many messages as `buffer` has pieces of `len` bytes, at most 56,
    /// through a ring of lines; an answer after each.
    ///
    /// # Errors
    /// The other side does not answer within 20 s.
    pub fn windows(&mut self, buffer: &mut [u8], len: usize, rounds: usize) -> io::Result<()> {
        let (len, step) = (len.min(CONTENT), len.max(1));
        for _ in 0..rounds {
            let mut cell = self.count[0];
            let at = |cell: u64| RINGS[0] + cell as usize % LINES * LINE;
            if self.side == 0 {
                for data in buffer.chunks(step) {
                    self.put(at(cell) + 8, &data[..len.min(data.len())]);
                    cell += 1;
                    self.word(at(cell - 1)).store(cell, Ordering::Release);
                }
                self.count[0] = cell;
                self.await_word(TOLD[1] + 2 * LINE, cell)?;
            } else {
                for data in buffer.chunks_mut(step) {
                    self.await_word(at(cell), cell + 1)?;
                    let len = len.min(data.len());
                    self.get(at(cell) + 8, &mut data[..len]);
                    cell += 1;
                }
                self.count[0] = cell;
                self.word(TOLD[1] + 2 * LINE).store(cell, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Sends `buffer` back and forth `rounds` times by process_vm_readv: the receiver reads it where it lies.
    ///
    /// # Errors
    /// The system forbids it, or the other side does not answer within 20 s.
    pub fn pull(&mut self, buffer: &mut [u8], rounds: usize) -> io::Result<()> {
        for _ in 0..rounds {
            for sender in [0, 1] {
                let mut told = [0; 24];
                if sender == self.side {
                    let words = [u64::from(std::process::id()), buffer.as_ptr() as u64, buffer.len() as u64];
                    for (place, word) in told.chunks_exact_mut(8).zip(words) {
                        place.copy_from_slice(&word.to_le_bytes());
                    }
                    self.say(&told);
                    self.hear(&mut [])?;
                } else {
                    self.hear(&mut told)?;
                    let mut words = told.chunks_exact(8).map(|w| w.try_into().map_or(0, u64::from_le_bytes));
                    let [pid, from, len] = [0; 3].map(|_| words.next().unwrap_or_default());
                    let room = buffer.len().min(len as usize);
                    read_other(pid as i32, from as usize, &mut buffer[..room])?;
                    self.say(&[]);
                }
            }
        }
        Ok(())
    }

    fn say(&mut self, data: &[u8]) {
        self.count[self.side] += 1;
        let told = TOLD[self.side];
        let at = if data.len() <= CONTENT { told + 8 } else { AREAS[self.side] };
        self.put(at, &data[..data.len().min(AREA)]);
        self.word(told).store(self.count[self.side], Ordering::Release);
    }

    fn hear(&mut self, data: &mut [u8]) -> io::Result<()> {
        let other = 1 - self.side;
        self.count[other] += 1;
        self.await_word(TOLD[other], self.count[other])?;
        let at = if data.len() <= CONTENT { TOLD[other] + 8 } else { AREAS[other] };
        let len = data.len().min(AREA);
        self.get(at, &mut data[..len]);
        Ok(())
    }

    fn await_word(&self, at: usize, value: u64) -> io::Result<()> {
        let mut begun = None;
        let mut spins = 0u32;
        while self.word(at).load(Ordering::Acquire) < value {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 14) && begun.get_or_insert_with(Instant::now).elapsed() > LIMIT {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= LEN, "inside the memory");
        // SAFETY: inside the mapping, aligned, and atomic on both sides.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    #[allow(unsafe_code)]
    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= LEN, "inside the memory");
        // SAFETY: inside the mapping; the other side reads it only when a word has told so.
        unsafe { self.base.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    #[allow(unsafe_code)]
    fn get(&self, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= LEN, "inside the memory");
        // SAFETY: inside the mapping; a word has told that the other side does not write it now.
        unsafe { self.base.add(at).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.cast(), LEN) };
    }
}

#[allow(unsafe_code)]
fn map(fd: &impl std::os::fd::AsFd) -> io::Result<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place that the system chooses.
    let base = unsafe { mmap(std::ptr::null_mut(), LEN, access, MapFlags::SHARED, fd, 0) }?;
    Ok(base.cast())
}

#[allow(unsafe_code)]
fn read_other(pid: i32, from: usize, into: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        let left = into.len() - done;
        let local = libc::iovec { iov_base: into[done..].as_mut_ptr().cast(), iov_len: left };
        let remote = libc::iovec { iov_base: (from + done) as *mut libc::c_void, iov_len: left };
        // SAFETY: the local range is borrowed mutably; the remote one means something to the system only.
        match unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) } {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n if n < 0 => return Err(io::Error::last_os_error()),
            n => done += n as usize,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_get_what_the_other_sends() {
        let (mut ours, place) = Memory::offer().expect("memory");
        let other = std::thread::spawn(move || {
            let mut theirs = Memory::join(&place).expect("the same memory");
            let mut places = vec![0; 8 * 64];
            theirs.ping_pong(&mut [0; 8], 10).expect("lines");
            theirs.ping_pong(&mut [0; 5000], 10).expect("copies");
            theirs.windows(&mut places, 8, 3).expect("windows");
            let mut pulled = vec![1; 100_000];
            theirs.pull(&mut pulled, 1).expect("reading");
            (places, pulled)
        });
        let (mut small, mut long) = ([7; 8], [8; 5000]);
        ours.ping_pong(&mut small, 10).expect("lines");
        ours.ping_pong(&mut long, 10).expect("copies");
        assert_eq!((small, long), ([7; 8], [8; 5000]), "what was sent comes back");
        let mut data: Vec<u8> = (0..512u32).map(|n| n as u8).collect();
        ours.windows(&mut data, 8, 3).expect("windows");
        ours.pull(&mut vec![9; 100_000], 1).expect("reading");
        let (places, pulled) = other.join().expect("the other side ends");
        assert_eq!(places, data);
        assert!(pulled.iter().all(|byte| *byte == 9));
    }
}
