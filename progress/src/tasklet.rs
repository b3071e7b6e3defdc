//! Tasklets: small pieces of work that do not block, in queues by the cores that may run them.
//!
//! P3 (section III-A) takes tasklets from operating systems: work that another core does as soon as it is
//! safe. There is a queue for each core, each shared cache, each socket, and the machine. A tasklet goes to
//! the queue of the smallest group that contains all of its cores. A core takes from its own queue first,
//! then from those of ever larger groups, so that cached data stays near.

use crate::topology::{CoreId, Group, Topology};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Order of the tasklets of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Parts of large messages.
    Bulk,
    /// A thread or peer waits for it.
    Prompt,
}

/// A piece of work.
#[derive(Debug)]
pub(crate) struct Tasklet<W> {
    /// Cores that may run it; `None` for all.
    pub(crate) cores: Option<Vec<CoreId>>,
    pub(crate) priority: Priority,
    pub(crate) work: W,
}

/// The queues of a machine.
#[derive(Debug)]
pub(crate) struct Queues<W> {
    topology: Topology,
    /// One for each group.
    queues: Vec<VecDeque<Tasklet<W>>>,
}

impl<W> Queues<W> {
    pub(crate) fn new(topology: Topology) -> Queues<W> {
        let queues = (0..=topology.machine()).map(|_| VecDeque::new()).collect();
        Queues { topology, queues }
    }

    /// Sets the topology: tasklets move to the queues of their groups.
    pub(crate) fn arrange(&mut self, topology: Topology) {
        let before = std::mem::replace(self, Queues::new(topology));
        before.queues.into_iter().flatten().for_each(|tasklet| self.put(tasklet));
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn put(&mut self, tasklet: Tasklet<W>) {
        let all = self.topology.machine();
        let group = tasklet.cores.as_ref().map_or(all, |cores| self.topology.covering(cores));
        self.queues[group].push_back(tasklet);
    }

    /// Takes the next tasklet that matches for a core, from the nearest queue with one that it may run.
    pub(crate) fn take_if(&mut self, core: CoreId, is_right: impl Fn(&W) -> bool) -> Option<W> {
        let Queues { topology, queues } = self;
        topology.path(core).find_map(|group| {
            let queue = &mut queues[group];
            let may = |tasklet: &Tasklet<W>| {
                let has = |cores: &Vec<CoreId>| cores.contains(&core);
                is_right(&tasklet.work) && tasklet.cores.as_ref().is_none_or(has)
            };
            let place = first(queue, may)?;
            Some(queue.remove(place)?.work)
        })
    }

    /// Takes the next tasklet that matches, for the thread that has put it there and may run it anywhere.
    pub(crate) fn take_any(&mut self, is_right: impl Fn(&W) -> bool) -> Option<W> {
        let mut queues = self.queues.iter_mut();
        queues.find_map(|queue| Some(queue.remove(first(queue, |tasklet| is_right(&tasklet.work))?)?.work))
    }

    /// Returns the number of tasklets.
    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Returns the number of tasklets that only cores of this group can take.
    pub(crate) fn len_within(&self, group: Group) -> usize {
        let is_within = |(inner, _): &(Group, _)| self.topology.is_within(*inner, group);
        self.queues.iter().enumerate().filter(is_within).map(|(_, queue)| queue.len()).sum()
    }
}

/// Returns the place of the first matching tasklet of the highest priority.
fn first<W>(queue: &VecDeque<Tasklet<W>>, is_right: impl Fn(&Tasklet<W>) -> bool) -> Option<usize> {
    let right = queue.iter().enumerate().filter(|(_, tasklet)| is_right(tasklet));
    right.max_by_key(|(place, tasklet)| (tasklet.priority, Reverse(*place))).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::example;

    fn queues(tasklets: &[(&'static str, Option<&[CoreId]>, Priority)]) -> Queues<&'static str> {
        let mut queues = Queues::new(example());
        for &(work, cores, priority) in tasklets {
            queues.put(Tasklet { cores: cores.map(<[_]>::to_vec), priority, work });
        }
        queues
    }

    fn taken(queues: &mut Queues<&'static str>, core: CoreId) -> Vec<&'static str> {
        std::iter::from_fn(|| queues.take_if(core, |_| true)).collect()
    }

    const ALL: &[(&str, Option<&[CoreId]>, Priority)] = &[
        ("machine", None, Priority::Bulk),
        ("socket", Some(&[0, 1, 2, 3]), Priority::Bulk),
        ("cache", Some(&[2, 3]), Priority::Bulk),
        ("core", Some(&[2]), Priority::Bulk),
        ("other socket", Some(&[4, 5, 6, 7]), Priority::Prompt),
        ("other cache", Some(&[0, 1]), Priority::Prompt),
    ];

    #[test]
    fn a_core_takes_the_nearest_first_and_only_what_it_may_run() {
        assert_eq!(taken(&mut queues(ALL), 2), ["core", "cache", "socket", "machine"]);
        assert_eq!(taken(&mut queues(ALL), 0), ["other cache", "socket", "machine"]);
        assert_eq!(taken(&mut queues(ALL), 7), ["other socket", "machine"]);
        assert_eq!(taken(&mut queues(ALL), 99), ["machine"], "a core of which nothing is known");
    }

    /// The smallest group that contains both cores contains others too.
    #[test]
    fn a_core_of_the_group_that_is_not_allowed_takes_nothing() {
        let mut queues =
            queues(&[("1 or 3", Some(&[1, 3]), Priority::Prompt), ("all", None, Priority::Bulk)]);
        assert_eq!([queues.take_if(0, |_| true), queues.take_if(2, |_| true)], [Some("all"), None]);
        assert_eq!([queues.take_if(3, |_| true), queues.take_if(3, |_| true)], [Some("1 or 3"), None]);
    }

    #[test]
    fn in_a_queue_the_higher_priority_is_first_and_then_the_older() {
        let [bulk, prompt] = [Priority::Bulk, Priority::Prompt];
        let mut queues =
            queues(&[("a", None, bulk), ("b", None, prompt), ("c", None, bulk), ("d", None, prompt)]);
        assert_eq!(taken(&mut queues, 5), ["b", "d", "a", "c"]);
    }

    #[test]
    fn queued_tasklets_stay_when_the_topology_becomes_known() {
        let mut queues = queues(ALL);
        queues.arrange(Topology::default());
        assert_eq!((queues.len(), queues.len_within(queues.topology().machine())), (6, 6));
        assert_eq!(taken(&mut queues, 7), ["other socket", "machine"], "who may run it has not changed");
        queues.arrange(example());
        let cache = queues.topology().covering(&[2, 3]);
        assert_eq!((queues.len_within(cache), taken(&mut queues, 3)), (2, vec!["cache", "socket"]));
        assert_eq!(std::iter::from_fn(|| queues.take_any(|_| true)).count(), 2);
    }
}
