//! P3, "multicore multi-rail" (2008): splits by samples, and eager messages submitted by several cores.

use super::machines::OPTERON;
use super::networks::{ELAN, MX_10G};
use super::ping_pong::{Exchange, Outcome, Stage, bandwidth};
use super::sampling::{Bench, LARGE_MAX, spaced};
use super::shares::decided;
use super::table::{Number, Table, rounded, size, us};
use nmad_engine::profile::forecast::Forecast;
use nmad_engine::profile::measured::Profile;
use std::sync::Arc;

const MODEL: &str = "mx-10g, elan on Opteron 1.8 GHz";
const RAILS: [Bench; 2] = [
    Bench { machine: OPTERON, card: &MX_10G, hand_off_ns: HAND_OFF_NS[0] },
    Bench { machine: OPTERON, card: &ELAN, hand_off_ns: HAND_OFF_NS[0] },
];

/// The paper's hand-off to another core (section IV-B), in nanoseconds; and to one that spins, as measured on
/// a machine of today.
const HAND_OFF_NS: [u64; 2] = [3_000, 200];

fn stage(strategy: &str, rails: &[Bench], profiles: &[Arc<Profile>]) -> Stage {
    let cards: Vec<_> = rails.iter().map(|rail| rail.card).collect();
    let mut stage = Stage::new(OPTERON, &cards, strategy);
    stage.profiles = profiles.iter().cloned().map(Some).collect();
    stage
}

/// Figure 3: eager packets of a message over both networks, or over one.
pub fn eager_greedy() -> String {
    let mut table = Table::new("P3 figure 3: two eager packets over both networks, or over one", MODEL);
    let sizes: Vec<usize> = (3..=14).map(|bits| 1 << bits).collect();
    let stages = [
        Stage::new(OPTERON, &[&MX_10G, &ELAN], "greedy"),
        Stage::new(OPTERON, &[&MX_10G], "fifo"),
        Stage::new(OPTERON, &[&ELAN], "fifo"),
        Stage::new(OPTERON, &[&MX_10G, &ELAN], "aggregate_fastest"),
    ];
    let [greedy, mx, elan, joined] = stages.each_ref().map(|stage| {
        let times = sizes.iter().map(|&len| stage.run(&Exchange::segments(len, 2)).half_ns);
        times.collect::<Vec<u64>>()
    });
    let column = |times: &[u64]| times.iter().map(|&ns| us(ns)).collect();
    table.series(&[
        ("bytes", sizes.iter().map(|&len| size(len)).collect()),
        ("greedy us", column(&greedy)),
        ("Myri-10G us", column(&mx)),
        ("Quadrics us", column(&elan)),
        ("joined on fastest us", column(&joined)),
    ]);
    let small = sizes.iter().filter(|&&len| len < 16 << 10).count();
    let worse = (0..small).filter(|&index| greedy[index] >= mx[index].min(elan[index])).count();
    table.claim(
        "It is not interesting to transfer eager packets over several networks: the core writes both \
         (PIO)",
        worse == small,
        &format!(
            "greedy is slower than the better network alone at {worse} of the {small} sizes below 16 KB"
        ),
    );
    let better = (0..small).filter(|&index| joined[index] < greedy[index]).count();
    table.claim(
        "It is more efficient to join the packets and to send them over the fastest network",
        better == small,
        &format!(
            "faster than greedy at {better} of {small} sizes; not where copying into one packet costs \
             more than the second packet"
        ),
    );
    table.finish()
}

/// Figure 4: the three ways of sending two eager packets, in time.
pub fn offload_diagram() -> String {
    let mut table = Table::new("P3 figure 4: two eager packets of 4 KB, three ways", MODEL);
    let exchange = Exchange::segments(8 << 10, 2);
    let time = |strategy: &str| Stage::new(OPTERON, &[&MX_10G, &ELAN], strategy).run(&exchange).half_ns;
    let (greedy, joined) = (time("greedy"), time("aggregate_fastest"));
    let alone = RAILS.map(|rail| rail.eager_profile(&[2 << 10, 4 << 10]).eager().ns(4 << 10));
    let offloaded = HAND_OFF_NS[0] + alone[0].max(alone[1]);
    table.series(&[
        (
            "",
            ["(a) greedy, one core", "(b) joined, one network", "(c) one packet a core"]
                .map(String::from)
                .to_vec(),
        ),
        ("us", [greedy, joined, offloaded].map(us).to_vec()),
    ]);
    table.given(
        "Sending from two cores overlaps what one core does one after the other",
        offloaded < greedy && offloaded < joined,
        &format!("{} us against {} and {}", us(offloaded), us(greedy), us(joined)),
    );
    table.note(
        "(c) is computed, not run: the engine submits from one core. It is the paper's hand-off of 3 us \
         and the longer of two eager messages, each measured alone on its simulated rail.",
    );
    table.finish()
}

/// Figure 8: one large message over both networks.
pub fn bandwidths() -> String {
    let mut table = Table::new("P3 figure 8: bandwidth of one message, split or not", MODEL);
    table.note(
        "Profiles are sampled on the simulated rails. split: equal predicted finish; dichotomy: the \
         paper's search; both from the same profiles. ratio: by asymptotic bandwidth.",
    );
    let profiles = RAILS.map(|rail| rail.profile(LARGE_MAX));
    let both = |strategy: &str| stage(strategy, &RAILS, &profiles);
    let stages = [
        stage("split", &RAILS[..1], &profiles[..1]),
        stage("split", &RAILS[1..], &profiles[1..]),
        both("iso_split"),
        both("ratio_split"),
        both("dichotomy"),
        both("split"),
    ];
    let sizes: Vec<usize> = (15..=23).map(|bits| 1 << bits).collect();
    let times =
        stages.each_ref().map(|stage| sizes.iter().map(|&len| stage.half_ns(len)).collect::<Vec<_>>());
    let column = |index: usize| {
        let rate = |(&len, &ns): (&usize, &u64)| rounded(bandwidth(len as u64, ns));
        sizes.iter().zip(&times[index]).map(rate).collect()
    };
    table.note("MB/s:");
    table.series(&[
        ("bytes", sizes.iter().map(|&len| size(len)).collect()),
        ("Myri-10G", column(0)),
        ("Quadrics", column(1)),
        ("iso", column(2)),
        ("ratio", column(3)),
        ("dichotomy", column(4)),
        ("split", column(5)),
    ]);
    let top = |index: usize| {
        let rates = sizes.iter().zip(&times[index]).map(|(&len, &ns)| bandwidth(len as u64, ns));
        rates.fold(0.0, f64::max)
    };
    table.numbers(&[
        Number::new("Myri-10G", top(0), 1170.0, "MB/s").set(),
        Number::new("Quadrics", top(1), 837.0, "MB/s").set(),
        Number::new("iso-split", top(2), 1670.0, "MB/s"),
        Number::new("hetero-split, by dichotomy", top(4), 1987.0, "MB/s"),
        Number::new("hetero-split, by equal finish", top(5), 1987.0, "MB/s"),
    ]);
    shares(
        &mut table,
        &both("iso_split").run(&Exchange::one(4 << 20)),
        &both("dichotomy").run(&Exchange::one(4 << 20)),
    );
    shares_of_split(&mut table, &both("split").run(&Exchange::one(4 << 20)));
    table.note(
        "split hands its shares out in chunks of about 250 us, so that the rest can be split anew when a \
         rail turns out slower; each chunk pays the start of its card again, which dichotomy pays once.",
    );
    table.finish()
}

fn shares(table: &mut Table, iso: &Outcome, hetero: &Outcome) {
    table.note("Where 4 MB go (KB of 1000 bytes), and when each share has arrived after the send:");
    let kb = |outcome: &Outcome, rail: usize| outcome.shares[rail].0 as f64 / 1e3;
    let done = |outcome: &Outcome, rail: usize| outcome.shares[rail].1 as f64 / 1e3;
    table.numbers(&[
        Number::new("iso: 2 MB over Myri-10G in", done(iso, 0), 1730.0, "us"),
        Number::new("iso: 2 MB over Quadrics in", done(iso, 1), 2400.0, "us"),
        Number::new("iso: Myri-10G unused for", done(iso, 1) - done(iso, 0), 670.0, "us"),
        Number::new("hetero (dichotomy): over Myri-10G", kb(hetero, 0), 2437.0, "KB"),
        Number::new("  in", done(hetero, 0), 1999.0, "us"),
        Number::new("hetero (dichotomy): over Quadrics", kb(hetero, 1), 1757.0, "KB"),
        Number::new("  in", done(hetero, 1), 2001.0, "us"),
    ]);
}

fn shares_of_split(table: &mut Table, split: &Outcome) {
    let kb = |rail: usize| split.shares[rail].0 as f64 / 1e3;
    let done = |rail: usize| split.shares[rail].1 as f64 / 1e3;
    table.numbers(&[
        Number::new("hetero (equal finish): over Myri-10G", kb(0), 2437.0, "KB"),
        Number::new("  in", done(0), 1999.0, "us"),
        Number::new("hetero (equal finish): over Quadrics", kb(1), 1757.0, "KB"),
        Number::new("  in", done(1), 2001.0, "us"),
    ]);
}

/// Figure 9: eager messages split over two cores and two networks, as the paper estimates it.
pub fn offload() -> String {
    let mut table = Table::new("P3 figure 9: an eager message split over two networks from two cores", MODEL);
    table.note(
        "The paper's own estimation, its equation (1): T = T_O + max(T_D(share, network 1), T_D(rest, \
         network 2)), with a hand-off T_O of 3 us. Here the times of both networks are predictions of \
         profiles sampled on the simulated rails, and strategy split finds the shares. The engine does \
         not submit from several cores: nothing is run. 0.2 us: the same with the hand-off of today to a \
         core that spins.",
    );
    let profiles = RAILS.map(|rail| rail.eager_profile(&spaced(1, rail.card.eager_max())));
    let forecasts = profiles.each_ref().map(|profile| Forecast::new(profile.clone()));
    let sizes: Vec<usize> = (6..=15).map(|bits| 1 << bits).collect();
    let rows: Vec<Row> = sizes.iter().map(|&len| Row::at(len as u64, &forecasts)).collect();
    let column = |of: fn(&Row) -> u64| rows.iter().map(|row| us(of(row))).collect();
    table.series(&[
        ("bytes", sizes.iter().map(|&len| size(len)).collect()),
        ("Myri-10G us", column(|row| row.alone[0])),
        ("Quadrics us", column(|row| row.alone[1])),
        ("to Myri-10G", rows.iter().map(|row| format!("{} B", row.share)).collect()),
        ("3 us", column(|row| row.parallel_ns + HAND_OFF_NS[0])),
        ("saved %", rows.iter().map(|row| rounded(row.saved(HAND_OFF_NS[0]))).collect()),
        ("0.2 us", column(|row| row.parallel_ns + HAND_OFF_NS[1])),
        ("saved %", rows.iter().map(|row| rounded(row.saved(HAND_OFF_NS[1]))).collect()),
    ]);
    let best = |hand_off| rows.iter().map(|row| row.saved(hand_off)).fold(f64::MIN, f64::max);
    let from = sizes.iter().zip(&rows).find(|(_, row)| row.saved(HAND_OFF_NS[0]) > 0.0);
    table.numbers(&[Number::new("time saved, at most", best(HAND_OFF_NS[0]), 30.0, "%")]);
    table.claim(
        "Splitting is costly below 4 KB and saves up to 30 % above",
        from.is_some_and(|(&len, _)| (4 << 10..=8 << 10).contains(&len)) && best(HAND_OFF_NS[0]) >= 20.0,
        &from.map_or("never pays here".into(), |(&len, _)| {
            format!("pays from {} on here, and saves {} % at most", size(len), rounded(best(HAND_OFF_NS[0])))
        }),
    );
    table.finish()
}

/// One size of figure 9.
struct Row {
    alone: [u64; 2],
    /// Bytes that go over the first network.
    share: u64,
    /// The longer of both parts, without the hand-off.
    parallel_ns: u64,
}

impl Row {
    fn at(len: u64, forecasts: &[Forecast; 2]) -> Row {
        let shares = decided("split", len, forecasts, [0, 0]);
        let parts = shares.into_iter().zip(forecasts).map(|(len, forecast)| match len {
            0 => 0,
            len => forecast.eager_ns(len),
        });
        let parallel_ns = parts.max().unwrap_or(0);
        Row { alone: [0, 1].map(|rail: usize| forecasts[rail].eager_ns(len)), share: shares[0], parallel_ns }
    }

    /// Percent of the better network's time.
    fn saved(&self, hand_off_ns: u64) -> f64 {
        let alone = self.alone[0].min(self.alone[1]) as f64;
        (1.0 - (self.parallel_ns + hand_off_ns) as f64 / alone) * 100.0
    }
}
