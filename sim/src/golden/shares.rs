//! Shares of large messages: networks that are busy, and more than two of them (P3 section II-B, P4 section
//! III-C).

use super::card::Card;
use super::machines::OPTERON;
use super::networks::{ELAN, MX_10G, TCP};
use super::ping_pong::{Exchange, Outcome, Stage, bandwidth};
use super::sampling::{Bench, LARGE_MAX};
use super::table::{Table, rounded, size, us};
use nmad_engine::packet::RailId;
use nmad_engine::profile::forecast::Forecast;
use nmad_engine::profile::measured::Profile;
use nmad_engine::{Duration, Instant, RailView, Registry, Shares};
use std::sync::Arc;

const fn bench(card: &'static Card) -> Bench {
    Bench { machine: OPTERON, card, hand_off_ns: 0 }
}

/// Bytes that a strategy of the engine gives each rail, when the rails become idle after `busy_ns`.
pub(super) fn decided<const N: usize>(
    strategy: &str,
    len: u64,
    forecasts: &[Forecast; N],
    busy_ns: [u64; N],
) -> [u64; N] {
    let view = |rail: usize| RailView {
        rail: RailId(rail as u8),
        wire: RailId(rail as u8),
        idle_at: Instant::default() + Duration::from_ns(busy_ns[rail]),
        bandwidth: 0,
        latency_ns: 0,
        primary: rail == 0,
        fastest: rail == 1,
        forecast: &forecasts[rail],
        rivals: &[],
    };
    let views: [RailView<'_>; N] = std::array::from_fn(view);
    let mut strategy = Registry::default().make(strategy).expect("a strategy of the engine");
    let mut shares = [0; N];
    if let Shares::Fixed(fixed) = strategy.split(Instant::default(), len, &views) {
        fixed.iter().for_each(|&(rail, len)| shares[rail.index()] += len);
    }
    shares
}

/// P3 figure 2: a network takes part if it is idle soon enough.
pub fn busy() -> String {
    let mut table = Table::new("P3 figure 2: selection of networks while one is busy", "mx-10g, elan");
    table.note(
        "Shares of a message of 1 MB while Quadrics is busy for some time: decisions of the engine's \
         strategies on profiles sampled on the simulated rails, nothing is run. KB of 1000 bytes.",
    );
    let forecasts = [&MX_10G, &ELAN].map(|card| Forecast::new(bench(card).profile(LARGE_MAX)));
    let len = 1 << 20;
    let alone_ns = forecasts[0].body_ns(len);
    let times: Vec<u64> = [0, 100, 200, 400, 600, 800, 1_000, 1_500].map(|us| us * 1_000).to_vec();
    let shares = |strategy| times.iter().map(|&ns| decided(strategy, len, &forecasts, [0, ns])).collect();
    let [dichotomy, split]: [Vec<[u64; 2]>; 2] = ["dichotomy", "split"].map(shares);
    let column = |shares: &[[u64; 2]], rail: usize| {
        shares.iter().map(|share| rounded(share[rail] as f64 / 1e3)).collect::<Vec<_>>()
    };
    table.series(&[
        ("busy us", times.iter().map(|&ns| us(ns)).collect()),
        ("dichotomy: Myri-10G KB", column(&dichotomy, 0)),
        ("Quadrics KB", column(&dichotomy, 1)),
        ("split: Myri-10G KB", column(&split, 0)),
        ("Quadrics KB", column(&split, 1)),
    ]);
    let late = |index: &usize| times[*index] >= alone_ns;
    let aside = |shares: &[[u64; 2]]| (0..times.len()).filter(late).all(|index| shares[index][1] == 0);
    table.claim(
        "A network that becomes idle only after the others have carried the message is moved aside",
        aside(&dichotomy) && aside(&split),
        &format!(
            "Myri-10G alone takes {} us; Quadrics gets nothing when it is busy for longer",
            us(alone_ns)
        ),
    );
    let soon = (0..times.len()).filter(|&index| 2 * times[index] < alone_ns);
    table.claim(
        "A busy network that will be idle soon still carries a part, and less the longer it is busy",
        soon.clone().all(|index| dichotomy[index][1] > 0 && split[index][1] > 0)
            && split.windows(2).all(|pair| pair[1][1] <= pair[0][1]),
        &format!("up to {} us of {}", us(soon.map(|index| times[index]).max().unwrap_or(0)), us(alone_ns)),
    );
    table.finish()
}

/// Strategies of which P4 section III-C compares two; `dichotomy` is for two networks.
const STRATEGIES: [&str; 6] = ["iso_split", "ratio_split", "weighted", "dichotomy", "split", "auto"];

/// P4 section III-C: more than two networks.
pub fn three() -> String {
    let mut table =
        Table::new("P4 section III-C: splitting over three networks", "mx-10g, elan, tcp on Opteron 1.8 GHz");
    table.note(
        "Profiles are sampled on the simulated rails. dichotomy chooses the two networks that would \
         finish first; weighted is the paper's formula for more than two.",
    );
    let cards = [&MX_10G, &ELAN, &TCP];
    let profiles = cards.map(|card| bench(card).profile(LARGE_MAX));
    let sizes: Vec<usize> = (16..=23).map(|bits| 1 << bits).collect();
    let run = |strategy: &str, before: &[usize]| -> Vec<Outcome> {
        let stage = stage(strategy, &cards, &profiles);
        let messages = |len: usize| before.iter().copied().chain([len]).collect();
        let run = |&len: &usize| stage.run(&Exchange { messages: messages(len), ..Exchange::default() });
        sizes.iter().map(run).collect()
    };
    let idle = STRATEGIES.map(|strategy| run(strategy, &[]));
    rows(&mut table, "One message, all networks idle, MB/s:", &sizes, &idle, 0);
    let before = 256 << 10;
    let behind = STRATEGIES.map(|strategy| run(strategy, &[before]));
    let text = "Posted together with a message of 256 KB before it, MB/s of both:";
    rows(&mut table, text, &sizes, &behind, before);
    let at = |outcomes: &[Vec<Outcome>; 6], strategy: usize, index: usize| outcomes[strategy][index].half_ns;
    let large = sizes.len() - 1;
    table.note("Where 8 MB go, all networks idle (KB of 1000 bytes):");
    let part = |rail: usize| idle.iter().map(|all| rounded(all[large].shares[rail].0 as f64 / 1e3)).collect();
    table.series(&[
        ("", STRATEGIES.map(|name| format!("{name:<11}")).to_vec()),
        ("Myri-10G", part(0)),
        ("Quadrics", part(1)),
        ("Ethernet", part(2)),
    ]);
    table.claim(
        "The weighted formula shares a large message better than equal parts",
        at(&idle, 2, large) < at(&idle, 0, large) && at(&behind, 2, large) < at(&behind, 0, large),
        &format!("{} against {} us for 8 MB", us(at(&idle, 2, large)), us(at(&idle, 0, large))),
    );
    let behind_split = |outcomes: &[Vec<Outcome>; 6]| {
        let lost = |index| at(outcomes, 2, index) as f64 / at(outcomes, 4, index) as f64 - 1.0;
        (0..sizes.len()).map(lost).fold(f64::MIN, f64::max) * 100.0
    };
    table.note(&format!(
        "weighted knows neither latencies nor the start of a transfer: where that counts it takes up to {} % \
         longer than split, and up to {} % behind another message.",
        rounded(behind_split(&idle)),
        rounded(behind_split(&behind))
    ));
    table.finish()
}

fn stage(strategy: &str, cards: &[&'static Card], profiles: &[Arc<Profile>]) -> Stage {
    let mut stage = Stage::new(OPTERON, cards, strategy);
    stage.profiles = profiles.iter().cloned().map(Some).collect();
    stage
}

fn rows(table: &mut Table, text: &str, sizes: &[usize], outcomes: &[Vec<Outcome>; 6], before: usize) {
    table.note(text);
    let mut columns = vec![("bytes", sizes.iter().map(|&len| size(len)).collect::<Vec<_>>())];
    for (name, all) in STRATEGIES.iter().zip(outcomes) {
        let rate = |(&len, outcome): (&usize, &Outcome)| bandwidth((len + before) as u64, outcome.half_ns);
        columns.push((name, sizes.iter().zip(all).map(|pair| rounded(rate(pair))).collect()));
    }
    table.series(&columns);
}
