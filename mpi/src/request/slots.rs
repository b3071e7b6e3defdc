//! The table of requests: made and freed for every nonblocking message, so without locks and, once it has
//! grown, without allocations.

use super::State;
use crate::handle::{DYNAMIC, Request};
use crate::status::Status;
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Slots of the first piece; each further one doubles the table.
const FIRST: u32 = 256;
const PIECES: usize = 24;
/// No slot.
const NONE: u32 = u32::MAX;

/// Nothing is in the slot.
const FREE: u32 = 0;
/// A request is in the slot.
const FULL: u32 = 1;
/// A thread looks at the request.
const TAKEN: u32 = 2;

/// A send that had ended when it was submitted: the same name for all of them, since there is nothing to tell
/// them apart by, and no slot.
const SENT: Request = Request(DYNAMIC);
/// The name of the first slot's request.
const BASE: u32 = DYNAMIC + 1;

/// Whether several threads may be here at a time. Until it is known that they may not, they may.
static CONCURRENT: AtomicBool = AtomicBool::new(true);

/// Says whether several threads may use requests at a time. If not, changes of the table need not lock the
/// bus, which is most of what they cost.
pub(crate) fn set_concurrent(concurrent: bool) {
    CONCURRENT.store(concurrent, Ordering::Release);
}

/// All requests.
pub(crate) static SLOTS: Slots = Slots::new();

struct Slot {
    mark: AtomicU32,
    /// The next free slot, while this one is free.
    next: AtomicU32,
    state: UnsafeCell<Option<State>>,
}

pub(crate) struct Slots {
    pieces: [AtomicPtr<Slot>; PIECES],
    /// The first free slot in the lower half; the upper half counts changes.
    free: AtomicU64,
    /// Slots there are.
    grown: Mutex<u32>,
}

// SAFETY: the state of a slot is only touched by the thread that has marked it TAKEN, or took it off the
// list of free ones.
unsafe impl Sync for Slots {}

impl Slots {
    const fn new() -> Slots {
        let pieces = [const { AtomicPtr::new(std::ptr::null_mut()) }; PIECES];
        Slots { pieces, free: AtomicU64::new(NONE as u64), grown: Mutex::new(0) }
    }

    /// Takes a request into the table.
    #[inline]
    pub(crate) fn insert(&self, state: State) -> Request {
        let (index, slot) = self.pop();
        // SAFETY: off the list of free slots, and not marked: nobody else touches it.
        unsafe { *slot.state.get() = Some(state) };
        slot.mark.store(FULL, Ordering::Release);
        Request(index + BASE)
    }

    /// The request of a send that has ended well.
    #[inline]
    pub(crate) fn sent(&self) -> Request {
        SENT
    }

    /// Whether it is such a request: there is nothing to take out or to look at.
    #[inline]
    pub(crate) fn is_sent(&self, request: Request) -> bool {
        request == SENT
    }

    /// Takes a request out of the table.
    #[inline]
    pub(crate) fn remove(&self, request: Request) -> Option<State> {
        self.remove_if(request, |_| true)
    }

    /// Takes a request out of the table if `end` says how it ended; none if it does not, if there is no such
    /// request, and if another thread looks at it just now: `end` may hold a lock that the other one wants.
    #[inline]
    pub(crate) fn end_with<R>(
        &self,
        request: Request,
        end: impl FnOnce(&mut State) -> Option<R>,
    ) -> Option<R> {
        let index = request.0.wrapping_sub(BASE);
        let slot = self.slot(index)?;
        swap(&slot.mark, FULL, TAKEN).ok()?;
        // SAFETY: marked as taken by us.
        let place = unsafe { &mut *slot.state.get() };
        let ended = place.as_mut().and_then(end);
        if ended.is_none() {
            slot.mark.store(FULL, Ordering::Release);
            return None;
        }
        *place = None;
        slot.mark.store(FREE, Ordering::Release);
        self.push(index, slot);
        ended
    }

    /// Takes a request out of the table if it is as wanted.
    #[inline]
    pub(crate) fn remove_if(&self, request: Request, wanted: impl Fn(&State) -> bool) -> Option<State> {
        if request == SENT {
            return Some(State::ended(Status::EMPTY)).filter(wanted);
        }
        let index = request.0.wrapping_sub(BASE);
        let slot = self.slot(index)?;
        take(slot)?;
        // SAFETY: marked as taken by us.
        let place = unsafe { &mut *slot.state.get() };
        if !place.as_ref().is_some_and(wanted) {
            slot.mark.store(FULL, Ordering::Release);
            return None;
        }
        let state = place.take();
        slot.mark.store(FREE, Ordering::Release);
        self.push(index, slot);
        state
    }

    /// Looks at a request; none: there is no such request.
    #[inline]
    pub(crate) fn with<R>(&self, request: Request, look: impl FnOnce(&mut State) -> R) -> Option<R> {
        if request == SENT {
            return Some(look(&mut State::ended(Status::EMPTY)));
        }
        let slot = self.slot(request.0.wrapping_sub(BASE))?;
        take(slot)?;
        let release = Release(slot);
        // SAFETY: marked as taken by us.
        let state = unsafe { &mut *slot.state.get() };
        let answer = state.as_mut().map(look);
        drop(release);
        answer
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot> {
        let (piece, offset) = split(index);
        let base = self.pieces.get(piece)?.load(Ordering::Acquire);
        // SAFETY: a piece that is not null has a slot of this offset, and stays.
        (!base.is_null()).then(|| unsafe { &*base.add(offset) })
    }

    #[inline]
    fn pop(&self) -> (u32, &Slot) {
        loop {
            let head = self.free.load(Ordering::Acquire);
            let index = head as u32;
            let Some(slot) = self.slot(index) else {
                self.grow();
                continue;
            };
            let next = u64::from(slot.next.load(Ordering::Relaxed));
            if self.swap_head(head, next) {
                return (index, slot);
            }
        }
    }

    #[inline]
    fn push(&self, index: u32, slot: &Slot) {
        loop {
            let head = self.free.load(Ordering::Acquire);
            slot.next.store(head as u32, Ordering::Relaxed);
            if self.swap_head(head, u64::from(index)) {
                return;
            }
        }
    }

    /// The count of changes keeps a head that was taken and given back meanwhile from looking unchanged.
    #[inline]
    fn swap_head(&self, head: u64, index: u64) -> bool {
        let new = (head & !0xffff_ffff).wrapping_add(1 << 32) | index;
        if !CONCURRENT.load(Ordering::Relaxed) {
            self.free.store(new, Ordering::Relaxed);
            return true;
        }
        self.free.compare_exchange(head, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn grow(&self) {
        let mut grown = self.grown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.free.load(Ordering::Acquire) as u32 != NONE {
            return;
        }
        let (piece, _) = split(*grown);
        let count = (*grown).max(FIRST);
        let empty =
            |_| Slot { mark: AtomicU32::new(FREE), next: AtomicU32::new(NONE), state: UnsafeCell::new(None) };
        let new: Vec<Slot> = (0..count).map(empty).collect();
        // Pieces stay as long as the process.
        let new = Box::leak(new.into_boxed_slice());
        let first = *grown;
        self.pieces[piece].store(new.as_mut_ptr(), Ordering::Release);
        *grown += count;
        // The last one first, so that indices are used in their order.
        for (offset, slot) in new.iter().enumerate().rev() {
            self.push(first + offset as u32, slot);
        }
    }
}

/// Marks a slot as ours; none: nothing is in it.
#[inline]
fn take(slot: &Slot) -> Option<()> {
    loop {
        match swap(&slot.mark, FULL, TAKEN) {
            Ok(_) => return Some(()),
            Err(FREE) => return None,
            // Another thread looks at the same request, which takes no time.
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// Has a mark say `new` if it says `old`; the error is what it says.
#[inline]
fn swap(mark: &AtomicU32, old: u32, new: u32) -> Result<u32, u32> {
    if CONCURRENT.load(Ordering::Relaxed) {
        return mark.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed);
    }
    let found = mark.load(Ordering::Relaxed);
    if found != old {
        return Err(found);
    }
    mark.store(new, Ordering::Relaxed);
    Ok(found)
}

/// Gives a slot back, whatever happens.
struct Release<'a>(&'a Slot);

impl Drop for Release<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.mark.store(FULL, Ordering::Release);
    }
}

/// Piece and offset of an index.
#[inline]
fn split(index: u32) -> (usize, usize) {
    if index < FIRST {
        return (0, index as usize);
    }
    let top = index.ilog2();
    ((top - FIRST.ilog2() + 1) as usize, (index - (1 << top)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Ended;

    fn ended(tag: i32) -> State {
        State::Ended(Ended::well(Status { tag, ..Status::EMPTY }))
    }

    fn tag(state: &State) -> i32 {
        let State::Ended(Ended { status, .. }) = state else { panic!("only ended ones here") };
        status.tag
    }

    #[test]
    fn many_requests_live_side_by_side() {
        let slots = Slots::new();
        let requests: Vec<Request> = (0..5000).map(|n| slots.insert(ended(n))).collect();
        for (n, &request) in requests.iter().enumerate() {
            assert_eq!(slots.with(request, |state| tag(state)), Some(n as i32));
            assert_eq!(slots.remove(request).map(|state| tag(&state)), Some(n as i32));
            assert!(slots.remove(request).is_none() && slots.with(request, |_| ()).is_none());
        }
        assert!(slots.remove(Request::NULL).is_none() && slots.remove(Request(u32::MAX)).is_none());
    }

    #[test]
    fn sends_that_have_ended_share_a_name() {
        let slots = Slots::new();
        let (first, other) = (slots.sent(), slots.insert(ended(7)));
        assert!(slots.is_sent(first) && !slots.is_sent(other) && first != other && first != Request::NULL);
        for _ in 0..2 {
            assert_eq!(slots.with(first, |state| tag(state)), Some(Status::EMPTY.tag));
            assert_eq!(slots.remove(first).map(|state| tag(&state)), Some(Status::EMPTY.tag));
        }
    }

    #[test]
    fn what_has_not_ended_stays() {
        let slots = Slots::new();
        let request = slots.insert(ended(7));
        assert_eq!(slots.end_with(request, |_| None::<()>), None);
        assert_eq!(slots.end_with(request, |state| Some(tag(state))), Some(7));
        assert_eq!(slots.end_with(request, |state| Some(tag(state))), None);
    }

    #[test]
    fn threads_share_the_table() {
        let slots = Slots::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let slots = &slots;
                scope.spawn(move || {
                    for round in 0..2000 {
                        let numbers = [0, 1, 2].map(|n| thread * 10_000 + round * 3 + n);
                        let requests = numbers.map(|n| slots.insert(ended(n)));
                        let found = requests.map(|r| slots.remove(r).map(|state| tag(&state)));
                        assert_eq!(found, numbers.map(Some));
                    }
                });
            }
        });
    }
}
