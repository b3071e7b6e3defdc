//! `nmad bench io`: parses the command line, runs accesses of files by this MPI and others, and prints their
//! times.

use clap::Args;
use nmad_bench::stats::number;
use nmad_bench::table::Table;
use nmad_compare::{Access, Accessed, CompareError, IoPlan, IoRequest, OURS, run_io};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::beside::{Beside, Shown, cache, ended, say_tables};
use super::rounds::{Rounds, spread};
use crate::output::say_json;
use crate::size;

const EXAMPLES: &str = "\
Examples:
  nmad bench io                             every pattern in this folder, 2 ranks, beside Open MPI and MPICH
  nmad bench io --quick --peer none         half a minute, MAD-MPI alone
  nmad bench io --path /dev/shm,/scratch --place node1,node2,node4 --rounds 5
                                            several file systems and numbers of ranks
  nmad bench io --pattern records,shared --size 100,4KiB
                                            some patterns, records of these lengths

Patterns, each as write and as read (`records` names both, `records-read` one):
  contiguous  each rank has a part of the file of its own, in calls of a record each
  strided     one call for all records of a rank, which a view interleaves with those of the others
  records     a call for each record, at places that interleave: as HDF5 writes small datasets
  collective  as strided, but all ranks call together (MPI_File_write_at_all)
  shared      MPI_File_write_shared, a record a call, from the one pointer of all ranks
  open        (once) MPI_File_open and MPI_File_close of 100 files, one after the other

Each rank accesses 32 MiB, but no more than 4,096 records (1,024 with shared pointers). A figure is the
time in microseconds for one record of each rank, until the slowest rank is done: in each job the median
of five turns after one that is not counted, then the median over the rounds. Files are read and written
in the system's cache: nothing waits for the device. The data written and read are checked. Contestants
take turns; ours/best is the ratio to the fastest other one, round by round. `nmad info --io PATH`
prints how MAD-MPI would access files there.";

/// Files beside other MPIs: contiguous, strided, small records, collective, shared pointers, many files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct IoArgs {
    /// Fewer lengths, one round
    #[arg(long)]
    quick: bool,
    /// Folders in which files are made, in a folder that is removed at the end
    #[arg(long, value_name = "DIR,...", value_delimiter = ',', default_value = ".")]
    path: Vec<PathBuf>,
    /// Patterns, or their beginnings [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pattern: Vec<String>,
    /// Bytes of a record [default: 1MiB and 16MiB of contiguous; 100, 1000, 4096; of shared 1000]
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = size::parse)]
    size: Vec<usize>,
    /// Places: node1, node2, node4, node8
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',', default_value = "node2")]
    place: Vec<String>,
    /// Number of rounds, in which each contestant has a turn [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    #[command(flatten)]
    beside: Beside,
    /// Print one JSON object a line: a figure of one contestant in one round
    #[arg(long)]
    json: bool,
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    #[serde(flatten)]
    accessed: &'a Accessed,
}

impl IoArgs {
    fn request(&self) -> Result<IoRequest, CompareError> {
        let cache = cache()?;
        Ok(IoRequest {
            ours: self.beside.prefix()?,
            peers: self.beside.peers()?,
            work: cache.join("io"),
            cache,
            plan: IoPlan {
                patterns: self.pattern.clone(),
                sizes: self.size.iter().map(|&len| len as u64).collect(),
                places: self.place.clone(),
                folders: self.path.clone(),
                is_quick: self.quick,
            },
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 3 }),
            silence: self.beside.silence(),
        })
    }
}

/// Runs the command.
pub(crate) fn main(args: &IoArgs) -> ExitCode {
    ended("bench io", measure(args))
}

fn measure(args: &IoArgs) -> Result<(), CompareError> {
    let mut request = args.request()?;
    request.plan.check()?;
    let mut shown = Shown::new("bench io");
    request.ours = args.beside.install(&mut shown)?;
    let mut all: Vec<Accessed> = Vec::new();
    let missing = run_io(&request, &mut shown, &mut |accessed| {
        if args.json {
            say_json("bench", &Line { bench: "io", accessed: &accessed });
        }
        all.push(accessed);
    })?;
    shown.end();
    if !args.json {
        say_tables(tables(&all), &missing);
    }
    Ok(())
}

/// A table for each place and folder, in the order in which they were measured.
fn tables(all: &[Accessed]) -> Vec<Table> {
    let mut places: Vec<(&str, &Path)> = Vec::new();
    for one in all {
        if !places.contains(&(one.place, &one.folder)) {
            places.push((one.place, &one.folder));
        }
    }
    let of = |(place, folder): (&str, &Path)| {
        let own: Vec<&Accessed> =
            all.iter().filter(|one| one.place == place && one.folder == folder).collect();
        table(format!("{place}, {}: a record of each rank, us", folder.display()), &own)
    };
    places.into_iter().map(of).collect()
}

fn table(title: String, all: &[&Accessed]) -> Table {
    let mut accesses: Vec<&Access> = Vec::new();
    for one in all {
        if !accesses.contains(&&one.access) {
            accesses.push(&one.access);
        }
    }
    let mut table = Table::new(title, &["what", "who", "us", "MB/s", "ours/best"]).words([1]);
    for access in accesses {
        let own = || all.iter().filter(|one| one.access == *access);
        let times: Rounds<'_> = own().map(|one| (&*one.who, one.round, one.us)).collect();
        let rates: Rounds<'_> = own().map(|one| (&*one.who, one.round, one.mb_per_s)).collect();
        for who in times.names() {
            let is_ours = who == OURS;
            let rate = rates.of(who).filter(|_| access.bytes > 0);
            table.row([
                if is_ours { access.to_string() } else { String::new() },
                who.to_string(),
                times.of(who).map_or("-".into(), spread),
                rate.map_or(String::new(), |rate| number(rate.median)),
                times.ratio().filter(|_| is_ours).map_or(String::new(), spread),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_has_a_row_for_each_contestant() {
        let one = |who: &str, round, us| Accessed {
            place: "node2",
            ranks: 2,
            folder: "/data".into(),
            who: who.into(),
            round,
            access: Access { pattern: "records-write", bytes: 100 },
            us,
            lowest_us: us,
            highest_us: us,
            mb_per_s: 200.0 / us,
        };
        let all = [one(OURS, 1, 2.0), one("mpich", 1, 4.0), one(OURS, 2, 3.0), one("mpich", 2, 4.0)];
        let text = tables(&all)[0].to_string();
        assert!(text.contains("node2, /data") && text.contains("records-write 100 B"), "{text}");
        assert!(text.contains("2.50 (2.00 .. 3.00)") && text.contains("0.500 .. 0.750"), "{text}");
    }
}
