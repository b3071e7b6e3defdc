//! The table of requests: made and freed for every nonblocking message, so without locks and, once it has
//! grown, without allocations.

use super::flight::Look;
use super::{Flight, State};
use crate::handle::{DYNAMIC, Request};
use crate::status::Status;
use newmadeleine::engine::Engine;
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
/// The same for receives from no process.
const NO_PROC: Request = Request(DYNAMIC + 1);
/// The name of the first slot's request.
const BASE: u32 = DYNAMIC + 2;

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
    pub(crate) fn insert(&self, state: State) -> Request {
        self.put(|| state)
    }

    /// Takes a message under way into the table. `make` writes it to its place: a value first built
    /// elsewhere, word by word, and then moved in longer pieces would stall until the stores of the words
    /// have reached the cache.
    #[inline(always)]
    pub(crate) fn insert_flight(&self, make: impl FnOnce() -> Flight) -> Request {
        self.put(|| State::Flight(make()))
    }

    /// Has `make` write a request to its place.
    #[inline(always)]
    fn put(&self, make: impl FnOnce() -> State) -> Request {
        let (index, slot) = self.pop();
        // SAFETY: off the list of free slots, and not marked: nobody else touches it. Nothing is in it.
        unsafe { slot.state.get().write(Some(make())) };
        slot.mark.store(FULL, Ordering::Release);
        Request(index + BASE)
    }

    /// The request of a send that has ended well.
    #[inline]
    pub(crate) fn sent(&self) -> Request {
        SENT
    }

    /// The request of a receive from no process.
    #[inline]
    pub(crate) fn no_proc(&self) -> Request {
        NO_PROC
    }

    /// How a request of these two kinds has ended, for which there is nothing to take out of the table.
    #[inline]
    pub(crate) fn over(&self, request: Request) -> Option<Status> {
        match request {
            // Most, so that one comparison is enough.
            Request(BASE..) => None,
            SENT => Some(Status::SENT),
            NO_PROC => Some(Status::NO_PROC),
            _ => None,
        }
    }

    /// Takes a request out of the table.
    #[inline]
    pub(crate) fn remove(&self, request: Request) -> Option<State> {
        self.remove_if(request, |_| true)
    }

    /// Takes a message under way out of the table; none if it is something else, if there is no such request,
    /// and if another thread looks at it just now: that may want a lock that we hold.
    #[inline]
    pub(crate) fn remove_flight(&self, request: Request) -> Option<Flight> {
        let index = request.0.wrapping_sub(BASE);
        let slot = self.slot(index)?;
        swap(&slot.mark, FULL, TAKEN).ok()?;
        // SAFETY: marked as taken by us.
        let place = unsafe { &mut *slot.state.get() };
        let Some(State::Flight(flight)) = place else {
            slot.mark.store(FULL, Ordering::Release);
            return None;
        };
        let flight = flight.take_all();
        // SAFETY: ours; nothing is left in it that would have to be dropped.
        unsafe { slot.state.get().write(None) };
        slot.mark.store(FREE, Ordering::Release);
        self.push(index, slot);
        Some(flight)
    }

    /// Looks at a message under way, and takes it out of the table if it has ended well. A request that is
    /// something else, or that another thread looks at, is left to the slow path. Inlined into every caller:
    /// a thread that waits for many requests looks at one after the other.
    #[inline(always)]
    pub(super) fn land(&self, request: Request, engine: &mut Engine) -> Look {
        let index = request.0.wrapping_sub(BASE);
        let Some(slot) = self.slot(index) else { return Look::Badly };
        if swap(&slot.mark, FULL, TAKEN).is_err() {
            return Look::Badly;
        }
        // SAFETY: marked as taken by us.
        let place = unsafe { &mut *slot.state.get() };
        let Some(State::Flight(flight)) = place else {
            slot.mark.store(FULL, Ordering::Release);
            return Look::Badly;
        };
        let seen = flight.look(engine);
        if let Look::Well(_) = seen {
            // No message is the last user of its communicator, since the end of that could not be foreseen: a
            // freed communicator is kept until no message holds it.
            drop(flight.take_all());
            // SAFETY: ours; there is nothing in it that would have to be dropped.
            unsafe { slot.state.get().write(None) };
            slot.mark.store(FREE, Ordering::Release);
            self.push(index, slot);
        } else {
            slot.mark.store(FULL, Ordering::Release);
        }
        seen
    }

    /// Takes a request out of the table if it is as wanted.
    #[inline]
    pub(crate) fn remove_if(&self, request: Request, wanted: impl Fn(&State) -> bool) -> Option<State> {
        if let Some(status) = self.over(request) {
            return Some(State::ended(status)).filter(wanted);
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
        if let Some(status) = self.over(request) {
            return Some(look(&mut State::ended(status)));
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
        if !CONCURRENT.load(Ordering::Relaxed) {
            self.free.store(index, Ordering::Relaxed);
            return true;
        }
        let new = (head & !0xffff_ffff).wrapping_add(1 << 32) | index;
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
    use crate::handle::Comm;
    use newmadeleine::RequestId;

    fn ended(tag: i32) -> State {
        State::ended(Status { tag, ..Status::EMPTY })
    }

    fn tag(state: &State) -> i32 {
        let State::Ended(ended) = state else { panic!("only ended ones here") };
        ended.status.tag
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
    fn what_has_ended_when_it_begins_shares_a_name() {
        fn source(state: &mut State) -> i32 {
            let State::Ended(ended) = state else { panic!("only ended ones here") };
            ended.status.source
        }
        let slots = Slots::new();
        let other = slots.insert(ended(7));
        assert_eq!(slots.over(other), None);
        for (shared, status) in [(slots.sent(), Status::SENT), (slots.no_proc(), Status::NO_PROC)] {
            assert!(shared != other && shared != Request::NULL);
            assert_eq!(slots.over(shared), Some(status));
            for _ in 0..2 {
                assert_eq!(slots.with(shared, source), Some(status.source));
                assert_eq!(slots.remove(shared).map(|mut state| source(&mut state)), Some(status.source));
            }
        }
        assert_ne!(slots.sent(), slots.no_proc());
    }

    #[test]
    fn only_messages_under_way_are_taken_as_such() {
        let slots = Slots::new();
        let (ended, flight) =
            (slots.insert(ended(7)), slots.insert(State::Flight(Flight::send(RequestId(5), Comm::SELF))));
        assert!(slots.remove_flight(ended).is_none() && slots.remove_flight(slots.sent()).is_none());
        assert_eq!(slots.remove(ended).map(|state| tag(&state)), Some(7));
        assert_eq!(slots.remove_flight(flight).map(|flight| flight.request()), Some(RequestId(5)));
        assert!(slots.remove_flight(flight).is_none() && slots.with(flight, |_| ()).is_none());
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
