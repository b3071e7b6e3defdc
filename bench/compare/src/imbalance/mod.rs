//! P5's programs (`c/imbalance`) beside other MPIs: built, run in turns, and what they print as figures.
//!
//! Which cells there are says `cells`; how they are judged and drawn is the caller's.

mod cells;

use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::course::{Course, Ears, Turn};
use crate::field::{Field, Missing, Watch};
use crate::job::{RankFigures, Said};
use crate::sources::{IMBALANCE, Workshop};
use crate::{CompareError, PeerSpec};

use cells::Batch;
pub(crate) use cells::check;
pub use cells::{Exercise, FLOOD, PROGRAMS, Plan, VARIANTS, place_names};

/// The user's request.
#[derive(Debug, Clone)]
pub struct ImbalanceRequest {
    /// Where MAD-MPI is installed.
    pub ours: PathBuf,
    /// The others.
    pub peers: Vec<PeerSpec>,
    /// Where wheels are kept.
    pub cache: PathBuf,
    /// Gets sources and programs.
    pub work: PathBuf,
    /// Programs, sizes and places.
    pub plan: Plan,
    /// Microseconds of calculation in an iteration of a toy.
    pub calculation_us: u64,
    /// Iterations of a toy.
    pub iterations: u32,
    /// Longest fragment of the variants `fragments` and `both`, in bytes.
    pub fragment: u64,
    /// Threads that send in the variants `parallel` and `both`.
    pub threads: u32,
    /// From which lengths of messages and partitions are drawn.
    pub seed: u64,
    /// By how many percent the rank with the most rows of miniFE's matrix has more than the mean.
    pub imbalance: u32,
    /// Times that everybody has a turn at everything.
    pub rounds: u32,
    /// How long a job may be silent.
    pub silence: Duration,
}

/// One contestant's figures of an exercise in one round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Name of the place.
    pub place: &'static str,
    /// Ranks there.
    pub ranks: u32,
    /// Name of the contestant.
    pub who: String,
    /// From 1.
    pub round: u32,
    /// The program and its arguments.
    #[serde(flatten)]
    pub exercise: Exercise,
    /// Microseconds of communication in an iteration: of the rank that took longest in each, the median over
    /// the iterations.
    pub communication_us: f64,
    /// The same of the shortest iteration.
    pub lowest_us: f64,
    /// The same of the longest iteration.
    pub highest_us: f64,
    /// The same of the whole iteration.
    pub iteration_us: f64,
    /// Rate of the conjugate gradient, in 10^9 operations in a second; zero for the toys.
    pub gflops: f64,
    /// Each rank.
    pub by_rank: Vec<RankFigures>,
}

impl Measured {
    /// The longest time in communication of a rank over the mean of all: 1 is balance.
    pub fn imbalance(&self) -> f64 {
        over_mean(self.by_rank.iter().map(|rank| rank.communication_us))
    }

    /// The same of the bytes that ranks send (P5 figure 10).
    pub fn imbalance_of_bytes(&self) -> f64 {
        over_mean(self.by_rank.iter().map(|rank| rank.bytes as f64))
    }

    /// The same of the messages (P5 figure 11).
    pub fn imbalance_of_messages(&self) -> f64 {
        over_mean(self.by_rank.iter().map(|rank| rank.messages as f64))
    }

    /// Bytes by which the resident memory of a rank grew at most ([`RankFigures::memory`]).
    pub fn memory(&self) -> u64 {
        self.by_rank.iter().map(|rank| rank.memory).max().unwrap_or(0)
    }

    /// The part of all ranks' time that is spent in communication (P5 tables I and II).
    pub fn share(&self) -> f64 {
        let sum = |of: fn(&RankFigures) -> f64| self.by_rank.iter().map(of).sum::<f64>();
        let communication = sum(|rank| rank.communication_us);
        let all = communication + sum(|rank| rank.calculation_us) + sum(|rank| rank.synchronization_us);
        if all > 0.0 { communication / all } else { 0.0 }
    }
}

fn over_mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if sum > 0.0 { values.fold(0.0, f64::max) * count / sum } else { 1.0 }
}

/// Runs everything that was asked for, hands on each figure, and returns what could not be measured.
///
/// # Errors
/// The request names nothing, MAD-MPI itself cannot be built for, or files cannot be written.
pub fn run(
    request: &ImbalanceRequest,
    watch: &mut dyn Watch,
    each: &mut dyn FnMut(Measured),
) -> Result<Vec<String>, CompareError> {
    let batches = request.plan.batches()?;
    let workshop = Workshop::set_up(request.work.clone())?;
    let mut missing = Missing::default();
    let field = Field { ours: &request.ours, peers: &request.peers, cache: &request.cache };
    let contestants = field.find(&workshop, &IMBALANCE, &mut missing, watch)?;
    let mut course = Course::new(workshop, (contestants, missing), request.rounds, request.silence);
    let mut heard = Heard::default();
    let mut ears = Ears {
        words: &|path, batch| request.words(path, batch),
        hear: &mut |turn, said| heard.listen(turn, said).into_iter().for_each(&mut *each),
        watch,
    };
    course.run(&batches, &mut ears)?;
    Ok(course.missing.texts().to_vec())
}

impl ImbalanceRequest {
    /// The words of the program.
    fn words(&self, cells: PathBuf, batch: &Batch) -> Vec<OsString> {
        let mut words = vec!["--cells".into(), cells.into()];
        let threads = if batch.has_threads { u64::from(self.threads) } else { 1 };
        for (name, value) in [
            ("--calculation", self.calculation_us),
            ("--iterations", u64::from(self.iterations)),
            ("--fragment", self.fragment),
            ("--threads", threads),
            ("--seed", self.seed),
            ("--imbalance", self.imbalance.into()),
        ] {
            words.extend([OsString::from(name), value.to_string().into()]);
        }
        words
    }
}

/// What the job has said of the exercise that it is at.
#[derive(Default)]
struct Heard {
    ranks: Vec<RankFigures>,
    phase: Option<(f64, f64, f64)>,
}

impl Heard {
    /// Takes note of a line; the figures, when the last one of an exercise has come.
    fn listen(&mut self, turn: &Turn<'_, Batch>, said: Said) -> Option<Measured> {
        match said {
            Said::Begin(_) => *self = Heard::default(),
            Said::Rank { figures, .. } => self.ranks.push(figures),
            Said::Phase { communication_us, iteration_us, gflops, .. } => {
                self.phase = Some((communication_us, iteration_us, gflops));
            }
            Said::Cell { number, low, high, .. } => {
                let (communication_us, iteration_us, gflops) = self.phase.take()?;
                return Some(Measured {
                    place: turn.batch.place.name,
                    ranks: turn.batch.place.ranks,
                    who: turn.who.name.clone(),
                    round: turn.round,
                    exercise: turn.batch.exercises.get(number)?.clone(),
                    communication_us,
                    lowest_us: low,
                    highest_us: high,
                    iteration_us,
                    gflops,
                    by_rank: std::mem::take(&mut self.ranks),
                });
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
