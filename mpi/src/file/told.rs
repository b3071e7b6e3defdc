//! Accesses as the user is told of them, by `NMAD_MPI_EXPLAIN` and in traces: which way they went, which
//! ranks called the file system for them, and their predicted and actual times.

use super::{File, Kind, lock};
use crate::collective::explains;
use crate::world::world;
use newmadeleine::{FileAccess, tell_user};
use nmad_file::plan::Load;
use nmad_file::{Pieces, Regions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// The way of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// One rank.
    Alone(nmad_file::Way),
    /// All ranks, each of which calls the file system itself.
    TogetherDirectly,
    /// All ranks, by owners.
    TogetherByOwners,
    /// The calls of the file system of one owner for one region of such an access.
    Region,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Alone(nmad_file::Way::Directly) => "directly",
            Way::Alone(nmad_file::Way::ByOwners) => "by owners",
            Way::TogetherDirectly => "all ranks, directly",
            Way::TogetherByOwners => "all ranks, by owners",
            Way::Region => "a region, by its owner",
        }
    }
}

/// An access that has begun.
pub(super) struct Begun {
    at: Instant,
    /// The time in the trace, if there is one.
    traced: Option<u64>,
}

/// What there is to tell of an access.
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) way: Way,
    /// Ranks that call the file system.
    pub(super) owners: Vec<i32>,
    pub(super) load: Load,
    pub(super) predicted_ns: u64,
}

/// Accesses of one kind and way.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    predicted_ns: u64,
    actual_ns: u64,
}

/// The accesses of a file.
#[derive(Default)]
pub(super) struct Sums(BTreeMap<(bool, Way), Sum>);

/// The owners of the regions between the first and the last byte of pieces.
pub(super) fn owners_of(regions: &Regions, pieces: &Pieces) -> Vec<i32> {
    let Some((begin, end)) = pieces.hull() else { return Vec::new() };
    let touched = regions.of(begin)..=regions.of(end.saturating_sub(1).max(begin));
    let mut owners: Vec<i32> =
        touched.take(regions.owners().len()).map(|region| regions.owner(region)).collect();
    owners.sort_unstable();
    owners
}

impl File {
    /// An access begins; `None` without a trace and without explanations.
    pub(super) fn begun(&self) -> Option<Begun> {
        let traced = world().ok().and_then(|world| world.session().trace_now());
        (explains() || traced.is_some()).then(|| Begun { at: Instant::now(), traced })
    }

    /// An access of this rank has ended; `told` says what it was.
    #[cold]
    pub(super) fn ended(&self, begun: &Begun, told: Told) {
        let Told { kind, way, owners, load, predicted_ns } = told;
        let actual_ns = begun.at.elapsed().as_nanos() as u64;
        let mut sums = lock(&self.sums);
        let sum = sums.0.entry((kind == Kind::Read, way)).or_default();
        sum.count += 1;
        sum.bytes += load.bytes;
        sum.predicted_ns += predicted_ns;
        sum.actual_ns += actual_ns;
        drop(sums);
        let (Some(began), Ok(world)) = (begun.traced, world()) else { return };
        let Some(ended) = world.session().trace_now() else { return };
        world.session().trace_access(FileAccess {
            began,
            file: self.disk.path().display().to_string(),
            kind: if kind == Kind::Read { "read" } else { "write" },
            way: way.name(),
            owners: owners.iter().filter_map(|&rank| self.on.comm.local().world(rank)).collect(),
            pieces: load.pieces,
            len: load.bytes,
            predicted_ns,
            ended,
        });
    }

    /// Tells the user of all accesses of this rank that have succeeded, if that is wanted: the file is
    /// closed.
    pub(super) fn tell_sums(&self) {
        if !explains() {
            return;
        }
        let mut text = String::new();
        for (&(reads, way), sum) in &lock(&self.sums).0 {
            let kind = if reads { "reads" } else { "writes" };
            let _ = write!(
                text,
                "{}{} {kind} {}: {} B in {} us, predicted {} us",
                if text.is_empty() { "" } else { "; " },
                sum.count,
                way.name(),
                sum.bytes,
                sum.actual_ns / 1000,
                sum.predicted_ns / 1000,
            );
        }
        if !text.is_empty() {
            let (path, rank) = (self.disk.path().display(), self.rank());
            tell_user(format_args!("nmad: {path}: rank {rank} made {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_file::Piece;

    #[test]
    fn each_owner_of_a_touched_region_is_named_once() {
        let regions = Regions::new(10, 1, vec![4, 7, 2]);
        let owners = |offset, len| owners_of(&regions, &Pieces::from_iter([Piece { offset, len }]));
        assert_eq!(owners(0, 10), [4]);
        assert_eq!(owners(5, 10), [4, 7]);
        assert_eq!(owners(5, 1000), [2, 4, 7]);
        assert!(owners_of(&regions, &Pieces::default()).is_empty());
    }
}
