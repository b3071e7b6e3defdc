//! Distance between cores of a machine: cores that share a cache, cores of one socket, all cores.
//!
//! The session sets it ([`crate::Node::share_cores`]). Where the system hides it, as containers may, the
//! only group is the machine.

use nmad_engine::Pair;
use std::collections::BTreeMap;

/// Number of a core in the system.
pub(crate) type CoreId = usize;

/// A group of cores in a [`Topology`].
pub(crate) type Group = usize;

/// Nested groups of cores: single cores, caches, sockets, the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// The groups, each sorted, the smaller ones first. The machine (all cores) has the number behind the
    /// last.
    groups: Vec<Vec<CoreId>>,
    /// Groups of each core, from the smallest to the largest, without the machine.
    paths: BTreeMap<CoreId, Vec<Group>>,
    /// Cores that share a cache, and cores of each socket, even if these are all cores.
    caches: Vec<Vec<CoreId>>,
    sockets: Vec<Vec<CoreId>>,
}

impl Topology {
    /// Makes the topology from the cores that share each cache and the cores of each socket; empty where
    /// the system hides them. A group of all cores becomes the machine.
    pub fn of(caches: &[Vec<usize>], sockets: &[Vec<usize>]) -> Topology {
        let mut all = [caches.concat(), sockets.concat()].concat();
        sort(&mut all);
        let own = all.iter().map(|&core| vec![core]);
        let mut groups: Vec<Vec<CoreId>> = own.chain(caches.iter().chain(sockets).cloned()).collect();
        groups.iter_mut().for_each(sort);
        groups.retain(|group| !group.is_empty() && group.len() < all.len());
        groups.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        groups.dedup();
        let path = |&core: &CoreId| {
            let has = |group: &Group| groups[*group].binary_search(&core).is_ok();
            (core, (0..groups.len()).filter(has).collect())
        };
        let paths = all.iter().map(path).collect();
        Topology { groups, paths, caches: caches.to_vec(), sockets: sockets.to_vec() }
    }

    /// Returns the kind of a pair of cores.
    pub fn pair(&self, one: usize, other: usize) -> Pair {
        let together = |groups: &[Vec<CoreId>]| {
            groups.iter().any(|group| group.contains(&one) && group.contains(&other))
        };
        let has_socket = |core: usize| self.sockets.iter().any(|socket| socket.contains(&core));
        match () {
            () if together(&self.caches) => Pair::Cache,
            () if together(&self.sockets) => Pair::Socket,
            () if has_socket(one) && has_socket(other) => Pair::Across,
            () => Pair::Unknown,
        }
    }

    /// Returns one pair of cores for each kind that exists, the first core taken from `from`; hand-offs are
    /// measured between these.
    pub fn examples(&self, from: &[usize], all: &[usize]) -> Vec<(Pair, [usize; 2])> {
        let pairs = from.iter().flat_map(|&one| all.iter().map(move |&other| [one, other]));
        let mut found = BTreeMap::new();
        for [one, other] in pairs.filter(|[one, other]| one != other) {
            found.entry(self.pair(one, other)).or_insert([one, other]);
        }
        found.into_iter().collect()
    }

    /// Returns the group of all cores.
    pub(crate) fn machine(&self) -> Group {
        self.groups.len()
    }

    /// Returns the groups of a core from the smallest to the largest; the last is the machine.
    pub(crate) fn path(&self, core: CoreId) -> impl Iterator<Item = Group> + '_ {
        self.paths.get(&core).into_iter().flatten().copied().chain([self.machine()])
    }

    /// Returns the cores of a group; `None` for all.
    pub(crate) fn cores(&self, group: Group) -> Option<&[CoreId]> {
        self.groups.get(group).map(Vec::as_slice)
    }

    /// Returns whether a group contains this core.
    pub(crate) fn has(&self, group: Group, core: CoreId) -> bool {
        self.cores(group).is_none_or(|cores| cores.binary_search(&core).is_ok())
    }

    /// Returns whether one group contains another.
    pub(crate) fn is_within(&self, inner: Group, outer: Group) -> bool {
        outer == self.machine()
            || self.cores(inner).is_some_and(|cores| cores.iter().all(|&core| self.has(outer, core)))
    }

    /// Returns the smallest group that contains all of these cores.
    pub(crate) fn covering(&self, cores: &[CoreId]) -> Group {
        let covers = |group: &Group| cores.iter().all(|&core| self.has(*group, core));
        cores.first().and_then(|&first| self.path(first).find(covers)).unwrap_or(self.machine())
    }

    /// Sorts cores by their distance from one core, the nearest first.
    pub(crate) fn sort_from(&self, from: CoreId, cores: &mut [CoreId]) {
        cores.sort_by_key(|&core| self.path(from).position(|group| self.has(group, core)));
    }
}

fn sort(cores: &mut Vec<CoreId>) {
    cores.sort_unstable();
    cores.dedup();
}

/// Two sockets, each with two caches of two cores: {0 1} {2 3} | {4 5} {6 7}.
#[cfg(test)]
pub(crate) fn example() -> Topology {
    Topology::of(&[vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]], &[vec![0, 1, 2, 3], vec![4, 5, 6, 7]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_in_their_own_group_their_cache_their_socket_and_the_machine() {
        let topology = example();
        let path: Vec<_> = topology.path(2).map(|group| topology.cores(group).map(<[_]>::to_vec)).collect();
        assert_eq!(path, [Some(vec![2]), Some(vec![2, 3]), Some(vec![0, 1, 2, 3]), None]);
        assert_eq!(topology.path(99).collect::<Vec<_>>(), [topology.machine()], "nothing is known of it");
    }

    #[test]
    fn the_smallest_group_covers() {
        let topology = example();
        let covering = |cores: &[usize]| topology.cores(topology.covering(cores)).map(<[_]>::to_vec);
        assert_eq!(covering(&[5]), Some(vec![5]));
        assert_eq!(covering(&[1, 0]), Some(vec![0, 1]));
        assert_eq!(covering(&[1, 2]), Some(vec![0, 1, 2, 3]));
        assert_eq!((covering(&[1, 6]), covering(&[1, 99]), covering(&[])), (None, None, None));
    }

    #[test]
    fn pairs_of_cores_have_kinds_and_each_kind_has_an_example() {
        let topology = example();
        let pairs = [(2, 3), (2, 0), (2, 5), (2, 99)].map(|(one, other)| topology.pair(one, other));
        assert_eq!(pairs, [Pair::Cache, Pair::Socket, Pair::Across, Pair::Unknown]);
        let all: Vec<usize> = (0..8).collect();
        let expected = [(Pair::Cache, [2, 3]), (Pair::Socket, [2, 0]), (Pair::Across, [2, 4])];
        assert_eq!(topology.examples(&[2], &all), expected);
        assert_eq!(topology.examples(&[2], &[2]), [], "a core alone");
        let small = Topology::of(&[vec![0, 1]], &[vec![0, 1]]);
        assert_eq!(small.examples(&[1], &[0, 1]), [(Pair::Cache, [1, 0])], "one cache for all cores");
        let hidden = Topology::default();
        assert_eq!(hidden.examples(&[0, 1], &[0, 1]), [(Pair::Unknown, [0, 1])]);
    }

    #[test]
    fn near_cores_come_first() {
        let mut cores = [7, 0, 3, 2, 5];
        example().sort_from(2, &mut cores);
        assert_eq!(cores, [2, 3, 0, 7, 5]);
    }

    #[test]
    fn a_hidden_topology_has_one_group() {
        for hidden in [Topology::default(), Topology::of(&[vec![0, 1, 2]], &[vec![0, 1, 2]])] {
            assert_eq!(hidden.path(9).collect::<Vec<_>>(), [hidden.machine()]);
            assert_eq!(hidden.covering(&[0, 1]), hidden.machine());
        }
        let odd = Topology::of(&[vec![0, 1, 2, 3]], &[vec![0, 1], vec![2, 3]]);
        assert_eq!(odd.cores(odd.covering(&[0, 1])), Some(&[0, 1][..]), "a cache that is too large");
    }
}
