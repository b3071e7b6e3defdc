//! The committed tables and pictures: `nmad sim --scale --bless` writes them, tests make a part of them anew.

use super::fabric::FABRICS;
use super::packet;
use super::regret::{self, LENS, LONGEST, MOST};
use super::start;
use super::times::{self, MANY, RANKS, Row};
use super::windows;
use nmad_mpi_base::algorithm::choice::Family;
use nmad_sim::golden::show;
use std::path::Path;
use std::process::ExitCode;

/// Folder of the tables, from the root of the repository.
pub const FOLDER: &str = "scale/golden";
/// Folder of the pictures, which the documents show.
pub const PICTURES: &str = "docs/img";
/// A committed table.
#[derive(Debug)]
pub struct Golden {
    /// Its file, without the ending.
    pub name: &'static str,
    /// Makes its text.
    pub make: fn() -> String,
    /// It has a picture, drawn from its text.
    pub is_drawn: bool,
}

/// All of them.
pub const TABLES: &[Golden] = &[
    Golden { name: "model", make: || packet::table(Family::ALL, &mut |_, _, _| {}), is_drawn: false },
    Golden { name: "start", make: start::table, is_drawn: false },
    Golden { name: "windows", make: || windows::table(&windows::RANKS), is_drawn: false },
    Golden { name: "times-1K", make: || times_of(1 << 10, Family::ALL, &RANKS), is_drawn: true },
    Golden { name: "times-1M", make: || times_of(1 << 20, Family::ALL, &RANKS), is_drawn: true },
    Golden { name: "times-100000", make: || times_of(1 << 10, &FAMILIES, &[MANY]), is_drawn: false },
    Golden { name: "times-100000-8", make: || times_of(8, &SHORT, &[MANY]), is_drawn: false },
    Golden { name: "times-100000-1M", make: || times_of(1 << 20, &LONG, &[MANY]), is_drawn: false },
    Golden { name: "regret-fat-tree", make: || regret_of(0, &regret::RANKS, &LENS), is_drawn: false },
    Golden { name: "regret-dragonfly", make: || regret_of(1, &regret::RANKS, &LENS), is_drawn: false },
    Golden { name: "regret-two-rails", make: || regret_of(2, &regret::RANKS, &LENS), is_drawn: false },
    Golden {
        name: "regret-64M-fat-tree",
        make: || regret_of(0, &regret::RANKS, &[LONGEST]),
        is_drawn: false,
    },
    Golden {
        name: "regret-64M-dragonfly",
        make: || regret_of(1, &regret::RANKS, &[LONGEST]),
        is_drawn: false,
    },
    Golden {
        name: "regret-64M-two-rails",
        make: || regret_of(2, &regret::RANKS, &[LONGEST]),
        is_drawn: false,
    },
    Golden { name: "regret-16384-fat-tree", make: || regret_of(0, &[MOST], &LENS), is_drawn: false },
    Golden { name: "regret-16384-dragonfly", make: || regret_of(1, &[MOST], &LENS), is_drawn: false },
    Golden { name: "regret-16384-two-rails", make: || regret_of(2, &[MOST], &LENS), is_drawn: false },
];

/// Families in the table of [`MANY`] ranks.
const FAMILIES: [Family; 7] = [
    Family::Barrier,
    Family::Bcast,
    Family::Reduce,
    Family::Allreduce,
    Family::Gather,
    Family::Scatter,
    Family::Scan,
];
/// Those in its table of short blocks.
const SHORT: [Family; 3] = [Family::Allgather, Family::Alltoall, Family::ReduceScatter];
/// Those in its table of long vectors.
const LONG: [Family; 4] = [Family::Bcast, Family::Reduce, Family::Allreduce, Family::Scan];

fn times_of(len: u64, families: &[Family], ranks: &[usize]) -> String {
    let fabric = &FABRICS[0];
    let cases = families.iter().flat_map(|&family| times::cases(fabric, family, len, ranks));
    times::text(fabric, len, &cases.map(Row::of).collect::<Vec<_>>())
}

fn regret_of(fabric: usize, ranks: &[usize], lens: &[u64]) -> String {
    regret::table(&FABRICS[fabric], ranks, lens)
}

/// Writes all tables and their pictures.
pub fn write() -> ExitCode {
    let files = TABLES.iter().flat_map(|Golden { name, make, is_drawn }| {
        let text = make();
        let picture =
            is_drawn.then(|| (Path::new(PICTURES).join(format!("{name}.svg")), times::drawn(&text)));
        [(Path::new(FOLDER).join(format!("{name}.txt")), text)].into_iter().chain(picture)
    });
    show::write(FOLDER, files)
}
