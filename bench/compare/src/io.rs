//! Accesses of files (`c/io`) beside other MPIs: IOR's patterns, small records, shared pointers, many files.

use serde::Serialize;
use std::ffi::OsString;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::course::{self, Course, Ears, Turn};
use crate::field::{Field, Missing, Watch};
use crate::folder::Folder;
use crate::imbalance::check;
use crate::interrupt::{self, Interrupt};
use crate::job::Said;
use crate::launch::Cores;
use crate::place::{FILE_PLACES, Place};
use crate::plan::bytes;
use crate::sources::{IO, Workshop};
use crate::{CompareError, PeerSpec};

/// A pattern, and the lengths of its records that are measured if the user names none.
struct Pattern {
    name: &'static str,
    usual: &'static [u64],
    quick: &'static [u64],
}

const LONG: &[u64] = &[1 << 20, 16 << 20];
const SHORT: &[u64] = &[100, 1000, 4096];

const fn pattern(name: &'static str, usual: &'static [u64], quick: &'static [u64]) -> Pattern {
    Pattern { name, usual, quick }
}

/// All patterns, in the order in which they are measured and shown.
const PATTERNS: [Pattern; 11] = [
    pattern("contiguous-write", LONG, &[1 << 20]),
    pattern("contiguous-read", LONG, &[1 << 20]),
    pattern("strided-write", SHORT, &[1000]),
    pattern("strided-read", SHORT, &[1000]),
    pattern("records-write", SHORT, &[100, 4096]),
    pattern("records-read", SHORT, &[100, 4096]),
    pattern("collective-write", SHORT, &[1000]),
    pattern("collective-read", SHORT, &[1000]),
    pattern("shared-write", &[1000], &[1000]),
    pattern("shared-read", &[1000], &[1000]),
    pattern(OPEN, &[0], &[0]),
];
/// The pattern that opens and closes files, without records.
const OPEN: &str = "open";
/// Shortest record in bytes: a record contains two numbers of 4 B.
const RECORD_MIN: u64 = 8;
/// Longest record in bytes: the program has all records of a rank in memory, at least one.
const RECORD_MAX: u64 = 1 << 30;

/// The patterns, records, places and folders that the user asks for; an empty list means the default ones.
#[derive(Debug, Clone, Default)]
pub struct IoPlan {
    /// Names of patterns, or their beginnings: `records` means `records-write` and `records-read`.
    pub patterns: Vec<String>,
    /// Lengths of records in bytes.
    pub sizes: Vec<u64>,
    /// Names of places.
    pub places: Vec<String>,
    /// Folders in which files are made.
    pub folders: Vec<PathBuf>,
    /// Whether fewer lengths are measured.
    pub is_quick: bool,
}

/// The user's request.
#[derive(Debug, Clone)]
pub struct IoRequest {
    /// Where MAD-MPI is installed.
    pub ours: PathBuf,
    /// The other MPIs.
    pub peers: Vec<PeerSpec>,
    /// Folder in which downloaded wheels are stored.
    pub cache: PathBuf,
    /// Folder for sources and programs.
    pub work: PathBuf,
    /// Patterns, places and folders.
    pub plan: IoPlan,
    /// Number of rounds, in which each contestant has a turn.
    pub rounds: u32,
    /// Time without output after which a job is ended.
    pub silence: Duration,
}

/// The access that is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The pattern.
    pub pattern: &'static str,
    /// Bytes of a record; zero: files are opened and closed.
    pub bytes: u64,
}

impl fmt::Display for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            0 => out.write_str(self.pattern),
            len => write!(out, "{} {}", self.pattern, bytes(len)),
        }
    }
}

/// One contestant's figure of an access in one round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accessed {
    /// Name of the place.
    pub place: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// The folder, as the user named it.
    pub folder: PathBuf,
    /// Name of the contestant.
    pub who: String,
    /// Number of the round, from 1.
    pub round: u32,
    /// The pattern and the bytes of a record.
    #[serde(flatten)]
    pub access: Access,
    /// Microseconds for a record of each rank, or a file: the median of five turns of a job.
    pub us: f64,
    /// Microseconds in the fastest turn.
    pub lowest_us: f64,
    /// Microseconds in the slowest turn.
    pub highest_us: f64,
    /// Megabytes in a second, of all ranks together; zero where files are opened and closed.
    pub mb_per_s: f64,
}

/// The accesses of one job: all accesses in one folder.
#[derive(Debug)]
struct Batch {
    place: &'static Place,
    folder: usize,
    accesses: Vec<Access>,
}

impl course::Batch for Batch {
    fn place(&self) -> &'static Place {
        self.place
    }

    fn cores(&self) -> Cores {
        Cores::Own
    }

    fn list(&self) -> String {
        let mut list = String::new();
        for (number, Access { pattern, bytes }) in self.accesses.iter().enumerate() {
            let _ = writeln!(list, "{number} {pattern} {bytes}");
        }
        list
    }

    fn cell(&self, number: usize) -> Option<String> {
        self.accesses.get(number).map(Access::to_string)
    }
}

/// The names of the places where files are accessed.
fn place_names() -> Vec<&'static str> {
    FILE_PLACES.iter().map(|place| place.name).collect()
}

impl IoPlan {
    /// Checks the plan before time is spent on it.
    ///
    /// # Errors
    /// The plan is empty, or names an unknown pattern or place, a missing folder, or an invalid length.
    pub fn check(&self) -> Result<(), CompareError> {
        self.batches()?;
        match self.folders.iter().find(|folder| !folder.is_dir()) {
            Some(folder) => Err(CompareError::Argument(format!(
                "there is no folder {}: name one with --path",
                folder.display()
            ))),
            None => Ok(()),
        }
    }

    fn batches(&self) -> Result<Vec<Batch>, CompareError> {
        let names = || PATTERNS.iter().map(|pattern| pattern.name);
        for word in self.patterns.iter().filter(|word| !names().any(|name| name.starts_with(word.as_str()))) {
            check("pattern", word, names())?;
        }
        self.places.iter().try_for_each(|word| check("place", word, place_names().into_iter()))?;
        if let Some(len) = self.sizes.iter().find(|len| !(RECORD_MIN..=RECORD_MAX).contains(*len)) {
            return Err(CompareError::Argument(format!(
                "a record of {} cannot be measured: it has {} to {}",
                bytes(*len),
                bytes(RECORD_MIN),
                bytes(RECORD_MAX)
            )));
        }
        let is_wanted = |name: &str| {
            self.patterns.is_empty() || self.patterns.iter().any(|word| name.starts_with(word.as_str()))
        };
        let accesses = |pattern: &Pattern| {
            let usual = if self.is_quick { pattern.quick } else { pattern.usual };
            let sizes = if self.sizes.is_empty() || pattern.name == OPEN { usual } else { &self.sizes };
            sizes.iter().map(|&bytes| Access { pattern: pattern.name, bytes }).collect::<Vec<_>>()
        };
        let wanted = PATTERNS.iter().filter(|pattern| is_wanted(pattern.name));
        let accesses: Vec<Access> = wanted.flat_map(accesses).collect();
        let places = FILE_PLACES.iter().filter(|place| self.places.iter().any(|name| name == place.name));
        let batches: Vec<Batch> = places
            .flat_map(|place| (0..self.folders.len()).map(move |folder| (place, folder)))
            .map(|(place, folder)| Batch { place, folder, accesses: accesses.clone() })
            .collect();
        match batches.is_empty() {
            true => Err(CompareError::Argument("nothing is measured: no place, or no folder".into())),
            false => Ok(batches),
        }
    }
}

/// Runs all accesses of the request in new folders, passes on each figure, and returns a list of the accesses
/// that could not be measured.
///
/// # Errors
/// The plan is invalid, no file can be made in a folder, the program cannot be compiled for MAD-MPI, files
/// cannot be written, or the user has ended the run.
pub fn run(
    request: &IoRequest,
    watch: &mut dyn Watch,
    each: &mut dyn FnMut(Accessed),
) -> Result<Vec<String>, CompareError> {
    let work = &request.work;
    let _interrupt =
        Interrupt::catch().map_err(CompareError::file("catch signals for the files in", work))?;
    let missing = run_to_end(request, watch, each);
    // Whatever a signal has ended, it is the cause.
    match interrupt::caught() {
        Some(signal) => Err(CompareError::Interrupted { signal }),
        None => missing,
    }
}

fn run_to_end(
    request: &IoRequest,
    watch: &mut dyn Watch,
    each: &mut dyn FnMut(Accessed),
) -> Result<Vec<String>, CompareError> {
    let batches = request.plan.batches()?;
    let make = |path: &PathBuf| Folder::make_in(path).map_err(CompareError::file("make a folder in", path));
    let folders = request.plan.folders.iter().map(make).collect::<Result<Vec<_>, _>>()?;
    let workshop = Workshop::set_up(request.work.clone())?;
    let mut missing = Missing::default();
    let field = Field { ours: &request.ours, peers: &request.peers, cache: &request.cache };
    let contestants = field.find(&workshop, &IO, &mut missing, watch)?;
    let mut course = Course::new(workshop, (contestants, missing), request.rounds, request.silence);
    let mut ears = Ears {
        words: &|cells, batch: &Batch| {
            let folder = folders[batch.folder].path();
            vec!["--cells".into(), cells.into(), OsString::from("--folder"), folder.into()]
        },
        hear: &mut |turn, said| accessed(&request.plan.folders, turn, said).into_iter().for_each(&mut *each),
        watch,
    };
    course.run(&batches, &mut ears)?;
    Ok(course.missing.texts().to_vec())
}

/// Returns the figure in a line of the program's output.
fn accessed(folders: &[PathBuf], turn: &Turn<'_, Batch>, said: Said) -> Option<Accessed> {
    let Said::Cell { number, us, low, high } = said else { return None };
    let access = turn.batch.accesses.get(number)?.clone();
    let ranks = turn.batch.place.ranks;
    Some(Accessed {
        place: turn.batch.place.name,
        ranks,
        folder: folders[turn.batch.folder].clone(),
        who: turn.who.name.clone(),
        round: turn.round,
        us,
        lowest_us: low,
        highest_us: high,
        // Bytes in a microsecond are megabytes in a second.
        mb_per_s: if us > 0.0 { access.bytes as f64 * f64::from(ranks) / us } else { 0.0 },
        access,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Batch as _;

    fn plan(patterns: &[&str], places: &[&str]) -> IoPlan {
        let own = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        IoPlan {
            patterns: own(patterns),
            places: own(places),
            folders: vec!["/a".into(), "/b".into()],
            ..IoPlan::default()
        }
    }

    #[test]
    fn each_place_and_folder_has_a_job_with_all_accesses() {
        let batches = plan(&["records-write", "open"], &["node1", "node4"]).batches().unwrap();
        let places: Vec<_> = batches.iter().map(|batch| (batch.place.ranks, batch.folder)).collect();
        assert_eq!(places, [(1, 0), (1, 1), (4, 0), (4, 1)]);
        let list = "0 records-write 100\n1 records-write 1000\n2 records-write 4096\n3 open 0\n";
        assert_eq!(batches[3].list(), list);
        assert_eq!((batches[0].cell(1), batches[0].cell(4)), (Some("records-write 1000 B".into()), None));
        let both = plan(&["shared"], &["node2"]).batches().unwrap();
        assert_eq!(both[0].list(), "0 shared-write 1000\n1 shared-read 1000\n");
        let own = IoPlan { sizes: vec![64], ..plan(&["strided-read", "open"], &["node2"]) };
        assert_eq!(own.batches().unwrap()[0].list(), "0 strided-read 64\n1 open 0\n");
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        let refused = |plan: IoPlan| plan.check().unwrap_err().to_string();
        assert!(refused(plan(&["random"], &["node2"])).contains("records-read"));
        assert!(refused(plan(&[], &["hosts2"])).contains("node1"));
        assert!(refused(IoPlan { sizes: vec![7], ..plan(&[], &["node2"]) }).contains("it has 8 B to"));
        assert!(refused(plan(&[], &[])).contains("nothing is measured"));
    }
}
