//! Many small messages on as many contexts, there and back, against one message of the same total length.
//!
//! What a library gains by aggregation across flows (P1, section 5): without it, each message costs a packet.
use std::time::Instant;

use newmadeleine::Channel;

use super::{BenchError, Contestant, Kind, Pair, Row, interleave};

const TAG: u64 = 4;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Numbers of messages.
    pub counts: Vec<usize>,
    /// Length of each in bytes.
    pub len: usize,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// Round trips of one sample. As many again go before it and do not count.
    pub rounds: usize,
    /// Strategies to try; none keeps the session's.
    pub strategies: Vec<String>,
}

impl Plan {
    /// 2 to 16 messages of 64 B, samples of 300 round trips.
    pub fn of(repeat: usize, strategies: Vec<String>) -> Plan {
        Plan { counts: vec![2, 4, 8, 16], len: 64, repeat, rounds: 300, strategies }
    }
}

/// Measures half round trips in microseconds: for each number of messages (which stands for the row's length)
/// one entry of several messages for each strategy, and as the yardstick one message of the same total length
/// under the same strategy. At the active rank `each` receives every row.
///
/// # Errors
/// A rank or a rail fails.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Row)) -> Result<(), BenchError> {
    let most = plan.counts.iter().copied().max().unwrap_or(1);
    let channels = (0..most).map(|number| pair.session.channel(number as u32 + 1));
    let channels: Vec<Channel<'_>> = channels.collect::<Result<_, _>>()?;
    let strategies: Vec<Option<&str>> = match plan.strategies.as_slice() {
        [] => vec![None],
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    for strategy in strategies {
        for &count in &plan.counts {
            let name = strategy.unwrap_or("NewMadeleine");
            let turn = |count: usize, len: usize| {
                let channels = &channels[..count];
                let (mut out, mut into) = (vec![1; count * len], vec![0; count * len]);
                move || {
                    strategy.map_or(Ok(()), |strategy| pair.session.set_strategy(None, strategy))?;
                    half_round_trip(pair, channels, (&mut out, &mut into), plan.rounds)
                }
            };
            let mut all = [
                Contestant::new(name, Kind::Ours, turn(count, plan.len)),
                Contestant::new("one message", Kind::Yardstick, turn(1, count * plan.len)),
            ];
            let row = interleave(count, (plan.repeat, 1), &mut all)?;
            if pair.is_active() {
                each(&row);
            }
        }
    }
    Ok(())
}

type Buffers<'b> = (&'b mut [u8], &'b mut [u8]);

fn half_round_trip(
    pair: Pair<'_>,
    channels: &[Channel<'_>],
    (out, into): Buffers<'_>,
    rounds: usize,
) -> Result<f64, BenchError> {
    trips(pair, channels, (out, into), rounds)?;
    let start = Instant::now();
    trips(pair, channels, (out, into), rounds)?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / (2 * rounds.max(1)) as f64)
}

fn trips(
    pair: Pair<'_>,
    channels: &[Channel<'_>],
    (out, into): Buffers<'_>,
    rounds: usize,
) -> Result<(), BenchError> {
    let len = out.len() / channels.len();
    for _ in 0..rounds {
        if pair.is_active() {
            receive(pair, channels, into, len, &mut || send(pair, channels, out, len))?;
        } else {
            receive(pair, channels, into, len, &mut || Ok(()))?;
            send(pair, channels, out, len)?;
        }
    }
    Ok(())
}

/// Posts a receive on each channel, does `then`, and waits for all of them: a scope for each channel, one in
/// the other.
fn receive(
    pair: Pair<'_>,
    channels: &[Channel<'_>],
    into: &mut [u8],
    len: usize,
    then: &mut dyn FnMut() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let Some((channel, others)) = channels.split_first() else { return then() };
    let (mine, theirs) = into.split_at_mut(len);
    let mut inner = Ok(());
    channel.scope(|scope| {
        scope.recv(pair.other, TAG, mine)?;
        inner = receive(pair, others, theirs, len, then);
        Ok(())
    })?;
    inner
}

/// Submits a message on each channel and waits for all of them.
fn send(pair: Pair<'_>, channels: &[Channel<'_>], out: &[u8], len: usize) -> Result<(), BenchError> {
    let Some((channel, others)) = channels.split_first() else { return Ok(()) };
    let (mine, theirs) = out.split_at(len);
    let mut inner = Ok(());
    channel.scope(|scope| {
        scope.send(pair.other, TAG, mine)?;
        inner = send(pair, others, theirs, len);
        Ok(())
    })?;
    inner
}
