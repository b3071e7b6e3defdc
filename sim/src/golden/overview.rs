//! All networks side by side: the models, where their numbers come from, and what the engine makes of them.

use super::machines::{E5420, OPTERON, X5460, X5650};
use super::networks::ALL;
use super::ping_pong::Stage;
use super::sampling::sampled;
use super::table::{Table, rounded, us};
use crate::machine::Machine;

/// The host on which a network is shown: the one of its experiments.
fn machine(card: &str) -> Machine {
    match card {
        "ib-ddr" => X5460,
        "ib-ddr/g" => E5420,
        "ib-qdr" => X5650,
        _ => OPTERON,
    }
}

/// Every model with its figures.
pub fn networks() -> String {
    let mut table = Table::new("The papers' networks", "one for each network, for all experiments");
    table.note(
        "Half a round trip of one message through the engine, strategy aggregate, thresholds sampled. \
         MB: 2^20 bytes.",
    );
    let stages: Vec<Stage> =
        ALL.iter().map(|network| sampled(machine(network.card.name), &[network.card], "aggregate")).collect();
    let column = |of: &dyn Fn(&Stage) -> String| stages.iter().map(of).collect::<Vec<_>>();
    table.series(&[
        ("", ALL.iter().map(|network| format!("{:<9}", network.card.name)).collect()),
        ("4 B us", column(&|stage| us(stage.half_ns(4)))),
        ("1 KB us", column(&|stage| us(stage.half_ns(1 << 10)))),
        ("32 KB us", column(&|stage| us(stage.half_ns(32 << 10)))),
        ("4 MB MB/s", column(&|stage| rounded(stage.bandwidth(4 << 20)))),
        ("host", column(&|stage| stage.machine.name.into())),
    ]);
    for network in &ALL {
        table.note(&format!("{}: {}. {}.", network.card.name, network.title, network.source));
    }
    for machine in [OPTERON, E5420, X5460, X5650] {
        let copy = machine.copy.expect("hosts of the papers copy");
        let gb = |rate: u64| rounded(rate as f64 / 1e9);
        table.note(&format!(
            "{}: copies {} GB/s up to {} KB and {} beyond (assumed); I/O bus {} GB/s.",
            machine.name,
            gb(copy.near),
            copy.near_len >> 10,
            gb(copy.far),
            gb(machine.bus.unwrap_or(0))
        ));
    }
    table.finish()
}
