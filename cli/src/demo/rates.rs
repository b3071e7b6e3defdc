//! What the ranks of the demonstration measure: plain sockets, each rail alone, and each strategy, in turns.

use newmadeleine::engine::RailId;
use newmadeleine::{Hints, Options, Session};
use nmad_bench::pattern::bandwidth::{at_once, single};
use nmad_bench::pattern::flow::{Flow, sample};
use nmad_bench::pattern::{BenchError, Contestant, Kind, Pair, Yard, interleave};
use nmad_bench::plain::Policy;
use nmad_bench::plain::bandwidth::{Plan, Way};
use nmad_bench::stats::bytes;
use std::cell::RefCell;
use std::time::Duration;

use super::args::DemoArgs;
use super::report::{Case, Figures, PLAIN};
use crate::progress::Progress;

const LENS: [usize; 6] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
const QUICK: [usize; 3] = [256 << 10, 4 << 20, 16 << 20];
/// Bytes of one sample: bursts of the shaper must not count.
const SAMPLE: usize = 16 << 20;
const STRATEGIES: [&str; 7] =
    ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split", "auto"];
/// Plain sockets do not spin here: rails of this speed leave time to sleep, and on a busy machine the
/// scheduler takes the core from a spinning process for milliseconds, so that the sum, the base of all
/// comparisons, would be too low.
const SPIN: Duration = Duration::ZERO;
/// They give each message to one rail.
const BALANCING: [&str; 2] = ["greedy", "aggregate_fastest"];

/// Measures, and at rank 0 prints and draws.
pub(super) fn run(args: &DemoArgs) -> Result<(), BenchError> {
    let options = args.driver.of(Options::load()?)?;
    let session = Session::open_with(&options)?;
    let pair = Pair::of(&session)?;
    let yard = Yard::survey(pair, &options.throttle)?;
    if yard.count() != args.rails.len() {
        let (found, asked) = (yard.names().collect::<Vec<_>>().join(", "), args.rail_names().join(", "));
        return Err(BenchError::Job(format!(
            "the ranks share the rails {found}, but {asked} were asked for"
        )));
    }
    let lens: &[usize] = if args.quick { &QUICK } else { &LENS };
    let cases = cases(&session, &yard);
    let mut progress = progress(pair.is_active(), lens.len() as u64);
    let mut figures = Figures::new(args, drivers(&session, &yard));
    let memory = RefCell::new(Vec::new());
    for (place, &len) in lens.iter().enumerate() {
        let contestants = cases.iter().map(|case| contestant(pair, &yard, (case, len), &memory));
        let mut contestants = contestants.collect::<Result<Vec<_>, _>>()?;
        figures.row(&cases, &interleave(len, (repeat(args, len), 1), &mut contestants)?);
        progress.at(place as u64 + 1, &format!("{} done", bytes(len as u64)));
    }
    progress.end();
    if pair.is_active() {
        figures.show().map_err(BenchError::Job)?;
    }
    session.close()?;
    Ok(())
}

fn progress(is_shown: bool, steps: u64) -> Progress {
    match is_shown {
        true => Progress::new("demo", "measuring [{wide_bar}] {pos} of {len}", steps).steadily(),
        false => Progress::hidden(),
    }
}

/// Few samples of what takes long.
fn repeat(args: &DemoArgs, len: usize) -> usize {
    if args.quick || len >= SAMPLE { 3 } else { 5 }
}

/// By which drivers the rails are used.
fn drivers(session: &Session, yard: &Yard) -> Vec<String> {
    let mut drivers: Vec<String> = Vec::new();
    for number in (0..yard.count()).flat_map(|rail| yard.numbers(rail)) {
        let name = driver(session, *number);
        if !drivers.contains(&name) {
            drivers.push(name);
        }
    }
    drivers
}

fn driver(session: &Session, number: u8) -> String {
    let rails = session.rails();
    let name = rails.get(usize::from(number)).map_or("", |rail| &rail.name);
    name.split('/').next().unwrap_or_default().to_string()
}

/// Everything that is measured.
fn cases(session: &Session, yard: &Yard) -> Vec<Case> {
    let rails = || (0..yard.count()).map(Some);
    let plain = rails().chain([None]).map(|rail| Case { rail, ..Case::of(PLAIN) });
    // Each rail by each of its drivers.
    let driven = |rail: usize| yard.numbers(rail).iter().map(move |&number| (rail, number));
    let alone = (0..yard.count()).flat_map(driven).map(|(rail, number)| {
        let driven = Some((driver(session, number), number));
        Case { rail: Some(rail), driven, ..Case::of("fifo") }
    });
    let strategies = STRATEGIES.iter().map(|name| Case::of(name));
    let several = BALANCING.iter().map(|name| Case { in_flight: yard.count().max(2), ..Case::of(name) });
    plain.chain(alone).chain(strategies).chain(several).collect()
}

fn contestant<'a>(
    pair: Pair<'a>,
    yard: &Yard,
    (case, len): (&'a Case, usize),
    memory: &'a RefCell<Vec<u8>>,
) -> Result<Contestant<'a>, BenchError> {
    let count = (SAMPLE / len).max(1);
    if case.strategy == PLAIN {
        return plain(pair, yard, case.rail, (len, count), memory);
    }
    let rail = case.driven.as_ref().map(|&(_, number)| RailId(number));
    let hints = Hints { rail, ..Hints::default() };
    // Enough messages for all rails to have several, where they get whole ones.
    let least = if case.in_flight == 1 { 1 } else { 2 * case.in_flight };
    let flow = Flow { len, count: count.max(least), in_flight: case.in_flight, hints };
    Ok(Contestant::new(case.strategy, Kind::Ours, move || {
        let memory = &mut *memory.borrow_mut();
        pair.session.set_strategy(None, case.strategy)?;
        // Not measured: congestion windows shrink while others take their turns.
        sample(pair, Flow { len: len.min(1 << 20), count: 2, in_flight: 1, hints }, memory)?;
        sample(pair, flow, memory)
    }))
}

/// Plain sockets on one rail, or on all at once.
fn plain<'a>(
    pair: Pair<'a>,
    yard: &Yard,
    rail: Option<usize>,
    (len, count): (usize, usize),
    memory: &'a RefCell<Vec<u8>>,
) -> Result<Contestant<'a>, BenchError> {
    let policy = Policy { spin: SPIN, ..Policy::default() };
    if let Some(rail) = rail {
        let plan = Plan { batches: 1, messages: count, ..Plan::of(len, Way::OneWay) };
        return Ok(single(PLAIN, pair, yard.open_one(pair, rail, &policy)?, plan, memory));
    }
    let all: Vec<usize> = (0..yard.count()).collect();
    Ok(at_once(PLAIN, pair, yard.open(pair, &all, &policy)?, (len, count), memory))
}
