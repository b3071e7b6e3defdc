//! P3, "multicore multi-rail" (2008): splits by samples, and eager messages that several cores post.

use super::machines::OPTERON;
use super::networks::{ELAN, MX_10G};
use super::ping_pong::{Exchange, Outcome, Stage, bandwidth};
use super::sampling::{Bench, LARGE_MAX, PREEMPT_NS, sampled, spaced};
use super::table::{Number, Table, rounded, size, us};
use crate::cores::Core;
use nmad_engine::Preempt;
use nmad_engine::profile::measured::Profile;
use std::sync::Arc;

const MODEL: &str = "mx-10g, elan on Opteron 1.8 GHz";
const RAILS: [Bench; 2] = [
    Bench { machine: OPTERON, card: &MX_10G, hand_off_ns: IDLE_NS },
    Bench { machine: OPTERON, card: &ELAN, hand_off_ns: IDLE_NS },
];

/// The paper's hand-off to another core that is idle (section III-D), in nanoseconds; and to one that spins,
/// as measured on a machine of today.
const IDLE_NS: u64 = 3_000;
const SPINS_NS: u64 = 200;

/// The core beside the application's: idle, or computing, as in the paper; spinning, as today.
const CORES: [Core; 3] = [Core::idle(IDLE_NS), Core::busy(PREEMPT_NS), Core::idle(SPINS_NS)];

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
        sampled(OPTERON, &[&MX_10G, &ELAN], "greedy"),
        sampled(OPTERON, &[&MX_10G], "fifo"),
        sampled(OPTERON, &[&ELAN], "fifo"),
        sampled(OPTERON, &[&MX_10G, &ELAN], "aggregate_fastest"),
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
             more than the second packet. It would hold on hosts that copy 16 GB/s instead of 4, with PIO up \
             to 20 KB"
        ),
    );
    table.finish()
}

/// Figure 4: the three ways of sending two eager packets, in time.
pub fn offload_diagram() -> String {
    let mut table = Table::new("P3 figure 4: two eager packets of 4 KB, three ways", MODEL);
    table.note(
        "All are run. (c): the pump of the engine hands the packet of the second network to another core, \
         which begins 3 us later if it is idle, and 6 us later if a thread that computes there has to be \
         preempted (P3 section III-D). Who takes it, and what is taken back, is decided by the code of the \
         library's threads; NMAD_PREEMPT is always.",
    );
    let exchange = Exchange::segments(8 << 10, 2);
    let time = |strategy: &str, core: Option<Core>| {
        let profiles = core.map_or(Vec::new(), |core| profiles(core, LARGE_MAX));
        with_core(strategy, &profiles, core).run(&exchange).half_ns
    };
    let (greedy, joined) = (time("greedy", None), time("aggregate_fastest", None));
    let [idle, preempted, _] = CORES.map(|core| time("greedy", Some(core)));
    let ways = [
        "(a) greedy, one core",
        "(b) joined, one network",
        "(c) one packet a core, the other core idle",
        "(c) one packet a core, the other core computes",
    ];
    table.series(&[
        ("", ways.map(String::from).to_vec()),
        ("us", [greedy, joined, idle, preempted].map(us).to_vec()),
    ]);
    table.claim(
        "Sending from two cores overlaps what one core does one after the other",
        idle < greedy && idle < joined,
        &format!("{} us against {} and {}", us(idle), us(greedy), us(joined)),
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
        Number::new("iso-split", top(2), 1670.0, "MB/s").interpolated(),
        Number::new("hetero-split, by dichotomy", top(4), 1987.0, "MB/s").interpolated(),
        Number::new("hetero-split, by equal finish", top(5), 1987.0, "MB/s").interpolated(),
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
        Number::new("iso: 2 MB over Myri-10G in", done(iso, 0), 1730.0, "us").interpolated(),
        Number::new("iso: 2 MB over Quadrics in", done(iso, 1), 2400.0, "us").interpolated(),
        Number::new("iso: Myri-10G unused for", done(iso, 1) - done(iso, 0), 670.0, "us").interpolated(),
        Number::new("hetero (dichotomy): over Myri-10G", kb(hetero, 0), 2437.0, "KB").interpolated(),
        Number::new("  in", done(hetero, 0), 1999.0, "us").interpolated(),
        Number::new("hetero (dichotomy): over Quadrics", kb(hetero, 1), 1757.0, "KB").interpolated(),
        Number::new("  in", done(hetero, 1), 2001.0, "us").interpolated(),
    ]);
}

fn shares_of_split(table: &mut Table, split: &Outcome) {
    let kb = |rail: usize| split.shares[rail].0 as f64 / 1e3;
    let done = |rail: usize| split.shares[rail].1 as f64 / 1e3;
    table.numbers(&[
        Number::new("hetero (equal finish): over Myri-10G", kb(0), 2437.0, "KB").interpolated(),
        Number::new("  in", done(0), 1999.0, "us").interpolated(),
        Number::new("hetero (equal finish): over Quadrics", kb(1), 1757.0, "KB").interpolated(),
        Number::new("  in", done(1), 2001.0, "us").interpolated(),
    ]);
}

/// Figure 9: eager messages split over two cores and two networks.
pub fn offload() -> String {
    let mut table = Table::new("P3 figure 9: an eager message split over two networks from two cores", MODEL);
    table.note(
        "predicted: the paper's own estimation, its equation (1), as the engine makes it: T = T_O + \
         max(T_D(share, network 1), T_D(rest, network 2)), from profiles sampled on the simulated rails. \
         run: what it then takes. A dash: the engine keeps the message together, because the equation \
         says so. T_O is 3 us for an idle core, 6 us for one that computes and is preempted (P3 section \
         III-D), and 0.2 us for one that spins on a machine of today. The eager limit is the paper's, 32 \
         KB; own: the engine's, with 3 us. Longer messages than that go as large ones, whose shares the \
         cards fetch by themselves, so that they need no core.",
    );
    let sizes = spaced(64, 32 << 10);
    let profiles = CORES.map(|core| profiles(core, LARGE_MAX));
    let alone = [0, 1].map(|rail: usize| {
        let stage = stage("split", &RAILS[rail..=rail], &profiles[0][rail..=rail]).limited();
        sizes.iter().map(|&len| stage.half_ns(len)).collect::<Vec<u64>>()
    });
    let rows = [0, 1, 2].map(|kind: usize| {
        let stage = with_core("split", &profiles[kind], Some(CORES[kind])).limited();
        sizes.iter().map(|&len| stage.run(&Exchange::one(len))).collect::<Vec<Outcome>>()
    });
    let own = with_core("split", &profiles[0], Some(CORES[0]));
    let own: Vec<u64> = sizes.iter().map(|&len| own.run(&Exchange::one(len)).half_ns).collect();
    let mut careful = with_core("split", &profiles[1], Some(CORES[1])).limited();
    careful.config.preempt = Preempt::Auto;
    let preempts = |&len: &usize| careful.run(&Exchange::one(len)).parallel_ns.is_some();
    let preempts: Vec<bool> = sizes.iter().map(preempts).collect();
    let best = |index: usize| alone[0][index].min(alone[1][index]);
    let predicted = |kind: usize| {
        rows[kind].iter().map(|run| run.parallel_ns.map_or("-".into(), us)).collect::<Vec<String>>()
    };
    let run = |kind: usize| rows[kind].iter().map(|run| us(run.half_ns)).collect::<Vec<String>>();
    let saved = |ns: u64, index: usize| (1.0 - ns as f64 / best(index) as f64) * 100.0;
    let column = |kind: usize| {
        let each = rows[kind].iter().enumerate();
        each.map(|(index, run)| rounded(saved(run.half_ns, index))).collect::<Vec<String>>()
    };
    table.series(&[
        ("bytes", sizes.iter().map(|&len| size(len)).collect()),
        ("Myri-10G us", alone[0].iter().map(|&ns| us(ns)).collect()),
        ("Quadrics us", alone[1].iter().map(|&ns| us(ns)).collect()),
        ("3 us: predicted", predicted(0)),
        ("run", run(0)),
        ("saved %", column(0)),
        ("6 us: predicted", predicted(1)),
        ("run", run(1)),
        ("saved %", column(1)),
        ("0.2 us: predicted", predicted(2)),
        ("run", run(2)),
        ("saved %", column(2)),
        ("own: run", own.iter().map(|&ns| us(ns)).collect()),
        ("saved %", own.iter().enumerate().map(|(index, &ns)| rounded(saved(ns, index))).collect()),
    ]);
    table.note(
        "The cards of the time take one order after the other. Where a receiver invites a large message \
         (Rtr), that invitation waits behind the message before it, which no prediction counts: at 8 KB own \
         pays for it.",
    );
    table.note(&careful_note(&sizes, &preempts));
    offload_gain(&mut table, &sizes, &rows[0], saved);
    table.finish()
}

/// Which messages are worth a preemption to the library as it ships.
fn careful_note(sizes: &[usize], preempts: &[bool]) -> String {
    let which: Vec<String> =
        sizes.iter().zip(preempts).filter(|(_, preempts)| **preempts).map(|(&len, _)| size(len)).collect();
    let which = if which.is_empty() { "none".into() } else { which.join(", ") };
    format!(
        "The column of 6 us preempts whenever the message arrives earlier (NMAD_PREEMPT=always). By default \
         the library preempts only if the message gains more than the computing thread loses: the 6 us, and \
         the time of the post. Of these sizes: {which}."
    )
}

/// What the equation promises with an idle core, what comes of it, and from where on the engine splits.
fn offload_gain(table: &mut Table, sizes: &[usize], rows: &[Outcome], saved: impl Fn(u64, usize) -> f64) {
    let runs = rows.iter().enumerate();
    let foreseen = runs.clone().filter_map(|(index, run)| Some(saved(run.parallel_ns?, index)));
    let foreseen = foreseen.fold(f64::MIN, f64::max);
    let most = runs.map(|(index, run)| saved(run.half_ns, index)).fold(f64::MIN, f64::max);
    table.numbers(&[
        Number::new("time saved, at most, predicted", foreseen, 30.0, "%").differs(
            "of powers of two it is 32 %, as in the paper; between them, where one network alone has passed \
             its limit of PIO and the shares have not, it is more. The equation does not count that one core \
             of the receiver copies both shares out, one after the other: if copies took no time, no run \
             from 12 KB on would take longer than predicted",
        ),
        Number::new("time saved, at most, run", most, 30.0, "%"),
    ]);
    let from = rows.iter().position(|run| run.parallel_ns.is_some());
    table.claim(
        "Splitting is costly below 4 KB and saves up to 30 % above",
        from.is_some_and(|index| (4 << 10..=8 << 10).contains(&sizes[index])) && most >= 30.0,
        &from.map_or("never pays here".into(), |index| {
            format!(
                "the engine splits from {} on here, and saves {} % at most",
                size(sizes[index]),
                rounded(most)
            )
        }),
    );
}

/// What both networks were measured to do on hosts with this core.
fn profiles(core: Core, len_max: usize) -> Vec<Arc<Profile>> {
    let hand_off_ns = if core.computes { IDLE_NS } else { core.begins_ns };
    RAILS.map(|rail| Bench { hand_off_ns, ..rail }.profile(len_max)).to_vec()
}

/// Both networks, between hosts with this core beside that of the application. It is preempted if a message
/// arrives earlier by that, as the paper has it.
fn with_core(strategy: &str, profiles: &[Arc<Profile>], core: Option<Core>) -> Stage {
    let mut stage = stage(strategy, &RAILS, profiles);
    stage.cores = core.into_iter().collect();
    stage.config.preempt = Preempt::Always;
    stage
}
