//! Parallel submission (P3 section III-D): a rail and its orders go to a thread that stands by on an idle
//! core.
//!
//! The thread that holds the node's lock takes the rail out of its place and offers it here, as a tasklet
//! for the nearest core with a free thread that stands by. Such a thread posts without the node's lock, and
//! leaves the rail here. A thread of the application that waits does the same if its core may run the
//! tasklet. A thread that finds the rail missing and holds the lock puts it back ([`crate::apart`]); so
//! does the thread that stands by when the lock is free. The offering thread posts tasks that no thread has
//! begun, so nothing waits for a core that comes too late. Pieces of large copies and reductions use the
//! same queues ([`crate::share`]).

use crate::offers::{Offered, Offers};
use crate::split::Split;
use crate::tasklet::Priority;
use crate::topology::{CoreId, Topology};
use nmad_engine::{Cores, Driver, Order, Pair, RailId, pump};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// A rail outside of its place, and the orders to be posted on it.
pub(crate) struct Task {
    pub(crate) id: RailId,
    pub(crate) rail: Box<dyn Driver>,
    pub(crate) orders: Vec<Order>,
}

impl Task {
    /// Packets are more urgent than parts of large messages.
    fn priority(&self) -> Priority {
        let has_packet = self.orders.iter().any(|order| matches!(order, Order::Packet { .. }));
        if has_packet { Priority::Prompt } else { Priority::Bulk }
    }
}

/// Work for another core.
enum Work {
    Post(Task),
    /// Take pieces while there are some.
    Share(Arc<Split>),
}

/// Work that a core has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Posted,
    /// Took this number of pieces.
    Shared(u32),
}

/// Tasks and rails on their way between cores.
pub(crate) struct Standby {
    cores: Arc<Cores>,
    slots: Mutex<Slots>,
    /// Numbers of tasks that no thread has begun, and of rails to be put back; read without the lock.
    offered: AtomicUsize,
    posted: AtomicUsize,
    /// Time of a hand-off for each kind of pair of cores; zero if not measured.
    hand_offs_ns: [AtomicU64; Pair::ALL.len()],
}

struct Slots {
    offers: Offers<Work>,
    /// Threads on cores that may be preempted.
    on_call: Vec<(CoreId, Thread)>,
    posted: Vec<(RailId, Box<dyn Driver>)>,
}

impl Standby {
    pub(crate) fn new(cores: Arc<Cores>) -> Standby {
        let (offered, posted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let offers = Offers::new(Topology::default());
        let slots = Slots { offers, on_call: Vec::new(), posted: Vec::new() };
        let hand_offs_ns = [const { AtomicU64::new(0) }; Pair::ALL.len()];
        Standby { cores, slots: Mutex::new(slots), offered, posted, hand_offs_ns }
    }

    /// Sets the topology of the machine.
    pub(crate) fn arrange(&self, topology: Topology) {
        self.slots().offers.arrange(topology);
    }

    /// Returns a counter that changes with each send of which other cores could post a part.
    pub(crate) fn asked(&self) -> u32 {
        self.cores.asked()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_counts(&self, slots: &Slots) {
        self.offered.store(slots.offers.count(), Ordering::Release);
        self.posted.store(slots.posted.len(), Ordering::Release);
    }

    /// Lets the calling thread stand by on this core while the returned value lives.
    pub(crate) fn enter(&self, core: CoreId) -> Standing<'_> {
        self.slots().offers.enter(core);
        self.cores.enter();
        Standing { standby: self, core }
    }

    /// Lets the calling thread, which sleeps on this core, preempt what computes there when it is woken,
    /// until it gets an offer.
    pub(crate) fn enter_on_call(&self, core: CoreId) {
        let mut slots = self.slots();
        slots.offers.enter_on_call(core);
        slots.on_call.retain(|(other, _)| *other != core);
        slots.on_call.push((core, std::thread::current()));
        self.cores.set_on_call(slots.on_call.len());
    }

    /// Ends that.
    pub(crate) fn leave_on_call(&self, core: CoreId) {
        let mut slots = self.slots();
        slots.offers.leave_on_call(core);
        slots.on_call.retain(|(other, _)| *other != core);
        self.cores.set_on_call(slots.on_call.len());
    }

    /// Returns a counter that changes with each send that is worth the preemption of a core.
    pub(crate) fn asked_to_preempt(&self) -> u32 {
        self.cores.asked_to_preempt()
    }

    /// Returns and resets the predicted gain of preemptions, in nanoseconds.
    pub(crate) fn take_gained_ns(&self) -> u64 {
        self.cores.take_gained_ns()
    }

    /// Returns the distances of `here` to the cores that may take work, in the order in which they get it.
    pub(crate) fn beside(&self, here: CoreId) -> Vec<Pair> {
        self.slots().offers.beside(here)
    }

    /// Offers a task from the core `here` to the cores that stand by, then to those on call.
    ///
    /// # Errors
    /// Each of them has work; returns the task.
    pub(crate) fn offer(&self, task: Task, here: CoreId) -> Result<(), Task> {
        let mut slots = self.slots();
        let priority = task.priority();
        let offered =
            slots.offers.offer(here, priority, Work::Post(task), true).map_err(|work| match work {
                Work::Post(task) => task,
                Work::Share(_) => unreachable!("it is the task that was offered"),
            })?;
        self.update_counts(&slots);
        if let Offered::Wake(core) = offered {
            let thread =
                slots.on_call.iter().find(|(other, _)| *other == core).map(|(_, thread)| thread.clone());
            drop(slots);
            // The woken thread takes the lock at once.
            thread.inspect(Thread::unpark);
        }
        Ok(())
    }

    /// Sets the measured times of hand-offs.
    pub(crate) fn set_hand_offs(&self, ns: [Option<u64>; Pair::ALL.len()]) {
        let places = self.hand_offs_ns.iter().zip(ns);
        places.for_each(|(place, ns)| place.store(ns.unwrap_or(0), Ordering::Relaxed));
    }

    /// Returns the hand-off times from `here` to the free cores that stand by, ascending; empty if they
    /// were not measured, or if another thread uses the queues now.
    pub(crate) fn hand_offs_ns(&self, here: CoreId) -> Vec<u64> {
        let Ok(slots) = self.slots.try_lock() else { return Vec::new() };
        let ns = |pair: Pair| self.hand_offs_ns[pair as usize].load(Ordering::Relaxed);
        let mut all: Vec<u64> = slots.offers.pairs(here).map(ns).filter(|&ns| ns > 0).collect();
        all.sort_unstable();
        all
    }

    /// Returns whether a thread stands by.
    pub(crate) fn is_ready(&self) -> bool {
        self.cores.ready() > 0
    }

    /// Counts a send of which other cores could post a part, like the engine.
    #[cfg(test)]
    pub(crate) fn ask(&self) {
        self.cores.ask();
    }

    /// Offers pieces of work to up to `count` cores that stand by, the nearest to `here` first.
    pub(crate) fn offer_share(&self, split: &Arc<Split>, count: usize, here: CoreId) {
        let mut slots = self.slots();
        for _ in 0..count {
            // A thread that computes would lose as much as this one gains.
            let work = Work::Share(split.clone());
            if slots.offers.offer(here, Priority::Bulk, work, false).is_err() {
                break;
            }
        }
        self.update_counts(&slots);
    }

    /// Withdraws the offers of this work: no further thread begins it.
    pub(crate) fn withdraw(&self, split: &Arc<Split>) {
        let mut slots = self.slots();
        let is_it = |work: &Work| matches!(work, Work::Share(other) if Arc::ptr_eq(other, split));
        while slots.offers.take_back(is_it).is_some() {}
        self.update_counts(&slots);
    }

    /// Takes back a task that no thread has begun, for the thread that holds the node's lock.
    pub(crate) fn take_back(&self) -> Option<Task> {
        if !self.has_offers() {
            return None;
        }
        let mut slots = self.slots();
        let work = slots.offers.take_back(|work| matches!(work, Work::Post(_)));
        self.update_counts(&slots);
        match work? {
            Work::Post(task) => Some(task),
            Work::Share(_) => None,
        }
    }

    /// Returns whether a task waits for a core.
    #[inline]
    pub(crate) fn has_offers(&self) -> bool {
        self.offered.load(Ordering::Acquire) > 0
    }

    /// Returns whether a rail waits to be put back.
    #[inline]
    pub(crate) fn has_posted(&self) -> bool {
        self.posted.load(Ordering::Acquire) > 0
    }

    /// Does the next work for this core, in a thread that was on call there.
    pub(crate) fn answer(&self, core: CoreId) -> Option<Done> {
        self.run(core, false)
    }

    /// Does the next work for this core, in a thread that does not stand by; false: there is none.
    pub(crate) fn help(&self, core: CoreId) -> bool {
        self.run(core, false).is_some()
    }

    fn run(&self, core: CoreId, stands_by: bool) -> Option<Done> {
        let work = self.begin(core, stands_by)?;
        let mut begun = Begun { standby: self, core: stands_by.then_some(core), rail: None };
        Some(match work {
            Work::Post(Task { id, rail, orders }) => {
                let (_, rail) = begun.rail.insert((id, rail));
                pump::post(rail.as_mut(), orders);
                Done::Posted
            }
            Work::Share(split) => Done::Shared(split.help()),
        })
    }

    fn begin(&self, core: CoreId, stands_by: bool) -> Option<Work> {
        let mut slots = self.slots();
        let work = slots.offers.take(core, stands_by)?;
        if let Work::Share(split) = &work {
            // A thread that withdraws the work afterwards waits for this one.
            split.begin();
        }
        self.update_counts(&slots);
        Some(work)
    }

    /// Takes the rail with this number, or any rail, if it waits to be put back.
    pub(crate) fn reclaim(&self, id: Option<RailId>) -> Option<(RailId, Box<dyn Driver>)> {
        if !self.has_posted() {
            return None;
        }
        let mut slots = self.slots();
        let place = slots.posted.iter().position(|(other, _)| id.is_none_or(|id| id == *other))?;
        let posted = slots.posted.swap_remove(place);
        self.update_counts(&slots);
        Some(posted)
    }
}

/// A thread that stands by on a core, until this is dropped.
pub(crate) struct Standing<'s> {
    standby: &'s Standby,
    core: CoreId,
}

impl Standing<'_> {
    /// Looks for work for this core once, as often as its thread polls; `None`: there was none.
    #[inline]
    pub(crate) fn look(&self, began: impl FnOnce()) -> Option<Done> {
        if !self.standby.has_offers() {
            return None;
        }
        began();
        self.run_one()
    }

    /// Does the next work for this core; `None`: there is none.
    pub(crate) fn run_one(&self) -> Option<Done> {
        self.standby.run(self.core, true)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.standby.cores.leave();
        self.standby.slots().offers.leave(self.core);
    }
}

/// A core at work, perhaps on a rail. Dropping it offers the rail to be put back, also when a driver
/// panics.
struct Begun<'s> {
    standby: &'s Standby,
    /// The core of a thread that stands by.
    core: Option<CoreId>,
    rail: Option<(RailId, Box<dyn Driver>)>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut slots = self.standby.slots();
        if let Some(core) = self.core {
            slots.offers.enter(core);
        }
        slots.posted.extend(self.rail.take());
        self.standby.update_counts(&slots);
    }
}

#[cfg(test)]
#[path = "standby_tests.rs"]
mod tests;
