//! P2, "high-performance multi-rail support" (2007): aggregation, greedy balancing, stripping by ratio.

use super::card::Card;
use super::machines::OPTERON;
use super::networks::{ELAN, MX_10G};
use super::ping_pong::{Exchange, Stage, bandwidth};
use super::sampling::sampled;
use super::table::{Column, Number, Table, rounded, size, us};
use crate::machine::Machine;

const MODEL: &str = "mx-10g, elan on Opteron 1.8 GHz";

fn sizes(bits: std::ops::RangeInclusive<u32>) -> Vec<usize> {
    bits.map(|bits| 1 << bits).collect()
}

/// Times of messages of these sizes, each in `count` segments.
fn times(stage: &Stage, sizes: &[usize], count: usize) -> Vec<u64> {
    sizes.iter().map(|&len| stage.run(&Exchange::segments(len, count)).half_ns).collect()
}

fn in_us(times: &[u64]) -> Vec<String> {
    times.iter().map(|&ns| us(ns)).collect()
}

fn rates(sizes: &[usize], times: &[u64]) -> Vec<f64> {
    sizes.iter().zip(times).map(|(&len, &ns)| bandwidth(len as u64, ns)).collect()
}

fn in_mb(sizes: &[usize], times: &[u64]) -> Vec<String> {
    rates(sizes, times).into_iter().map(rounded).collect()
}

fn heads(sizes: &[usize]) -> Column<'static> {
    ("bytes", sizes.iter().map(|&len| size(len)).collect())
}

/// Figure 2: one, two and four segments over Myri-10G.
pub fn raw_mx() -> String {
    let holds_if = "It would hold on a host that copies 6 GB/s instead of 4";
    raw(&MX_10G, "P2 figure 2: Myri-10G, regular and multi-segment messages", [2.8, 1200.0], holds_if)
}

/// Figure 3: the same over Quadrics.
pub fn raw_elan() -> String {
    let holds_if = "It would hold on a host that copies 16 GB/s instead of 4, with PIO up to 12 KB: at 8 KB \
                    segments are written by PIO and a packet of both is not";
    raw(&ELAN, "P2 figure 3: Quadrics, regular and multi-segment messages", [1.7, 850.0], holds_if)
}

fn raw(card: &'static Card, title: &str, [latency, peak]: [f64; 2], holds_if: &str) -> String {
    let mut table = Table::new(title, MODEL);
    table.note("joined: strategy aggregate; apart: strategy fifo, one packet a segment.");
    let (joined, apart) = (sampled(OPTERON, &[card], "aggregate"), sampled(OPTERON, &[card], "fifo"));
    let small = sizes(2..=15);
    let regular = times(&joined, &small, 1);
    let [two, four] = [2, 4].map(|count| times(&joined, &small, count));
    let [two_apart, four_apart] = [2, 4].map(|count| times(&apart, &small, count));
    table.note("Latency, us:");
    table.series(&[
        heads(&small),
        ("regular", in_us(&regular)),
        ("2 joined", in_us(&two)),
        ("2 apart", in_us(&two_apart)),
        ("4 joined", in_us(&four)),
        ("4 apart", in_us(&four_apart)),
    ]);
    let large = sizes(16..=23);
    let whole = times(&joined, &large, 1);
    let [two_large, four_large] = [2, 4].map(|count| times(&joined, &large, count));
    table.note("Bandwidth, MB/s:");
    table.series(&[
        heads(&large),
        ("regular", in_mb(&large, &whole)),
        ("2 joined", in_mb(&large, &two_large)),
        ("4 joined", in_mb(&large, &four_large)),
    ]);
    let top = *rates(&large, &whole).last().unwrap_or(&0.0);
    table.numbers(&[
        Number::new("latency of 4 bytes", regular[0] as f64 / 1e3, latency, "us").set(),
        Number::new("largest bandwidth (the paper: approximately)", top, peak, "MB/s").interpolated(),
    ]);
    let below = small.iter().filter(|&&len| len < 16 << 10).count();
    let better =
        |joined: &[u64], apart: &[u64]| joined.iter().zip(apart).take(below).filter(|(a, b)| a < b).count();
    let (won_two, won_four) = (better(&two, &two_apart), better(&four, &four_apart));
    table.claim(
        "Below 16 KB it is best to copy the segments together and to send them at once",
        won_two == below && won_four == below,
        &format!(
            "faster at {won_two} of {below} sizes with two segments, at {won_four} of {below} with four; at \
             the others the engine does not join them. {holds_if}"
        ),
    );
    let threshold = |stage: &Stage| Some(stage.profiles.first()?.as_ref()?.thresholds()?.aggregate_max);
    table.note(&format!(
        "Segments of more than {} B share no packet (the sampled aggregation threshold): while the second \
         packet is under way, the receiver copies the first out; what shares a packet is copied out after \
         the last byte.",
        threshold(&joined).unwrap_or(u64::MAX)
    ));
    let at_once = Stage { holds_back: false, ..joined.clone() };
    let first = times(&at_once, &[16], 2)[0];
    table.note(&format!(
        "joined: the library has seen that this program waits after each series and holds the first \
         segment back. Before it has seen that, the first leaves at once, and two segments of 8 B take \
         {} us.",
        us(first)
    ));
    table.finish()
}

/// The three ways of figures 4 and 5.
fn greedy(title: &str, count: usize, peak: Option<f64>) -> String {
    let mut table = Table::new(title, MODEL);
    table.note(&format!("{count} segments; the size is that of all of them. greedy: both cards."));
    let both = sampled(OPTERON, &[&MX_10G, &ELAN], "greedy");
    let (mx, elan) = (sampled(OPTERON, &[&MX_10G], "fifo"), sampled(OPTERON, &[&ELAN], "fifo"));
    let sizes = sizes(4..=23);
    let [balanced, mx, elan] = [&both, &mx, &elan].map(|stage| times(stage, &sizes, count));
    table.series(&[
        heads(&sizes),
        ("greedy us", in_us(&balanced)),
        ("Myri-10G us", in_us(&mx)),
        ("Quadrics us", in_us(&elan)),
        ("greedy MB/s", in_mb(&sizes, &balanced)),
        ("Myri-10G MB/s", in_mb(&sizes, &mx)),
        ("Quadrics MB/s", in_mb(&sizes, &elan)),
    ]);
    let top = rates(&sizes, &balanced).into_iter().fold(0.0, f64::max);
    let single = rates(&sizes, &mx).into_iter().chain(rates(&sizes, &elan)).fold(0.0, f64::max);
    if let Some(peak) = peak {
        table.numbers(&[Number::new("largest bandwidth", top, peak, "MB/s").interpolated()]);
    }
    table.claim(
        "Greedy reaches more bandwidth than one network alone",
        top > single,
        &format!("{} against {} MB/s", rounded(top), rounded(single)),
    );
    let wins = |index: usize| balanced[index] < mx[index].min(elan[index]);
    let from = (0..sizes.len()).rev().take_while(|&index| wins(index)).last();
    table.claim(
        "Both networks together pay only above 16 KB, since shorter segments are written by PIO, which \
         takes the core",
        from.is_some_and(|index| (16 << 10..=64 << 10).contains(&sizes[index])),
        &from.map_or("never here".into(), |index| format!("from {} on here", size(sizes[index]))),
    );
    table.finish()
}

/// Figure 4: greedy with two segments.
pub fn greedy_two() -> String {
    greedy("P2 figure 4: greedy balancing of messages of 2 segments", 2, Some(1675.0))
}

/// Figure 5: greedy with four segments.
pub fn greedy_four() -> String {
    greedy("P2 figure 5: greedy balancing of messages of 4 segments", 4, None)
}

/// Figure 6: small segments joined on the faster network.
pub fn fastest() -> String {
    let mut table =
        Table::new("P2 figure 6: small messages joined on the fastest card, large ones balanced", MODEL);
    table.note("2 segments. joined: strategy aggregate_fastest with both cards.");
    let stages = [
        sampled(OPTERON, &[&MX_10G, &ELAN], "aggregate_fastest"),
        sampled(OPTERON, &[&MX_10G, &ELAN], "greedy"),
        sampled(OPTERON, &[&MX_10G], "aggregate"),
        sampled(OPTERON, &[&ELAN], "aggregate"),
    ];
    let sizes = sizes(2..=15);
    let [joined, balanced, mx, elan] = stages.each_ref().map(|stage| times(stage, &sizes, 2));
    table.series(&[
        heads(&sizes),
        ("joined us", in_us(&joined)),
        ("greedy us", in_us(&balanced)),
        ("Myri-10G only us", in_us(&mx)),
        ("Quadrics only us", in_us(&elan)),
    ]);
    let better = joined.iter().zip(&balanced).take(10).filter(|(a, b)| a < b).count();
    table.claim(
        "Joining small messages on the fastest network is faster than greedy",
        better == 10,
        &format!("at {better} of the 10 smallest sizes"),
    );
    let gap = joined[0].saturating_sub(elan[0]);
    table.given(
        "A gap to Quadrics alone is left, since the other card must be polled",
        gap > 0,
        &format!("{} us at 4 bytes, where looking at Myri-10G takes {} us", us(gap), us(MX_10G.look_ns)),
    );
    table.finish()
}

/// Figure 7: large messages stripped by sampled ratios.
pub fn stripping() -> String {
    let mut table = Table::new("P2 figure 7: packet stripping with an adaptive threshold", MODEL);
    let (mx, elan) = (sampled(OPTERON, &[&MX_10G], "aggregate"), sampled(OPTERON, &[&ELAN], "aggregate"));
    let split = sampled(OPTERON, &[&MX_10G, &ELAN], "ratio_split");
    table.note("One segment. stripped: strategy ratio_split, whose ratio comes from the sampled profiles.");
    let iso = sampled(OPTERON, &[&MX_10G, &ELAN], "iso_split");
    let sizes = sizes(15..=23);
    let [stripped, halves, mx, elan] = [&split, &iso, &mx, &elan].map(|stage| times(stage, &sizes, 1));
    table.series(&[
        heads(&sizes),
        ("stripped MB/s", in_mb(&sizes, &stripped)),
        ("equal halves MB/s", in_mb(&sizes, &halves)),
        ("Myri-10G MB/s", in_mb(&sizes, &mx)),
        ("Quadrics MB/s", in_mb(&sizes, &elan)),
    ]);
    let top = |times: &[u64]| rates(&sizes, times).into_iter().fold(0.0, f64::max);
    table.claim(
        "Adaptive stripping improves the bandwidth of large messages",
        top(&stripped) > top(&mx).max(top(&elan)).max(top(&halves)),
        &format!(
            "{} MB/s, equal halves {}, Myri-10G {}",
            rounded(top(&stripped)),
            rounded(top(&halves)),
            rounded(top(&mx))
        ),
    );
    table.finish()
}

/// Section 3.2: an I/O bus that carries less than its networks.
pub fn bus() -> String {
    let mut table = Table::new("P2 section 3.2: the I/O bus", "mx-10g, elan on Opteron 1.8 GHz");
    table.note(
        "2 segments, strategy greedy. The bus carries 2 GB/s (2048 MB/s) in one direction, and all of a \
         host's networks share it. Myri-10G and Quadrics stay below that, as in the paper; two of Myri-10G \
         do not.",
    );
    let free = Machine { bus: None, ..OPTERON };
    let stages = [
        sampled(OPTERON, &[&MX_10G, &ELAN], "greedy"),
        sampled(free, &[&MX_10G, &ELAN], "greedy"),
        sampled(OPTERON, &[&MX_10G, &MX_10G], "greedy"),
        sampled(free, &[&MX_10G, &MX_10G], "greedy"),
    ];
    let sizes = sizes(16..=23);
    let [both, both_free, two, two_free] = stages.each_ref().map(|stage| times(stage, &sizes, 2));
    table.series(&[
        heads(&sizes),
        ("both MB/s", in_mb(&sizes, &both)),
        ("no bus", in_mb(&sizes, &both_free)),
        ("two Myri-10G MB/s", in_mb(&sizes, &two)),
        ("no bus", in_mb(&sizes, &two_free)),
    ]);
    let top = |times: &[u64]| rates(&sizes, times).into_iter().fold(0.0, f64::max);
    table.numbers(&[Number::new("largest bandwidth of two Myri-10G", top(&two), 2048.0, "MB/s").set()]);
    table.given(
        "The bus supports data transfers up to approximately 2 GB/s",
        top(&two) <= 2048.0 && top(&two) < top(&two_free),
        &format!("{} MB/s, and {} without a bus", rounded(top(&two)), rounded(top(&two_free))),
    );
    table.claim(
        "Greedy over Myri-10G and Quadrics gains its bandwidth because the bus has room for it",
        top(&both) > 0.97 * top(&both_free),
        &format!("{} MB/s, and {} without a bus", rounded(top(&both)), rounded(top(&both_free))),
    );
    table.finish()
}
