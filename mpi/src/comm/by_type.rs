//! Splitting by a shared property: memory, a unit of hardware, a directory. Each process sends its request
//! and its properties to all others, and all choose from them alike; not if all ask for shared memory without
//! a hint.

use super::create::{party, split};
use super::party::{decode, encode};
use super::share;
use crate::algorithm::check::number;
use crate::constant::SplitType;
use crate::error::Result;
use crate::handle::Comm;
use crate::hardware::{self, Kind};
use crate::info::Infos;
use crate::task::block_on;
use crate::world::{World, world};
use nmad_file::System;
use std::path::Path;
use std::sync::Arc;

/// Processors of a node have numbers below.
const PROCESSORS: i64 = 1 << 13;
/// What a process tells that has no such thing.
const NONE: i64 = -1;
/// The key of a kind of hardware.
const RESOURCE: &str = "mpi_hw_resource_type";

/// What a process tells the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    /// A number for its hint, 0 for none; [`NONE`] if it is to be in no part.
    hint: i64,
    node: i64,
    /// For a hint that names a directory: 1 if other nodes see the same one, 0 if not.
    directory: i64,
    /// The part that it belongs to, for each kind of units.
    units: [i64; Kind::ALL.len()],
}

const ROW: usize = 3 + Kind::ALL.len();

/// Splits a communicator; `split_type` none: we are to be in no part.
pub(crate) fn by_type(
    handle: Comm,
    split_type: Option<SplitType>,
    key: i32,
    infos: Option<&Arc<Infos>>,
) -> Result<Comm> {
    let (world, old) = (world()?, share(handle)?);
    // Processes of several jobs share nothing that all of them know alike.
    let alone = (!old.bridges().is_empty()).then(|| i64::from(old.rank()));
    let party = party(&old);
    let hint = |key: &str| infos.and_then(|infos| infos.get(key));
    let asked = match split_type {
        Some(SplitType::Shared) => hint("shmem_topo").filter(|name| Kind::of_name(name).is_some()),
        Some(SplitType::Neighborhood) => hint("nbhd_common_dirname"),
        Some(SplitType::HwGuided) => hint(RESOURCE),
        Some(SplitType::ResourceGuided) => hint("mpi_pset_name").or_else(|| hint(RESOURCE)),
        Some(SplitType::HwUnguided) | None => None,
    };
    let own = row(world, alone, split_type, asked.as_deref());
    // All processes know the nodes of all: only hints and units have to be told.
    let knows = matches!((split_type, &asked), (Some(SplitType::Shared) | None, None));
    let all = match block_on(party.greatest([i64::from(!knows)]))? {
        [0] => Vec::new(),
        _ => decode(&block_on(party.gather(encode(&own.numbers())))?),
    };
    let rows: Vec<Row> =
        all.as_chunks::<ROW>().0.iter().map(Row::of).filter(|row| row.hint != NONE).collect();
    let chosen = if split_type == Some(SplitType::HwUnguided) { unguided(&rows) } else { None };
    let color = split_type.and_then(|split_type| match chosen {
        Some(kind) => own.part(kind),
        None => color(split_type, asked.as_deref(), (&own, &rows), world),
    });
    let new = split(handle, color.map(|color| color as i32), key, |_| None)?;
    if let (Some(infos), false) = (infos, new.is_null()) {
        share(new)?.inform(infos)?;
    }
    if let (Some(infos), Some(kind), false) = (infos, chosen, new.is_null()) {
        // The standard has the kind told in the caller's own object (MPI 5.0, section 7.4.2).
        infos.set(RESOURCE, kind.name());
    }
    Ok(new)
}

fn row(world: &World, alone: Option<i64>, split_type: Option<SplitType>, asked: Option<&str>) -> Row {
    let session = world.session();
    let node = alone.unwrap_or_else(|| i64::from(session.nodes()[session.rank() as usize]));
    let mut units = [NONE; Kind::ALL.len()];
    // Reading the description of the hardware opens some thirty files of the system. Most splits, and those
    // for windows and files, only ask for shared memory and do without it.
    let is_about_units = split_type == Some(SplitType::HwUnguided) || asked.and_then(Kind::of_name).is_some();
    for unit in if is_about_units { hardware::units() } else { Vec::new() } {
        units[unit.kind as usize] = unit.number.map_or(NONE, |number| node * PROCESSORS + i64::from(number));
    }
    let hint = asked.map_or(0, |text| number(text).unwrap_or(0) as i64);
    let is_directory = split_type == Some(SplitType::Neighborhood);
    Row {
        hint: split_type.map_or(NONE, |_| hint),
        node,
        directory: asked.filter(|_| is_directory).map_or(NONE, |folder| directory(Path::new(folder))),
        units,
    }
}

/// Names of file systems that several nodes share.
const REMOTE: [&str; 7] = ["nfs", "cifs", "smb2", "lustre", "gpfs", "beegfs", "ceph"];

fn directory(folder: &Path) -> i64 {
    if !folder.is_dir() {
        return NONE;
    }
    System::at(folder).map_or(NONE, |system| i64::from(REMOTE.contains(&system.name)))
}

impl Row {
    fn numbers(&self) -> [i64; ROW] {
        let mut numbers = [0; ROW];
        numbers[..3].copy_from_slice(&[self.hint, self.node, self.directory]);
        numbers[3..].copy_from_slice(&self.units);
        numbers
    }

    fn of(numbers: &[i64; ROW]) -> Row {
        let mut units = [0; Kind::ALL.len()];
        units.copy_from_slice(&numbers[3..]);
        Row { hint: numbers[0], node: numbers[1], directory: numbers[2], units }
    }

    /// The part of the processes that are bound to the same unit; none if this one is bound to none.
    fn part(&self, kind: Kind) -> Option<i64> {
        Some(self.units[kind as usize]).filter(|&part| part != NONE)
    }
}

/// The largest kind of units to which all processes are bound, but not all to the same one.
fn unguided(rows: &[Row]) -> Option<Kind> {
    let divides = |kind: &Kind| {
        let parts: Option<Vec<i64>> = rows.iter().map(|row| row.part(*kind)).collect();
        parts.is_some_and(|parts| parts.iter().any(|part| *part != parts[0]))
    };
    Kind::ALL.into_iter().find(divides)
}

/// Our part; none: we are in none.
fn color(
    split_type: SplitType,
    asked: Option<&str>,
    (own, rows): (&Row, &[Row]),
    world: &World,
) -> Option<i64> {
    let is_alike = rows.iter().all(|row| row.hint == own.hint);
    match split_type {
        // MPICH's hints: those that not all give alike count for nothing.
        SplitType::Shared => match asked.filter(|_| is_alike).and_then(Kind::of_name) {
            Some(kind) => own.part(kind),
            None => Some(own.node),
        },
        SplitType::Neighborhood => {
            let is_there = is_alike && asked.is_some() && rows.iter().all(|row| row.directory != NONE);
            let is_common = rows.iter().all(|row| row.directory == 1);
            is_there.then_some(if is_common { 0 } else { own.node })
        }
        SplitType::HwGuided => asked.and_then(Kind::of_name).and_then(|kind| own.part(kind)),
        SplitType::ResourceGuided => match asked? {
            "mpi://WORLD" => Some(0),
            "mpi://SELF" => Some(i64::from(world.session().rank())),
            name => Kind::of_name(name).and_then(|kind| own.part(kind)),
        },
        SplitType::HwUnguided => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(node: i64, package: i64, core: i64) -> Row {
        let mut units = [NONE; Kind::ALL.len()];
        units[Kind::Machine as usize] = node * PROCESSORS;
        units[Kind::Package as usize] = package;
        units[Kind::Core as usize] = core;
        Row { hint: 0, node, directory: NONE, units }
    }

    #[test]
    fn the_largest_unit_that_divides_the_processes_is_chosen() {
        assert_eq!(unguided(&[bound(0, 0, 0), bound(1, 0, 0)]), Some(Kind::Machine));
        assert_eq!(unguided(&[bound(0, 0, 0), bound(0, 2, 2)]), Some(Kind::Package));
        assert_eq!(unguided(&[bound(0, NONE, 0), bound(0, 2, 2)]), Some(Kind::Core));
        assert_eq!(unguided(&[bound(0, 0, NONE), bound(0, 0, NONE)]), None);
        assert_eq!(unguided(&[bound(0, 0, 0)]), None);
    }

    #[test]
    fn what_is_told_is_understood() {
        let row = Row { hint: 7, node: 3, directory: 1, units: [4; Kind::ALL.len()] };
        assert_eq!(Row::of(&row.numbers()), row);
        assert_eq!((row.part(Kind::Core), bound(0, NONE, 0).part(Kind::Package)), (Some(4), None));
    }

    #[test]
    fn a_directory_is_of_this_node_or_of_all() {
        assert_eq!(directory(Path::new("/there/is/none")), NONE);
        assert_ne!(directory(&std::env::temp_dir()), NONE);
    }
}
