//! Regret of a strategy: its time beside that of every other strategy, and of each rail alone.
use std::cell::RefCell;
use std::time::Instant;

use newmadeleine::engine::{PeerId, RailId};

use super::latency::ping_pong;
use super::{BenchError, Contestant, Kind, Pair, Row, interleave};

const TAG: u64 = 8;
/// Longest message of a window: longer ones need no company.
const WINDOW_LONGEST: usize = 64 << 10;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Messages that are submitted one after the other and then awaited, there and back; one: a ping-pong of
    /// calls that wait.
    pub window: usize,
    /// Turns of each contestant; one sample each.
    pub repeat: usize,
    /// The strategy that is judged.
    pub judged: String,
    /// Those that it is held against, besides each rail alone under the judged one.
    pub others: Vec<String>,
}

impl Plan {
    /// Powers of two and what is halfway between them: 1 B to 64 MiB, or to 64 KiB in windows.
    pub fn lens(window: usize) -> Vec<usize> {
        let longest = if window > 1 { WINDOW_LONGEST } else { 64 << 20 };
        let powers = (0..usize::BITS).map(|bits| 1usize << bits).take_while(|&len| len <= longest);
        let halfway = |len: usize| (len > 1 && 2 * len <= longest).then_some(len + len / 2);
        powers.flat_map(|len| [Some(len), halfway(len)]).flatten().collect()
    }
}

/// A way to carry the messages: under a strategy, over all rails or one alone.
#[derive(Clone, Copy)]
struct Way<'a> {
    strategy: &'a str,
    only: Option<RailId>,
}

/// Measures half round trips in microseconds. At the active rank `each` receives every row; the judged
/// strategy is ours, and all others are yardsticks.
///
/// # Errors
/// A rank or a rail fails, or the two ranks share no rail.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Row)) -> Result<(), BenchError> {
    let rails = pair.session.rails();
    // The rail to oneself leads to one rank, too, and has no address.
    let used = rails.iter().enumerate().filter(|(_, rail)| rail.peers > 0 && !rail.address.is_empty());
    let alone: Vec<(RailId, String)> =
        used.map(|(number, rail)| (RailId(number as u8), format!("{} alone", rail.name))).collect();
    if alone.is_empty() {
        return Err(BenchError::Job("the two ranks have no rail in common".into()));
    }
    let judged = plan.judged.as_str();
    for &len in &plan.lens {
        let window = plan.window.max(1);
        let buffer = RefCell::new(vec![1; len.max(1) * window]);
        let contestant = |name: &str, kind, way| {
            let buffer = &buffer;
            Contestant::new(name, kind, move || {
                way_of(pair, way, || half_round_trip(pair, &mut buffer.borrow_mut(), len, window))
            })
        };
        let mut all = vec![contestant(judged, Kind::Ours, Way { strategy: judged, only: None })];
        for other in plan.others.iter().filter(|other| *other != judged) {
            all.push(contestant(other, Kind::Yardstick, Way { strategy: other, only: None }));
        }
        for (rail, name) in alone.iter().filter(|_| alone.len() > 1) {
            all.push(contestant(name, Kind::Yardstick, Way { strategy: judged, only: Some(*rail) }));
        }
        let row = interleave(len, (plan.repeat, 1), &mut all)?;
        if pair.is_active() {
            each(&row);
        }
    }
    Ok(())
}

/// A turn under way `way`. Both ranks change over at its beginning and its end, when nothing is on the way.
fn way_of(
    pair: Pair<'_>,
    way: Way<'_>,
    turn: impl FnOnce() -> Result<f64, BenchError>,
) -> Result<f64, BenchError> {
    let Pair { session, other } = pair;
    let narrow = |only| session.node().with(|engine| engine.setup().measure(PeerId(other), only));
    session.set_strategy(None, way.strategy)?;
    narrow(way.only);
    meet(pair)?;
    let took = turn();
    meet(pair)?;
    narrow(None);
    took
}

/// Both ranks have come so far.
fn meet(pair: Pair<'_>) -> Result<(), BenchError> {
    ping_pong(pair, &mut [], 1)
}

/// Microseconds of half a round trip; as many round trips go before, uncounted.
fn half_round_trip(pair: Pair<'_>, buffer: &mut [u8], len: usize, window: usize) -> Result<f64, BenchError> {
    let rounds = ((2 << 20) / (len.max(1) * window)).clamp(2, 100);
    let mut turn = || match window {
        1 => ping_pong(pair, &mut buffer[..len], rounds),
        _ => windows(pair, buffer, len, rounds),
    };
    turn()?;
    let start = Instant::now();
    turn()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / (2 * rounds) as f64)
}

/// All messages of `buffer` there, then as many back.
fn windows(pair: Pair<'_>, buffer: &mut [u8], len: usize, rounds: usize) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    let place = len.max(1);
    for round in 0..2 * rounds {
        if round.is_multiple_of(2) == pair.is_active() {
            session.scope(|scope| {
                buffer.chunks(place).try_for_each(|data| scope.send(other, TAG, &data[..len]).map(drop))
            })?;
        } else {
            session.scope(|scope| {
                let mut places = buffer.chunks_mut(place);
                places.try_for_each(|data| scope.recv(other, TAG, &mut data[..len]).map(drop))
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_and_what_is_between() {
        let lens = Plan::lens(1);
        assert_eq!(lens[..5], [1, 2, 3, 4, 6]);
        assert_eq!(lens.last(), Some(&(64 << 20)));
        assert!(lens.windows(2).all(|pair| pair[0] < pair[1]), "{lens:?}");
        assert_eq!(Plan::lens(64).last(), Some(&(64 << 10)));
    }
}
