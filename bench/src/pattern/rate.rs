//! Rate of short messages: a window of them at once, then an empty answer.
use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::ours::contestants;
use super::{BenchError, Contestant, Kind, Pair, Row, Yard, interleave};
use crate::plain::{Policy, rate as plain};

const TAG: u64 = 3;
/// Slices of a turn.
const SLICES: usize = 5;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Messages in flight before an answer is waited for.
    pub window: usize,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// Windows of one slice of a turn. As many again go before it and do not count.
    pub rounds: usize,
    /// Strategies to try; none keeps the session's.
    pub strategies: Vec<String>,
}

impl Plan {
    /// Windows of 64 messages, slices of 60 of them.
    pub fn of(lens: Vec<usize>, repeat: usize, strategies: Vec<String>) -> Plan {
        Plan { lens, window: 64, repeat, rounds: 60, strategies }
    }
}

/// Measures millions of messages per second, beside plain sockets over the first rail of `yard` if there is
/// one, which pay a system call for each message. At the active rank `each` receives every row.
///
/// # Errors
/// A rank, a rail or a socket fails.
pub fn run(
    pair: Pair<'_>,
    plan: &Plan,
    yard: Option<&Yard>,
    each: &mut dyn FnMut(&Row),
) -> Result<(), BenchError> {
    let mut memory = yard.map(|yard| yard.memory(pair)).transpose()?.flatten();
    let beside = yard.filter(|_| memory.is_none());
    let mut socket = beside.map(|yard| yard.open_one(pair, 0, &Policy::default())).transpose()?;
    let (window, rounds) = (plan.window.max(1), plan.rounds.max(1));
    for &len in &plan.lens {
        // Messages lie side by side; empty ones too need a place each.
        let buffer = RefCell::new(vec![1; len.max(1) * window]);
        let turn = || sample(pair, &mut buffer.borrow_mut(), len, (window, rounds));
        let mut all = contestants(pair, &plan.strategies, &turn);
        if let Some(socket) = &mut socket {
            let limit = Duration::from_secs(20);
            let batch = plain::Plan { len, window, batches: 1, rounds, limit };
            all.push(Contestant::new("plain", Kind::Yardstick, move || {
                let fail = BenchError::socket("windows of messages");
                match pair.is_active() {
                    true => plain::measure(socket, &batch).map(|samples| samples[0]).map_err(fail),
                    false => plain::answer(socket, &batch).map(|()| 0.0).map_err(fail),
                }
            }));
        }
        if let Some(memory) = memory.as_mut().filter(|_| len <= 56) {
            let mut buffer = vec![1; len.max(1) * window];
            all.push(Contestant::new("bare ring", Kind::Yardstick, move || {
                let mut turn = || memory.windows(&mut buffer, len, rounds);
                let fail = |e| BenchError::socket("windows in memory")(e);
                turn().map_err(fail)?;
                let start = Instant::now();
                turn().map_err(fail)?;
                Ok((rounds * window) as f64 / 1e6 / start.elapsed().as_secs_f64())
            }));
        }
        let row = interleave(len, (plan.repeat, SLICES), &mut all)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

fn sample(
    pair: Pair<'_>,
    buffer: &mut [u8],
    len: usize,
    (window, rounds): (usize, usize),
) -> Result<f64, BenchError> {
    windows(pair, buffer, len, rounds)?;
    let start = Instant::now();
    windows(pair, buffer, len, rounds)?;
    Ok((rounds * window) as f64 / 1e6 / start.elapsed().as_secs_f64())
}

fn windows(pair: Pair<'_>, buffer: &mut [u8], len: usize, rounds: usize) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    let place = len.max(1);
    for _ in 0..rounds {
        if pair.is_active() {
            session.scope(|scope| {
                buffer.chunks(place).try_for_each(|data| scope.send(other, TAG, &data[..len]).map(drop))
            })?;
            session.recv(other, TAG, &mut [])?;
        } else {
            session.scope(|scope| {
                let mut places = buffer.chunks_mut(place);
                places.try_for_each(|data| scope.recv(other, TAG, &mut data[..len]).map(drop))
            })?;
            session.send(other, TAG, &[])?;
        }
    }
    Ok(())
}
