//! Binding: the processors on which each rank of a host may run.
//!
//! [`Binding`] is the user's choice. [`topology`] has the processors of the host that this process may use
//! (its cpuset, or a `taskset` around it); [`quota`] is the number of them that the control group lets it
//! use at the same time. [`plan`] assigns the processors to ranks, on the host of the ranks. This layer
//! knows processors and numbers, and must never know how a process is started.

pub mod quota;
pub mod topology;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use topology::{Processors, Topology};

/// Kinds of parts of a host, to which ranks are bound or over which they are spread.
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

/// The part of a host that a rank is bound to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An equal share of the host's cores if several ranks get at least one each, otherwise nothing.
    #[default]
    Share,
    /// No binding: the system places ranks.
    Nothing,
    /// A part of the host; ranks share parts in turns if there are fewer parts than ranks.
    Part(Level),
}

/// How ranks are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The part.
    pub to: Target,
    /// Consecutive ranks go to different parts of this level in turns; `None` keeps them together.
    pub spread: Option<Level>,
    /// Number of parts for each rank, for example cores for its threads. At least 1.
    pub width: u32,
}

impl Default for Binding {
    fn default() -> Binding {
        Binding { to: Target::Share, spread: None, width: 1 }
    }
}

impl Binding {
    /// No binding: the system places ranks.
    pub const NONE: Binding = Binding { to: Target::Nothing, spread: None, width: 1 };
}

/// Returns the binding that the system permits, and a warning for the user: containers and filters of
/// system calls may refuse to bind processes. Ranks are unbound then.
pub fn permitted(wanted: Binding) -> (Binding, Option<String>) {
    let own = sched_getaffinity(None);
    as_answered(wanted, own.and_then(|own| sched_setaffinity(None, &own)))
}

/// `answer` is the result of binding this process to its own mask.
fn as_answered(wanted: Binding, answer: Result<(), Errno>) -> (Binding, Option<String>) {
    match (answer, wanted.to) {
        (Ok(()), _) | (Err(_), Target::Nothing) => (wanted, None),
        // The user has not asked for it.
        (Err(_), Target::Share) => (Binding::NONE, None),
        (Err(error), Target::Part(_)) => {
            let why = std::io::Error::from(error);
            (Binding::NONE, Some(format!("ranks are not bound: the system refuses it ({why})")))
        }
    }
}

/// Returns the processors of each of `count` ranks of a host; `None` for an unbound rank.
///
/// `usable` is the number of processors that the control group lets the job use at the same time
/// ([`quota::processors`]).
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

/// Gives each rank the same number of cores; the remainder is unused.
fn shares(cores: &[Processors], count: usize) -> Vec<Option<Processors>> {
    let width = cores.len() / count;
    let share = |rank: usize| cores[rank * width..(rank + 1) * width].concat();
    (0..count).map(|rank| Some(sorted(share(rank)))).collect()
}

/// Orders the parts so that consecutive ones are in different domains of `level`.
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

/// Converts processors to the system's mask; `None` if a number is too high for it.
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

/// Returns the line of `--report-bindings` for a rank.
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

/// Formats sorted numbers as `0-3,8`.
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
