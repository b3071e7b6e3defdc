//! Two flows over one rail at the same time: which part of it each of them gets.
//!
//! Four ranks on two hosts, two flows from one host to the other: ranks 0 to 1 and ranks 2 to 3. The first
//! one is always NewMadeleine on the first driver of the rail, the second one NewMadeleine on any of its
//! drivers, or a plain TCP socket. Receivers count what comes while both last, from a quarter of the time on.
use std::time::{Duration, Instant};

use newmadeleine::engine::RailId;
use newmadeleine::{Hints, Session};

use super::bandwidth::policies;
use super::{BenchError, Pair, Yard};
use crate::plain::{Policy, Socket};
use crate::stats::Summary;

const TAG: u64 = 6;
/// Length of a message in bytes.
const LEN: usize = 1 << 20;
/// Messages that are submitted together: between two batches a flow pauses for a round trip.
const BATCH: usize = 64;
/// A transfer that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(60);
/// First byte of each message of the last batch.
const LAST: u8 = 1;

/// How long to measure; all ranks must have the same plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How long both flows last.
    pub span: Duration,
    /// Samples of each pair of flows.
    pub repeat: usize,
}

/// What two flows made of a rail.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The first flow, for example `udp/r0`.
    pub flow: String,
    /// The second one.
    pub beside: String,
    /// Part of what both carried that was the first one's: a half is fair.
    pub share: Summary,
    /// Both together in MB/s.
    pub together: Summary,
}

/// The second flow.
enum Beside {
    Rail(u8),
    Sockets(Policy),
}

/// Measures the first driver beside each one, then beside plain sockets. `each` receives the rows at rank 0.
///
/// # Errors
/// The job has not four ranks, or one of them, a rail or a socket fails.
pub fn run(
    session: &Session,
    plan: Plan,
    throttle: &[u64],
    each: &mut dyn FnMut(&Found),
) -> Result<(), BenchError> {
    if session.size() != 4 {
        return Err(BenchError::Job(format!("this wants 4 ranks, and the job has {}", session.size())));
    }
    let pair = Pair { session, other: session.rank() ^ 1 };
    let yard = Yard::survey(pair, throttle)?;
    let name = |number: u8| session.rails().swap_remove(usize::from(number)).name;
    let Some(&first) = yard.numbers(0).first() else {
        let text =
            "the ranks share no interface (NMAD_RAILS=lo: ranks of one host use the one that they have)";
        return Err(BenchError::Job(text.into()));
    };
    let rails = yard.numbers(0).iter().map(|&number| (name(number), Beside::Rail(number)));
    let plain = policies().into_iter().map(|(name, policy)| (name.to_string(), Beside::Sockets(policy)));
    let mut memory = vec![0; if pair.is_active() { LEN } else { BATCH * LEN }];
    for (beside, second) in rails.chain(plain) {
        let (mut shares, mut sums) = (Vec::new(), Vec::new());
        for _ in 0..plan.repeat {
            let is_first = session.rank() < 2;
            let rate = match &second {
                _ if is_first => ours(pair, first, plan.span, &mut memory)?,
                Beside::Rail(number) => ours(pair, *number, plan.span, &mut memory)?,
                Beside::Sockets(policy) => {
                    let socket = yard.open_one(pair, 0, policy)?;
                    plain_flow(pair, socket, plan.span, &mut memory)?
                }
            };
            let (one, other) = collect(session, rate)?;
            shares.push(one / (one + other));
            sums.push(one + other);
        }
        let summaries = Summary::of(&shares).zip(Summary::of(&sums)).filter(|_| session.rank() == 0);
        if let Some((share, together)) = summaries {
            each(&Found { flow: name(first), beside, share, together });
        }
    }
    Ok(())
}

/// What the receivers have counted, at rank 0.
fn collect(session: &Session, rate: f64) -> Result<(f64, f64), BenchError> {
    let mut rates = [0; 8];
    let mut hear = |from: u32| -> Result<f64, BenchError> {
        session.recv(from, TAG, &mut rates)?;
        Ok(f64::from_le_bytes(rates))
    };
    match session.rank() {
        0 => Ok((hear(1)?, hear(3)?)),
        2 => Ok((1.0, 1.0)),
        _ => {
            session.send(0, TAG, &rate.to_le_bytes())?;
            Ok((1.0, 1.0))
        }
    }
}

/// Both flows begin at the same time.
fn begin(session: &Session) -> Result<Instant, BenchError> {
    if session.rank() == 0 {
        (1..session.size()).try_for_each(|rank| session.recv(rank, TAG, &mut []).map(drop))?;
        (1..session.size()).try_for_each(|rank| session.send(rank, TAG, &[]))?;
    } else {
        session.send(0, TAG, &[])?;
        session.recv(0, TAG, &mut [])?;
    }
    Ok(Instant::now())
}

fn ours(pair: Pair<'_>, rail: u8, span: Duration, memory: &mut [u8]) -> Result<f64, BenchError> {
    let Pair { session, other } = pair;
    let hints = Hints { rail: Some(RailId(rail)), ..Hints::default() };
    let mut meter = Meter::start(begin(session)?, span);
    loop {
        if pair.is_active() {
            memory[0] = meter.flag();
            let message = &*memory;
            session.scope(|scope| {
                (0..BATCH).try_for_each(|_| scope.send_with(other, TAG, message, hints).map(drop))
            })?;
        } else {
            session.scope(|scope| {
                let places = memory.chunks_exact_mut(LEN);
                let posted: Result<Vec<_>, _> = places.map(|place| scope.recv(other, TAG, place)).collect();
                for request in posted? {
                    scope.wait(request)?;
                    meter.count();
                }
                Ok(())
            })?;
        }
        if memory[0] == LAST {
            return Ok(meter.mb_per_s());
        }
    }
}

fn plain_flow(
    pair: Pair<'_>,
    mut socket: Socket,
    span: Duration,
    memory: &mut [u8],
) -> Result<f64, BenchError> {
    let mut meter = Meter::start(begin(pair.session)?, span);
    let memory = &mut memory[..LEN];
    loop {
        let flag = meter.flag();
        for _ in 0..BATCH {
            let deadline = Instant::now() + LIMIT;
            let fail = BenchError::socket("transfer");
            if pair.is_active() {
                memory[0] = flag;
                socket.send_all(memory, deadline).map_err(fail)?;
            } else {
                socket.recv_all(memory, deadline).map_err(fail)?;
                meter.count();
            }
        }
        if memory[0] == LAST {
            return Ok(meter.mb_per_s());
        }
    }
}

/// Counts what comes while both flows last.
struct Meter {
    from: Instant,
    until: Instant,
    bytes: usize,
}

impl Meter {
    fn start(begun: Instant, span: Duration) -> Meter {
        Meter { from: begun + span / 4, until: begun + span, bytes: 0 }
    }

    /// What the next batch begins with: when the time is over, one more goes for the other flow's sake.
    fn flag(&self) -> u8 {
        if Instant::now() > self.until { LAST } else { 0 }
    }

    /// A message has come.
    fn count(&mut self) {
        if (self.from..self.until).contains(&Instant::now()) {
            self.bytes += LEN;
        }
    }

    fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / (self.until - self.from).as_secs_f64()
    }
}
