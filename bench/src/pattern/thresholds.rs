//! Thresholds from profiles against every fixed choice: what the library does by itself beside each method
//! that it could have chosen, size by size. A fixed threshold can do no better than the best of them.
use std::time::Instant;

use newmadeleine::Hints;
use newmadeleine::engine::Method;

use super::{BenchError, Contestant, Kind, Pair, Row, interleave};

const TAG: u64 = 6;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// Two messages at a time, which may share a packet, instead of one.
    pub two: bool,
}

impl Plan {
    /// 1 B to 4 MiB.
    pub const LENS: [usize; 12] =
        [1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
}

/// Longest data of a message that fits into any packet.
const PACKET: usize = 48 << 10;

/// Measures half round trips in microseconds. At the active rank `each` receives every row.
///
/// # Errors
/// A rank or a rail fails.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Row)) -> Result<(), BenchError> {
    for &len in &plan.lens {
        let count = if plan.two { 2 } else { 1 };
        let mut contestants = vec![contestant(pair, "thresholds", Kind::Ours, None, (len, count))];
        for method in methods(plan, len) {
            let fixed = contestant(pair, method.name(), Kind::Yardstick, Some(method), (len, count));
            contestants.push(fixed);
        }
        let row = interleave(len, (plan.repeat, 1), &mut contestants)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

/// The methods that this size could go by.
fn methods(plan: &Plan, len: usize) -> Vec<Method> {
    match (plan.two, len) {
        (true, len) if 2 * len <= PACKET => vec![Method::Pair, Method::Aggregate],
        (true, _) => vec![Method::Pair],
        (false, len) if len <= PACKET => {
            vec![Method::Copy, Method::InPlace, Method::Rendezvous, Method::Pushed]
        }
        (false, _) => vec![Method::Rendezvous, Method::Pushed],
    }
}

fn contestant<'a>(
    pair: Pair<'a>,
    name: &str,
    kind: Kind,
    probe: Option<Method>,
    (len, count): (usize, usize),
) -> Contestant<'a> {
    let hints = Hints { probe, ..Hints::default() };
    let (out, mut into) = (vec![1; len], vec![0; len * count]);
    let rounds = ((1 << 20) / len.max(1)).clamp(3, 150);
    Contestant::new(name, kind, move || {
        round_trips(pair, hints, &out, &mut into, rounds.min(10))?;
        let start = Instant::now();
        round_trips(pair, hints, &out, &mut into, rounds)?;
        Ok(start.elapsed().as_secs_f64() * 1e6 / (2 * rounds) as f64)
    })
}

/// As many messages as fit into `into` there, then as many back.
fn round_trips(
    pair: Pair<'_>,
    hints: Hints,
    out: &[u8],
    into: &mut [u8],
    rounds: usize,
) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    let len = out.len().max(1);
    let count = into.len() / len;
    let give = || {
        session.scope(|scope| (0..count).try_for_each(|_| scope.send_with(other, TAG, out, hints).map(drop)))
    };
    for _ in 0..rounds {
        if pair.is_active() {
            give()?;
        }
        session.scope(|scope| {
            into.chunks_exact_mut(len).try_for_each(|place| scope.recv(other, TAG, place).map(drop))
        })?;
        if !pair.is_active() {
            give()?;
        }
    }
    Ok(())
}
