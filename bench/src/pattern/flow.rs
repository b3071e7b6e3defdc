//! Bulk data one way with a given number of messages in flight: what a strategy makes of several rails.
//!
//! Short ping-pongs ride on the burst that a shaper grants after a pause, so shaped rails are measured one
//! way. A strategy that splits messages needs one in flight; one that balances whole messages needs several.
use std::time::Instant;

use newmadeleine::{Hints, Scope, SessionError};

use super::bandwidth::mb_per_s;
use super::{BenchError, Pair};

const TAG: u64 = 5;

/// A stream of messages of one length; both ranks must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Length of a message in bytes.
    pub len: usize,
    /// Messages of one sample.
    pub count: usize,
    /// Messages on the way at once. With one, an empty message answers each; with more, the last one only.
    pub in_flight: usize,
    /// What the messages ask for.
    pub hints: Hints,
}

/// Sends the messages from the active rank to the passive one; MB/s until the answer to the last.
/// `memory` is reused from call to call.
///
/// # Errors
/// The other rank is gone.
pub fn sample(pair: Pair<'_>, flow: Flow, memory: &mut Vec<u8>) -> Result<f64, BenchError> {
    // A receive needs memory of its own as long as it is posted; sends may share theirs.
    let own = if pair.is_active() || flow.in_flight == 1 { 1 } else { flow.count };
    if memory.len() < own * flow.len {
        memory.resize(own * flow.len, 1);
    }
    let memory = &mut memory[..own * flow.len];
    let start = Instant::now();
    match flow.in_flight {
        1 => (0..flow.count).try_for_each(|_| one(pair, flow, memory))?,
        _ => rolling(pair, flow, memory)?,
    }
    Ok(mb_per_s(flow.count * flow.len, start))
}

fn one(pair: Pair<'_>, flow: Flow, memory: &mut [u8]) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    if pair.is_active() {
        session.channel(0)?.send_with(other, TAG, memory, flow.hints)?;
        session.recv(other, TAG, &mut [])?;
    } else {
        session.recv(other, TAG, memory)?;
        session.send(other, TAG, &[])?;
    }
    Ok(())
}

fn rolling(pair: Pair<'_>, flow: Flow, memory: &mut [u8]) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    if pair.is_active() {
        let message = &*memory;
        session.scope(|scope| {
            roll(scope, flow, (0..flow.count).map(|_| scope.send_with(other, TAG, message, flow.hints)))
        })?;
        session.recv(other, TAG, &mut [])?;
    } else {
        session.scope(|scope| {
            let places = memory.chunks_exact_mut(flow.len);
            roll(scope, flow, places.map(|place| scope.recv(other, TAG, place)))
        })?;
        session.send(other, TAG, &[])?;
    }
    Ok(())
}

/// Submits the next message when one of those in flight has ended.
fn roll<'s, 'env>(
    scope: &Scope<'s, 'env>,
    flow: Flow,
    submissions: impl Iterator<Item = Result<newmadeleine::Request, SessionError>>,
) -> Result<(), SessionError> {
    let mut open = Vec::with_capacity(flow.in_flight);
    for submitted in submissions {
        open.push(submitted?);
        if open.len() == flow.in_flight
            && let Some((ended, _)) = scope.wait_any(&open)?
        {
            open.remove(ended);
        }
    }
    Ok(())
}
