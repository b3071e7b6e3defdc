//! Rails that another core posts on (P3 section III-D): a rail with its orders goes to a thread that stands
//! by on an idle core.
//!
//! The thread that has the node's lock takes the rail out of its place and offers it here. The thread that
//! stands by needs no lock of the node: it posts, and leaves the rail here. Whoever misses the rail and has
//! the lock puts it back ([`crate::apart`]), and so does the thread that stands by when the lock is free.
//! What nobody has begun with is posted by the thread that has offered it, so that nothing waits for a core
//! that comes too late.

use nmad_engine::{Cores, Driver, Order, RailId, pump};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A rail outside of its place, and what is to be posted on it.
pub(crate) struct Task {
    pub(crate) id: RailId,
    pub(crate) rail: Box<dyn Driver>,
    pub(crate) orders: Vec<Order>,
}

/// The tasks and rails that are on their way between cores.
pub(crate) struct Standby {
    cores: Arc<Cores>,
    slots: Mutex<Slots>,
    /// How many tasks nobody has begun with, and how many rails are ready to be put back: looked at without
    /// the lock.
    offered: AtomicUsize,
    posted: AtomicUsize,
}

#[derive(Default)]
struct Slots {
    offered: VecDeque<Task>,
    begun: usize,
    posted: Vec<(RailId, Box<dyn Driver>)>,
}

impl Standby {
    pub(crate) fn new(cores: Arc<Cores>) -> Standby {
        let (offered, posted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Standby { cores, slots: Mutex::default(), offered, posted }
    }

    /// Who stands by.
    pub(crate) fn cores(&self) -> &Cores {
        &self.cores
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, slots: &Slots) {
        self.offered.store(slots.offered.len(), Ordering::Release);
        self.posted.store(slots.posted.len(), Ordering::Release);
    }

    /// Offers a task to the cores that stand by.
    ///
    /// # Errors
    /// Each of them has one.
    pub(crate) fn offer(&self, task: Task) -> Result<(), Task> {
        let mut slots = self.slots();
        if slots.offered.len() + slots.begun >= self.cores.ready() {
            return Err(task);
        }
        slots.offered.push_back(task);
        self.changed(&slots);
        Ok(())
    }

    /// Takes a task that nobody has begun with, for the thread that has the node's lock.
    pub(crate) fn take_back(&self) -> Option<Task> {
        let mut slots = self.slots();
        let task = slots.offered.pop_front();
        self.changed(&slots);
        task
    }

    /// Whether a task waits for a core.
    #[inline]
    pub(crate) fn has_offers(&self) -> bool {
        self.offered.load(Ordering::Acquire) > 0
    }

    /// Whether a rail waits to be put back.
    #[inline]
    pub(crate) fn has_posted(&self) -> bool {
        self.posted.load(Ordering::Acquire) > 0
    }

    /// Posts what was offered first; false: another thread was faster.
    pub(crate) fn post_one(&self) -> bool {
        let Some(Task { id, rail, orders }) = self.begin() else { return false };
        let mut begun = Begun { standby: self, id, rail: Some(rail) };
        let rail = begun.rail.as_mut().expect("it is given back when this is dropped");
        pump::post(rail.as_mut(), orders);
        true
    }

    fn begin(&self) -> Option<Task> {
        let mut slots = self.slots();
        let task = slots.offered.pop_front()?;
        slots.begun += 1;
        self.changed(&slots);
        Some(task)
    }

    /// The rail with this number, or any, if it waits to be put back.
    pub(crate) fn reclaim(&self, id: Option<RailId>) -> Option<(RailId, Box<dyn Driver>)> {
        if !self.has_posted() {
            return None;
        }
        let mut slots = self.slots();
        let place = slots.posted.iter().position(|(other, _)| id.is_none_or(|id| id == *other))?;
        let posted = slots.posted.swap_remove(place);
        self.changed(&slots);
        Some(posted)
    }
}

/// A rail that a core posts on. Dropping it leaves the rail to be put back, also when a driver panics.
struct Begun<'s> {
    standby: &'s Standby,
    id: RailId,
    rail: Option<Box<dyn Driver>>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut slots = self.standby.slots();
        slots.begun -= 1;
        slots.posted.extend(self.rail.take().map(|rail| (self.id, rail)));
        self.standby.changed(&slots);
    }
}
