//! The processors of a host and their groups, read from the files of the system.

use std::fs::read_to_string;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::Level;
use crate::LaunchError;

/// Numbers of processors (hardware threads), as the system counts them.
pub type Processors = Vec<usize>;

/// Folder in which the system describes its processors.
const FOLDER: &str = "/sys/devices/system";

/// The processors that this process may use, in groups of each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    threads: Vec<Processors>,
    cores: Vec<Processors>,
    caches: Vec<Processors>,
    nodes: Vec<Processors>,
    packages: Vec<Processors>,
    /// Whether the system describes caches, and packages.
    described: (bool, bool),
}

impl Topology {
    /// Reads the topology of this host, for the processors of this process.
    ///
    /// # Errors
    /// [`LaunchError::System`] if the system does not return the affinity mask.
    pub fn of_this_process() -> Result<Topology, LaunchError> {
        let set = sched_getaffinity(None).map_err(LaunchError::system("cannot ask which cores there are"))?;
        let allowed: Processors = (0..CpuSet::MAX_CPU).filter(|&number| set.is_set(number)).collect();
        Ok(Topology::of(&allowed))
    }

    /// Reads the topology of this host, for these processors.
    pub fn of(processors: &[usize]) -> Topology {
        Topology::read(Path::new(FOLDER), processors)
    }

    /// Reads the topology from the files below `folder`. Missing files (a container may hide them) mean a
    /// core for each processor, and one cache, NUMA node and package for all.
    pub fn read(folder: &Path, allowed: &[usize]) -> Topology {
        let of_processor = |number: usize, file: &str| folder.join(format!("cpu/cpu{number}/{file}"));
        let siblings = |number| list(&of_processor(number, "topology/thread_siblings_list"));
        let package = |number| list(&of_processor(number, "topology/package_cpus_list"));
        let same_package =
            |number| package(number).or(list(&of_processor(number, "topology/core_siblings_list")));
        let cache = |number| list(&of_processor(number, "cache/index3/shared_cpu_list"));
        let told =
            |of: &dyn Fn(usize) -> Option<Processors>| allowed.iter().all(|&number| of(number).is_some());
        let told = (told(&cache), told(&same_package));
        let nodes = nodes(folder);
        let node = |number| nodes.iter().find(|node| node.contains(&number)).cloned();
        let all = || Some(allowed.to_vec());
        let packages = groups(allowed, |number| same_package(number).or_else(all));
        let nodes = groups(allowed, |number| node(number).or_else(all));
        let caches = groups(allowed, |number| cache(number).or_else(all));
        let cores = groups(allowed, |number| siblings(number).or(Some(vec![number])));
        // Cores are sorted by package, node and cache, so that neighbours share these.
        let place = |core: &Processors| {
            let at = |groups: &[Processors]| groups.iter().position(|group| group.contains(&core[0]));
            (at(&packages), at(&nodes), at(&caches), core[0])
        };
        let mut cores = cores;
        cores.sort_by_key(place);
        let threads = cores.concat().into_iter().map(|number| vec![number]).collect();
        Topology { threads, cores, caches, nodes, packages, described: told }
    }

    /// Returns whether the system describes the groups of a level: caches ([`Level::L3`]) and packages may
    /// be hidden.
    pub fn is_told(&self, level: Level) -> bool {
        match level {
            Level::L3 => self.described.0,
            Level::Socket => self.described.1,
            Level::HwThread | Level::Core | Level::Numa => true,
        }
    }

    /// Returns the groups of a level; neighbours are near each other.
    pub fn parts(&self, level: Level) -> Vec<Processors> {
        match level {
            Level::HwThread => self.threads.clone(),
            Level::Core => self.cores.clone(),
            Level::L3 => self.caches.clone(),
            Level::Numa => self.nodes.clone(),
            Level::Socket => self.packages.clone(),
        }
    }
}

/// Groups the allowed processors; `of` returns the group of each.
fn groups(allowed: &[usize], of: impl Fn(usize) -> Option<Processors>) -> Vec<Processors> {
    let mut groups: Vec<Processors> = Vec::new();
    for &number in allowed {
        if groups.iter().any(|group| group.contains(&number)) {
            continue;
        }
        let mut group = of(number).unwrap_or_default();
        group.retain(|other| allowed.contains(other));
        // A file that omits its own processor is ignored.
        groups.push(if group.contains(&number) { group } else { vec![number] });
    }
    groups
}

fn nodes(folder: &Path) -> Vec<Processors> {
    let entries = std::fs::read_dir(folder.join("node")).into_iter().flatten().flatten();
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let mut folders: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_node))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders.iter().filter_map(|node| list(&node.join("cpulist"))).collect()
}

/// Reads a file with a list such as `0-3,8`.
fn list(path: &Path) -> Option<Processors> {
    numbers(read_to_string(path).ok()?.trim())
}

fn numbers(text: &str) -> Option<Processors> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= CpuSet::MAX_CPU {
            return None;
        }
        all.extend(first..=last);
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn lists_of_the_system_are_read() {
        assert_eq!(numbers("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(numbers(""), None);
        assert_eq!(numbers("x"), None);
        assert_eq!(numbers("0-99999999999"), None);
    }

    #[test]
    fn this_host_has_what_this_process_may_use() {
        let host = Topology::of_this_process().expect("the system tells");
        let own = std::thread::available_parallelism().map_or(1, usize::from);
        for level in [Level::HwThread, Level::Core, Level::L3, Level::Numa, Level::Socket] {
            let all = host.parts(level).concat();
            assert!(all.len() >= own, "{level:?}: {all:?}, of which {own} may be used at the same time");
            assert_eq!(all.len(), host.parts(Level::HwThread).len(), "{level:?}: each processor once");
        }
    }
}
