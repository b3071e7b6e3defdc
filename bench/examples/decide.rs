//! What a decision about shares costs: P4 section III-B allows about 100 ns on the critical path.
//!
//! ```text
//! cargo run --release -p nmad-bench --example decide
//! ```
//!
//! Prints nanoseconds of one decision for two to sixteen unequal rails with measured profiles of 40 sizes,
//! median and quartiles of the medians of 31 rounds, over lengths and busy times that change all the time.

use nmad_engine::{
    Forecast, Instant, Method, Profile, Provenance, RailId, RailView, Registry, Sample, Shares,
};
use std::hint::black_box;
use std::sync::Arc;

const ROUNDS: usize = 31;
const DECISIONS: usize = 4_096;

/// A rail as sampling sees one: a start, a slope, and a bend where the cache ends.
fn forecast(index: u64) -> Forecast {
    let samples = (0..40).map(|step| {
        let len = (64.0 * 1.4_f64.powi(step)) as u64;
        let ns = 5_000 + 1_000 * index + len * (20 + 7 * index) / 40 + len.saturating_sub(1 << 20) / 9;
        let sample = Sample { len, ns, low_ns: ns, high_ns: ns, count: 20 };
        (Method::Copy, sample)
    });
    Forecast::new(Arc::new(Profile::new(Provenance::default(), samples).expect("forty samples")))
}

fn main() {
    println!("{:<12} {:>5} {:>10} {:>10} {:>10}", "strategy", "rails", "median ns", "quartile", "quartile");
    for name in ["auto", "dichotomy", "weighted", "ratio_split"] {
        for count in [1, 2, 3, 4, 8, 16] {
            let [low, median, high] = measure(name, count);
            println!("{name:<12} {count:>5} {median:>10.0} {low:>10.0} {high:>10.0}");
        }
    }
}

fn measure(name: &str, count: u64) -> [f64; 3] {
    let forecasts: Vec<Forecast> = (0..count).map(forecast).collect();
    let view = |(index, forecast)| RailView {
        rail: RailId(index as u8),
        wire: RailId(index as u8),
        idle_at: Instant::from_ns(0),
        bandwidth: 1_000_000_000 + index as u64,
        latency_ns: 1_000,
        primary: index == 0,
        fastest: index == 0,
        forecast,
        rivals: &[],
    };
    let mut views: Vec<RailView> = forecasts.iter().enumerate().map(view).collect();
    let mut strategy = Registry::default().make(name).expect("a strategy of the engine");
    let now = Instant::from_ns(1_000_000);
    let mut seed = 1u64;
    let mut round = || {
        let start = std::time::Instant::now();
        for _ in 0..DECISIONS {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // From 16 KiB to 16 MiB; one rail is busy for up to 131 us.
            let len = (1 << 14) + (seed >> 30) % (1 << (14 + (seed >> 60) % 11));
            let busy = (seed >> 20) as usize % views.len();
            views[busy].idle_at = Instant::from_ns(1_000_000 + (seed >> 47));
            let shares: Shares = strategy.split(now, black_box(len), black_box(&views));
            black_box(&shares);
            views[busy].idle_at = Instant::from_ns(0);
        }
        start.elapsed().as_nanos() as f64 / DECISIONS as f64
    };
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    [times[ROUNDS / 4], times[ROUNDS / 2], times[ROUNDS * 3 / 4]]
}
