//! How long samples may be so that the whole fits its time, and how long the rest takes.

use std::collections::HashMap;
use std::time::Instant;

use crate::place::Place;
use crate::plan::{Batch, Cell, Extent};

/// From starting a job to its first figure, as a guess.
const START_S: f64 = 1.0;
/// Samples of a cell with its warm-up, in lengths of a sample.
const SAMPLES: f64 = 7.0;
/// Samples are shortened to this part at most: shorter ones are mostly overhead.
const LEAST: f64 = 0.25;

/// Time used, and durations of turns.
pub(crate) struct Pace {
    begun: Instant,
    budget_s: f64,
    usual_ms: f64,
    now_ms: f64,
    /// Seconds of the last turn, by number of the batch and name of the contestant.
    known: HashMap<(usize, String), f64>,
}

impl Pace {
    pub(crate) fn new(extent: Extent) -> Pace {
        let usual_ms = extent.sample_ms();
        let (begun, budget_s) = (Instant::now(), extent.budget_s());
        Pace { begun, budget_s, usual_ms, now_ms: usual_ms, known: HashMap::new() }
    }

    pub(crate) fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Until the time is over; negative behind that.
    pub(crate) fn time_left_s(&self) -> f64 {
        self.budget_s - self.elapsed_s()
    }

    /// What a turn will take.
    pub(crate) fn estimate_s(&self, number: usize, batch: &Batch, who: &str) -> f64 {
        let known = self.known.get(&(number, who.to_string()));
        known.copied().unwrap_or_else(|| {
            let cell = |cell| SAMPLES * (self.now_ms / 1e3 + transfer_s(batch.place, cell));
            START_S + batch.cells.iter().map(cell).sum::<f64>()
        })
    }

    /// Takes note of the measured duration of a turn.
    pub(crate) fn learn(&mut self, number: usize, who: &str, seconds: f64) {
        self.known.insert((number, who.to_string()), seconds);
    }

    /// How long the next samples are, when the rest is estimated to take `left_s`. Changed in small steps,
    /// since a part of the time does not depend on it.
    pub(crate) fn sample_ms(&mut self, left_s: f64) -> f64 {
        let ratio = self.time_left_s().max(0.0) / left_s.max(1e-3);
        let step = if ratio < 1.0 {
            0.9
        } else if ratio > 1.2 {
            1.1
        } else {
            1.0
        };
        self.now_ms = (self.now_ms * step).clamp(self.usual_ms * LEAST, self.usual_ms);
        self.now_ms
    }
}

/// A rough guess of what one round of the cell moves, in seconds.
fn transfer_s(place: &Place, cell: &Cell) -> f64 {
    let bytes_a_s = match place.rails {
        [] => 5e9,
        [0, ..] => 2e9,
        limited => limited.iter().sum::<u64>() as f64 * 1e6 / 8.0,
    };
    let window = cell.variant.strip_prefix('w').and_then(|count| count.parse::<f64>().ok());
    cell.bytes as f64 * window.unwrap_or(f64::from(place.ranks)) / bytes_a_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;

    #[test]
    fn samples_shorten_when_time_is_short_and_only_to_a_limit() {
        let mut pace = Pace::new(Extent::Quick);
        assert_eq!(pace.sample_ms(10.0), 4.0);
        for _ in 0..100 {
            pace.sample_ms(1e6);
        }
        assert_eq!(pace.sample_ms(1e6), 1.0);
        assert!(pace.sample_ms(10.0) > 1.0);
    }

    #[test]
    fn turns_are_guessed_until_they_are_known() {
        let mut pace = Pace::new(Extent::Quick);
        let batches = plan(Extent::Quick, &[], &[]).unwrap();
        let guess = pace.estimate_s(0, &batches[0], "ours");
        assert!((1.0..3.0).contains(&guess), "{guess}");
        pace.learn(0, "ours", 7.5);
        assert_eq!(pace.estimate_s(0, &batches[0], "ours"), 7.5);
        assert_eq!(pace.estimate_s(0, &batches[0], "mpich"), guess);
    }

    #[test]
    fn the_quick_plan_fits_into_its_time_by_the_guesses() {
        for (extent, limit) in [(Extent::Quick, 600.0), (Extent::Full, 3600.0)] {
            let pace = Pace::new(extent);
            let batches = plan(extent, &[], &[]).unwrap();
            let of = |(number, batch): (usize, &Batch)| {
                let peers = if batch.place.has_rails() { 4.5 } else { 3.0 };
                peers * pace.estimate_s(number, batch, "x")
            };
            let round: f64 = batches.iter().enumerate().map(of).sum();
            // With shorter samples there is room for peers that are slower than guessed.
            assert!(3.0 * round < limit * 1.25, "{extent:?}: {round}");
        }
    }
}
