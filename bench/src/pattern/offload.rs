//! Medium messages that several cores post (P3 figure 9), predicted and measured: half round trips over all
//! rails with cores that stand by and without any, and over each rail alone.
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use newmadeleine::Progress;
use newmadeleine::engine::{LinkView, PeerId, Protocol, RailId};

use super::latency::ping_pong;
use super::{BenchError, Contestant, Entry, Kind, Pair, interleave};
use crate::stats::Summary;

/// Before a sample that cores may help with: the helper looks each millisecond whether it is of use, and ten
/// times a second which cores are idle.
const WARM: Duration = Duration::from_millis(5);
/// Round trips of a sample.
const ROUNDS: usize = 50;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// What the cores beside the sender's do.
    pub setting: Progress,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
}

impl Plan {
    /// 1 KiB to 64 KiB.
    pub const LENS: [usize; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
}

/// One length; times in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Bytes of each message.
    pub len: usize,
    /// The fastest rail alone: its name and its half round trip.
    pub alone: (String, Summary),
    /// All rails, and no core beside the sender's.
    pub one_core: Summary,
    /// All rails, and the cores that stand by.
    pub several: Summary,
    /// Part of the time of the fastest rail alone that is saved by these, turn by turn.
    pub saved: Summary,
    /// As equation (1) of P3 predicts it; none: the engine kept the messages together.
    pub predicted_us: Option<f64>,
    /// How often another core has posted for the sender's, in all turns.
    pub posted: u64,
}

/// Measures; at the active rank `each` receives every length.
///
/// # Errors
/// A rank or a rail fails, this process cannot have the setting, or the two ranks share fewer than two rails.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Found)) -> Result<(), BenchError> {
    let leads_there = |rail| {
        let link = pair.session.node().with(|engine| engine.inspect().link(PeerId(pair.other), rail));
        matches!(link, Some(LinkView::Up { .. } | LinkView::Opening))
    };
    let rails = pair.session.rails().into_iter().enumerate();
    let rails = rails.map(|(number, rail)| (RailId(number as u8), rail.name));
    let rails: Vec<_> = rails.filter(|(rail, _)| leads_there(*rail)).collect();
    if rails.len() < 2 {
        let why = "messages are shared out among several rails: use --rails max,max";
        return Err(BenchError::Job(why.into()));
    }
    for &len in &plan.lens {
        let (buffer, predicted) = (RefCell::new(vec![1; len]), Cell::new(None));
        let contestant = |name: &str, kind, setting: &Progress, only| {
            let (buffer, predicted, setting) = (&buffer, &predicted, setting.clone());
            Contestant::new(name, kind, move || {
                let sample = sample(pair, &mut buffer.borrow_mut(), &setting, only)?;
                predicted.set(sample.1.or(predicted.get()));
                Ok(sample.0)
            })
        };
        let mut all = vec![
            contestant("several cores", Kind::Ours, &plan.setting, None),
            contestant("one core", Kind::Ours, &Progress::Off, None),
        ];
        all.extend(
            rails.iter().map(|(rail, name)| contestant(name, Kind::Yardstick, &Progress::Off, Some(*rail))),
        );
        let posted = pair.session.helped().posted;
        let row = interleave(len, (plan.repeat, 1), &mut all)?;
        let best = row.yardstick(|ours, theirs| ours < theirs);
        let (true, Some(best), [several, one, ..]) = (pair.is_active(), best, &row.entries[..]) else {
            continue;
        };
        let posted = pair.session.helped().posted - posted;
        each(&Found { posted, ..found(len, best, [several, one], predicted.get()) });
    }
    Ok(())
}

fn found(len: usize, best: &Entry, [several, one]: [&Entry; 2], predicted_us: Option<f64>) -> Found {
    let saved = several.beside(best, |ours, theirs| 1.0 - ours / theirs);
    Found {
        len,
        alone: (best.name.clone(), best.summary()),
        one_core: one.summary(),
        several: several.summary(),
        saved: saved.unwrap_or_else(|| several.summary()),
        predicted_us,
        posted: 0,
    }
}

/// Microseconds of half a round trip, and of one message as predicted if it was shared out among cores.
fn sample(
    pair: Pair<'_>,
    buffer: &mut [u8],
    setting: &Progress,
    only: Option<RailId>,
) -> Result<(f64, Option<f64>), BenchError> {
    let Pair { session, other } = pair;
    session.set_progress(setting.clone())?;
    let narrow = |only| session.node().with(|engine| engine.setup().measure(PeerId(other), only));
    narrow(only);
    // Nothing is on the way when both ranks change over.
    ping_pong(pair, &mut [], 1)?;
    warm(pair, buffer)?;
    let start = Instant::now();
    ping_pong(pair, buffer, ROUNDS)?;
    let took = start.elapsed().as_secs_f64() * 1e6 / (2 * ROUNDS) as f64;
    session.record_receipts(true);
    ping_pong(pair, buffer, 1)?;
    let mut receipts = std::iter::from_fn(|| session.next_receipt());
    let parallel = receipts.find(|receipt| receipt.protocol == Protocol::EagerParallel);
    session.record_receipts(false);
    ping_pong(pair, &mut [], 1)?;
    narrow(None);
    Ok((took, parallel.map(|receipt| receipt.predicted_ns as f64 / 1e3)))
}

/// Round trips for a while, which the active rank ends.
fn warm(pair: Pair<'_>, buffer: &mut [u8]) -> Result<(), BenchError> {
    let begun = Instant::now();
    loop {
        ping_pong(pair, buffer, ROUNDS)?;
        let goes_on = match pair.is_active() {
            true => {
                let goes_on = begun.elapsed() < WARM;
                pair.tell(if goes_on { "on" } else { "" })?;
                goes_on
            }
            false => pair.hear()? == "on",
        };
        if !goes_on {
            return Ok(());
        }
    }
}
