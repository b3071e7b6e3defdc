//! Work that a core offers to others: who takes it, without threads, locks or clock.
//!
//! Cores stand by, that is, poll for work, or are on call, that is, compute while a thread of ours sleeps
//! there that may preempt them (P3 section III-D). An offer goes to the smallest group of cores around the
//! one that offers in which a core stands by that has nothing to do yet. If there is none, it goes to a core
//! that is on call. [`crate::standby`] runs this with threads, and the simulator in virtual time.

use crate::tasklet::{Priority, Queues, Tasklet};
use crate::topology::{CoreId, Topology};
use nmad_engine::Pair;

/// The work offered on a machine, and the cores that may take it.
#[derive(Debug)]
pub struct Offers<W> {
    queues: Queues<W>,
    /// Cores that stand by and have no work.
    free: Vec<CoreId>,
    /// Cores that may be preempted and have no work.
    on_call: Vec<CoreId>,
}

/// Where an offer went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// To cores that stand by and will see it.
    Seen,
    /// To a core on call, whose thread has to be woken.
    Wake(CoreId),
}

impl<W> Offers<W> {
    /// Makes an empty one.
    pub fn new(topology: Topology) -> Offers<W> {
        Offers { queues: Queues::new(topology), free: Vec::new(), on_call: Vec::new() }
    }

    /// Sets the topology of the machine.
    pub(crate) fn arrange(&mut self, topology: Topology) {
        self.queues.arrange(topology);
    }

    /// Lets this core stand by, until it takes work or leaves.
    pub fn enter(&mut self, core: CoreId) {
        self.free.push(core);
    }

    /// Ends that; no effect if the core has taken work.
    pub(crate) fn leave(&mut self, core: CoreId) {
        remove(&mut self.free, core);
    }

    /// Lets this core be preempted by a thread that sleeps there, until it gets an offer.
    pub fn enter_on_call(&mut self, core: CoreId) {
        if !self.on_call.contains(&core) {
            self.on_call.push(core);
        }
    }

    /// Ends that; no effect if the core has got an offer.
    pub(crate) fn leave_on_call(&mut self, core: CoreId) {
        remove(&mut self.on_call, core);
    }

    /// Returns the distances of `here` to the cores that may take work, in the order in which they get it:
    /// those that stand by, the nearest first, then those on call.
    pub fn beside(&self, here: CoreId) -> Vec<Pair> {
        let mut pairs: Vec<Pair> =
            self.free.iter().map(|&core| self.queues.topology().pair(here, core)).collect();
        pairs.sort_unstable();
        pairs.extend(self.on_call.iter().filter(|&&core| core != here).map(|_| Pair::Busy));
        pairs
    }

    /// Offers work from the core `here`; cores on call are preempted only if the caller says so.
    ///
    /// # Errors
    /// No core may take it; returns the work.
    pub fn offer(&mut self, here: CoreId, priority: Priority, work: W, preempts: bool) -> Result<Offered, W> {
        if let Some(cores) = self.nearest(here) {
            self.queues.put(Tasklet { cores, priority, work });
            return Ok(Offered::Seen);
        }
        let place = self.on_call.iter().position(|&core| core != here).filter(|_| preempts);
        let Some(place) = place else { return Err(work) };
        let core = self.on_call.remove(place);
        self.queues.put(Tasklet { cores: Some(vec![core]), priority, work });
        Ok(Offered::Wake(core))
    }

    /// Returns the cores of the smallest group around `here` with more cores that stand by without work than
    /// tasklets for them; `Some(None)` for all cores. `None`: each core that stands by has work.
    fn nearest(&self, here: CoreId) -> Option<Option<Vec<CoreId>>> {
        let topology = self.queues.topology();
        let is_free = |&group: &usize| {
            let free = self.free.iter().filter(|&&core| topology.has(group, core)).count();
            free > self.queues.len_within(group)
        };
        let group = topology.path(here).find(is_free)?;
        Some(topology.cores(group).map(<[_]>::to_vec))
    }

    /// Takes the next work for this core, which stands by if the caller says so and does not until it enters
    /// again.
    pub(crate) fn take(&mut self, core: CoreId, stands_by: bool) -> Option<W> {
        self.take_if(core, stands_by, |_| true)
    }

    /// The same, of work that matches.
    pub fn take_if(&mut self, core: CoreId, stands_by: bool, is_right: impl Fn(&W) -> bool) -> Option<W> {
        let work = self.queues.take_if(core, is_right)?;
        if stands_by {
            remove(&mut self.free, core);
        }
        Some(work)
    }

    /// Takes back work that matches and that no core has begun.
    pub fn take_back(&mut self, is_right: impl Fn(&W) -> bool) -> Option<W> {
        self.queues.take_any(is_right)
    }

    /// Returns the number of offers that no core has begun.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Returns the distances of `here` to the cores that stand by without work.
    pub(crate) fn pairs(&self, here: CoreId) -> impl Iterator<Item = Pair> + '_ {
        self.free.iter().map(move |&core| self.queues.topology().pair(here, core))
    }
}

fn remove(cores: &mut Vec<CoreId>, core: CoreId) {
    if let Some(place) = cores.iter().position(|&other| other == core) {
        cores.swap_remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::example;

    fn offers() -> Offers<u8> {
        Offers::new(example())
    }

    #[test]
    fn a_core_that_computes_gets_what_no_core_that_stands_by_takes() {
        let mut offers = offers();
        offers.enter(6);
        [2, 3, 3].into_iter().for_each(|core| offers.enter_on_call(core));
        assert_eq!(offers.beside(2), [Pair::Across, Pair::Busy], "its own core is not preempted");
        assert_eq!(offers.offer(2, Priority::Prompt, 1, true), Ok(Offered::Seen));
        assert_eq!(offers.offer(2, Priority::Prompt, 2, false), Err(2), "unless it is worth it");
        assert_eq!(offers.offer(2, Priority::Prompt, 2, true), Ok(Offered::Wake(3)));
        assert_eq!(offers.offer(2, Priority::Prompt, 3, true), Err(3), "it has work");
        assert_eq!([offers.take(3, false), offers.take(6, true)], [Some(2), Some(1)]);
        offers.enter_on_call(3);
        assert_eq!(offers.beside(0), [Pair::Busy; 2], "core 6 is at work");
    }

    #[test]
    fn what_a_core_on_call_has_not_begun_is_taken_back() {
        let mut offers = offers();
        offers.enter_on_call(3);
        assert_eq!(offers.offer(2, Priority::Prompt, 1, true), Ok(Offered::Wake(3)));
        assert_eq!((offers.take(2, false), offers.count()), (None, 1));
        assert_eq!((offers.take_back(|_| true), offers.take(3, false)), (Some(1), None));
        offers.enter_on_call(3);
        offers.leave_on_call(3);
        assert_eq!(offers.beside(2), []);
    }
}
