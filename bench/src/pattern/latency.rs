//! Half round trip of short messages, both ranks in blocking calls.
use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::ours::contestants;
use super::{BenchError, Contestant, Kind, Pair, Row, Yard, interleave};
use crate::plain::{Policy, latency as plain};

const TAG: u64 = 1;
/// Slices of a turn.
const SLICES: usize = 5;
/// Longest message for which a bare datagram stands beside: one is not cut at the usual MTU.
const DATAGRAM_MAX: usize = 1400;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// Round trips of one slice of a turn. As many again go before it and do not count.
    pub rounds: usize,
    /// Strategies to try; none keeps the session's.
    pub strategies: Vec<String>,
}

impl Plan {
    /// The sizes of a table of latencies: 8 B to 4 KiB.
    pub const LENS: [usize; 6] = [8, 64, 256, 1 << 10, 2 << 10, 4 << 10];

    /// Slices of 100 round trips: long enough not to notice the clock, short enough to take turns often.
    pub fn of(lens: Vec<usize>, repeat: usize, strategies: Vec<String>) -> Plan {
        Plan { lens, repeat, rounds: 100, strategies }
    }
}

/// Measures half round trips in microseconds, beside a plain socket over the first rail of `yard` if there is
/// one, or bare shared memory. At the active rank `each` receives every row.
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
    let mut datagrams = beside.map(|yard| yard.datagrams(pair)).transpose()?.flatten();
    let mut frames = beside.map(|yard| yard.frames(pair)).transpose()?.flatten();
    for &len in &plan.lens {
        let buffer = RefCell::new(vec![1; len]);
        let turn = || half_round_trip(pair, &mut buffer.borrow_mut(), plan.rounds);
        let mut all = contestants(pair, &plan.strategies, &turn);
        if let Some(socket) = &mut socket {
            let batch = plain::Plan { len, batches: 1, rounds: plan.rounds, limit: Duration::from_secs(20) };
            all.push(Contestant::new("plain", Kind::Yardstick, move || {
                let fail = BenchError::socket("ping-pong");
                match pair.is_active() {
                    true => plain::measure(socket, &batch).map(|samples| samples[0]).map_err(fail),
                    false => plain::answer(socket, &batch).map(|()| 0.0).map_err(fail),
                }
            }));
        }
        if let Some(socket) = datagrams.as_mut().filter(|_| len <= DATAGRAM_MAX) {
            all.push(Contestant::new("bare UDP", Kind::Yardstick, move || {
                let fail = BenchError::socket("ping-pong of datagrams");
                let (active, limit) = (pair.is_active(), Duration::from_secs(20));
                half_of(plan.rounds, || socket.ping_pong(active, len, plan.rounds, limit)).map_err(fail)
            }));
        }
        if let Some(socket) = frames.as_mut().filter(|_| len <= DATAGRAM_MAX) {
            all.push(Contestant::new("bare Ethernet", Kind::Yardstick, move || {
                let fail = BenchError::socket("ping-pong of frames");
                let (active, limit) = (pair.is_active(), Duration::from_secs(20));
                half_of(plan.rounds, || socket.ping_pong(active, len, plan.rounds, limit)).map_err(fail)
            }));
        }
        if let Some(memory) = &mut memory {
            let mut buffer = vec![1; len];
            all.push(Contestant::new("bare memory", Kind::Yardstick, move || {
                let fail = BenchError::socket("ping-pong in memory");
                half_of(plan.rounds, || memory.ping_pong(&mut buffer, plan.rounds)).map_err(fail)
            }));
        }
        let row = interleave(len, (plan.repeat, SLICES), &mut all)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

/// Microseconds from the beginning of a send to the end of the receive at the other side, on average.
fn half_round_trip(pair: Pair<'_>, buffer: &mut [u8], rounds: usize) -> Result<f64, BenchError> {
    half_of(rounds, || ping_pong(pair, buffer, rounds))
}

/// Microseconds of half a round trip; `turn` does all of them. It is done once more before, uncounted.
fn half_of<E>(rounds: usize, mut turn: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    turn()?;
    let start = Instant::now();
    turn()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / (2 * rounds.max(1)) as f64)
}

/// Round trips of blocking calls.
pub(super) fn ping_pong(pair: Pair<'_>, buffer: &mut [u8], rounds: usize) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    for _ in 0..rounds {
        if pair.is_active() {
            session.send(other, TAG, buffer)?;
            session.recv(other, TAG, buffer)?;
        } else {
            session.recv(other, TAG, buffer)?;
            session.send(other, TAG, buffer)?;
        }
    }
    Ok(())
}
