//! The lock of a node: next to free for the one thread that uses it most.
//!
//! Nearly every program has one thread that communicates; the only other that wants the lock is the helper, a
//! thousand times a second at most unless it moves messages. A locked instruction costs that thread about 20
//! cycles, four of them in each half of a ping-pong, and it waits for all earlier stores: for the line of a
//! short message that has to come over from the other core. So the first thread that locks becomes the owner,
//! which takes the lock with a store and a load. Any other one that wants it says so, has the system make a
//! full fence on all cores that run a thread of ours (membarrier(2), private expedited), and then looks
//! whether the owner is inside: Dekker's argument, with both fences paid for by the thread that comes seldom.
//! When a second thread of the application comes, nobody is the owner any more, and the lock is an ordinary
//! one.
//!
//! The helper ([`crate::helper`]) keeps the lock while messages move and nobody else wants it. A thread that
//! waits for the lock says so ([`Lock::is_wanted`]), and looks for it a while before it sleeps.

#![allow(unsafe_code)]

use rustix::thread::{MembarrierCommand, membarrier};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{LockResult, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Looks at the owner before a thread that waits for it gives its core away.
const LOOKS: u32 = 100;
/// How often a thread then gives its core away before it sleeps for a lock that the helper has: for some
/// 300 us, longer than the longest step of a rail. To be woken takes 19 to 37 us ([`crate::idle`]), and the
/// helper would pay for half of that.
const YIELDS: u32 = 1_000;

/// No thread.
const NOBODY: usize = 0;
/// No thread yet: the next becomes the owner.
const ANYBODY: usize = 1;

/// Something that one thread at a time may use.
pub(crate) struct Lock<T> {
    /// The owner's [`here`], or [`NOBODY`], or [`ANYBODY`].
    owner: AtomicUsize,
    /// The owner uses it.
    inside: AtomicBool,
    /// Another thread uses it, or is about to: the owner has to go the ordinary way.
    blocked: AtomicBool,
    /// Threads that wait for it.
    wanted: AtomicU32,
    ordinary: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: `Guard` gives the value to one thread at a time, as that of a `Mutex` does.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use what is locked.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    way: Way<'a>,
}

/// A lock that is held, and that its holder may let go for a while ([`crate::apart`]).
pub(crate) trait Release {
    /// Whether other threads may want it. Otherwise it stays with its holder.
    fn is_shared(&self) -> bool;
    /// Others may have it; the holder must not touch the guarded value before [`Release::take_again`].
    fn let_go(&mut self);
    /// Waits for it, unless it is held.
    fn take_again(&mut self);
}

/// How the lock was taken.
enum Way<'a> {
    /// By the owner.
    Owner,
    /// By a thread that goes away again; the lock keeps its owner.
    Guest { _ordinary: MutexGuard<'a, ()> },
    /// By anybody, when there is no owner; none while the lock is let go ([`Release::let_go`]).
    Ordinary { ordinary: Option<MutexGuard<'a, ()>> },
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        let owner = if can_fence_others() { ANYBODY } else { NOBODY };
        Lock {
            owner: AtomicUsize::new(owner),
            inside: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            ordinary: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// This thread has it already.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if self.owner.load(Ordering::Relaxed) == here() && self.enter() {
            return Guard { lock: self, way: Way::Owner };
        }
        self.lock_slowly()
    }

    /// The lock if nobody has it. This call neither makes its thread the owner nor ends that there is one.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        let ordinary = self.try_ordinary()?;
        if self.owner.load(Ordering::Relaxed) == NOBODY {
            return Some(Guard { lock: self, way: Way::Ordinary { ordinary: Some(ordinary) } });
        }
        // A fence disturbs the owner: not when the answer is known.
        if self.inside.load(Ordering::Relaxed) {
            return None;
        }
        self.block();
        if self.inside.load(Ordering::Acquire) {
            self.blocked.store(false, Ordering::Release);
            return None;
        }
        Some(Guard { lock: self, way: Way::Guest { _ordinary: ordinary } })
    }

    /// The owner's way in; false: somebody else is there, or about to be.
    #[inline]
    fn enter(&self) -> bool {
        assert!(!self.inside.load(Ordering::Relaxed), "a node is used from within a call to it");
        self.inside.store(true, Ordering::Relaxed);
        // The processor's part of this fence is made by the other thread, see `block`.
        compiler_fence(Ordering::SeqCst);
        let free = !self.blocked.load(Ordering::Acquire);
        if !free {
            self.inside.store(false, Ordering::Release);
        }
        free
    }

    /// Keeps the owner out, which may be inside still.
    fn block(&self) {
        self.blocked.store(true, Ordering::SeqCst);
        membarrier(MembarrierCommand::PrivateExpedited).expect("it could be made when the lock was");
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly(&self) -> Guard<'_, T> {
        let ordinary = self.lock_ordinary();
        match self.owner.load(Ordering::Relaxed) {
            NOBODY => Guard { lock: self, way: Way::Ordinary { ordinary: Some(ordinary) } },
            // A guest, if there was one, is gone.
            owner if owner == ANYBODY || owner == here() => {
                self.owner.store(here(), Ordering::Relaxed);
                self.inside.store(true, Ordering::Relaxed);
                Guard { lock: self, way: Way::Owner }
            }
            _ => {
                self.end_ownership();
                Guard { lock: self, way: Way::Ordinary { ordinary: Some(ordinary) } }
            }
        }
    }

    /// Whether the owner uses it, without taking it; a lock without an owner tells nothing.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// Whether other threads wait for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    fn lock_ordinary(&self) -> MutexGuard<'_, ()> {
        if let Some(free) = self.try_ordinary() {
            return free;
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let guard = self.await_guest().unwrap_or_else(|| ours(self.ordinary.lock()));
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// The ordinary lock, if a guest has it and gives it away soon. Without an owner there are no guests, and
    /// the owner stays blocked for ever.
    fn await_guest(&self) -> Option<MutexGuard<'_, ()>> {
        let has_guest =
            || self.owner.load(Ordering::Relaxed) != NOBODY && self.blocked.load(Ordering::Relaxed);
        let looks = (0..LOOKS + YIELDS).take_while(|_| has_guest());
        for look in looks {
            if look < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        self.try_ordinary()
    }

    fn try_ordinary(&self) -> Option<MutexGuard<'_, ()>> {
        match self.ordinary.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Ok(guard) => Some(guard),
        }
    }

    /// Waits until the owner is out, which is no owner any more.
    fn end_ownership(&self) {
        self.block();
        let mut looks = 0;
        while self.inside.load(Ordering::Acquire) {
            looks += 1;
            if looks > LOOKS {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        self.owner.store(NOBODY, Ordering::Relaxed);
    }
}

impl<T> Release for Guard<'_, T> {
    #[inline]
    fn is_shared(&self) -> bool {
        matches!(self.way, Way::Ordinary { .. })
    }

    fn let_go(&mut self) {
        if let Way::Ordinary { ordinary } = &mut self.way {
            *ordinary = None;
        }
    }

    fn take_again(&mut self) {
        if let Way::Ordinary { ordinary } = &mut self.way {
            ordinary.get_or_insert_with(|| self.lock.lock_ordinary());
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        debug_assert!(!matches!(self.way, Way::Ordinary { ordinary: None }), "it was let go");
        // SAFETY: no other thread has a guard that was not let go, and this one only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        debug_assert!(!matches!(self.way, Way::Ordinary { ordinary: None }), "it was let go");
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.way {
            Way::Owner => self.lock.inside.store(false, Ordering::Release),
            Way::Guest { .. } => self.lock.blocked.store(false, Ordering::Release),
            Way::Ordinary { .. } => {}
        }
    }
}

/// A thread that panicked with the lock has met a bug and reported it; the guarded value is as consistent as
/// between any two calls.
fn ours(locked: LockResult<MutexGuard<'_, ()>>) -> MutexGuard<'_, ()> {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Whether the system makes fences on other cores; asks it for that the first time.
fn can_fence_others() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    })
}

/// A number of the calling thread, that no other living thread has; above [`ANYBODY`].
#[inline]
fn here() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        use std::arch::asm;
        let here;
        // SAFETY: the first word of a thread's control block holds its own address (ELF Handling for
        // Thread-Local Storage, 3.4.2). In a shared library a variable of the thread would cost a call.
        unsafe {
            asm!("mov {}, fs:[0]", out(reg) here, options(nostack, preserves_flags, pure, readonly));
        }
        here
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        thread_local! { static HERE: u16 = const { 0 } }
        HERE.with(|here| std::ptr::from_ref(here) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: u64 = 100_000;
    /// Fewer, since on a busy machine each may take as long as other processes run.
    const STAYS: u64 = 50;

    /// Adds in two steps that another thread would come between, if it could.
    fn add(guard: &mut Guard<'_, [u64; 2]>) {
        let before = guard[0];
        assert_eq!(before, guard[1]);
        guard[0] = std::hint::black_box(before) + 1;
        guard[1] = before + 1;
    }

    #[test]
    fn owner_and_guest_are_never_inside_together() {
        let lock = Lock::new([0, 0]);
        drop(lock.lock());
        let (guests, over) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if let Some(mut guard) = lock.try_lock() {
                        add(&mut guard);
                        guests.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            for _ in 0..ROUNDS {
                add(&mut lock.lock());
            }
            while guests.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(lock.lock()[0], ROUNDS + u64::from(guests.into_inner()));
        assert!(!can_fence_others() || lock.owner.load(Ordering::Relaxed) == here(), "it is still the owner");
    }

    #[test]
    fn a_second_thread_ends_ownership_while_the_owner_is_inside() {
        let lock = Lock::new([0, 0]);
        drop(lock.lock());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..ROUNDS).for_each(|_| add(&mut lock.lock())));
            }
            (0..ROUNDS).for_each(|_| add(&mut lock.lock()));
        });
        assert_eq!(lock.lock()[0], 4 * ROUNDS);
        assert_eq!(lock.owner.load(Ordering::Relaxed), NOBODY);
    }

    #[test]
    fn a_guest_that_stays_until_the_lock_is_wanted_keeps_nobody_waiting() {
        let lock = Lock::new([0, 0]);
        drop(lock.lock());
        let over = AtomicBool::new(false);
        let mut stays = 0;
        std::thread::scope(|scope| {
            let guest = scope.spawn(|| {
                let mut stays = 0u64;
                while !over.load(Ordering::Relaxed) {
                    let Some(mut guard) = lock.try_lock() else { continue };
                    stays += 1;
                    while !lock.is_wanted() && !over.load(Ordering::Relaxed) {
                        add(&mut guard);
                        std::thread::yield_now();
                    }
                }
                stays
            });
            for _ in 0..STAYS {
                add(&mut lock.lock());
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
            stays = guest.join().expect("it does not panic");
        });
        assert!(lock.lock()[0] >= STAYS && !lock.is_wanted(), "{stays} stays");
    }

    #[test]
    fn a_lock_that_is_held_is_not_taken() {
        let lock = Lock::new(());
        let held = lock.lock();
        assert!(std::thread::scope(|scope| scope
            .spawn(|| lock.try_lock().is_none())
            .join()
            .expect("it ends")));
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    #[should_panic(expected = "from within")]
    fn the_owner_who_locks_twice_is_told() {
        let lock = Lock::new(());
        if !can_fence_others() {
            panic!("without an owner it would wait for itself: from within");
        }
        let _held = lock.lock();
        let _again = lock.lock();
    }
}
