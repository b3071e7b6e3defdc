//! The units of hardware that this process is bound to, as the system shows them below `/sys/devices/system`.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::path::Path;

/// Kinds of units, the larger ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Machine,
    Package,
    NumaNode,
    L3Cache,
    L2Cache,
    L1Cache,
    Core,
    Pu,
}

impl Kind {
    pub(crate) const ALL: [Kind; 8] = [
        Kind::Machine,
        Kind::Package,
        Kind::NumaNode,
        Kind::L3Cache,
        Kind::L2Cache,
        Kind::L1Cache,
        Kind::Core,
        Kind::Pu,
    ];

    /// Its name as a resource type: that of the standard, or hwloc's.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Machine => "mpi_shared_memory",
            Kind::Package => "hwloc://Package",
            Kind::NumaNode => "hwloc://NUMANode",
            Kind::L3Cache => "hwloc://L3Cache",
            Kind::L2Cache => "hwloc://L2Cache",
            Kind::L1Cache => "hwloc://L1Cache",
            Kind::Core => "hwloc://Core",
            Kind::Pu => "hwloc://PU",
        }
    }

    /// The kind of a name: the standard's, hwloc's with or without its scheme, or one of MPICH's hints.
    pub(crate) fn of_name(name: &str) -> Option<Kind> {
        let short = name.strip_prefix("hwloc://").unwrap_or(name).to_ascii_lowercase();
        Some(match &*short {
            "mpi_shared_memory" | "machine" => Kind::Machine,
            "package" | "socket" => Kind::Package,
            "numanode" | "numa" => Kind::NumaNode,
            "core" => Kind::Core,
            "pu" | "hwthread" => Kind::Pu,
            // Data, instructions or both (l1dcache, l1icache, l1ucache): the cores that share them are the
            // same.
            _ => match short.strip_suffix("cache")?.trim_end_matches(['d', 'i', 'u']) {
                "l1" => Kind::L1Cache,
                "l2" => Kind::L2Cache,
                "l3" => Kind::L3Cache,
                _ => return None,
            },
        })
    }
}

/// A kind of units that this machine has, and the one that this process is bound to: its lowest processor;
/// none if the process may leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) kind: Kind,
    pub(crate) number: Option<u32>,
}

/// Those of this process.
pub(crate) fn units() -> Vec<Unit> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let bound: Vec<u32> = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect();
    units_in(Path::new("/sys/devices/system"), &bound)
}

/// Those of a process that may run on these processors, the lowest first.
fn units_in(system: &Path, bound: &[u32]) -> Vec<Unit> {
    let Some(&first) = bound.first() else { return vec![Unit { kind: Kind::Machine, number: Some(0) }] };
    let unit = |kind| {
        let number = match kind {
            Kind::Machine => Some(0),
            Kind::Pu => (bound.len() == 1).then_some(first),
            _ => {
                let processors = processors(system, kind, first)?;
                let is_inside = bound.iter().all(|cpu| processors.contains(cpu));
                processors.iter().min().copied().filter(|_| is_inside)
            }
        };
        Some(Unit { kind, number })
    };
    Kind::ALL.into_iter().filter_map(unit).collect()
}

/// The processors of the unit that one of them belongs to; none if there is no such unit.
fn processors(system: &Path, kind: Kind, cpu: u32) -> Option<Vec<u32>> {
    let own = system.join(format!("cpu/cpu{cpu}"));
    let first_of = |names: [&str; 2]| names.iter().find_map(|name| list(&own.join("topology").join(name)));
    match kind {
        Kind::Machine | Kind::Pu => None,
        Kind::Package => first_of(["package_cpus_list", "core_siblings_list"]),
        Kind::Core => first_of(["core_cpus_list", "thread_siblings_list"]),
        Kind::NumaNode => {
            let lists = std::fs::read_dir(system.join("node")).ok()?.flatten();
            let mut lists = lists.filter_map(|entry| list(&entry.path().join("cpulist")));
            lists.find(|processors| processors.contains(&cpu))
        }
        Kind::L1Cache => cache(&own, "1"),
        Kind::L2Cache => cache(&own, "2"),
        Kind::L3Cache => cache(&own, "3"),
    }
}

/// Bytes of the last-level cache of this process's lowest processor, divided by the processors that share it;
/// none if the system does not say.
pub(crate) fn cached() -> Option<u64> {
    let set = sched_getaffinity(None).ok()?;
    let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| set.is_set(cpu))?;
    cached_in(&Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cache/index3")))
}

fn cached_in(cache: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(cache.join("size")).ok()?;
    let kilobytes: u64 = text.trim().strip_suffix('K')?.parse().ok()?;
    Some(1024 * kilobytes / list(&cache.join("shared_cpu_list"))?.len() as u64)
}

/// The processors that share a cache which holds data.
fn cache(cpu: &Path, level: &str) -> Option<Vec<u32>> {
    let text = |path: &Path, name| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let entries = std::fs::read_dir(cpu.join("cache")).ok()?.flatten().map(|entry| entry.path());
    let mut fitting = entries
        .filter(|path| text(path, "level").trim() == level && text(path, "type").trim() != "Instruction");
    fitting.find_map(|path| list(&path.join("shared_cpu_list")))
}

/// A list of processors as the system writes it (`0-3,8`).
fn list(file: &Path) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(file).ok()?;
    let range = |part: &str| {
        let (begin, end) = part.split_once('-').unwrap_or((part, part));
        Some(begin.parse::<u32>().ok()?..=end.parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').filter(|part| !part.is_empty()).map(range).collect();
    Some(ranges?.into_iter().flatten().collect()).filter(|all: &Vec<u32>| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of two packages with two cores of two threads each; processors 0 to 3 are the first threads.
    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        };
        for cpu in 0..8_u32 {
            let (core, package) = (cpu % 4, cpu % 4 / 2);
            let all = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
            write(format!("cpu/cpu{cpu}/topology/core_siblings_list"), all);
            write(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{core},{}", core + 4));
            for (index, level, kind, shared) in [
                (0, 1, "Instruction", "7"),
                (1, 1, "Data", &*format!("{core},{}", core + 4)),
                (2, 3, "Unified", all),
            ] {
                write(format!("cpu/cpu{cpu}/cache/index{index}/level"), &level.to_string());
                write(format!("cpu/cpu{cpu}/cache/index{index}/type"), kind);
                write(format!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"), shared);
            }
        }
        folder
    }

    #[test]
    fn the_processors_of_a_cache_share_its_bytes() {
        let machine = machine();
        let cache = machine.path().join("cpu/cpu0/cache/index2");
        assert_eq!(cached_in(&cache), None, "the system does not say");
        std::fs::write(cache.join("size"), "32768K\n").unwrap();
        assert_eq!(cached_in(&cache), Some(8 << 20));
    }

    #[test]
    fn a_process_is_bound_to_what_holds_all_of_its_processors() {
        let machine = machine();
        let bound = |cpus: &[u32]| {
            let units = units_in(machine.path(), cpus);
            units.iter().map(|unit| (unit.kind, unit.number)).collect::<Vec<_>>()
        };
        use Kind::{Core, L1Cache, L3Cache, Machine, Package, Pu};
        let of = |package, core, pu| {
            vec![
                (Machine, Some(0)),
                (Package, package),
                (L3Cache, package),
                (L1Cache, core),
                (Core, core),
                (Pu, pu),
            ]
        };
        assert_eq!(bound(&[6]), of(Some(2), Some(2), Some(6)));
        assert_eq!(bound(&[3, 7]), of(Some(2), Some(3), None));
        assert_eq!(bound(&[0, 5]), of(Some(0), None, None));
        assert_eq!(bound(&[0, 1, 2, 3, 4, 5, 6, 7]), of(None, None, None));
        assert_eq!(bound(&[]), [(Machine, Some(0))]);
    }

    #[test]
    fn names_are_those_of_the_standard_of_hwloc_and_of_mpich() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_name(kind.name()), Some(kind));
        }
        for (name, kind) in [("socket", Kind::Package), ("l3ucache", Kind::L3Cache), ("hwthread", Kind::Pu)] {
            assert_eq!(Kind::of_name(name), Some(kind));
        }
        assert_eq!((Kind::of_name("l4cache"), Kind::of_name("gpu"), Kind::of_name("")), (None, None, None));
    }
}
