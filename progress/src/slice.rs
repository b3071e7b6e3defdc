//! The time slice of a thread.

use nmad_engine::Duration;

/// Requests this time slice for the calling thread (sched_setattr(2)). Linux 6.12 and later follow it for
/// ordinary threads, others ignore it. Where the system refuses the call, nothing changes.
#[allow(unsafe_code)]
pub(crate) fn request(slice: Duration) {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: a structure of numbers, all of which may be zero.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the system writes at most `size` bytes; 0 is the calling thread.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size as u32, 0) };
    if got != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = slice.as_ns();
    // SAFETY: the system reads the size that the structure states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
