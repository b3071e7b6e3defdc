//! Trials: a program that calls a blocking collective again and again tries each promising algorithm, and
//! then uses the one with the lowest measured time.
//!
//! A prediction from rails and copies leaves out much: two processes that read each other's memory at the
//! same time, caches, ranks that share cores. So the algorithms that are predicted to take at most
//! [`WITHIN`] times as long as the best one are tried, at most [`MOST`] of them, each several times in a
//! row: what the one before has left in caches would disturb a single call. The times are those of the call,
//! which waits for other ranks as well: such noise only adds. For each algorithm the maximum over all ranks
//! counts. Another algorithm replaces the one in use if its median is at least 10 % below the minimum of
//! that.
//!
//! All ranks count the same calls, so they try the same algorithms without a message, and agree once at the
//! end of a trial. Only collectives that synchronise all ranks are tried: otherwise a rank that refuses its
//! arguments would count differently from ranks that have completed the call.
//!
//! The first trial begins with the call of a length that [`SHORT`] or [`LONG`] says, each further one after
//! [`AGAIN`] times as many calls: programs that call a collective a few times are not touched, and trials
//! cost others some percent of their calls at first and less and less.

use crate::algorithm::choice::{Family, Memory, Problem};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Lengths of which one call takes so long that a program is not left to a wrong prediction for many of them,
/// and that a few calls tell enough: a reduce of 4 MiB between two cores takes 0.36 to 3.6 ms.
const LONG_MIN: u64 = 256 << 10;

/// When trials begin, and how long they are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    /// Call of a length with which its first trial begins.
    begin: u64,
    /// Times that each algorithm is tried. The first `warm` of them make schedules and memory, fill caches,
    /// and do not count.
    rounds: usize,
    warm: usize,
}

const SHORT: Plan = Plan { begin: 48, rounds: 7, warm: 2 };
const LONG: Plan = Plan { begin: 8, rounds: 4, warm: 1 };

/// Factor between the calls with which one trial and the next begin.
const AGAIN: u64 = 16;
/// Algorithms of a trial at most.
const MOST: usize = 5;
/// Algorithms that are predicted to take longer than this number of times the best one are not tried.
pub(super) const WITHIN: f64 = 2.0;
/// Part of the time of the algorithm in use that another one must save.
const GAIN: f64 = 0.1;
/// Families and lengths of a communicator for which there are trials.
const LENGTHS: usize = 32;

/// The minimum and the median of each algorithm of a trial.
pub(super) type Figures = [f64; 2 * MOST];

/// The trials of a communicator.
#[derive(Default)]
pub(super) struct Trials(Mutex<Vec<Trial>>);

/// Algorithm of a call: its place among [`Problem::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) family: Family,
    pub(super) place: usize,
}

impl Pick {
    /// The memory of the algorithm; `None`: it is a schedule.
    pub(super) fn memory<P: Problem>(self) -> Option<Memory> {
        let direct = self.place.checked_sub(P::algorithms().len())?;
        P::direct().get(direct).map(|direct| direct.memory)
    }
}

/// A call of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// Place of the trial among those of the communicator.
    trial: usize,
    candidate: usize,
    /// When it began; `None`: it goes by another algorithm, since there is no memory for this one.
    since: Option<Instant>,
    /// The names of all algorithms.
    names: fn() -> Vec<&'static str>,
}

impl Attempt {
    /// The call goes by another algorithm.
    pub(super) fn in_vain(self) -> Attempt {
        Attempt { since: None, ..self }
    }
}

/// Calls of one family with one length.
#[derive(Debug)]
struct Trial {
    family: Family,
    len: u64,
    plan: Plan,
    calls: u64,
    /// Call with which the next trial begins.
    due: u64,
    /// Places of the algorithms, the one in use first.
    candidates: Vec<usize>,
    /// Nanoseconds of each of their calls.
    times: Vec<Vec<u64>>,
    /// The algorithm in use is not the predicted one.
    is_measured: bool,
}

impl Trial {
    fn new(family: Family, len: u64) -> Trial {
        let (candidates, times) = (Vec::new(), Vec::new());
        let plan = if len < LONG_MIN { SHORT } else { LONG };
        Trial { family, len, plan, calls: 0, due: plan.begin, candidates, times, is_measured: false }
    }

    /// Counts a call; returns the algorithm in use, if it is not the predicted one, or the one to try and its
    /// number. `candidates` says which are promising.
    fn next(&mut self, candidates: impl FnOnce() -> Vec<usize>) -> Option<(usize, Option<usize>)> {
        self.calls += 1;
        if self.calls == self.due {
            let in_use = self.candidates.first().copied().filter(|_| self.is_measured);
            let mut found = candidates();
            if let Some(in_use) = in_use {
                found.retain(|&place| place != in_use);
                found.insert(0, in_use);
            }
            found.truncate(MOST);
            if found.len() < 2 {
                self.due *= AGAIN;
            }
            self.times = vec![Vec::new(); found.len()];
            self.candidates = found;
        }
        match self.calls.checked_sub(self.due) {
            Some(call) if (call as usize) < self.plan.rounds * self.candidates.len() => {
                let candidate = call as usize / self.plan.rounds;
                Some((self.candidates[candidate], Some(candidate)))
            }
            _ => Some((*self.candidates.first().filter(|_| self.is_measured)?, None)),
        }
    }

    /// Records the time of a tried call; returns whether the trial is complete.
    fn record(&mut self, candidate: usize, ns: u64) -> bool {
        let count = self.candidates.len();
        if let Some(times) = self.times.get_mut(candidate) {
            times.push(ns);
        }
        candidate + 1 == count && self.calls + 1 == self.due + (self.plan.rounds * count) as u64
    }

    /// Returns the minimum and the median of each algorithm; infinity without complete measurements.
    fn figures(&self) -> Figures {
        let mut figures = [f64::INFINITY; 2 * MOST];
        for (place, times) in self.times.iter().enumerate() {
            let Plan { rounds, warm, .. } = self.plan;
            let mut times: Vec<u64> = times.iter().skip(warm).copied().collect();
            times.sort_unstable();
            if times.len() + warm == rounds {
                figures[2 * place..2 * place + 2]
                    .copy_from_slice(&[times[0] as f64, times[times.len() / 2] as f64]);
            }
        }
        figures
    }

    /// Ends a trial with the figures that all ranks agreed on; returns the algorithm in use from now on.
    fn end(&mut self, figures: &Figures) -> Option<usize> {
        self.due *= AGAIN;
        let in_use_ns = figures[0];
        let usual_ns = |place: usize| figures[2 * place + 1];
        let others = 1..self.candidates.len();
        let best = others.min_by(|&a, &b| usual_ns(a).total_cmp(&usual_ns(b)))?;
        if usual_ns(best) < (1.0 - GAIN) * in_use_ns {
            self.candidates.swap(0, best);
            self.is_measured = true;
            return Some(self.candidates[0]);
        }
        None
    }
}

impl Trials {
    fn lock(&self) -> MutexGuard<'_, Vec<Trial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call of a family and length; returns the place of its algorithm, unless that is the predicted
    /// one, and the attempt if it is a trial. `promising` says which algorithms are.
    pub(super) fn next<P: Problem>(
        &self,
        len: u64,
        promising: impl FnOnce() -> Vec<usize>,
    ) -> Option<(Pick, Option<Attempt>)> {
        let mut trials = self.lock();
        let known = trials.iter().position(|trial| trial.len == len && trial.family == P::FAMILY);
        let number = known.unwrap_or(trials.len());
        if number == LENGTHS {
            return None;
        }
        if number == trials.len() {
            trials.push(Trial::new(P::FAMILY, len));
        }
        let (place, candidate) = trials[number].next(promising)?;
        let attempt = candidate.map(|candidate| Attempt {
            trial: number,
            candidate,
            since: Some(Instant::now()),
            names: P::names,
        });
        Some((Pick { family: P::FAMILY, place }, attempt))
    }

    /// Records the end of a tried call; returns the figures that ranks have to agree on, the greatest of
    /// each, if it was the last one of a trial.
    pub(super) fn ended(&self, attempt: Attempt) -> Option<Figures> {
        let ns = attempt.since.map_or(u64::MAX, |since| since.elapsed().as_nanos() as u64);
        let mut trials = self.lock();
        let trial = trials.get_mut(attempt.trial)?;
        trial.record(attempt.candidate, ns).then(|| trial.figures())
    }

    /// Ends a trial with the figures that all ranks agreed on; returns a line about it.
    pub(super) fn agreed(&self, attempt: Attempt, figures: &Figures) -> Option<String> {
        let mut trials = self.lock();
        let trial = trials.get_mut(attempt.trial)?;
        let tried = trial.candidates.clone();
        let in_use = trial.end(figures).unwrap_or(tried[0]);
        let names = (attempt.names)();
        let took = |(&place, ns): (&usize, &[f64])| format!(", {} {:.1} us", names[place], ns[1] / 1000.0);
        let took: String = tried.iter().zip(figures.chunks_exact(2)).map(took).collect();
        let (family, len, in_use) = (trial.family.name(), trial.len, names[in_use]);
        Some(format!("{family} of {len} B from now on: {in_use}; measured{took}"))
    }

    /// Ranks could not agree, since one of them is gone, which the next call reports: there are no more
    /// trials.
    pub(super) fn abandoned(&self, attempt: Attempt) {
        if let Some(trial) = self.lock().get_mut(attempt.trial) {
            trial.due = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls with times that depend on the algorithm; returns the choice, and how many calls were trials.
    fn calls(trial: &mut Trial, count: u64, ns: impl Fn(usize, u64) -> u64) -> (Option<usize>, u32) {
        let mut tried = 0;
        for call in 0..count {
            let Some((place, Some(candidate))) = trial.next(|| vec![4, 7, 2]) else { continue };
            tried += 1;
            if trial.record(candidate, ns(place, call)) {
                let figures = trial.figures();
                trial.end(&figures);
            }
        }
        (trial.candidates.first().copied().filter(|_| trial.is_measured), tried)
    }

    #[test]
    fn the_algorithm_that_ends_first_is_used_after_a_trial() {
        let mut trial = Trial::new(Family::Reduce, 64 << 10);
        let (choice, tried) = calls(&mut trial, 200, |place, _| if place == 2 { 90_000 } else { 130_000 });
        assert_eq!((choice, tried), (Some(2), 21));
    }

    #[test]
    fn a_trial_without_a_clear_winner_changes_nothing() {
        // The second one is 5 % faster; the third one mostly much faster, but only in half of its calls.
        let mut trial = Trial::new(Family::Reduce, 64 << 10);
        let noisy = |place, call| match place {
            4 => 100_000 + call % 3 * 50_000,
            7 => 95_000,
            _ => 130_000 - u64::from(call % 3 == 0) * 90_000,
        };
        assert_eq!(calls(&mut trial, 300, noisy).0, None);
    }

    #[test]
    fn a_few_calls_and_most_of_many_are_no_trials() {
        let mut trial = Trial::new(Family::Reduce, 64 << 10);
        assert_eq!(calls(&mut trial, SHORT.begin - 1, |_, _| 1).1, 0);
        let (_, tried) = calls(&mut trial, 10_000, |place, _| place as u64 * 1000);
        assert_eq!(tried, 2 * 21, "two trials in 10,000 calls");
    }

    #[test]
    fn a_machine_that_changes_is_noticed_by_the_next_trial() {
        let mut trial = Trial::new(Family::Reduce, 64 << 10);
        let early = |place, _| if place == 2 { 50_000 } else { 100_000 };
        assert_eq!(calls(&mut trial, 100, early).0, Some(2));
        let late = |place, _| if place == 7 { 50_000 } else { 100_000 };
        assert_eq!(calls(&mut trial, 1000, late).0, Some(7));
    }

    #[test]
    fn of_long_vectors_the_first_trial_comes_early_and_is_short() {
        let mut trial = Trial::new(Family::Reduce, 4 << 20);
        let (choice, tried) = calls(&mut trial, 20, |place, _| if place == 2 { 360_000 } else { 1_200_000 });
        assert_eq!((choice, tried), (Some(2), 12));
    }

    #[test]
    fn one_promising_algorithm_is_not_tried() {
        let mut trial = Trial::new(Family::Reduce, 64 << 10);
        for _ in 0..1000 {
            assert_eq!(trial.next(|| vec![3]), None);
        }
    }
}
