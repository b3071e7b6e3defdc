//! `nmad info --io PATH`: how MAD-MPI would access files there.

use nmad_bench::stats::{bytes, number};
use nmad_bench::table::Table;
use nmad_file::plan::{Load, exchanged_ns, read_ns};
use nmad_file::{Hints, Piece, Pieces, System};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::output::{say, say_json, say_line};

/// Bytes of a short access, and how often it is measured.
const SHORT: usize = 8;
const TIMES: usize = 512;
/// Bytes of a long access.
const LONG: usize = 16 << 20;
/// Records of the examples of accesses of all ranks.
const RECORDS: u64 = 1000;
const LENGTHS: [u64; 4] = [100, 1000, 4096, 1 << 20];

/// The output of the command.
#[derive(Serialize)]
struct Io {
    path: PathBuf,
    file_system: &'static str,
    /// Which processes see each other's writes, and when.
    coherence: &'static str,
    /// Bytes of a block.
    block: u64,
    ranks: u32,
    /// The ranks to which regions of a file belong in turn.
    owners: Vec<i32>,
    /// Bytes of a region.
    region: u64,
    /// Keys and values of MPI_File_get_info, if the program sets none.
    hints: Vec<(&'static str, String)>,
    measured: Vec<Measured>,
    /// The ways of accesses of all ranks.
    ways: Vec<Way>,
}

/// An access of one process.
#[derive(Serialize)]
struct Measured {
    access: &'static str,
    bytes: usize,
    us: f64,
    predicted_us: f64,
}

/// Records of all ranks, interleaved.
#[derive(Serialize)]
struct Way {
    access: &'static str,
    /// Bytes of a record.
    bytes: u64,
    way: &'static str,
    direct_us: f64,
    owners_us: f64,
}

/// Prints how a job of `ranks` ranks on this machine would access files in `path`.
///
/// # Errors
/// The path does not exist, or no file can be made there.
pub(super) fn print(path: &Path, ranks: u32, json: bool) -> Result<(), String> {
    let io = gather(path, ranks).map_err(|error| {
        format!("cannot measure files in {}: {error}; name a folder that you may write to", path.display())
    })?;
    if json {
        say_json("io", &io);
    } else {
        show(&io);
    }
    Ok(())
}

fn gather(path: &Path, ranks: u32) -> io::Result<Io> {
    let folder = if std::fs::metadata(path)?.is_dir() { path } else { path.parent().unwrap_or(path) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let measured = measure(&tempfile::tempfile_in(folder)?)?;
    let system = System::at(folder).ok_or_else(io::Error::last_os_error)?;
    let (hints, nodes) = (Hints::default(), vec![0; ranks as usize]);
    let regions = hints.regions(system.block, &nodes);
    let owners = regions.owners().len() as u64;
    let ways = [("write", false), ("read", true)].into_iter().flat_map(|(access, reads)| {
        LENGTHS.map(|bytes| way((access, reads), bytes, (u64::from(ranks), owners)))
    });
    Ok(Io {
        path: path.into(),
        file_system: system.name,
        coherence: system.coherence.text(),
        block: system.block,
        ranks,
        owners: regions.owners().to_vec(),
        region: regions.unit(),
        hints: hints.told(system.block, &nodes, "automatic", [false; 2]),
        measured,
        ways: ways.collect(),
    })
}

/// Predicts the way of an access of all ranks, whose records interleave.
fn way((access, reads): (&'static str, bool), bytes: u64, (ranks, owners): (u64, u64)) -> Way {
    let own = Load { pieces: RECORDS, bytes: RECORDS * bytes };
    let all = Load { pieces: ranks * own.pieces, bytes: ranks * own.bytes };
    let every = |record| Piece { offset: record * ranks * bytes, len: bytes };
    let direct = match reads {
        true => read_ns(&(0..RECORDS).map(every).collect(), Hints::default().gap()),
        false => own.written_ns(),
    };
    let exchanged = exchanged_ns(all, ranks, owners);
    Way {
        access,
        bytes,
        way: if ranks > 1 && exchanged < direct { "by owners" } else { "each rank directly" },
        direct_us: direct as f64 / 1e3,
        owners_us: exchanged as f64 / 1e3,
    }
}

/// Measures accesses of a new file, in the system's cache.
fn measure(file: &File) -> io::Result<Vec<Measured>> {
    let (mut short, mut long) = ([1; SHORT], vec![1; LONG]);
    let write_short = median(TIMES, |turn| file.write_all_at(&short, (turn * SHORT) as u64))?;
    let write_long = median(3, |_| file.write_all_at(&long, 0))?;
    let read_short = median(TIMES, |turn| file.read_exact_at(&mut short, (turn * SHORT) as u64))?;
    let read_long = median(3, |_| file.read_exact_at(&mut long, 0))?;
    let one = |access, len: usize, us| {
        let piece = Pieces::from_iter([Piece { offset: 0, len: len as u64 }]);
        let ns = if access == "read" { read_ns(&piece, 0) } else { Load::of(&piece).written_ns() };
        Measured { access, bytes: len, us, predicted_us: ns as f64 / 1e3 }
    };
    Ok(vec![
        one("write", SHORT, write_short),
        one("read", SHORT, read_short),
        one("write", LONG, write_long),
        one("read", LONG, read_long),
    ])
}

/// Returns the median time of an access in microseconds; a first access is not counted.
fn median(times: usize, mut access: impl FnMut(usize) -> io::Result<()>) -> io::Result<f64> {
    access(0)?;
    let mut all = Vec::with_capacity(times);
    for turn in 0..times {
        let began = Instant::now();
        access(turn)?;
        all.push(began.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[times / 2])
}

fn show(io: &Io) {
    let Io { path, file_system, coherence, block, ranks, owners, region, .. } = io;
    say_line(format_args!("{}: {file_system}, blocks of {}: {coherence}", path.display(), bytes(*block)));
    let mut table = Table::new("one process, in the system's cache", &["access", "us", "predicted", "MB/s"]);
    for Measured { access, bytes: len, us, predicted_us } in &io.measured {
        let rate = if us > &0.0 { number(*len as f64 / us) } else { String::new() };
        table.row([format!("{access} of {}", bytes(*len as u64)), number(*us), number(*predicted_us), rate]);
    }
    say(table);
    say_line("accesses of one rank: positional, vectored calls of the system; no locks of files");
    let names: Vec<String> = owners.iter().map(i32::to_string).collect();
    say_line(format_args!(
        "accesses of all of {ranks} ranks on this machine: regions of {} belong to rank {} in turn",
        bytes(*region),
        names.join(", ")
    ));
    let title = format!("{RECORDS} records of each of {ranks} ranks, interleaved");
    let mut table = Table::new(title, &["access", "way", "us directly", "us by owners"]).words([1]);
    for Way { access, bytes: len, way, direct_us, owners_us } in &io.ways {
        let access = format!("{access} of {}", bytes(*len));
        table.row([access, way.to_string(), number(*direct_us), number(*owners_us)]);
    }
    say(table);
    say_line("hints in force, if the program sets none (MPI_File_get_info):");
    for (key, value) in &io.hints {
        say_line(format_args!("  {key:<20} {value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_records_go_by_owners_and_long_ones_and_single_ranks_directly() {
        let of = |ranks, len| way(("write", false), len, (ranks, ranks.div_ceil(2))).way;
        assert_eq!(
            (of(4, 100), of(4, 1 << 20), of(1, 100)),
            ("by owners", "each rank directly", "each rank directly")
        );
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error_that_names_it() {
        let error = print(Path::new("/no/such"), 2, false).expect_err("it is not there");
        assert!(error.contains("/no/such") && error.contains("a folder that you may write to"), "{error}");
    }
}
