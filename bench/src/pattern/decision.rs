//! How long a strategy takes to share out a large message: the decision on the critical path of a send, for
//! which P4 section III allows 100 ns and the papers have two rails. No rank and no network is needed.

use crate::stats::Summary;
use nmad_engine::{
    Forecast, Instant, Method, PeerId, Profile, Provenance, RailId, RailView, Registry, Sample,
    UnknownStrategy,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant as Clock;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Strategies by name.
    pub strategies: Vec<String>,
    /// Numbers of rails, from 1 to [`nmad_engine::MAX_RAILS`].
    pub rails: Vec<usize>,
    /// Samples of each.
    pub repeat: usize,
}

impl Plan {
    /// Strategies that share out by what was measured.
    pub const STRATEGIES: [&'static str; 4] = ["auto", "split", "weighted", "dichotomy"];
    /// Numbers of rails.
    pub const RAILS: [usize; 5] = [1, 2, 3, 4, 8];
}

/// The cost of one decision.
#[derive(Debug, Clone)]
pub struct Found {
    /// The strategy.
    pub strategy: String,
    /// How many rails it had to decide about.
    pub rails: usize,
    /// Nanoseconds of one decision.
    pub ns: Summary,
}

/// Rails that are asked about at most.
const RAILS_MAX: usize = nmad_engine::MAX_RAILS;
/// Decisions of one sample: about messages of different lengths, rails busy for different times.
const DECISIONS: u64 = 4096;
/// Knots of each curve: lengths from 64 B to 16 MiB.
const OCTAVES: std::ops::RangeInclusive<u32> = 6..=24;

/// Measures strategies that are `known`; `each` receives every result.
///
/// # Errors
/// There is no strategy of that name.
pub fn run(plan: &Plan, known: &Registry, each: &mut dyn FnMut(&Found)) -> Result<(), UnknownStrategy> {
    for name in &plan.strategies {
        for &count in &plan.rails {
            let count = count.clamp(1, RAILS_MAX);
            let forecasts: Vec<Forecast> = (0..count as u64).map(forecast).collect();
            let mut strategy = known.make(name)?;
            strategy.meet(PeerId(1));
            let mut sample = || {
                let decided = turns(&forecasts, &mut |now, len, views| {
                    black_box(strategy.split(now, len, views));
                });
                let empty = turns(&forecasts, &mut |now, len, views| {
                    black_box((now, len, views));
                });
                decided - empty
            };
            // The first decision runs with cold caches and is not counted.
            sample();
            let samples: Vec<f64> = (0..plan.repeat.max(1)).map(|_| sample()).collect();
            if let Some(ns) = Summary::of(&samples) {
                each(&Found { strategy: name.clone(), rails: count, ns });
            }
        }
    }
    Ok(())
}

/// What `each` takes with a message and the views of all rails, in nanoseconds, and to make these.
fn turns(forecasts: &[Forecast], each: &mut dyn FnMut(Instant, u64, &[RailView<'_>])) -> f64 {
    let begun = Clock::now();
    for turn in 0..DECISIONS {
        let now = Instant::from_ns(1_000_000 * (turn + 1));
        let views: [RailView<'_>; RAILS_MAX] =
            std::array::from_fn(|index| view(index, turn, now, &forecasts[index % forecasts.len()]));
        each(now, length(turn), black_box(&views[..forecasts.len()]));
    }
    begun.elapsed().as_nanos() as f64 / DECISIONS as f64
}

/// Messages from 128 KiB to 8 MiB, none like the one before.
fn length(turn: u64) -> u64 {
    (128 << 10) + turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (8 << 20)
}

/// Every third rail is busy for a while.
fn view(index: usize, turn: u64, now: Instant, forecast: &Forecast) -> RailView<'_> {
    let busy_ns = if (turn as usize + index).is_multiple_of(3) { 20_000 + 1_000 * (turn % 64) } else { 0 };
    RailView {
        rail: RailId(index as u8),
        wire: RailId(index as u8),
        idle_at: Instant::from_ns(now.as_ns() + busy_ns),
        bandwidth: 1_000_000_000,
        latency_ns: 5_000,
        primary: index == 0,
        fastest: index == 0,
        forecast,
        rivals: &[],
    }
}

/// Rails of 4, 3.3, 2.9 ... Gbit/s whose curves have a bend in each octave, as measured ones do.
fn forecast(rail: u64) -> Forecast {
    let ps_per_byte = 2_000 + 400 * rail;
    let samples = OCTAVES.map(|octave| {
        let (len, bend) = (1u64 << octave, u64::from(octave % 3) * 40);
        let ns = 4_000 + 500 * rail + len * (ps_per_byte + bend) / 1_000;
        (Method::Rendezvous, Sample { len, ns, low_ns: ns, high_ns: ns, count: 9 })
    });
    let profile = Profile::new(Provenance::default(), samples).expect("curves that rise");
    Forecast::new(Arc::new(profile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_figure_for_each_number_of_rails() {
        let strategies = Plan::STRATEGIES.map(String::from).to_vec();
        let plan = Plan { strategies, rails: vec![1, 8], repeat: 2 };
        let mut found = Vec::new();
        let known = Registry::default();
        run(&plan, &known, &mut |one| found.push((one.strategy.clone(), one.rails, one.ns.count)))
            .expect("known");
        assert_eq!(found.len(), 8);
        assert!(found.iter().all(|(_, _, count)| *count == 2));
        assert!(run(&Plan { strategies: vec!["none".into()], ..plan }, &known, &mut |_| {}).is_err());
    }
}
