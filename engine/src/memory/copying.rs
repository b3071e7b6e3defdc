//! Copying bytes, with a fast path for addresses where the processor's copy instruction is slow.
//!
//! C libraries copy more than a few KiB with the processor's copy instruction (`rep movsb`) if it is
//! reported as fast. On a Zen 3 that instruction takes 25 times as long if the target begins 1 to 31 bytes
//! behind the source, both counted from the beginning of their page: 1.9 GB/s instead of 50 between 4 KiB
//! and 1 MiB (measured with glibc 2.36 on an EPYC of 2021; newer versions may avoid it). A large buffer of
//! `malloc` begins 16 bytes behind a page boundary, and shared memory at one.

/// Shorter copies do not use that instruction.
const LEAST: usize = 2048;
/// Copies of at least PART and at most SHORT bytes take no call of a function: types with blocks of a few
/// lines have many of them. EPYC, ping-pong of 64 KiB in blocks: 0.65 of the time with 64 B, 1.1 with 256 B.
const PART: usize = 32;
const SHORT: usize = 128;
/// Bytes of a page; the instruction compares addresses modulo this.
#[cfg(target_arch = "x86_64")]
const PAGE: usize = 4096;
/// Distance from which the instruction is fast.
#[cfg(target_arch = "x86_64")]
const FAR: usize = 32;

/// Like `ptr::copy_nonoverlapping`, but without a function call for the sizes of numbers, which types with
/// gaps have many of.
///
/// # Safety
/// Those of `ptr::copy_nonoverlapping`.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            16 => to.cast::<[u64; 2]>().write_unaligned(from.cast::<[u64; 2]>().read_unaligned()),
            PART..=SHORT => by_parts(from, to, len),
            LEAST.. if follows(from, to) => by_lines(from, to, len),
            _ => core::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Like `copy_from_slice`, as fast as [`copy`].
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn copy_slice(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "both are as long");
    // SAFETY: both have this length; `to` is borrowed mutably, so they do not overlap.
    unsafe { copy(from.as_ptr(), to.as_mut_ptr(), from.len()) };
}

/// Like `ptr::copy`: the two may overlap.
///
/// # Safety
/// Those of `ptr::copy`.
#[inline]
pub unsafe fn copy_overlapping(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            // These sizes are read completely before they are written.
            4 | 8 | 16 => copy(from, to, len),
            _ if from.addr().abs_diff(to.addr()) >= len => copy(from, to, len),
            _ => core::ptr::copy(from, to, len),
        }
    }
}

/// Whether the target is slightly behind the source, modulo the page size.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn follows(from: *const u8, to: *mut u8) -> bool {
    (1..FAR).contains(&(to.addr().wrapping_sub(from.addr()) % PAGE))
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn follows(_from: *const u8, _to: *mut u8) -> bool {
    false
}

/// Copies PART bytes at a time; the last part ends with the copy, so it may overlap the one before it.
///
/// # Safety
/// As for [`copy`], and `len` is at least PART.
#[inline(always)]
unsafe fn by_parts(from: *const u8, to: *mut u8, len: usize) {
    type Part = [u64; PART / 8];
    let last = len - PART;
    // SAFETY: the caller's promise; each part lies within the `len` bytes.
    unsafe {
        let mut at = 0;
        while at < last {
            to.add(at).cast::<Part>().write_unaligned(from.add(at).cast::<Part>().read_unaligned());
            at += PART;
        }
        to.add(last).cast::<Part>().write_unaligned(from.add(last).cast::<Part>().read_unaligned());
    }
}

/// Copies through registers, one cache line of the target at a time.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn by_lines(from: *const u8, to: *mut u8, len: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128};
    const LINE: usize = 64;
    const PART: usize = size_of::<__m128i>();
    let lead = to.align_offset(LINE).min(len);
    // SAFETY: the caller's promise; the part written by lines begins at a line and contains whole lines.
    unsafe {
        core::ptr::copy_nonoverlapping(from, to, lead);
        let (from, to, len) = (from.add(lead), to.add(lead), len - lead);
        let lines = len / LINE * LINE;
        for at in (0..lines).step_by(LINE) {
            let line: [__m128i; LINE / PART] =
                core::array::from_fn(|part| _mm_loadu_si128(from.add(at + part * PART).cast()));
            for (part, bytes) in line.into_iter().enumerate() {
                _mm_store_si128(to.add(at + part * PART).cast(), bytes);
            }
        }
        core::ptr::copy_nonoverlapping(from.add(lines), to.add(lines), len - lines);
    }
}

#[cfg(not(target_arch = "x86_64"))]
use core::ptr::copy_nonoverlapping as by_lines;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_copied_at_all_alignments_and_none_beside_them(
            (from, behind, len) in (0..100_usize, 0..70_usize, 0..20_000_usize),
        ) {
            let source: Vec<u8> = (0..30_000_usize).map(|i| (i % 251) as u8).collect();
            let mut target = vec![0xff; 30_000];
            // Bytes from the source to the target, within a page.
            let apart = source.as_ptr().addr().wrapping_sub(target.as_ptr().addr()) % 4096;
            let to = apart + from + behind;
            // SAFETY: both are long enough: 100 + 70 + 4096 + 20,000.
            unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), len) };
            prop_assert_eq!(&target[to..to + len], &source[from..from + len]);
            prop_assert!(target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0xff));
        }

        #[test]
        fn overlapping_memory_is_copied_as_if_through_a_buffer(
            (from, to, len) in (0..6000_usize, 0..6000_usize, 0..6000_usize),
        ) {
            let mut memory: Vec<u8> = (0..12_000_usize).map(|i| (i % 251) as u8).collect();
            let mut expected = memory.clone();
            expected.copy_within(from..from + len, to);
            let start = memory.as_mut_ptr();
            // SAFETY: both ranges lie inside the memory.
            unsafe { copy_overlapping(start.add(from), start.add(to), len) };
            prop_assert_eq!(memory, expected);
        }
    }
}
