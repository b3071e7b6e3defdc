//! Not of a paper: the schemes of congestion control beside each other, over rails that lose by chance and
//! over one that several senders share.

use super::table::{Table, rounded};
use crate::death::Deaths;
use crate::faults::Faults;
use crate::machine::Machine;
use crate::model::{LOSSY, Line, Model};
use crate::network::lock;
use crate::oracle::ledger::{Ledger, What as Booked};
use crate::scenario::Scenario;
use crate::workload::{Ask, Plan, Step, What};
use crate::world::World;
use nmad_engine::packet::PeerId;
use nmad_engine::{Config, CongestionControl, Hints};
use std::sync::Arc;

/// A rail of 1 Gbit/s as the UDP driver makes it: orders of up to 60 KiB, which are lost as a whole.
const RAIL: Line = Line {
    name: "udp-1g",
    bandwidth: 125_000_000,
    latency_ns: 25_000,
    chunk: 60 << 10,
    packet: 72 << 10,
    depth: 4,
    ..LOSSY
};
/// Messages that a sender sends, and their length.
const MESSAGES: usize = 4;
const LEN: usize = 1 << 20;
/// Losses, in ten-thousandths of the orders.
const LOSSES: [u64; 4] = [0, 100, 500, 1_000];
/// Senders, and the queue before their receiver in nanoseconds.
const SHARED: [(usize, u64); 4] = [(2, 8_000_000), (2, 1_500_000), (6, 8_000_000), (6, 1_500_000)];

/// The result of a run.
struct Outcome {
    /// Bytes a second that arrived, all senders together.
    rate: f64,
    /// Of what each sender got: 1 if all got the same (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    fairness: f64,
    /// Orders that were dropped and that were sent again, of so many.
    dropped: u64,
    resent: u64,
    orders: u64,
}

/// `senders` hosts send to one more.
fn run(scheme: CongestionControl, senders: usize, faults: Faults) -> Outcome {
    let config = |me| Config { me: PeerId(me), congestion: scheme, ..Config::default() };
    let scenario = Scenario {
        seed: 1,
        fabrics: vec![(Arc::new(RAIL) as Arc<dyn Model>, faults)],
        machine: Machine::default(),
        holds_back: false,
        looks: false,
        hurries: false,
        profiles: Vec::new(),
        rails: vec![vec![0]; senders + 1],
        configs: (0..=senders as u32).map(config).collect(),
        strikes: Vec::new(),
        outages: Vec::new(),
        deaths: Deaths::None,
        dying: Vec::new(),
        no_faults: true,
        has_files: false,
        takes_turns: false,
        canary: None,
        wires: Vec::new(),
        cores: Vec::new(),
        threads: 1,
    };
    let mut world = World::new(scenario, plan(senders), false);
    world.run().unwrap_or_else(|objection| panic!("{} and {senders} senders: {objection}", scheme.name()));
    let rates: Vec<f64> = (1..=senders).map(|sender| rate(world.ledger(), Some(sender))).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    let network = world.network();
    let traffic = lock(&network).traffic;
    Outcome {
        rate: rate(world.ledger(), None),
        fairness: sum * sum / (senders as f64 * squares),
        dropped: traffic.dropped,
        resent: traffic.resent,
        orders: traffic.packets + traffic.chunks,
    }
}

fn plan(senders: usize) -> Plan {
    let mut plan = Plan { scripts: vec![Vec::new(); senders + 1], ..Plan::default() };
    for sender in 1..=senders {
        for _ in 0..MESSAGES {
            let mut ask = |host: usize, what| {
                plan.asks.push(Ask { host, what, pieces: vec![LEN], part: None });
                plan.scripts[host].push(Step::Post(plan.asks.len() - 1));
            };
            ask(sender, What::Send { to: 0, context: 0, tag: 0, hints: Hints::default() });
            ask(0, What::Recv { from: Some(sender), context: 0, tag: Some(0) });
        }
    }
    for host in 0..=senders {
        let mine = plan.asks.iter().enumerate().filter(|(_, ask)| ask.host == host);
        let wait = Step::Wait(mine.map(|(op, _)| op).collect());
        plan.scripts[host].push(wait);
    }
    plan
}

/// Bytes a second from one sender, or from all: from its first submission to its last arrival.
fn rate(ledger: &Ledger, sender: Option<usize>) -> f64 {
    let (mut bytes, mut first, mut last) = (0, u64::MAX, 0);
    for entry in &ledger.entries {
        let Booked::Send { .. } = entry.what else { continue };
        let received = entry.partner.and_then(|partner| ledger.entries[partner].ended.as_ref());
        if let (true, Some((at, _))) = (sender.is_none_or(|sender| sender == entry.host), received) {
            (bytes, first, last) = (bytes + entry.len, first.min(entry.submitted), last.max(*at));
        }
    }
    bytes as f64 * 1e9 / last.saturating_sub(first).max(1) as f64
}

fn percent(part: u64, whole: u64) -> String {
    rounded(100.0 * part as f64 / whole.max(1) as f64)
}

/// One row for each scheme and setting.
fn rows(table: &mut Table, head: &str, settings: &[(String, usize, Faults)]) {
    let each = || settings.iter().flat_map(|set| CongestionControl::ALL.map(|scheme| (set, scheme)));
    let outcomes: Vec<Outcome> =
        each().map(|((_, senders, faults), scheme)| run(scheme, *senders, *faults)).collect();
    let column = |cell: &dyn Fn(&Outcome) -> String| outcomes.iter().map(cell).collect();
    table.series(&[
        (head, each().map(|((name, ..), _)| name.clone()).collect()),
        ("scheme", each().map(|(_, scheme)| scheme.name().into()).collect()),
        ("MB/s", column(&|outcome| rounded(outcome.rate / 1e6))),
        ("fairness", column(&|outcome| format!("{:.3}", outcome.fairness))),
        ("dropped %", column(&|outcome| percent(outcome.dropped, outcome.orders))),
        ("sent again %", column(&|outcome| percent(outcome.resent, outcome.orders))),
    ]);
}

/// All schemes over lossy and shared rails.
pub fn compared() -> String {
    let mut table = Table::new("Congestion control: share (the default), newreno, swift", "udp-1g");
    table.note(
        "A rail of datagrams of 125 MB/s and 25 us one way. Each sender sends 4 messages of 1 MiB to one \
         receiver. Percentages are of all orders that left, acknowledgements included. Orders of up to \
         60 KiB are lost as a whole, so a loss of 1 % of them is one of 0.03 % of their datagrams. The \
         rail is not measured, so share does not know what it carries.",
    );
    table.note("One sender, and orders that are lost by chance:");
    let faults = |loss| Faults { loss, ..Faults::default() };
    let lossy = LOSSES.map(|loss| (format!("{:.1} % lost", loss as f64 / 100.0), 1, faults(loss)));
    rows(&mut table, "rail", &lossy);
    table
        .note("Several senders that share the port of the receiver; its queue drops what would wait longer:");
    let shared = SHARED.map(|(senders, queue_ns)| {
        let name = format!("{senders} senders, {} ms", queue_ns as f64 / 1e6);
        (name, senders, Faults { queue_ns, ..Faults::default() })
    });
    rows(&mut table, "rail", &shared);
    table.finish()
}
