//! Which cells are measured: patterns, variants and sizes, by place, for ten minutes or an hour.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::CompareError;
use crate::launch::Cores;
use crate::place::{PLACES, Place};

mod sizes;

use sizes::{coarse, dense, few, powers};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Longest message; also what the messages of one window may have together.
const LONGEST: u64 = 64 * MIB;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Ten minutes.
    Quick,
    /// An hour.
    Full,
}

impl Extent {
    /// How long all of it should take, in seconds.
    pub(crate) fn budget_s(self) -> f64 {
        match self {
            Extent::Quick => 600.0,
            Extent::Full => 3600.0,
        }
    }

    /// How long one sample is, in milliseconds, unless time is short.
    pub(crate) fn sample_ms(self) -> f64 {
        match self {
            Extent::Quick => 4.0,
            Extent::Full => 10.0,
        }
    }
}

/// One figure of the report: it is what rows and lines of files are found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Name of a [`Place`].
    pub place: String,
    /// `pingpong`, `oneway`, `bcast`, ...
    pub pattern: String,
    /// What else tells it apart, such as the window; `-` if nothing does.
    pub variant: String,
    /// Length of a message; of collectives, what one rank has for another.
    pub bytes: u64,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.place, self.pattern)?;
        if self.variant != "-" {
            write!(out, " {}", self.variant)?;
        }
        write!(out, " {}", bytes(self.bytes))
    }
}

/// `0`, `12 B`, `3 KiB`, `64 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= MIB && bytes % (MIB / 2) == 0 => format!("{} MiB", bytes as f64 / MIB as f64),
        bytes if bytes >= KIB && bytes % (KIB / 2) == 0 => format!("{} KiB", bytes as f64 / KIB as f64),
        bytes => format!("{bytes} B"),
    }
}

/// Cells that are measured by one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// Started as the launcher does by itself, not bound by us: a job of its own.
    First,
    PingPong,
    Streams,
    /// Datatypes, receives posted late, computing beside communication.
    Shapes,
    Collectives,
    /// Windows.
    OneSided,
    /// The job asks for MPI_THREAD_MULTIPLE.
    Threads,
    /// So does this one, whose threads fill one message.
    Partitioned,
}

impl Family {
    pub(crate) const ALL: [Family; 8] = [
        Family::First,
        Family::PingPong,
        Family::Streams,
        Family::Shapes,
        Family::Collectives,
        Family::OneSided,
        Family::Threads,
        Family::Partitioned,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::First => "first",
            Family::PingPong => "pingpong",
            Family::Streams => "streams",
            Family::Shapes => "shapes",
            Family::Collectives => "collectives",
            Family::OneSided => "onesided",
            Family::Threads => "threads",
            Family::Partitioned => "partitioned",
        }
    }

    /// Which cores its ranks run on.
    pub(crate) fn cores(self) -> Cores {
        match self {
            Family::First => Cores::Launcher,
            Family::Threads | Family::Partitioned => Cores::Any,
            _ => Cores::Own,
        }
    }

    /// The patterns that it has.
    fn patterns(self) -> Vec<String> {
        let own = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        match self {
            Family::Streams => own(&["oneway", "twoway", "pairs", "rate"]),
            Family::Shapes => own(&["types", "unexpected", "overlap"]),
            Family::OneSided => own(&["put", "get", "fetch_and_op", "accumulate"]),
            Family::Collectives => {
                COLLECTIVES.iter().flat_map(|name| [name.to_string(), format!("i{name}")]).collect()
            }
            other => own(&[other.name()]),
        }
    }
}

/// The collectives, each also as a nonblocking one with an `i` before its name.
const COLLECTIVES: [&str; 16] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
];

/// What one job measures at one place.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) place: &'static Place,
    pub(crate) family: Family,
    pub(crate) cells: Vec<Cell>,
}

/// The names that choose patterns: families, and what they have.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for family in Family::ALL {
        for name in std::iter::once(family.name().to_string()).chain(family.patterns()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The batches of an extent; `only` are names of patterns and families, `places` those of places; none
/// means all.
pub(crate) fn plan(extent: Extent, only: &[String], places: &[String]) -> Result<Vec<Batch>, CompareError> {
    let known = names();
    if let Some(name) = only.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(CompareError::Argument(format!("there is no pattern '{name}'; there are {known}")));
    }
    if let Some(name) = places.iter().find(|name| !PLACES.iter().any(|place| place.name == **name)) {
        let known: Vec<_> = PLACES.iter().map(|place| place.name).collect();
        let known = known.join(", ");
        return Err(CompareError::Argument(format!("there is no place '{name}'; there are {known}")));
    }
    let mut batches = Vec::new();
    for place in PLACES.iter().filter(|place| places.is_empty() || places.iter().any(|n| n == place.name)) {
        for family in Family::ALL {
            let is_asked = |cell: &Cell| {
                only.is_empty() || only.iter().any(|name| *name == cell.pattern || name == family.name())
            };
            let cells: Vec<_> = cells(place, family, extent).into_iter().filter(is_asked).collect();
            if !cells.is_empty() {
                batches.push(Batch { place, family, cells });
            }
        }
    }
    match batches.is_empty() {
        true => Err(CompareError::Argument("nothing is measured: no such pattern at these places".into())),
        false => Ok(batches),
    }
}

/// Collects the cells of a batch.
struct Cells {
    place: &'static Place,
    cells: Vec<Cell>,
}

impl Cells {
    fn add(&mut self, pattern: &str, variant: &str, sizes: impl IntoIterator<Item = u64>) {
        let (pattern, variant) = (pattern.to_string(), variant.to_string());
        self.cells.extend(sizes.into_iter().map(|bytes| Cell {
            place: self.place.name.into(),
            pattern: pattern.clone(),
            variant: variant.clone(),
            bytes,
        }));
    }
}

fn cells(place: &'static Place, family: Family, extent: Extent) -> Vec<Cell> {
    let mut cells = Cells { place, cells: Vec::new() };
    let full = extent == Extent::Full;
    let is_pair = place.ranks == 2;
    match family {
        Family::First if is_pair && !place.has_rails() => {
            for variant in ["n1", "n10", "n100", "n1000", "n10000"] {
                cells.add("first", variant, [8]);
            }
        }
        Family::PingPong if is_pair => cells.add("pingpong", "-", ping_pong(place, full)),
        Family::Streams => streams(&mut cells, full),
        Family::Shapes if is_pair => shapes(&mut cells, full),
        Family::Collectives => collectives(&mut cells, full),
        Family::OneSided if is_pair => one_sided(&mut cells, full),
        Family::Threads if is_pair && !place.has_rails() => {
            let sizes: &[u64] = if full { &[0, 8, KIB, 16 * KIB, 256 * KIB] } else { &[8, 16 * KIB] };
            for variant in ["own2", "own4", "tag2", "tag4"] {
                cells.add("threads", variant, sizes.iter().copied());
            }
        }
        Family::Partitioned if is_pair => {
            // Short parts take one rail.
            let sizes: &[u64] = if full && !place.has_rails() { &[64 * KIB, MIB] } else { &[MIB] };
            for variant in ["parts8", "single8", "parts8long", "single8long"] {
                cells.add("partitioned", variant, sizes.iter().copied());
            }
        }
        _ => {}
    }
    cells.cells
}

fn ping_pong(place: &Place, full: bool) -> Vec<u64> {
    // Short messages take one rail; where there are two, it is the long ones that tell something.
    match (place.has_rails(), full) {
        (false, true) => dense(0, LONGEST),
        (false, false) => coarse(0, 16 * MIB),
        (true, true) => dense(KIB, LONGEST),
        (true, false) => coarse(4 * KIB, 16 * MIB),
    }
}

fn streams(cells: &mut Cells, full: bool) {
    let place = cells.place;
    if place.ranks > 2 {
        if !place.has_rails() {
            let sizes = if full { powers(8, MIB / 4) } else { few(8, 64 * KIB) };
            cells.add("pairs", "pingpong", sizes.iter().copied());
            cells.add("pairs", "stream", sizes);
        }
        return;
    }
    let windows: &[u64] = match (place.has_rails(), full) {
        (false, true) if !place.is_testbed() => &[1, 4, 16, 64, 256],
        (false, true) => &[1, 16, 64, 256],
        (false, false) => &[4, 64, 256],
        (true, _) => &[1, 16],
    };
    for pattern in ["oneway", "twoway"] {
        for window in windows {
            let longest = LONGEST / window;
            let sizes = match (place.has_rails(), full) {
                (false, true) if *window == 64 => dense(0, longest),
                (false, true) => powers(0, longest),
                (false, false) if *window == 64 => coarse(8, longest.min(MIB)),
                (false, false) => few(8, longest.min(MIB)),
                (true, true) => powers(4 * KIB, longest.min(16 * MIB)),
                (true, false) => few(64 * KIB, 4 * MIB),
            };
            cells.add(pattern, &format!("w{window}"), sizes);
        }
    }
    if !place.has_rails() {
        let counts: &[u64] = if full { &[1, 2, 4, 8, 16] } else { &[1, 4, 16] };
        let sizes: &[u64] = if full { &[0, 8, 64, 512, 2 * KIB, 8 * KIB] } else { &[8, 512] };
        for count in counts {
            cells.add("rate", &format!("c{count}"), sizes.iter().copied());
        }
    }
}

fn one_sided(cells: &mut Cells, full: bool) {
    let place = cells.place;
    let long: &[u64] = if full { &[64 * KIB, MIB, 4 * MIB] } else { &[MIB] };
    if place.has_rails() {
        cells.add("put", "a1", long.iter().copied());
        return cells.add("get", "a1", long.iter().copied());
    }
    for pattern in ["put", "get"] {
        cells.add(pattern, "a1", [8].iter().chain(long).copied());
        cells.add(pattern, "a64", [8]);
        cells.add(pattern, "c1", [8].iter().chain(long).copied());
    }
    cells.add("put", "a1000", [8]);
    cells.add("put", "b1", [8]);
    cells.add("fetch_and_op", "a1", [8]);
    cells.add("accumulate", "a1", [8].iter().chain(long).copied());
}

fn shapes(cells: &mut Cells, full: bool) {
    let place = cells.place;
    if !place.has_rails() {
        // Cubes, which is what the box of a cube comes to.
        let sizes: &[u64] = match full {
            true => &[512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB],
            false => &[4 * KIB, 256 * KIB],
        };
        for shape in ["column", "blocks", "mixed", "record", "box"] {
            cells.add("types", shape, sizes.iter().copied());
        }
        let sizes = if full { powers(8, MIB) } else { few(8, 64 * KIB) };
        cells.add("unexpected", "posted", sizes.iter().copied());
        cells.add("unexpected", "late", sizes);
    }
    let sizes: &[u64] =
        if full { &[KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB] } else { &[64 * KIB, MIB] };
    cells.add("overlap", "message", sizes.iter().copied());
    cells.add("overlap", "iallreduce", sizes.iter().copied());
}

fn collectives(cells: &mut Cells, full: bool) {
    let place = cells.place;
    if place.has_rails() {
        if place.ranks > 2 {
            let sizes = if full { powers(16 * KIB, 4 * MIB) } else { few(64 * KIB, MIB) };
            for name in ["bcast", "allreduce", "alltoall"] {
                cells.add(name, "loop", sizes.iter().copied());
            }
        }
        return;
    }
    let is_main = place.name == "node2";
    let (sizes, between): (&[u64], &[u64]) = match (full, is_main) {
        (true, true) => (&[8, 64, 512, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB], &[]),
        (true, false) => (&[8, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB], &[]),
        (false, true) => (&[8, KIB, 16 * KIB, 256 * KIB], &[8, 64 * KIB]),
        (false, false) => (&[8, 16 * KIB], &[]),
    };
    let between = if full { sizes } else { between };
    for name in COLLECTIVES {
        let of = |sizes: &[u64]| if name == "barrier" { vec![0] } else { sizes.to_vec() };
        cells.add(name, "loop", of(sizes));
        let nonblocking = if full || is_main { sizes } else { &sizes[..1] };
        cells.add(&format!("i{name}"), "loop", of(nonblocking));
        if !between.is_empty() {
            cells.add(name, "apart", of(between));
        }
        if full && is_main {
            cells.add(&format!("i{name}"), "apart", of(&[8, 16 * KIB, 256 * KIB]));
        }
    }
}

#[cfg(test)]
mod tests;
