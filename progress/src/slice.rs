//! The time slice and the priority of a thread.

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

/// Gives the calling thread precedence over ordinary ones: the lowest real-time priority (sched(7)); where
/// that is not permitted a lower nice value; where that is not either, a short time slice. A child process
/// does not inherit it.
#[allow(unsafe_code)]
pub(crate) fn preempt() {
    /// Half of the way to the highest precedence: system threads with a lower value still come first.
    const NICE: i32 = -10;
    /// A thread with a shorter slice than the running one gets the core as soon as it wakes.
    const SLICE: Duration = Duration::from_us(100);
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure is local; 0 is the calling thread.
    let set = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const least)
    };
    if set != 0 {
        // SAFETY: numbers only; 0 is the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        request(SLICE);
    }
}
