//! Rate of short messages of several threads of one process: each sends windows on a tag of its own and waits
//! for an empty answer to each.
use std::sync::Barrier;
use std::time::Instant;

use super::{BenchError, Contestant, Kind, Pair, Row, interleave};

/// The first thread's tag; the others follow.
const TAG: u64 = 16;
/// Slices of a turn.
const SLICES: usize = 5;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Numbers of threads.
    pub counts: Vec<usize>,
    /// Messages of each thread in flight before it waits for an answer.
    pub window: usize,
    /// Turns of each number of threads; one sample each.
    pub repeat: usize,
    /// Windows of each thread in one slice of a turn. As many again go before it and do not count.
    pub rounds: usize,
}

impl Plan {
    /// 1, 2 and 4 threads with windows of 64 messages, slices of 30 of them.
    pub fn of(lens: Vec<usize>, repeat: usize) -> Plan {
        Plan { lens, counts: vec![1, 2, 4], window: 64, repeat, rounds: 30 }
    }
}

/// Measures millions of messages per second of all threads together, with one thread as the yardstick. `each`
/// is given every row at the active rank.
///
/// # Errors
/// A rank or a rail fails.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Row)) -> Result<(), BenchError> {
    for &len in &plan.lens {
        let contestant = |&count: &usize| {
            let kind = if count == 1 { Kind::Yardstick } else { Kind::Ours };
            let name = if count == 1 { "1 thread".into() } else { format!("{count} threads") };
            Contestant::new(&name, kind, move || sample(pair, plan, count, len))
        };
        let mut all: Vec<_> = plan.counts.iter().map(contestant).collect();
        let row = interleave(len, (plan.repeat, SLICES), &mut all)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

/// One sample: all threads begin together, and the slowest ends it.
fn sample(pair: Pair<'_>, plan: &Plan, count: usize, len: usize) -> Result<f64, BenchError> {
    let start = Barrier::new(count + 1);
    let thread = |number: usize| {
        let start = &start;
        move || {
            let mut buffer = vec![1; len.max(1) * plan.window];
            let warm = windows(pair, plan, TAG + number as u64, (&mut buffer, len));
            start.wait();
            warm.and_then(|()| windows(pair, plan, TAG + number as u64, (&mut buffer, len)))
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(thread(number))).collect();
        start.wait();
        let begun = Instant::now();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))?;
        Ok((count * plan.rounds * plan.window) as f64 / 1e6 / begun.elapsed().as_secs_f64())
    })
}

fn windows(
    pair: Pair<'_>,
    plan: &Plan,
    tag: u64,
    (buffer, len): (&mut [u8], usize),
) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    for _ in 0..plan.rounds {
        if pair.is_active() {
            session.scope(|scope| {
                let mut places = buffer.chunks(len.max(1));
                places.try_for_each(|data| scope.send(other, tag, &data[..len]).map(drop))
            })?;
            session.recv(other, tag, &mut [])?;
        } else {
            session.scope(|scope| {
                let mut places = buffer.chunks_mut(len.max(1));
                places.try_for_each(|data| scope.recv(other, tag, &mut data[..len]).map(drop))
            })?;
            session.send(other, tag, &[])?;
        }
    }
    Ok(())
}
