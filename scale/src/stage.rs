//! The machine of a job, the observer of its run, and the outcome.

use super::fabric::{CACHE_CORES, CORES, Fabric};

/// How ranks are placed on hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As many ranks in a row as a host has cores.
    Block,
    /// By turns.
    RoundRobin,
    /// As many in a row as a host has cores, hosts by turns of their switches.
    Scattered,
}

impl Placement {
    /// All, by the names by which the user chooses them.
    pub const NAMED: [(&'static str, Placement); 3] = [
        ("block", Placement::Block),
        ("round-robin", Placement::RoundRobin),
        ("scattered", Placement::Scattered),
    ];
}

/// The machine of a job.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// Its fabric.
    pub fabric: &'static Fabric,
    /// Ranks.
    pub ranks: usize,
    /// Most ranks of a host.
    pub cores: usize,
    /// Where they are.
    pub placement: Placement,
}

impl Stage {
    /// Ranks on full hosts, in a row.
    pub fn block(fabric: &'static Fabric, ranks: usize) -> Stage {
        Stage { fabric, ranks, cores: CORES, placement: Placement::Block }
    }

    /// Hosts in use.
    pub fn hosts(&self) -> usize {
        self.ranks.div_ceil(self.cores)
    }

    /// The host of each rank.
    pub fn nodes(&self) -> Vec<u32> {
        let mut hosts: Vec<usize> = (0..self.hosts()).collect();
        if self.placement == Placement::Scattered {
            let group = self.fabric.group().unwrap_or(1);
            hosts.sort_by_key(|host| (host % group, host / group));
        }
        let host = |rank: usize| match self.placement {
            Placement::Block | Placement::Scattered => hosts[rank / self.cores],
            Placement::RoundRobin => rank % hosts.len(),
        };
        (0..self.ranks).map(|rank| host(rank) as u32).collect()
    }

    /// The leaf switch or the group of each rank's host.
    pub fn switches(&self) -> Vec<u32> {
        let group = self.fabric.group().unwrap_or(self.hosts()) as u32;
        self.nodes().into_iter().map(|host| host / group).collect()
    }

    /// The cache of each rank's core within its host.
    pub fn caches(&self) -> Vec<u32> {
        let mut members = vec![0u32; self.hosts()];
        let cache = |node: u32| {
            members[node as usize] += 1;
            (members[node as usize] - 1) / CACHE_CORES as u32
        };
        self.nodes().into_iter().map(cache).collect()
    }
}

/// Sees what happens, so that data can go with it.
pub trait Watch {
    /// A step of a rank that needs no message ends.
    fn local(&mut self, rank: usize, step: usize);
    /// A message leaves the memory of its sender.
    fn leave(&mut self, message: u32, rank: usize, step: usize);
    /// It is in the memory of its receiver.
    fn arrive(&mut self, message: u32, rank: usize, step: usize);
}

/// An observer that ignores all events.
impl Watch for () {
    fn local(&mut self, _: usize, _: usize) {}
    fn leave(&mut self, _: u32, _: usize, _: usize) {}
    fn arrive(&mut self, _: u32, _: usize, _: usize) {}
}

/// How a job went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Until the last rank has ended.
    pub ps: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes between hosts.
    pub far_bytes: u64,
}
