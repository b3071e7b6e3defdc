//! Binding: which processors each rank of a host may run on.
//!
//! [`Binding`] is what the user asks for, [`topology`] what the host has and leaves to this process (its
//! cpuset, or a `taskset` around it), [`quota`] how much of that the control group lets it use at the same
//! time. [`plan`] deals the processors out. It runs on the host of the ranks; this layer knows processors
//! and numbers, and must never know how a process is started.

pub mod quota;
pub mod topology;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use topology::{Processors, Topology};

/// Parts of a host that ranks are bound to, or dealt out over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// One hardware thread.
    HwThread,
    /// One core with all of its hardware threads.
    Core,
    /// The cores that share a third-level cache.
    L3,
    /// The cores of one NUMA node.
    Numa,
    /// The cores of one package.
    Socket,
}

/// What a rank is bound to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An equal share of the host's cores if there is at least one for each of several ranks, else nothing.
    #[default]
    Share,
    /// Nothing: ranks run where the system puts them.
    Nothing,
    /// A part of the host; in turns if there are fewer parts than ranks.
    Part(Level),
}

/// How ranks are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// To what.
    pub to: Target,
    /// Consecutive ranks go to different parts of this level in turns; `None`: side by side.
    pub spread: Option<Level>,
    /// How many parts each rank gets: cores for the threads of a rank, say. At least 1.
    pub width: u32,
}

impl Default for Binding {
    fn default() -> Binding {
        Binding { to: Target::Share, spread: None, width: 1 }
    }
}

impl Binding {
    /// Ranks run where the system puts them.
    pub const NONE: Binding = Binding { to: Target::Nothing, spread: None, width: 1 };
}

/// The binding as far as the system permits any, and what the user has to know of it: containers and filters
/// of system calls may refuse to bind processes. Ranks then run where the system puts them.
pub fn permitted(wanted: Binding) -> (Binding, Option<String>) {
    let own = sched_getaffinity(None);
    as_answered(wanted, own.and_then(|own| sched_setaffinity(None, &own)))
}

/// `answer`: of the system, to being bound as this process is anyway.
fn as_answered(wanted: Binding, answer: Result<(), Errno>) -> (Binding, Option<String>) {
    match (answer, wanted.to) {
        (Ok(()), _) | (Err(_), Target::Nothing) => (wanted, None),
        // Nobody has asked for it.
        (Err(_), Target::Share) => (Binding::NONE, None),
        (Err(error), Target::Part(_)) => {
            let why = std::io::Error::from(error);
            (Binding::NONE, Some(format!("ranks are not bound: the system refuses it ({why})")))
        }
    }
}

/// The processors of each of `count` ranks of a host; `None` are all that it may use anyway.
///
/// `usable` is how many processors the control group lets the job keep busy ([`quota::processors`]).
pub fn plan(binding: &Binding, count: u32, host: &Topology, usable: usize) -> Vec<Option<Processors>> {
    let count = count as usize;
    let cores = host.parts(Level::Core);
    let parts = match binding.to {
        Target::Part(level) => host.parts(level),
        Target::Share if count > 1 && count * binding.width as usize <= cores.len().min(usable) => {
            return shares(&spread(host, cores, binding.spread), count);
        }
        Target::Share | Target::Nothing => return vec![None; count],
    };
    if parts.is_empty() {
        return vec![None; count];
    }
    let parts = spread(host, parts, binding.spread);
    let width = (binding.width.max(1) as usize).min(parts.len());
    let own = |rank: usize| {
        (0..width).flat_map(|number| parts[(rank * width + number) % parts.len()].clone()).collect()
    };
    (0..count).map(|rank| Some(sorted(own(rank)))).collect()
}

/// The same number of cores for each rank; the remainder of the division is unused.
fn shares(cores: &[Processors], count: usize) -> Vec<Option<Processors>> {
    let width = cores.len() / count;
    let share = |rank: usize| cores[rank * width..(rank + 1) * width].concat();
    (0..count).map(|rank| Some(sorted(share(rank)))).collect()
}

/// The parts in an order that changes the domain of `level` with each of them.
fn spread(host: &Topology, parts: Vec<Processors>, level: Option<Level>) -> Vec<Processors> {
    let Some(level) = level else { return parts };
    let mut domains: Vec<Vec<Processors>> = vec![Vec::new(); host.parts(level).len()];
    for part in parts {
        let domain = host.parts(level).iter().position(|domain| domain.contains(&part[0]));
        domains[domain.unwrap_or(0)].push(part);
    }
    let most = domains.iter().map(Vec::len).max().unwrap_or(0);
    let row = |number: usize| domains.iter().filter_map(move |domain| domain.get(number).cloned());
    (0..most).flat_map(row).collect()
}

fn sorted(mut processors: Processors) -> Processors {
    processors.sort_unstable();
    processors.dedup();
    processors
}

/// As the system takes it; `None` if a processor's number is beyond what it can name.
pub fn mask(processors: &[usize]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for &processor in processors {
        if processor >= CpuSet::MAX_CPU {
            return None;
        }
        set.set(processor);
    }
    Some(set)
}

/// What `--report-bindings` tells of a rank.
pub fn report(rank: u32, host: &str, bound: Option<&Processors>, topology: &Topology) -> String {
    match bound {
        None => {
            let all = topology.parts(Level::HwThread).concat();
            format!("rank {rank} on {host} is not bound: it may run on processors {}", ranges(&sorted(all)))
        }
        Some(bound) => {
            let cores = topology.parts(Level::Core);
            let cores = cores.iter().filter(|core| core.iter().any(|one| bound.contains(one))).count();
            let plural = if cores == 1 { "" } else { "s" };
            format!("rank {rank} on {host} is bound to {cores} core{plural}: processors {}", ranges(bound))
        }
    }
}

/// Sorted numbers as `0-3,8`.
fn ranges(numbers: &[usize]) -> String {
    let mut text = Vec::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let len = (0..rest.len()).take_while(|&at| rest[at] == first + at).count();
        text.push(if len == 1 { first.to_string() } else { format!("{first}-{}", first + len - 1) });
        rest = &rest[len..];
    }
    text.join(",")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
