//! The turns of programs that read a list of cells: in each round, each contestant runs each batch once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::CompareError;
use crate::contestant::Contestant;
use crate::field::{Done, Missing, Watch};
use crate::ground::Ground;
use crate::interrupt;
use crate::job::{self, Failure, Said};
use crate::launch::{Cores, Launch};
use crate::machine::Machine;
use crate::place::Place;
use crate::sources::Workshop;

/// The cells that one job runs.
pub(crate) trait Batch {
    /// Returns the place where the job runs.
    fn place(&self) -> &'static Place;

    /// Returns the cores on which it runs.
    fn cores(&self) -> Cores;

    /// Returns the content of the file of cells that the program reads.
    fn list(&self) -> String;

    /// Returns the description of a cell, by its number.
    fn cell(&self, number: usize) -> Option<String>;
}

/// One job: its round, contestant and batch.
pub(crate) struct Turn<'a, B> {
    pub(crate) round: u32,
    pub(crate) who: &'a Contestant,
    pub(crate) batch: &'a B,
}

/// Functions that make the arguments of jobs and receive their output.
pub(crate) struct Ears<'a, B> {
    /// Returns the arguments of the program, with the path of its cells.
    pub(crate) words: &'a dyn Fn(PathBuf, &B) -> Vec<OsString>,
    pub(crate) hear: &'a mut dyn FnMut(&Turn<'_, B>, Said),
    pub(crate) watch: &'a mut dyn Watch,
}

/// The state of a run during its rounds.
pub(crate) struct Course {
    pub(crate) workshop: Workshop,
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) missing: Missing,
    /// Number of rounds.
    rounds: u32,
    /// Time without output after which a job is ended.
    silence: Duration,
    cores: usize,
    begun: Instant,
    /// Number of jobs that have run.
    done: usize,
}

impl Course {
    pub(crate) fn new(
        workshop: Workshop,
        (contestants, missing): (Vec<Contestant>, Missing),
        rounds: u32,
        silence: Duration,
    ) -> Course {
        let (cores, begun) = (Machine::here().cores, Instant::now());
        Course { workshop, contestants, missing, rounds, silence, cores, begun, done: 0 }
    }

    /// Runs all batches; `missing` then lists the jobs that cannot be run.
    ///
    /// # Errors
    /// The cells cannot be written, or the user has ended the run.
    pub(crate) fn run<B: Batch>(
        &mut self,
        batches: &[B],
        ears: &mut Ears<'_, B>,
    ) -> Result<(), CompareError> {
        let contestants = self.contestants.clone();
        let turns = batches.len() * contestants.len() * self.rounds as usize;
        for place in places(batches) {
            let ground = match Ground::prepare(place) {
                Ok(ground) => ground,
                Err(why) => {
                    self.missing.add(format!("{}: {why}", place.title), ears.watch);
                    continue;
                }
            };
            ground.remark.iter().for_each(|remark| self.missing.add(remark.clone(), ears.watch));
            for round in 1..=self.rounds {
                for batch in batches.iter().filter(|batch| batch.place() == place) {
                    for who in &contestants {
                        let turn = Turn { round, who, batch };
                        self.tell(turns, &turn, ears.watch);
                        self.turn(&turn, &ground, ears)?;
                        if let Some(signal) = interrupt::caught() {
                            return Err(CompareError::Interrupted { signal });
                        }
                        self.done += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn tell<B: Batch>(&self, turns: usize, turn: &Turn<'_, B>, watch: &mut dyn Watch) {
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        let left_s = match self.done {
            0 => turns as f64,
            done => elapsed_s / done as f64 * (turns - done) as f64,
        };
        let (rounds, place) = (self.rounds, turn.batch.place().name);
        let text = format!("round {} of {rounds}, {place}, {}", turn.round, turn.who.name);
        watch.turn(&Done { text, elapsed_s, left_s });
    }

    /// Runs one job: all cells of a batch by one contestant.
    fn turn<B: Batch>(
        &mut self,
        turn: &Turn<'_, B>,
        ground: &Ground,
        ears: &mut Ears<'_, B>,
    ) -> Result<(), CompareError> {
        let Turn { who, batch, .. } = turn;
        let path = self.workshop.write("cells", &batch.list())?;
        let launch = Launch { who, place: batch.place(), on: batch.cores(), cores: self.cores };
        let mut command = launch.command(&self.workshop, &(ears.words)(path, batch));
        let mut skipped = Vec::new();
        let ended = match ground.place(&mut command) {
            Err(why) => Err(Failure { cell: None, why }),
            Ok(()) => job::run(command, self.silence, &mut |said| match said {
                Said::Skip { number, why } => skipped.push((number, why)),
                said => (ears.hear)(turn, said),
            }),
        };
        let failed = ended.err().map(|failure| (failure.cell, failure.why));
        for (cell, why) in skipped.into_iter().map(|(cell, why)| (Some(cell), why)).chain(failed) {
            let what =
                cell.and_then(|cell| batch.cell(cell)).map_or_else(String::new, |cell| format!(" at {cell}"));
            self.missing.add(format!("{}, {}{what}: {why}", batch.place().name, who.name), ears.watch);
        }
        Ok(())
    }
}

/// The places of all batches, each once.
fn places<B: Batch>(batches: &[B]) -> Vec<&'static Place> {
    let mut places: Vec<&'static Place> = Vec::new();
    for batch in batches {
        if !places.contains(&batch.place()) {
            places.push(batch.place());
        }
    }
    places
}
