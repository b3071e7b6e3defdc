//! One contestant's turn at one batch, the estimate of the remaining turns, and the report.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::Course;
use crate::contestant::{Contestant, Kind};
use crate::facts::Facts;
use crate::ground::Ground;
use crate::job::{self, Failure, Said};
use crate::launch::Launch;
use crate::place::Place;
use crate::plan::{Cell, Family};
use crate::report::{FORMAT, Report};
use crate::store::Figure;
use crate::verdict::judge;
use crate::{CompareError, heat, markdown, page};

/// A batch is begun again without the cell that ended it, but only so often.
const JOBS_MAX: u32 = 4;

const METHOD: &str = "\
    A figure is the median of five samples in one job (of three if one repetition is longer than a \
    sample, one sample if it takes more than a second), each of the rank that took longest. Warm-up: \
    repetitions are doubled until they take half of a sample and there were eight of them, since the \
    first ones open connections; these are not counted. Contestants take turns within each round, each \
    with one job; ratios are taken round by round. A cell's ratio \
    is the median, and its interval, between two of the ratios, has the true median with 95 % from six \
    rounds on (sign test). Rounds in which a bare line of the cache took more than 1.5 times as long \
    in one of the two jobs are left out where three others remain. A cell that was near or behind in \
    some round has six rounds at least; it is behind if its ratio is above 1.10 and its interval \
    above 1. Intervals of means are those of Student's t with 95 % over the rounds. Jobs of a \
    library have two modes if a gap between two of their times is wider than chance makes it within \
    one mode in one of a hundred cases, with two jobs on each side, and the medians of both sides \
    differ by 15 % at least. First messages have no warm-up: each round is one job.";

/// Who, where, when.
pub(super) struct Turn<'a> {
    pub(super) round: u32,
    pub(super) who: &'a Contestant,
    pub(super) place: &'static Place,
    pub(super) family: Family,
    pub(super) busy: f64,
    pub(super) sample_ms: f64,
}

impl Turn<'_> {
    /// The words of the measuring program.
    fn words(&self, cells: PathBuf) -> Vec<OsString> {
        let mut words = vec!["--cells".into(), cells.into(), "--ms".into()];
        words.push(format!("{:.2}", self.sample_ms).into());
        if matches!(self.family, Family::Threads | Family::Partitioned) {
            words.push("--threads".into());
        }
        words
    }
}

impl Course<'_> {
    /// Measures the cells `pending` by as many jobs as it takes.
    pub(super) fn turn(
        &mut self,
        turn: &Turn<'_>,
        mut pending: Vec<Cell>,
        ground: &Ground,
    ) -> Result<(), CompareError> {
        for _ in 0..JOBS_MAX {
            let (answered, ended) = self.job(turn, &pending, ground)?;
            let failure = match ended {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let culprit = failure.cell.and_then(|number| pending.get(number).cloned());
            let Some(culprit) = culprit else {
                // It did not come as far as the first cell, or failed between two.
                let left = pending.iter().zip(&answered).filter(|(_, answered)| !**answered);
                let left: Vec<Cell> = left.map(|(cell, _)| cell.clone()).collect();
                return left.iter().try_for_each(|cell| self.give_up(turn, cell, &failure.why));
            };
            self.give_up(turn, &culprit, &failure.why)?;
            let mut answered = answered.into_iter();
            pending.retain(|cell| !answered.next().unwrap_or(false) && *cell != culprit);
            if pending.is_empty() {
                return Ok(());
            }
        }
        let why = format!("not tried: {JOBS_MAX} jobs before it had failed");
        pending.iter().try_for_each(|cell| self.give_up(turn, cell, &why))
    }

    /// Runs one job; tells which cells have an answer, and how it ended.
    fn job(
        &mut self,
        turn: &Turn<'_>,
        cells: &[Cell],
        ground: &Ground,
    ) -> Result<(Vec<bool>, Result<(), Failure>), CompareError> {
        let mut answered = vec![false; cells.len()];
        let line = |(number, cell): (usize, &Cell)| {
            format!("{number} {} {} {}\n", cell.pattern, cell.variant, cell.bytes)
        };
        let list: String = cells.iter().enumerate().map(line).collect();
        let path = self.workshop.write("cells", &list)?;
        let Turn { who, place, family, .. } = *turn;
        let launch = Launch { who, place, on: family.cores(), cores: self.machine.cores };
        let mut command = launch.command(&self.workshop, &turn.words(path));
        if who.installation.kind == Kind::Nmad {
            // A line for each collective and length, from which the facts have the algorithm.
            command.env("NMAD_MPI_EXPLAIN", "1");
        }
        if let Err(why) = ground.place(&mut command) {
            return Ok((answered, Err(Failure { cell: None, why })));
        }
        let mut heard = Vec::new();
        let mut broken = None;
        let (mut told, mut choices) = (None, Vec::new());
        let ended = job::run(command, self.request.silence, &mut |said| match said {
            Said::Facts { number, facts } => told = Some((number, facts)),
            Said::Choice(choice) => choices.push(choice),
            Said::Cell { number, us, low, high } if number < cells.len() && !answered[number] => {
                answered[number] = true;
                let cell = cells[number].clone();
                let last = choices.iter().rev().find(|choice| choice.is_of(&cell.pattern));
                let algorithm = last.map(|choice| choice.algorithm.clone());
                let facts = told.take().filter(|(of, _)| *of == number);
                let facts = facts.map(|(_, facts)| Facts { algorithm, ..facts });
                let (round, who) = (turn.round, turn.who.name.clone());
                let added =
                    self.store.add(Figure { round, who, cell, us, low, high, busy: turn.busy, facts });
                broken = broken.take().or(added.err());
            }
            Said::Skip { number, why } if number < cells.len() => {
                answered[number] = true;
                heard.push((number, why));
            }
            _ => {}
        });
        match broken {
            Some(error) => return Err(error),
            None => heard.iter().try_for_each(|(number, why)| self.give_up(turn, &cells[*number], why))?,
        }
        Ok((answered, ended))
    }

    fn give_up(&mut self, turn: &Turn<'_>, cell: &Cell, why: &str) -> Result<(), CompareError> {
        self.given_up.insert((turn.who.name.clone(), cell.clone()));
        self.store.fail(turn.round, &turn.who.name, cell, why)
    }

    /// An estimate of all turns from this one on, in seconds.
    pub(super) fn left_s(
        &self,
        number: usize,
        (round, rounds): (u32, u32),
        who: &str,
        blocked: &BTreeSet<&'static str>,
    ) -> f64 {
        let mut left_s = 0.0;
        let mut is_ahead = false;
        for round in round..=rounds {
            for (index, batch) in self.batches.iter().enumerate() {
                for contestant in self.at(index) {
                    is_ahead |= index == number && contestant.name == who;
                    if is_ahead && !blocked.contains(batch.place.name) {
                        let part = self.pending(index, round, &contestant.name).len() as f64;
                        let part = part / batch.cells.len() as f64;
                        left_s += part * self.pace.estimate_s(index, batch, &contestant.name);
                    }
                }
            }
        }
        left_s
    }

    /// The report on all figures that there are.
    pub(super) fn report(&self) -> Report {
        let report = Report {
            format: FORMAT,
            made: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: self.request.command.clone(),
            extent: self.request.extent,
            machine: self.machine.clone(),
            rounds: 0,
            method: METHOD.into(),
            contestants: Vec::new(),
            missing: self.missing.texts().to_vec(),
            failed: Vec::new(),
            figures: 0,
            busy_figures: 0,
            overall: None,
            patterns: Vec::new(),
            places: Vec::new(),
            behind: Vec::new(),
            undecided: Vec::new(),
            modes: Vec::new(),
            cells: Vec::new(),
        };
        judge(&self.store, report)
    }

    /// Writes `report.json` and `report.html`, each under another name first: a reader never sees half of
    /// one.
    pub(super) fn write(&self, report: &Report) -> Result<(), CompareError> {
        let json = serde_json::to_string(report).map_err(|error| CompareError::Damaged {
            what: format!("the report cannot be written: {error}"),
            path: self.request.out.clone(),
        })?;
        let mut files = vec![
            ("report.json".to_string(), json),
            ("report.html".into(), page::html(report)),
            ("report.md".into(), markdown::markdown(report)),
        ];
        let pictures = report
            .places
            .iter()
            .filter_map(|row| Some((markdown::picture(&row.name), heat::map(report, &row.name)?)));
        files.extend(pictures);
        for (name, text) in files {
            let path = self.request.out.join(&name);
            let new = self.request.out.join(format!(".{name}.new"));
            nmad_words::file::write(&new, text).map_err(CompareError::file("write", &new))?;
            fs::rename(&new, &path).map_err(CompareError::file("write", &path))?;
        }
        Ok(())
    }
}
