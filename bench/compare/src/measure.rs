//! The turns: every round visits all places, at each of them all batches, and of each batch every
//! contestant has a turn (A B C A B C ...). The report is written after each round.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::contestant::Contestant;
use crate::field::{Done, Field, Missing, Watch};
use crate::ground::Ground;
use crate::machine::{self, Machine};
use crate::pace::Pace;
use crate::plan::{Batch, Cell, Extent, plan};
use crate::report::{CellRow, Report};
use crate::sources::{COMPARE, Workshop};
use crate::store::Store;
use crate::verdict::{is_near, is_open, row};
use crate::{CompareError, PeerSpec};

mod turn;

use turn::Turn;

/// Rounds of all cells.
const ROUNDS: u32 = 3;
/// Rounds of cells that are near the best peer or behind it: five would have an interval with 94 %.
pub const NEAR_ROUNDS: u32 = 6;
/// Times as many rounds of cells that are undecided then, if there is time. With more, it is better spent
/// elsewhere.
const OPEN: u32 = 2;

/// The user's request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where MAD-MPI is installed, or an older one of its versions.
    pub ours: PathBuf,
    /// The others.
    pub peers: Vec<PeerSpec>,
    /// Where wheels are kept.
    pub cache: PathBuf,
    /// Gets the figures and the report; an earlier run there is continued.
    pub out: PathBuf,
    /// How much is measured.
    pub extent: Extent,
    /// Patterns and families; none means all.
    pub only: Vec<String>,
    /// Names of places; none means all.
    pub places: Vec<String>,
    /// Number of rounds of all cells; none means three.
    pub rounds: Option<u32>,
    /// Number of rounds of cells that are near the best peer or behind it, if that is more.
    pub near_rounds: u32,
    /// How long a job may be silent.
    pub silence: Duration,
    /// Forget the figures that are there.
    pub fresh: bool,
    /// The command line, for the report.
    pub command: String,
}

impl Request {
    /// Whether there is anything to measure, before time is spent on it.
    pub fn check(&self) -> Result<(), CompareError> {
        plan(self.extent, &self.only, &self.places).map(drop)
    }
}

/// Measures what is missing, and writes and returns the report.
pub fn run(request: &Request, watch: &mut dyn Watch) -> Result<Report, CompareError> {
    let batches = plan(request.extent, &request.only, &request.places)?;
    fs::create_dir_all(&request.out).map_err(CompareError::file("make the folder", &request.out))?;
    let workshop = Workshop::set_up(request.out.join("work"))?;
    let mut missing = Missing::default();
    let field = Field { ours: &request.ours, peers: &request.peers, cache: &request.cache };
    let contestants = field.find(&workshop, &COMPARE, &mut missing, watch)?;
    let described: Vec<_> = turn_takers(&batches, &contestants).iter().map(Contestant::described).collect();
    let machine = Machine::here();
    let store = Store::open(&request.out.join("results.jsonl"), request.fresh, &machine, &described)?;
    let mut course = Course {
        request,
        batches,
        contestants,
        machine,
        workshop,
        store,
        missing,
        pace: Pace::new(request.extent),
        given_up: HashSet::new(),
        chosen: None,
    };
    course.run(watch)
}

/// All contestants that have a turn somewhere, each once.
fn turn_takers(batches: &[Batch], contestants: &[Contestant]) -> Vec<Contestant> {
    let mut all: Vec<Contestant> = Vec::new();
    for one in contestants {
        for contestant in batches.iter().flat_map(|batch| one.at(batch.place)) {
            if !all.iter().any(|known| known.name == contestant.name) {
                all.push(contestant);
            }
        }
    }
    all
}

/// All that goes on during the rounds.
struct Course<'a> {
    request: &'a Request,
    batches: Vec<Batch>,
    contestants: Vec<Contestant>,
    machine: Machine,
    workshop: Workshop,
    store: Store,
    missing: Missing,
    pace: Pace,
    /// What failed in this run is not tried again in it: a job that hangs costs its whole limit.
    given_up: HashSet<(String, Cell)>,
    /// The cells of this round; none means all.
    chosen: Option<HashSet<Cell>>,
}

impl Course<'_> {
    fn run(&mut self, watch: &mut dyn Watch) -> Result<Report, CompareError> {
        let all = self.request.rounds.unwrap_or(ROUNDS);
        let near = self.request.near_rounds.max(all);
        // A request for no more rounds of near cells than of others is followed.
        let most = if near > all { OPEN * near } else { near };
        let mut blocked = BTreeSet::new();
        let mut is_time = false;
        for round in 1.. {
            if round > near && (!is_time || round > most) {
                break;
            }
            self.chosen = match round {
                round if round <= all => None,
                round if round <= near => Some(self.cells(is_near)),
                _ => Some(self.cells(is_open)),
            };
            if self.chosen.as_ref().is_some_and(HashSet::is_empty) {
                break;
            }
            let begun = Instant::now();
            let rounds = if round <= all { all } else { near.max(round) };
            let is_new = self.round(round, rounds, &mut blocked, watch)?;
            self.write(&self.report())?;
            let took = begun.elapsed().as_secs_f64();
            // Of a round that an earlier run has made nothing is known about its length.
            is_time = is_new && self.pace.time_left_s() > took * 1.1;
        }
        Ok(self.report())
    }

    /// The cells for which this holds.
    fn cells(&self, is_wanted: fn(&CellRow) -> bool) -> HashSet<Cell> {
        let rows = self.store.by_cell().into_iter().map(|(cell, figures)| row(cell, &figures));
        rows.filter(is_wanted).map(|row| row.cell).collect()
    }

    /// One round; whether there was anything to do.
    fn round(
        &mut self,
        round: u32,
        rounds: u32,
        blocked: &mut BTreeSet<&'static str>,
        watch: &mut dyn Watch,
    ) -> Result<bool, CompareError> {
        let mut is_new = false;
        let mut ground: Option<(&'static str, Ground)> = None;
        for number in 0..self.batches.len() {
            let place = self.batches[number].place;
            if blocked.contains(place.name) || self.is_done(number, round) {
                continue;
            }
            if ground.as_ref().is_none_or(|(name, _)| *name != place.name) {
                // The old one goes first: two testbeds have the same addresses.
                drop(ground.take());
                match Ground::prepare(place) {
                    Ok(new) => {
                        new.remark.iter().for_each(|remark| self.missing.add(remark.clone(), watch));
                        ground = Some((place.name, new));
                    }
                    Err(why) => {
                        blocked.insert(place.name);
                        self.missing.add(format!("{}: {why}", place.title), watch);
                        continue;
                    }
                }
            }
            let Some((_, ground)) = &ground else { continue };
            is_new = true;
            self.batch(number, (round, rounds), ground, blocked, watch)?;
        }
        Ok(is_new)
    }

    /// Everybody's turn at one batch.
    fn batch(
        &mut self,
        number: usize,
        (round, rounds): (u32, u32),
        ground: &Ground,
        blocked: &BTreeSet<&'static str>,
        watch: &mut dyn Watch,
    ) -> Result<(), CompareError> {
        let busy = machine::load();
        let place = self.batches[number].place;
        for who in self.at(number) {
            let pending = self.pending(number, round, &who.name);
            if pending.is_empty() {
                continue;
            }
            let left_s = self.left_s(number, (round, rounds), &who.name, blocked);
            let family = self.batches[number].family.name();
            let text = format!("round {round} of {rounds}, {} {family}, {}", place.name, who.name);
            watch.turn(&Done { text, elapsed_s: self.pace.elapsed_s(), left_s });
            let sample_ms = self.pace.sample_ms(left_s);
            let begun = Instant::now();
            let turn = Turn { round, who: &who, place, family: self.batches[number].family, busy, sample_ms };
            self.turn(&turn, pending, ground)?;
            self.pace.learn(number, &who.name, begun.elapsed().as_secs_f64());
        }
        Ok(())
    }

    fn at(&self, number: usize) -> Vec<Contestant> {
        let place = self.batches[number].place;
        self.contestants.iter().flat_map(|one| one.at(place)).collect()
    }

    fn pending(&self, number: usize, round: u32, who: &str) -> Vec<Cell> {
        let is_pending = |cell: &&Cell| {
            self.chosen.as_ref().is_none_or(|chosen| chosen.contains(*cell))
                && !self.store.is_done(round, who, cell)
                && !self.given_up.contains(&(who.into(), (*cell).clone()))
        };
        self.batches[number].cells.iter().filter(is_pending).cloned().collect()
    }

    fn is_done(&self, number: usize, round: u32) -> bool {
        self.at(number).iter().all(|who| self.pending(number, round, &who.name).is_empty())
    }
}
