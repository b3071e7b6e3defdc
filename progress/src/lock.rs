//! The lock of a node: nearly free for the one thread that uses it most.
//!
//! Nearly every program has one thread that communicates. The only other thread that wants the lock is the
//! helper, at most a thousand times a second unless it moves messages. A locked instruction costs that
//! thread about 20 cycles, four times in each half of a ping-pong, and it waits for all earlier stores: for
//! the cache line of a short message, which has to come from the other core. So the first thread that locks
//! becomes the owner, and takes the lock with a store and a load. Any other thread that wants the lock sets
//! a flag, has the system execute a full fence on all cores that run threads of this process
//! (membarrier(2), private expedited), and then checks whether the owner holds the lock. This is Dekker's
//! algorithm in which the thread that comes seldom pays for both fences. When a second thread of the
//! application comes, ownership ends and the lock is an ordinary mutex.
//!
//! The helper ([`crate::helper`]) keeps the lock while messages move and no other thread wants it. A thread
//! that waits for the lock sets [`Lock::is_wanted`], and polls the lock for a while before it sleeps.

#![allow(unsafe_code)]

use rustix::thread::{MembarrierCommand, membarrier};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{LockResult, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Polls before a waiting thread yields its core.
const LOOKS: u32 = 100;
/// Yields after that, before the thread sleeps for a lock that the helper holds: some 300 us, longer than
/// the longest step of a rail. A wakeup takes 19 to 37 us ([`crate::idle`]), half of which the helper would
/// pay.
const YIELDS: u32 = 1_000;

/// Value of `owner`: the lock has no owner any more.
const NOBODY: usize = 0;
/// Value of `owner`: the next thread that locks becomes the owner.
const ANYBODY: usize = 1;

/// A value that one thread at a time may use.
pub(crate) struct Lock<T> {
    /// The owner's [`here`], or [`NOBODY`], or [`ANYBODY`].
    owner: AtomicUsize,
    /// The owner holds the lock.
    inside: AtomicBool,
    /// Another thread holds the lock or is about to: the owner has to take the slow path.
    blocked: AtomicBool,
    /// Number of waiting threads.
    wanted: AtomicU32,
    ordinary: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: `Guard` gives the value to one thread at a time, as that of a `Mutex` does.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the locked value.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    way: Way<'a>,
}

/// A held lock that its holder may release for a while ([`crate::apart`]).
pub(crate) trait Release {
    /// Returns whether other threads may want the lock; otherwise the holder keeps it.
    fn is_shared(&self) -> bool;
    /// Releases the lock; the holder must not touch the guarded value before [`Release::take_again`].
    fn let_go(&mut self);
    /// Waits for the lock, unless it is held.
    fn take_again(&mut self);
}

/// How the lock was taken.
enum Way<'a> {
    /// By the owner.
    Owner,
    /// By another thread than the owner, which stays the owner.
    Guest { _ordinary: MutexGuard<'a, ()> },
    /// By any thread of a lock without an owner; `None` while the lock is released ([`Release::let_go`]).
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

    /// Takes the lock if it is free. The call does not change the ownership.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        let ordinary = self.try_ordinary()?;
        if self.owner.load(Ordering::Relaxed) == NOBODY {
            return Some(Guard { lock: self, way: Way::Ordinary { ordinary: Some(ordinary) } });
        }
        // A fence disturbs the owner, so it is left out if the lock is known to be held.
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

    /// The owner's fast path; false: another thread holds the lock or is about to.
    #[inline]
    fn enter(&self) -> bool {
        assert!(!self.inside.load(Ordering::Relaxed), "a node is used from within a call to it");
        self.inside.store(true, Ordering::Relaxed);
        // The other thread's membarrier acts as the processor fence here, see `block`.
        compiler_fence(Ordering::SeqCst);
        let free = !self.blocked.load(Ordering::Acquire);
        if !free {
            self.inside.store(false, Ordering::Release);
        }
        free
    }

    /// Keeps the owner from taking the lock; it may still hold it.
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
            // This thread holds the mutex, so no guest has the lock.
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

    /// Returns whether the owner holds the lock, without taking it; meaningless for a lock without an
    /// owner.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// Returns whether other threads wait for the lock.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    fn lock_ordinary(&self) -> MutexGuard<'_, ()> {
        if let Some(free) = self.try_ordinary() {
            return free;
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let guard = self.await_guest().unwrap_or_else(|| ignore_poison(self.ordinary.lock()));
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Polls for the mutex while a guest holds it. Without an owner there are no guests, and `blocked`
    /// stays set for ever.
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

    /// Ends the ownership and waits until the owner has released the lock.
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
        // SAFETY: no other thread has a guard that holds the lock, and this thread has only this one.
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

/// Ignores poisoning: the panic was reported as a bug, and the guarded value is as consistent as between
/// any two calls.
fn ignore_poison(locked: LockResult<MutexGuard<'_, ()>>) -> MutexGuard<'_, ()> {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether membarrier works; registers the process the first time.
fn can_fence_others() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    })
}

/// Returns a number of the calling thread that no other living thread has; above [`ANYBODY`].
#[inline]
fn here() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        use std::arch::asm;
        let here;
        // SAFETY: the first word of a thread's control block holds its own address (ELF Handling for
        // Thread-Local Storage, 3.4.2). A thread-local variable would cost a function call in a shared
        // library.
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
    /// Fewer rounds, since on a busy machine each may take a whole time slice of other processes.
    const STAYS: u64 = 50;

    /// Adds in two steps, so that a second thread in the critical section would be noticed.
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
    fn a_guest_that_stays_until_the_lock_is_wanted_delays_no_thread() {
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
    fn locking_twice_in_the_owner_panics() {
        let lock = Lock::new(());
        if !can_fence_others() {
            panic!("without an owner it would wait for itself: from within");
        }
        let _held = lock.lock();
        let _again = lock.lock();
    }
}
