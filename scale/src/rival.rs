//! Other libraries' published rules for the choice of algorithms, as data of our own: which algorithm for so
//! many ranks and bytes. Facts are taken from Open MPI's fixed rules (`coll/tuned`, releases 1.3 to 4.0) and
//! its levels (`coll/han`, before `tuned` since 5.0), MPICH's rules (`maint/tuning/coll/mpir/generic.json`,
//! 4.x) and those of UCC for hosts (`components/tl/ucp`, 1.3 to 1.5). In place of their algorithms, ours with
//! the same messages run; comments on rules name differences. Within two levels our choice applies to them,
//! too.

use super::case::Case;
use nmad_mpi_base::algorithm::choice::Family;

/// A policy beside ours.
#[derive(Debug)]
pub struct Rival {
    /// As users know it.
    pub name: &'static str,
    rules: &'static [Rule],
    /// Whose rules it takes where it has none.
    otherwise: Option<&'static Rival>,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
struct Asked {
    hosts: u64,
    ranks: u64,
    /// Bytes of the vector or of a block.
    len: u64,
    /// Bytes of all blocks.
    total: u64,
}

impl Asked {
    /// Whether a line through `ranks` is above that of the length: rules of Open MPI were fitted so.
    fn is_above(self, per_kib: f64, start: f64) -> bool {
        self.ranks as f64 > per_kib * self.len as f64 / 1024.0 + start
    }
}

/// The first rule of a family that holds names the algorithm.
#[derive(Debug)]
struct Rule {
    family: Family,
    holds: fn(Asked) -> bool,
    /// Ours.
    algorithm: &'static str,
}

const fn rule(family: Family, algorithm: &'static str, holds: fn(Asked) -> bool) -> Rule {
    Rule { family, holds, algorithm }
}

const fn always(_: Asked) -> bool {
    true
}

const fn across(asked: Asked) -> bool {
    asked.hosts > 1
}

/// Open MPI: fixed rules of `coll/tuned`.
pub const OPEN_MPI: Rival = Rival {
    name: "openmpi",
    rules: &[
        // Recursive doubling, Bruck: the same messages or as many.
        rule(Family::Barrier, "dissemination", always),
        rule(Family::Bcast, "binomial", |a| a.len < 2048),
        // Split binary tree with segments of 1 KiB.
        rule(Family::Bcast, "binary", |a| a.len < 370_728),
        rule(Family::Bcast, "chain", always),
        rule(Family::Gather, "flat", always),
        rule(Family::Scatter, "flat", always),
        rule(Family::Allgather, "recursive_doubling", |a| a.total < 50_000 && a.ranks.is_power_of_two()),
        rule(Family::Allgather, "bruck", |a| a.total < 50_000),
        // Neighbour exchange for even numbers: half as many messages of twice the length.
        rule(Family::Allgather, "ring", always),
        rule(Family::Alltoall, "bruck", |a| a.len < 200 && a.ranks > 12),
        rule(Family::Alltoall, "flat", |a| a.len < 3000),
        rule(Family::Alltoall, "pairwise", always),
        rule(Family::Reduce, "flat", |a| a.ranks < 8 && a.len < 512),
        rule(Family::Reduce, "binomial", |a| a.ranks < 8 && a.len < 20_480),
        rule(Family::Reduce, "binary", |a| a.len < 2048 || a.is_above(0.6016, 1.3496)),
        rule(Family::Reduce, "chain", always),
        rule(Family::Allreduce, "recursive_doubling", |a| a.len < 10_000),
        rule(Family::Allreduce, "ring", |a| a.len / 8 > a.ranks),
        rule(Family::Allreduce, "reduce_bcast", always),
        rule(Family::ReduceScatter, "halving", |a| {
            let is_power = a.ranks.is_power_of_two();
            a.total <= 12 << 10
                || (a.total <= 256 << 10 && is_power)
                || a.ranks as f64 >= 0.0012 * a.total as f64 + 8.0
        }),
        // Ring: as many messages of the same length.
        rule(Family::ReduceScatter, "pairwise", always),
        // Linear.
        rule(Family::Scan, "chain", always),
    ],
    otherwise: None,
};

/// From this length on HAN cuts vectors of reductions and broadcasts into segments.
const SEGMENT: u64 = 64 << 10;

/// Open MPI's HAN: two levels, on several hosts only. Its segments go through the steps of both levels at the
/// same time, as our pieces do, whose lengths our cost model chooses.
pub const HAN: Rival = Rival {
    name: "han",
    rules: &[
        rule(Family::Barrier, "two_level", across),
        rule(Family::Bcast, "two_level", |a| across(a) && a.len <= SEGMENT),
        rule(Family::Bcast, "multi_level", across),
        rule(Family::Gather, "two_level", across),
        rule(Family::Scatter, "two_level", across),
        rule(Family::Allgather, "two_level", across),
        rule(Family::Reduce, "two_level", |a| across(a) && a.len <= SEGMENT),
        rule(Family::Reduce, "multi_level", across),
        rule(Family::Allreduce, "two_level", |a| across(a) && a.len <= SEGMENT),
        // Each segment is reduced to one rank and broadcast from there.
        rule(Family::Allreduce, "reduce_bcast", across),
    ],
    otherwise: Some(&OPEN_MPI),
};

/// MPICH: the generic rules.
pub const MPICH: Rival = Rival {
    name: "mpich",
    rules: &[
        rule(Family::Barrier, "two_level", always),
        rule(Family::Bcast, "binomial", |a| a.ranks < 8 || a.len <= 12_288),
        // Its allgather is recursive doubling up to 64 KiB a rank, and a ring beyond.
        rule(Family::Bcast, "scatter_allgather", always),
        rule(Family::Gather, "binomial", always),
        rule(Family::Scatter, "binomial", always),
        rule(Family::Allgather, "recursive_doubling", |a| a.total < 524_288 && a.ranks.is_power_of_two()),
        rule(Family::Allgather, "bruck", |a| a.total < 81_920),
        rule(Family::Allgather, "ring", always),
        rule(Family::Alltoall, "bruck", |a| a.ranks >= 8 && a.len <= 256),
        rule(Family::Alltoall, "flat", |a| a.len <= 32_768),
        rule(Family::Alltoall, "pairwise", always),
        rule(Family::Reduce, "binomial", |a| a.len <= 2048 || a.len / 8 < a.ranks),
        rule(Family::Reduce, "rabenseifner", always),
        rule(Family::Allreduce, "recursive_doubling", |a| a.len <= 8 || a.len / 8 < a.ranks),
        rule(Family::Allreduce, "rabenseifner", always),
        rule(Family::ReduceScatter, "halving", |a| a.total < 524_288),
        rule(Family::ReduceScatter, "pairwise", always),
        rule(Family::Scan, "recursive_doubling", always),
    ],
    otherwise: None,
};

/// UCC without levels, as it is by default. Its trees have a radix of four, ours of two. It has no scan.
pub const UCC: Rival = Rival {
    name: "ucc",
    rules: &[
        rule(Family::Barrier, "dissemination", always),
        rule(Family::Bcast, "binomial", |a| a.ranks == 2 || a.len < 32 << 10),
        rule(Family::Bcast, "scatter_allgather", always),
        rule(Family::Gather, "binomial", always),
        rule(Family::Scatter, "binomial", always),
        rule(Family::Allgather, "recursive_doubling", |a| a.total < 4 << 10 && a.ranks.is_power_of_two()),
        rule(Family::Allgather, "bruck", |a| a.total < 4 << 10),
        // Neighbour exchange for even numbers, where ranks are in the order of hosts.
        rule(Family::Allgather, "ring", always),
        rule(Family::Alltoall, "bruck", |a| a.len < 129),
        rule(Family::Alltoall, "pairwise", always),
        rule(Family::Reduce, "binomial", always),
        rule(Family::Allreduce, "recursive_doubling", |a| a.len < 4 << 10),
        rule(Family::Allreduce, "rabenseifner", always),
        rule(Family::ReduceScatter, "halving", always),
    ],
    otherwise: None,
};

/// All of them.
pub const RIVALS: [&Rival; 4] = [&OPEN_MPI, &HAN, &MPICH, &UCC];

impl Rival {
    /// The algorithm of ours that stands for its choice; none if it does not have this collective.
    pub fn choice(&self, case: &Case) -> Option<&'static str> {
        let Case { stage, family, len } = *case;
        let ranks = stage.ranks as u64;
        let asked = Asked { hosts: stage.hosts() as u64, ranks, len, total: len * ranks };
        let mut rules = self.rules.iter().filter(|rule| rule.family == family);
        match rules.find(|rule| (rule.holds)(asked)) {
            Some(rule) => Some(rule.algorithm),
            None => self.otherwise?.choice(case),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FABRICS;
    use crate::stage::Stage;

    #[test]
    fn every_rule_names_an_algorithm_and_every_family_has_a_last_rule() {
        for rival in RIVALS {
            for rule in rival.rules {
                let known = rule.family.algorithms();
                assert!(known.contains(&rule.algorithm), "{}: {rule:?}, {known:?}", rival.name);
            }
            for (&family, ranks) in Family::ALL.iter().flat_map(|family| [(family, 2), (family, 1 << 20)]) {
                let case = Case { stage: Stage::block(&FABRICS[0], ranks), family, len: 1 << 30 };
                let is_missing = rival.name == "ucc" && family == Family::Scan;
                assert_eq!(rival.choice(&case).is_none(), is_missing, "{}: {case:?}", rival.name);
            }
        }
    }
}
