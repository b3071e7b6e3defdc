//! Bulk data: back and forth, or one way.
use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::latency::ping_pong;
use super::ours::contestants;
use super::{BenchError, Contestant, Kind, Pair, Row, Yard, interleave};
use crate::plain::bandwidth::{self as plain, Way};
use crate::plain::datagram::Datagrams;
use crate::plain::trains::Trains;
use crate::plain::{Policy, Socket, rails};

const TAG: u64 = 2;
/// Slices of a turn on one rail, at most: they last about half a millisecond on a fast one.
const SLICES: usize = 8;
/// A measurement that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(60);

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// Which way the data goes.
    pub way: Way,
    /// Strategies to try; none keeps the session's.
    pub strategies: Vec<String>,
}

impl Plan {
    /// The sizes of a table of bandwidths: 64 KiB to 64 MiB.
    pub const LENS: [usize; 6] = plain::Plan::LENS;
}

/// A turn: slices, and messages of each.
#[derive(Clone, Copy)]
struct Share {
    slices: usize,
    messages: usize,
}

impl Share {
    /// About 32 MiB in all, so that bursts of a rail average out; two messages in each slice at least.
    fn of(len: usize, most_slices: usize) -> Share {
        let messages = ((32 << 20) / len.max(1)).clamp(2, 200);
        let slices = (messages / 2).min(most_slices);
        Share { slices, messages: messages / slices }
    }
}

/// Measures MB/s, beside plain sockets over the rails of `yard` if there is one: several policies over one
/// rail, all rails at once if there are several. At the active rank `each` receives every row.
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
    let yard = yard.filter(|_| memory.is_none());
    // A message before each sample, where sockets on all rails have but that, or as many as in the sample:
    // buffers, windows and caches are as ready for us as for what stands beside.
    let several = yard.is_some_and(|yard| yard.count() > 1);
    for &len in &plan.lens {
        let share = Share::of(len, if several { 1 } else { SLICES });
        let count = share.messages;
        let buffer = RefCell::new(vec![1; len]);
        let turn = || {
            let buffer = &mut buffer.borrow_mut()[..];
            match plan.way {
                Way::PingPong => back_and_forth(pair, buffer, count / 2, if several { 1 } else { count / 2 }),
                Way::OneWay => one_way(pair, buffer, count, if several { 1 } else { count }),
            }
        };
        let mut all = contestants(pair, &plan.strategies, &turn);
        if let Some(yard) = yard {
            all.extend(yardsticks(pair, plan.way, (len, count), yard, &buffer)?);
        }
        if let Some(memory) = memory.as_mut().filter(|_| plan.way == Way::PingPong) {
            let buffer = &buffer;
            all.push(Contestant::new("one process reads", Kind::Yardstick, move || {
                let (rounds, buffer) = (count / 2, &mut buffer.borrow_mut()[..]);
                let fail = |e| BenchError::socket("read the other's memory")(e);
                memory.pull(buffer, 1).map_err(fail)?;
                let start = Instant::now();
                memory.pull(buffer, rounds).map_err(fail)?;
                Ok(mb_per_s(2 * rounds * len, start))
            }));
        }
        let row = interleave(len, (plan.repeat, share.slices), &mut all)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

fn back_and_forth(
    pair: Pair<'_>,
    buffer: &mut [u8],
    rounds: usize,
    before: usize,
) -> Result<f64, BenchError> {
    ping_pong(pair, buffer, before)?;
    let start = Instant::now();
    ping_pong(pair, buffer, rounds)?;
    Ok(mb_per_s(2 * rounds * buffer.len(), start))
}

/// One message after the other the same way; an empty message at the end says that all have arrived.
fn one_way(pair: Pair<'_>, buffer: &mut [u8], count: usize, before: usize) -> Result<f64, BenchError> {
    stream(pair, buffer, before)?;
    let start = Instant::now();
    stream(pair, buffer, count)?;
    Ok(mb_per_s(count * buffer.len(), start))
}

fn stream(pair: Pair<'_>, buffer: &mut [u8], count: usize) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    if pair.is_active() {
        for _ in 0..count {
            session.send(other, TAG, buffer)?;
        }
        session.recv(other, TAG, &mut [])?;
    } else {
        for _ in 0..count {
            session.recv(other, TAG, buffer)?;
        }
        session.send(other, TAG, &[])?;
    }
    Ok(())
}

/// Millions of bytes per second since `start`.
pub(super) fn mb_per_s(bytes: usize, start: Instant) -> f64 {
    bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
}

/// Plain sockets: the best that a careful programmer gets depends on the machine, so there are several.
fn yardsticks<'a>(
    pair: Pair<'a>,
    way: Way,
    (len, count): (usize, usize),
    yard: &Yard,
    memory: &'a RefCell<Vec<u8>>,
) -> Result<Vec<Contestant<'a>>, BenchError> {
    let all: Vec<usize> = (0..yard.count()).collect();
    if all.len() > 1 {
        let sockets = yard.open(pair, &all, &Policy::default())?;
        return Ok(vec![at_once("plain, all rails one way", pair, sockets, (len, count), memory)]);
    }
    let one = |(name, policy): (&str, Policy)| {
        let socket = yard.open_one(pair, 0, &policy)?;
        Ok(single(name, pair, socket, plan_of_turn((len, count), way), memory))
    };
    // As our own rail has it.
    let longer = Policy { send_buffer: Some(640 << 10), ..Policy::default() };
    let sockets = policies().into_iter().chain([("plain reno 640 KiB", longer)]).map(one);
    let trains = match way {
        Way::OneWay => yard.datagrams(pair)?.map(|tied| in_trains(pair, tied, (len, count))),
        Way::PingPong => None,
    };
    sockets.chain(trains).collect()
}

/// Bare datagrams.
fn in_trains<'a>(
    pair: Pair<'a>,
    tied: Datagrams,
    (len, count): (usize, usize),
) -> Result<Contestant<'a>, BenchError> {
    let fail = || BenchError::socket("transfer in bare datagrams");
    let mut trains = Trains::new(tied, LIMIT).map_err(fail())?;
    // They need room behind it, and a beginning of their own choice.
    let mut buffer = vec![1; len];
    Ok(Contestant::new("bare UDP", Kind::Yardstick, move || {
        // As all others have it, once that does not count.
        let mut batch = || match pair.is_active() {
            true => trains.send(&buffer, count),
            false => trains.receive(&mut buffer, len).map(|()| 0),
        };
        batch().map_err(fail())?;
        let start = Instant::now();
        batch().map(|arrived| mb_per_s(arrived as usize, start)).map_err(fail())
    }))
}

fn plan_of_turn((len, count): (usize, usize), way: Way) -> plain::Plan {
    let messages = match way {
        Way::OneWay => count,
        Way::PingPong => count / 2,
    };
    plain::Plan { len, way, batches: 1, messages, limit: LIMIT }
}

/// One socket, and the memory of all contestants.
pub fn single<'a>(
    name: &str,
    pair: Pair<'a>,
    mut socket: Socket,
    plan: plain::Plan,
    memory: &'a RefCell<Vec<u8>>,
) -> Contestant<'a> {
    Contestant::new(name, Kind::Yardstick, move || {
        let memory = &mut memory.borrow_mut();
        let fail = BenchError::socket("transfer");
        match pair.is_active() {
            true => plain::measure(&mut socket, &plan, memory).map(|samples| samples[0]).map_err(fail),
            false => plain::answer(&mut socket, &plan, memory).map(|()| 0.0).map_err(fail),
        }
    })
}

/// A socket on each rail, which share each of `count` messages of `len` bytes.
pub fn at_once<'a>(
    name: &str,
    pair: Pair<'a>,
    mut sockets: Vec<Socket>,
    (len, count): (usize, usize),
    memory: &'a RefCell<Vec<u8>>,
) -> Contestant<'a> {
    // Pieces small enough for all rails to end together.
    let piece = (len / (4 * sockets.len().max(1))).clamp(16 << 10, 256 << 10);
    let plan = rails::Plan { len, piece, batches: count, limit: LIMIT };
    Contestant::new(name, Kind::Yardstick, move || {
        let memory = &mut memory.borrow_mut();
        let fail = BenchError::socket("transfer over all rails");
        match pair.is_active() {
            true => rails::measure(&mut sockets, &plan, memory).map(|samples| mean(&samples)).map_err(fail),
            false => rails::answer(&mut sockets, &plan, memory).map(|()| 0.0).map_err(fail),
        }
    })
}

/// Of rates over equal lengths: the harmonic mean is the rate over all of them.
fn mean(samples: &[rails::Sample]) -> f64 {
    samples.len() as f64 / samples.iter().map(|sample| 1.0 / sample.total).sum::<f64>()
}

pub(super) fn policies() -> [(&'static str, Policy); 3] {
    let ours = Policy::default();
    let autotuned = Policy { send_buffer: None, ..ours.clone() };
    let untouched = Policy { congestion: Vec::new(), ..autotuned.clone() };
    [("plain reno 512 KiB", ours), ("plain reno autotuned", autotuned), ("plain untouched", untouched)]
}
