//! How long a thread may run without a break where others want its core.

use nmad_engine::Duration;

/// Asks for this slice for the calling thread (sched_setattr(2); Linux 6.12 and later follow it for ordinary
/// threads, others ignore it). Where the system does not let threads ask, nothing changes.
#[allow(unsafe_code)]
pub(crate) fn ask_for(slice: Duration) {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: a structure of numbers, of which each may be zero.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the system fills as many bytes as the call says that there are, for the calling thread (0).
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size as u32, 0) };
    if got != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = slice.as_ns();
    // SAFETY: it reads as many bytes as the structure says that it has; all else is as it was.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
