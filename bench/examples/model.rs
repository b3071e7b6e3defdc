//! The model of communication phases beside the simulator, at 256 ranks: the table of `docs/imbalance.md`.

use newmadeleine::engine::Forecast;
use nmad_bench::phase::outcome::Setting;
use nmad_bench::phase::pattern::Pattern;
use nmad_bench::phase::predict::predict;
use nmad_sim::golden::p5::{Wide, wide};
use nmad_words::say_line;
use std::time::{Duration, Instant};

/// The ranks that have a column of their own.
const SHOWN: [usize; 4] = [0, 85, 170, 255];

fn main() {
    let ranks = SHOWN.map(|rank| format!(" rank {rank} |")).concat();
    say_line(format_args!("| phase | longest | predicted | off | median of the ranks |{ranks}"));
    say_line(format_args!("|---|---|---|---|---|{}", "---|".repeat(SHOWN.len())));
    let rows = wide(usize::MAX).map(|phase| row(&phase));
    let (mut errors, times): (Vec<f64>, Vec<Duration>) = rows.unzip();
    say_line(format_args!("\nmedian of the phases: {:.1} %", 100.0 * median(&mut errors)));
    say_line(format_args!("longest prediction: {:?}", times.into_iter().max().unwrap_or_default()));
}

/// Prints the row of a phase; the error of its longest rank, and how long predicting it took.
fn row(phase: &Wide) -> (f64, Duration) {
    let begins_ns: Vec<u64> = phase.hosts.iter().map(|host| host.0).collect();
    let pattern = Pattern::exchange(&begins_ns, &phase.letters, phase.calculation_ns);
    let (eager_max, packet) = (phase.eager_max as u64, phase.packet as u64);
    let rails = vec![Forecast::new(phase.profile.clone())];
    let setting = Setting::new(rails, eager_max, packet);
    let begun = Instant::now();
    let predicted = predict(&pattern, &setting).expect("no rank waits for ever");
    let took = begun.elapsed();
    let ours: Vec<u64> = predicted.ranks.iter().map(|rank| rank.communication_ns).collect();
    let theirs: Vec<u64> = phase.hosts.iter().map(|host| host.1).collect();
    let error = |(ours, theirs): (&u64, &u64)| *ours as f64 / *theirs as f64 - 1.0;
    let longest = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
    let (predicted, simulated) = (longest(&ours), longest(&theirs));
    let off = error((&predicted, &simulated));
    let of_ranks = median(&mut ours.iter().zip(&theirs).map(error).collect::<Vec<f64>>());
    let shown = SHOWN.map(|rank| format!(" {}, {} |", ms(theirs[rank]), ms(ours[rank]))).concat();
    say_line(format_args!(
        "| {}, {} | {} | {} | {:+.1} % | {:.1} % |{shown}",
        phase.network,
        phase.program,
        ms(simulated),
        ms(predicted),
        100.0 * off,
        100.0 * of_ranks
    ));
    (off, took)
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// The median of what errors are without their signs.
fn median(errors: &mut [f64]) -> f64 {
    errors.iter_mut().for_each(|error| *error = error.abs());
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}
