//! The model beside the simulator, at 256 ranks (P5 section 7).

use super::outcome::Setting;
use super::pattern::Pattern;
use super::predict::predict;
use newmadeleine::engine::Forecast;
use nmad_sim::golden::p5::{Wide, wide};

/// By how much the predicted time in communication of the rank that takes longest is off.
fn error(phase: &Wide) -> f64 {
    let begins_ns: Vec<u64> = phase.hosts.iter().map(|host| host.0).collect();
    let pattern = Pattern::exchange(&begins_ns, &phase.letters, phase.calculation_ns);
    let (eager_max, packet) = (phase.eager_max as u64, phase.packet as u64);
    let rails = vec![Forecast::new(phase.profile.clone())];
    let setting = Setting::new(rails, eager_max, packet);
    let predicted = predict(&pattern, &setting).expect("no rank waits for ever");
    // A rank computes before it begins, too.
    let ours = predicted.ranks.iter().map(|rank| rank.communication_ns).max().unwrap_or(0);
    let theirs = phase.hosts.iter().map(|host| host.1).max().unwrap_or(0);
    ours as f64 / theirs as f64 - 1.0
}

/// Those with few messages, which are simulated in some seconds: `cargo run --release -p nmad-bench --example
/// model` makes the table of all.
#[test]
fn half_of_the_phases_on_256_hosts_are_predicted_within_a_tenth() {
    let mut errors: Vec<(f64, String)> =
        wide(3).map(|phase| (error(&phase).abs(), format!("{}, {}", phase.network, phase.program))).collect();
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(errors.len() >= 8 && errors[errors.len() / 2].0 < 0.1, "{errors:?}");
}
