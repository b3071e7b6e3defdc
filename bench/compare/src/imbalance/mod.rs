//! P5's programs (`c/imbalance`) beside other MPIs: built, run in turns, and what they print as figures.
//!
//! Which cells there are says `cells`; how they are judged and drawn is the caller's.

mod cells;

use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::contestant::Contestant;
use crate::field::{Done, Field, Missing, Watch};
use crate::ground::Ground;
use crate::job::{self, Failure, RankFigures, Said};
use crate::launch::{Cores, Launch};
use crate::machine::Machine;
use crate::place::Place;
use crate::sources::{IMBALANCE, Workshop};
use crate::{CompareError, PeerSpec};

use cells::Batch;
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
    let cores = Machine::here().cores;
    let mut course =
        Course { request, workshop, contestants, missing, cores, begun: Instant::now(), done: 0 };
    course.run(&batches, watch, each)?;
    Ok(course.missing.texts().to_vec())
}

/// The state of a run during its rounds.
struct Course<'a> {
    request: &'a ImbalanceRequest,
    workshop: Workshop,
    contestants: Vec<Contestant>,
    missing: Missing,
    cores: usize,
    begun: Instant,
    /// Turns that were taken.
    done: usize,
}

/// Who, where, when.
struct Turn<'a> {
    round: u32,
    who: &'a Contestant,
    batch: &'a Batch,
}

impl Course<'_> {
    fn run(
        &mut self,
        batches: &[Batch],
        watch: &mut dyn Watch,
        each: &mut dyn FnMut(Measured),
    ) -> Result<(), CompareError> {
        let contestants = self.contestants.clone();
        let turns = batches.len() * contestants.len() * self.request.rounds as usize;
        for place in places(batches) {
            let ground = match Ground::prepare(place) {
                Ok(ground) => ground,
                Err(why) => {
                    self.missing.add(format!("{}: {why}", place.title), watch);
                    continue;
                }
            };
            ground.remark.iter().for_each(|remark| self.missing.add(remark.clone(), watch));
            for round in 1..=self.request.rounds {
                for batch in batches.iter().filter(|batch| batch.place == place) {
                    for who in &contestants {
                        self.tell(turns, &Turn { round, who, batch }, watch);
                        self.turn(&Turn { round, who, batch }, &ground, watch, each)?;
                        self.done += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn tell(&self, turns: usize, turn: &Turn<'_>, watch: &mut dyn Watch) {
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        let left_s = match self.done {
            0 => turns as f64,
            done => elapsed_s / done as f64 * (turns - done) as f64,
        };
        let (rounds, place) = (self.request.rounds, turn.batch.place.name);
        let text = format!("round {} of {rounds}, {place}, {}", turn.round, turn.who.name);
        watch.turn(&Done { text, elapsed_s, left_s });
    }

    /// One job: all exercises of a batch by one contestant.
    fn turn(
        &mut self,
        turn: &Turn<'_>,
        ground: &Ground,
        watch: &mut dyn Watch,
        each: &mut dyn FnMut(Measured),
    ) -> Result<(), CompareError> {
        let path = self.workshop.write("cells", &turn.batch.list())?;
        let on = if turn.batch.has_threads { Cores::Any } else { Cores::Own };
        let launch = Launch { who: turn.who, place: turn.batch.place, on, cores: self.cores };
        let mut command = launch.command(&self.workshop, &self.words(path, turn.batch));
        let (mut heard, mut skipped) = (Heard::default(), Vec::new());
        let ended = match ground.place(&mut command) {
            Err(why) => Err(Failure { cell: None, why }),
            Ok(()) => job::run(command, self.request.silence, &mut |said| match said {
                Said::Skip { number, why } => skipped.push((number, why)),
                said => heard.listen(turn, said).into_iter().for_each(&mut *each),
            }),
        };
        let failed = ended.err().map(|failure| (failure.cell, failure.why));
        for (cell, why) in skipped.into_iter().map(|(cell, why)| (Some(cell), why)).chain(failed) {
            let what = cell.and_then(|cell| turn.batch.exercises.get(cell));
            let what = what.map_or_else(String::new, |exercise| format!(" at {exercise}"));
            self.missing.add(format!("{}, {}{what}: {why}", turn.batch.place.name, turn.who.name), watch);
        }
        Ok(())
    }

    /// The words of the program.
    fn words(&self, cells: PathBuf, batch: &Batch) -> Vec<OsString> {
        let request = self.request;
        let mut words = vec!["--cells".into(), cells.into()];
        let threads = if batch.has_threads { u64::from(request.threads) } else { 1 };
        for (name, value) in [
            ("--calculation", request.calculation_us),
            ("--iterations", u64::from(request.iterations)),
            ("--fragment", request.fragment),
            ("--threads", threads),
            ("--seed", request.seed),
        ] {
            words.extend([OsString::from(name), value.to_string().into()]);
        }
        words
    }
}

/// The places of all batches, each once.
fn places(batches: &[Batch]) -> Vec<&'static Place> {
    let mut places: Vec<&'static Place> = Vec::new();
    for batch in batches {
        if !places.contains(&batch.place) {
            places.push(batch.place);
        }
    }
    places
}

/// What the job has said of the exercise that it is at.
#[derive(Default)]
struct Heard {
    ranks: Vec<RankFigures>,
    phase: Option<(f64, f64, f64)>,
}

impl Heard {
    /// Takes note of a line; the figures, when the last one of an exercise has come.
    fn listen(&mut self, turn: &Turn<'_>, said: Said) -> Option<Measured> {
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
