//! The cores of the ranks of a machine: whether other ranks need the core of a rank that waits.
//!
//! Each rank sends its cores to the others, since a rank that was bound to one core cannot know whether the
//! others were bound to the same core. Hosts of a testbed and containers are nodes of their own and share
//! the cores of one machine; its kernel has one name for all of them ([`machine`]).

use nmad_drivers::shm::kernel;
use nmad_engine::Pair;
use nmad_launch::Bootstrap;
use nmad_launch::binding::{Level, topology};
use nmad_progress::{Sharing, Topology};
use rustix::thread::{CpuSet, sched_getaffinity};

/// A set of cores as a bit mask, 64 in each word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cores(Vec<u64>);

impl Cores {
    /// Returns the cores that this process may run on; empty if the system does not say.
    pub(crate) fn own() -> Cores {
        let set = sched_getaffinity(None).unwrap_or_default();
        Cores::of((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)))
    }

    fn of(cores: impl IntoIterator<Item = usize>) -> Cores {
        let mut words = Vec::new();
        for core in cores {
            if words.len() <= core / 64 {
                words.resize(core / 64 + 1, 0);
            }
            words[core / 64] |= 1 << (core % 64);
        }
        Cores(words)
    }

    /// Encodes the set as text without `;` and `=`.
    pub(crate) fn encode(&self) -> String {
        self.0.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(",")
    }

    /// Decodes a set; `None` for other text.
    pub(crate) fn decode(text: &str) -> Option<Cores> {
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(|word| u64::from_str_radix(word, 16).ok()).collect::<Option<_>>().map(Cores)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn numbers(&self) -> Vec<usize> {
        let has = |core: &usize| self.0[core / 64] & (1 << (core % 64)) != 0;
        (0..64 * self.0.len()).filter(has).collect()
    }

    fn intersects(&self, other: &Cores) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn join(mut self, other: &Cores) -> Cores {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }
}

/// Returns the name of the running kernel as a number, equal for all processes of a machine; zero if the
/// system hides it.
pub(crate) fn machine() -> u64 {
    let name = kernel().unwrap_or_default();
    let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// What the ranks of a node know of its cores.
pub(crate) struct Judged {
    /// Whether other ranks need the cores of this one.
    pub(crate) sharing: Sharing,
    /// Cores of all ranks of the node.
    pub(crate) cores: usize,
    /// Nodes whose ranks have these cores, this one among them.
    pub(crate) nodes: usize,
}

/// Judges by the cores that the ranks of this machine and node sent.
pub(crate) fn judge(job: &dyn Bootstrap, near: &[(u32, Cores)]) -> Judged {
    let own = near.iter().find(|(rank, _)| *rank == job.rank());
    let none = Cores::default();
    let mine = own.map_or(&none, |(_, cores)| cores);
    let machine: Vec<&Cores> = near.iter().map(|(_, cores)| cores).collect();
    let node = of_ranks_here(job, near);
    // A container's CPU quota may be lower than its number of cores.
    let share = std::thread::available_parallelism().map_or(1, |count| count.get());
    let is_cut = share < mine.count() && share < node.len();
    let ours = together(&node);
    let all = ours.count().max(1);
    // A container with a quota has its cores for itself.
    let rivals = if share < mine.count() { node.len() } else { rivals(&machine, &ours) };
    Judged {
        sharing: if is_cut { many_per_core(node.len(), share) } else { sharing(mine, &machine) },
        cores: if share < mine.count() { all.min(share) } else { all },
        nodes: rivals.div_ceil(node.len().max(1)).max(1),
    }
}

/// Returns how many ranks may run on some of these cores.
fn rivals(ranks: &[&Cores], cores: &Cores) -> usize {
    ranks.iter().filter(|other| other.intersects(cores)).count()
}

/// Returns the cores on which ranks of our node may run, ascending.
pub(crate) fn of_node(job: &dyn Bootstrap, near: &[(u32, Cores)]) -> Vec<usize> {
    together(&of_ranks_here(job, near)).numbers()
}

/// Returns the ranks of our node in ascending order, each with the number of the last-level cache that it is
/// bound to; none if the system does not describe caches, a rank may leave its cache, or there is only one.
pub(crate) fn caches(job: &dyn Bootstrap, near: &[(u32, Cores)]) -> Vec<(u32, u32)> {
    let host = topology::Topology::of(&of_node(job, near));
    let (nodes, own) = (job.nodes(), job.rank() as usize);
    let here = near.iter().filter(|(rank, _)| nodes[*rank as usize] == nodes[own]);
    numbered(&host, here)
}

fn numbered<'c>(host: &topology::Topology, ranks: impl Iterator<Item = &'c (u32, Cores)>) -> Vec<(u32, u32)> {
    let caches = if host.is_told(Level::L3) { host.parts(Level::L3) } else { Vec::new() };
    let caches: Vec<Cores> = caches.into_iter().map(Cores::of).collect();
    let number = |(rank, cores): &(u32, Cores)| {
        let mut holding = (0..).zip(&caches).filter(|(_, cache)| cache.intersects(cores));
        holding.next().filter(|_| holding.next().is_none()).map(|(number, _)| (*rank, number))
    };
    let mut numbers: Vec<(u32, u32)> = ranks.map(number).collect::<Option<_>>().unwrap_or_default();
    numbers.sort_unstable();
    let is_one = numbers.iter().all(|(_, cache)| *cache == numbers[0].1);
    if is_one { Vec::new() } else { numbers }
}

/// Returns what handing over work to a core of another cache takes longer than to one of the same.
pub(crate) fn across_ns(hand_offs_ns: &[Option<u64>; Pair::ALL.len()]) -> u64 {
    let ns = |pair| Pair::ALL.iter().position(|&known| known == pair).and_then(|at| hand_offs_ns[at]);
    match (ns(Pair::Cache), ns(Pair::Socket).max(ns(Pair::Across))) {
        (Some(near), Some(far)) => far.saturating_sub(near),
        _ => 0,
    }
}

/// Returns the topology of cores of our node, as far as the system describes it.
pub(crate) fn arrange(cores: &[usize]) -> Topology {
    arranged(&topology::Topology::of(cores))
}

fn arranged(host: &topology::Topology) -> Topology {
    let told = |level| if host.is_told(level) { host.parts(level) } else { Vec::new() };
    Topology::of(&told(Level::L3), &told(Level::Socket))
}

/// Returns a pair of cores for each kind of pair on our node, the first core from this process.
pub(crate) fn examples(job: &dyn Bootstrap, near: &[(u32, Cores)]) -> Vec<(Pair, [usize; 2])> {
    let all = of_node(job, near);
    arrange(&all).examples(&Cores::own().numbers(), &all)
}

/// Returns the cores that the ranks of our node sent.
fn of_ranks_here<'c>(job: &dyn Bootstrap, near: &'c [(u32, Cores)]) -> Vec<&'c Cores> {
    let (nodes, me) = (job.nodes(), job.rank() as usize);
    let is_here = |(rank, _): &&(u32, Cores)| nodes[*rank as usize] == nodes[me];
    near.iter().filter(is_here).map(|(_, cores)| cores).collect()
}

/// Returns the union of the ranks' cores.
fn together(ranks: &[&Cores]) -> Cores {
    ranks.iter().fold(Cores::default(), |all, other| all.join(other))
}

/// Returns whether ranks of this machine, of which `mine` is one, need our cores.
fn sharing(mine: &Cores, machine: &[&Cores]) -> Sharing {
    let rivals: Vec<&Cores> = machine.iter().copied().filter(|other| other.intersects(mine)).collect();
    let cores = together(&rivals).count();
    match rivals.len() {
        1 => Sharing::Never,
        count if count > 1 && count <= cores => Sharing::Perhaps,
        count => many_per_core(count, cores),
    }
}

/// Returns that so many ranks share so many cores, rounded up; 2 a core if it is unknown.
fn many_per_core(ranks: usize, cores: usize) -> Sharing {
    Sharing::Always(ranks.div_ceil(cores.max(1)).max(2) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_of(machine: &[&[usize]]) -> Sharing {
        let machine: Vec<Cores> = machine.iter().map(|cores| Cores::of(cores.iter().copied())).collect();
        sharing(&machine[0], &machine.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_rank_bound_to_a_core_alone_owns_it() {
        assert_eq!(first_of(&[&[0], &[1]]), Sharing::Never);
        assert_eq!(first_of(&[&[70], &[3], &[3]]), Sharing::Never, "others may share theirs");
        assert_eq!(first_of(&[&[0, 1], &[0, 1]]), Sharing::Perhaps, "the system places them");
        assert_eq!(first_of(&[&[0, 1], &[0]]), Sharing::Perhaps);
        assert_eq!(first_of(&[&[0], &[0]]), Sharing::Always(2), "started under taskset, say");
        assert_eq!(first_of(&[&[0, 1], &[0, 1], &[0, 1]]), Sharing::Always(2));
        assert_eq!(first_of(&[&[0, 1], &[0], &[1]]), Sharing::Always(2));
        let seven: [&[usize]; 7] = [&[0, 1]; 7];
        assert_eq!(first_of(&seven), Sharing::Always(4), "four on one of them");
        assert_eq!(first_of(&[&[]]), Sharing::Always(2), "unknown");
    }

    #[test]
    fn processes_of_one_machine_name_it_alike() {
        assert_eq!(machine(), machine());
        assert_eq!(machine() != 0, kernel().is_some());
    }

    #[test]
    fn ranks_that_are_bound_have_their_cores_together() {
        let [first, second, both] = [&[0][..], &[1], &[0, 1]].map(|cores| Cores::of(cores.iter().copied()));
        assert_eq!(together(&[&first, &second]).count(), 2);
        assert_eq!(together(&[&first, &first]).count(), 1);
        assert_eq!(together(&[&both, &second, &both]).count(), 2);
        assert_eq!(Cores::of([3, 64, 200]).numbers(), [3, 64, 200]);
        assert!(Cores::default().numbers().is_empty());
    }

    #[test]
    fn where_a_container_hides_the_topology_nothing_is_known_of_pairs_of_cores() {
        let folder = tempfile::tempdir().expect("a folder");
        let hidden = arranged(&topology::Topology::read(folder.path(), &[0, 1, 2]));
        assert_eq!((hidden.pair(0, 1), hidden), (Pair::Unknown, Topology::default()));
        for (number, cache) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
            let place = folder.path().join(format!("cpu/cpu{number}/cache/index3"));
            std::fs::create_dir_all(&place).expect("a folder");
            std::fs::write(place.join("shared_cpu_list"), cache).expect("a file");
        }
        let shown = arranged(&topology::Topology::read(folder.path(), &[0, 1, 2]));
        assert_eq!([shown.pair(0, 1), shown.pair(0, 2)], [Pair::Cache, Pair::Unknown], "sockets are hidden");
    }

    #[test]
    fn ranks_that_are_bound_to_caches_have_their_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, cache) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            let place = folder.path().join(format!("cpu/cpu{number}/cache/index3"));
            std::fs::create_dir_all(&place).expect("a folder");
            std::fs::write(place.join("shared_cpu_list"), cache).expect("a file");
        }
        let of = |processors: &[usize], ranks: &[(u32, &[usize])]| {
            let ranks: Vec<_> =
                ranks.iter().map(|(rank, cores)| (*rank, Cores::of(cores.iter().copied()))).collect();
            numbered(&topology::Topology::read(folder.path(), processors), ranks.iter())
        };
        let all = [0, 1, 2, 3];
        assert_eq!(of(&all, &[(8, &[2]), (3, &[1]), (5, &[0, 1])]), [(3, 0), (5, 0), (8, 1)]);
        assert_eq!(of(&all, &[(3, &[1, 2]), (8, &[3])]), [], "one may leave its cache");
        assert_eq!(of(&all, &[(3, &[2]), (8, &[3])]), [], "one cache");
        assert_eq!(of(&[0, 1, 7], &[(3, &[0]), (8, &[7])]), [], "nothing is known of one cache");
    }

    #[test]
    fn cores_survive_a_round_trip_and_other_text_is_refused() {
        let cores = Cores::of([1, 64, 200]);
        assert_eq!(Cores::decode(&cores.encode()), Some(cores));
        assert_eq!(Cores::decode(""), Some(Cores::default()));
        assert_eq!(Cores::decode("x"), None);
        assert!(!Cores::own().is_empty(), "this test runs on some core");
    }
}
