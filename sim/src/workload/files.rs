//! Files that all hosts share: accesses of their threads, and what hosts do together about a file. Chance of
//! its own.
//!
//! The tasks come in phases: each thread makes some accesses, and then the first thread of each host does
//! something together with those of the others. Mostly the threads of a host wait for each other before and
//! afterwards.

use super::Step;
use super::act::Author;
use crate::files::system::PAGE;
use crate::rng::Rng;
use crate::scenario::Scenario;
use nmad_file::hints::Switch;
use nmad_file::layout::Reason;
use nmad_file::{Hints, Kind, Layout, Piece, Pieces};
use std::fmt;

/// A task by its place in the script.
pub type Number = usize;

/// Writes of a run to a file, at most: each has a number of its own in the bytes that it writes.
const WRITES: u8 = 250;
/// Phases of a run, at most.
const PHASES: u64 = 9;
/// Accesses of a thread in a phase, at most.
const ACCESSES: u64 = 6;
/// Of a hundred synchronisations this number take place while other threads of the host go on.
const LOOSE: u64 = 30;
/// Of a hundred runs this number have a server that has no space for a while.
const FULL: u64 = 12;

/// Hints that are told of a run.
const TOLD: [&str; 4] = ["cb_nodes", "cb_buffer_size", "nmad_indep_rw", "nmad_buffer_size"];

/// What is the same for all hosts and files of a run.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// The hints of all files.
    pub hints: Hints,
    /// By host: the number of its node.
    pub nodes: Vec<u32>,
    /// Hosts see each other's writes at once.
    pub is_coherent: bool,
}

impl Stage {
    /// The layout of a file in a mode.
    pub fn layout(&self, is_atomic: bool) -> Layout {
        let reason = Reason { is_atomic, is_coherent: self.is_coherent, writes: true };
        Layout::new(&self.hints, PAGE, &self.nodes, &reason)
    }

    /// Whether one host may have all go by owners.
    pub fn may_change(&self) -> bool {
        self.hints.alone() == Switch::Automatic
    }
}

/// An access.
#[derive(Debug, Clone)]
pub struct Access {
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Where.
    pub pieces: Pieces,
    /// The number of a write in its file.
    pub write: u8,
}

/// The byte of the file at a place that a write leaves; zero is left by none.
pub fn byte(write: u8, at: u64) -> u8 {
    1 + ((u64::from(write) + mixed(at)) % 255) as u8
}

/// Which write leaves this byte at a place; none: no write, or a number that none has.
pub fn writer(byte: u8, at: u64) -> Option<u8> {
    let number = (u64::from(byte).checked_sub(1)? + 255 - mixed(at)) % 255;
    Some(number as u8)
}

fn mixed(at: u64) -> u64 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 255
}

impl Access {
    /// The data of a write.
    pub fn data(&self) -> Vec<u8> {
        let places = self.pieces.list().iter().flat_map(|piece| piece.offset..piece.end());
        places.map(|at| byte(self.write, at)).collect()
    }
}

/// What a task is.
#[derive(Debug, Clone)]
pub enum What {
    /// One thread reads or writes.
    Access(Access),
    /// All hosts meet, by messages.
    Barrier,
    /// They synchronise the file.
    Sync,
    /// They change its mode.
    Atomic(bool),
    /// They set its length.
    Size(u64),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Access(Access { kind, pieces, write }) => {
                match kind {
                    Kind::Read => f.write_str("reads")?,
                    Kind::Write => write!(f, "makes write {write} of")?,
                }
                let (begin, end) = pieces.hull().unwrap_or_default();
                let (len, count) = (pieces.len(), pieces.count());
                write!(f, " {len} B in {count} pieces from {begin} to {end}")
            }
            What::Barrier => f.write_str("meets the other hosts"),
            What::Sync => f.write_str("synchronises"),
            What::Atomic(is_atomic) => write!(f, "sets the atomic mode to {is_atomic}"),
            What::Size(size) => write!(f, "sets the length to {size}"),
        }
    }
}

/// A task of a thread.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its host.
    pub host: usize,
    /// The file.
    pub file: usize,
    /// What it is.
    pub what: What,
    /// Which of the steps of all hosts together; accesses have the number of the next one.
    pub together: usize,
}

/// What happens to the files of a run.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// What is the same for all.
    pub stage: Stage,
    /// By file: from which write on its server has no space, and for how many.
    pub full: Vec<Option<(u64, u64)>>,
    /// All tasks.
    pub tasks: Vec<Task>,
    /// By file: writes that were drawn.
    writes: Vec<u8>,
    /// How the phases end, in their order.
    phases: Vec<Phase>,
    /// Bytes of a file, more or less.
    len: u64,
}

/// The end of a phase.
#[derive(Debug, Clone)]
struct Phase {
    file: usize,
    what: What,
    is_loose: bool,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stage { hints, nodes, is_coherent } = &self.stage;
        let way = match hints.alone() {
            Switch::Automatic => "automatic",
            Switch::Enable => "owners",
            Switch::Disable => "direct",
        };
        let told = hints.told(PAGE, nodes, way, [false; 2]);
        let told = told.iter().filter(|(key, _)| TOLD.contains(key));
        let told: Vec<String> = told.map(|(key, value)| format!("{key} {value}")).collect();
        let sees = if *is_coherent { "see each other's writes at once" } else { "keep pages" };
        write!(f, "  {} files of about {} B; hosts {sees}; {}", self.full.len(), self.len, told.join(", "))?;
        let full = self.full.iter().enumerate().filter_map(|(file, full)| full.map(|full| (file, full)));
        full.into_iter().try_for_each(|(file, (from, count))| {
            write!(f, "; the server refuses {count} writes to file {file} after {from}")
        })
    }
}

impl Script {
    /// Draws what does not depend on threads.
    pub fn draw(scenario: &Scenario) -> Script {
        let (seed, hosts, no_faults) = (scenario.seed, scenario.hosts(), scenario.no_faults);
        let mut rng = Rng::of(seed, 14);
        let len = *rng.pick(&[300, 9_000, 9_000, 40_000, 40_000, 200_000, 200_000, 3 << 20]);
        let region = *rng.pick(&[1, 4096, 4096, 12_288, 1 << 20]);
        let owners = rng.range(1, hosts as u64);
        let waiting = *rng.pick(&[0, 4096, 20_000, 20_000, 4 << 20]);
        let is_coherent = rng.percent(50);
        let alone = match is_coherent {
            true => *rng.pick(&["automatic", "automatic", "owners", "direct"]),
            false => *rng.pick(&["automatic", "owners"]),
        };
        let mut hints = Hints::default();
        let given = [
            ("cb_nodes", owners.to_string()),
            ("cb_buffer_size", region.to_string()),
            ("nmad_buffer_size", waiting.to_string()),
            ("nmad_indep_rw", alone.to_string()),
        ];
        hints.take(|key| given.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone()));
        let nodes = (0..hosts as u32).collect();
        let files = rng.range(1, 2) as usize;
        let full = |_| Some((rng.below(60), rng.range(1, 5))).filter(|_| rng.percent(FULL) && !no_faults);
        let full = (0..files).map(full).collect();
        let mut is_atomic = vec![false; files];
        let mut phases: Vec<Phase> = Vec::new();
        for _ in 0..rng.range(2, PHASES) {
            let file = rng.index(files);
            let what = match rng.below(10) {
                0..=3 => What::Sync,
                4 | 5 => What::Barrier,
                6 => What::Size(rng.len(len)),
                _ => {
                    is_atomic[file] = !is_atomic[file];
                    What::Atomic(is_atomic[file])
                }
            };
            let is_loose = matches!(what, What::Sync) && rng.percent(LOOSE);
            phases.push(Phase { file, what, is_loose });
        }
        phases.extend((0..files).map(|file| Phase { file, what: What::Sync, is_loose: false }));
        let stage = Stage { hints, nodes, is_coherent };
        Script { stage, full, tasks: Vec::new(), writes: vec![0; files], phases, len }
    }

    /// Draws an access; none: all numbers of writes are used.
    fn access(&mut self, file: usize, rng: &mut Rng) -> Option<Access> {
        let kind = if rng.percent(55) { Kind::Write } else { Kind::Read };
        let mut write = 0;
        if kind == Kind::Write {
            write = self.writes[file];
            if write == WRITES {
                return None;
            }
            self.writes[file] += 1;
        }
        let (count, most) = match rng.below(20) {
            0..=9 => (1, self.len / 2 + 1),
            10..=11 => (1, 600),
            12 => (65, 8),
            13..=17 => (rng.range(2, 6), self.len / 8 + 1),
            _ => (rng.range(65, 90), 12),
        };
        let mut at = rng.below(self.len);
        let mut pieces = Pieces::default();
        for _ in 0..count {
            let len = rng.len(most).max(1);
            pieces.push(Piece { offset: at, len });
            at += len + rng.len(most.min(self.len / count + 1));
        }
        Some(Access { kind, pieces, write })
    }
}

impl Author {
    /// Phases of accesses to files, with messages between them.
    pub(super) fn write_files(&mut self, messages: impl Fn(&mut Author)) {
        let Some(mut script) = self.plan.files.take() else { return };
        let mut rng = Rng::of(self.seed, 600 + self.thread as u64);
        let phases = script.phases.clone();
        for (together, phase) in phases.iter().enumerate() {
            if rng.percent(40) {
                messages(self);
            }
            for host in 0..self.hosts {
                for _ in 0..rng.below(ACCESSES + 1) {
                    if rng.percent(20) {
                        let ns = rng.len(300_000);
                        self.step(host, Step::Compute(ns));
                    }
                    let file = rng.index(script.writes.len());
                    if let Some(access) = script.access(file, &mut rng) {
                        self.step(host, Step::File(script.tasks.len()));
                        script.tasks.push(Task { host, file, what: What::Access(access), together });
                    }
                }
                if !phase.is_loose {
                    self.step(host, Step::Meet(2 * together));
                }
                if self.thread == 0 {
                    self.step(host, Step::File(script.tasks.len()));
                    let (file, what) = (phase.file, phase.what.clone());
                    script.tasks.push(Task { host, file, what, together });
                }
                if !phase.is_loose {
                    self.step(host, Step::Meet(2 * together + 1));
                }
            }
        }
        self.plan.files = Some(script);
    }
}
