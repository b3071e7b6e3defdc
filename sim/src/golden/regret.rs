//! Regret of the default strategy: how much longer it takes than the best of all other ways, at every size.
//!
//! The other ways are every other strategy over the same rails, and each rail alone. All of them use profiles
//! that are sampled on the simulated rails, and the engine's own thresholds.

use super::card::Card;
use super::machines::TODAY;
use super::networks::{TCP_1G, TCP_3G, TCP_4G};
use super::ping_pong::{Exchange, Stage};
use super::sampling::{Bench, LARGE_MAX, spaced};
use super::table::{Table, size, us};
use nmad_engine::Registry;
use nmad_engine::profile::measured::Profile;
use std::sync::Arc;

/// Longest message of which all sizes are compared, in bytes; beyond it little changes.
const LONGEST: usize = 4 << 20;
/// Longer ones.
const BEYOND: [usize; 2] = [16 << 20, 64 << 20];
/// Messages of a window, and the length of the longest of them in bytes.
const WINDOW: usize = 64;
const WINDOW_LONGEST: usize = 16 << 10;
/// Regret that is allowed, as part of the time of the best other way.
const BOUND: f64 = 0.05;

/// One way of carrying something, and its name.
#[derive(Clone)]
struct Way {
    name: String,
    stage: Stage,
}

/// What auto and the best of the others take.
struct Row {
    len: usize,
    ours_ns: u64,
    best_ns: u64,
    best: String,
}

impl Row {
    fn regret(&self) -> f64 {
        self.ours_ns as f64 / self.best_ns as f64 - 1.0
    }
}

/// Two equal rails.
pub fn equal() -> String {
    of("two equal rails of 1 Gbit/s", &[&TCP_1G, &TCP_1G])
}

/// Two unequal rails.
pub fn unequal() -> String {
    of("rails of 4 and 1 Gbit/s", &[&TCP_4G, &TCP_1G])
}

/// Three rails.
pub fn three() -> String {
    of("rails of 4, 2.8 and 1 Gbit/s", &[&TCP_4G, &TCP_3G, &TCP_1G])
}

/// Rows of the three tables for a few sizes: what a test can afford to make. Cells are joined by spaces.
pub fn spots(name: &str) -> Vec<String> {
    let cards: &[&'static Card] = match name {
        "regret-two" => &[&TCP_1G, &TCP_1G],
        "regret-four-one" => &[&TCP_4G, &TCP_1G],
        _ => &[&TCP_4G, &TCP_3G, &TCP_1G],
    };
    let mut ways = ways(cards);
    let mut all = rows(&ways, &[8, 24 << 10, 512 << 10], &Exchange::one);
    all.extend(rows(&ways, &[64, 1 << 10], &window));
    ways.iter_mut().for_each(|way| way.stage.holds_back = true);
    all.extend(rows(&ways, &[8], &window));
    all.iter().map(|row| cells(row).map(|cell| cell.1).join(" ")).collect()
}

/// The heads of a row and what stands below them.
fn cells(row: &Row) -> [(&'static str, String); 5] {
    [
        ("bytes", size(row.len)),
        ("auto us", us(row.ours_ns)),
        ("best us", us(row.best_ns)),
        ("best", row.best.clone()),
        ("regret %", format!("{:.1}", row.regret() * 100.0)),
    ]
}

/// Messages of a window, each of this length.
fn window(len: usize) -> Exchange {
    Exchange { messages: vec![len; WINDOW], ..Exchange::default() }
}

/// Single messages, and windows of small ones.
fn of(name: &str, cards: &[&'static Card]) -> String {
    let title = format!("Regret of auto against every other strategy and every single rail: {name}");
    let mut table = Table::new(&title, "TCP of today on Zen 5");
    table.note(
        "Half a round trip. Profiles are sampled on the simulated rails; thresholds, eager limit and chunks \
         are those of the library. best: the fastest of all other strategies over the same rails and of auto \
         over each rail alone (rail 0, rail 1, ...). A window is 64 messages that are submitted one after \
         the other, and then awaited; with the habit it is seen, and the first ones are held back.",
    );
    let mut worst: Vec<(f64, String)> = Vec::new();
    let mut ways = ways(cards);
    let sizes: Vec<usize> = spaced(1, LONGEST).into_iter().chain(BEYOND).collect();
    let singles = rows(&ways, &sizes, &Exchange::one);
    section(&mut table, "single messages", &singles, &mut worst);
    let lengths: Vec<usize> = (0..=WINDOW_LONGEST.ilog2()).map(|power| 1 << power).collect();
    for (habit, title) in [(false, "windows"), (true, "windows, with the habit")] {
        ways.iter_mut().for_each(|way| way.stage.holds_back = habit);
        let windows = rows(&ways, &lengths, &window);
        section(&mut table, title, &windows, &mut worst);
    }
    let above: Vec<&(f64, String)> = worst.iter().filter(|(regret, _)| *regret > BOUND).collect();
    let evidence = match worst.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((regret, place)) => format!(
            "at {} of {} sizes; the largest regret is {:.1} % ({place})",
            worst.len() - above.len(),
            worst.len(),
            regret * 100.0
        ),
        None => String::from("nothing was compared"),
    };
    table.claim("auto takes at most 5 % longer than the best other way", above.is_empty(), &evidence);
    table.finish()
}

/// The default strategy first, then all others, then each rail alone.
fn ways(cards: &[&'static Card]) -> Vec<Way> {
    let profile =
        |card: &&'static Card| Some(Bench { machine: TODAY, card, hand_off_ns: 200 }.profile(LARGE_MAX));
    let profiles: Vec<Option<Arc<Profile>>> = cards.iter().map(profile).collect();
    let way = |name: String, cards: &[&'static Card], strategy: &str, profiles: &[Option<Arc<Profile>>]| {
        let mut stage = Stage::shipped(TODAY, cards, strategy);
        stage.profiles = profiles.to_vec();
        Way { name, stage }
    };
    let registry = Registry::default();
    let others = registry.names().filter(|name| *name != "auto");
    let mut ways = vec![way("auto".into(), cards, "auto", &profiles)];
    ways.extend(others.map(|name| way(name.into(), cards, name, &profiles)));
    for (number, card) in cards.iter().enumerate() {
        let is_new = cards[..number].iter().all(|other| other.name != card.name);
        if is_new {
            ways.push(way(format!("rail {number}"), &[card], "auto", &profiles[number..=number]));
        }
    }
    ways
}

fn rows(ways: &[Way], sizes: &[usize], exchange: &dyn Fn(usize) -> Exchange) -> Vec<Row> {
    let row = |&len: &usize| {
        let times: Vec<u64> = ways.iter().map(|way| way.stage.run(&exchange(len)).half_ns).collect();
        let best = (1..ways.len()).min_by_key(|&index| times[index]).unwrap_or(0);
        Row { len, ours_ns: times[0], best_ns: times[best], best: ways[best].name.clone() }
    };
    sizes.iter().map(row).collect()
}

fn section(table: &mut Table, title: &str, rows: &[Row], worst: &mut Vec<(f64, String)>) {
    table.note(&format!("{title}:"));
    let all: Vec<_> = rows.iter().map(cells).collect();
    let column = |index: usize| all.iter().map(|cells| cells[index].1.clone()).collect::<Vec<_>>();
    let heads = all.first().map(|cells| cells.each_ref().map(|cell| cell.0)).unwrap_or_default();
    let columns: Vec<_> = heads.iter().enumerate().map(|(index, head)| (*head, column(index))).collect();
    table.series(&columns);
    worst.extend(rows.iter().map(|row| (row.regret(), format!("{title}, {} B", size(row.len)))));
}
