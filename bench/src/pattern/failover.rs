//! Streams of which a rail is taken away at a random moment: for how long they stand still.
//!
//! Rounds of some 1.8 s: both ranks stream windows of messages and check each byte, a rail fails some time
//! after the beginning, comes back 400 ms later, and the stream goes on until it is used again. Receivers
//! note pauses and what has arrived in slots of 10 ms. A stall is the longest pause between two messages from
//! the failure on, without what a message takes on the rail that is left.
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use newmadeleine::SessionError;
use nmad_testbed::Change;
use nmad_testbed::chaos::{Chance, Episode, How};

use super::{BenchError, Pair};

const TAG: u64 = 7;
/// Shorter pauses are not told of.
const TOLD: Duration = Duration::from_millis(3);
const SLOT: Duration = Duration::from_millis(10);
/// When a rail fails, from the beginning of a round.
const FAILS: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(350));
/// For how long it is away, and how long the stream lasts after that.
const AWAY: Duration = Duration::from_millis(400);
const AFTER: Duration = Duration::from_millis(1200);
/// When the rail that is left should have taken over, from the failure on.
const SETTLED: Duration = Duration::from_millis(150);
/// Bytes of a window, and most messages of it.
const WINDOW: (usize, usize) = (8 << 20, 64);
/// Share of the rate before a failure from which on a stream counts as whole again.
const WHOLE: f64 = 0.97;
/// Slots over which a rate is an average, when the time is sought at which it is whole again.
const SPAN: usize = 10;

/// The measurement; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes, at least 8.
    pub lens: Vec<usize>,
    /// Failures of each case.
    pub moments: usize,
    /// From which their times, rails and ways follow.
    pub seed: u64,
}

impl Plan {
    /// The usual lengths.
    pub const LENS: [usize; 3] = [8, 64 << 10, 4 << 20];
}

/// Makes a change of the network; called by another thread of the active rank.
pub type Make<'a> = &'a (dyn Fn(&Change) -> Result<(), String> + Sync);

/// What one failure has done to a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Length of a message.
    pub len: usize,
    /// Both ranks send.
    pub both: bool,
    /// The failure.
    pub episode: Episode,
    /// The longest pause between two messages from the failure on.
    pub pause: Duration,
    /// The pause without what a message takes on the rail that is left.
    pub stall: Duration,
    /// Bytes per second before, and on the rail that is left once it has taken over.
    pub rates: (f64, f64),
    /// When the rate was whole again after the rail was; none: not within the round.
    pub whole: Option<Duration>,
}

/// Takes rails away, case by case. `each` receives what came of every failure at the active rank.
///
/// # Errors
/// The other rank is gone, the network cannot be changed, or a message is damaged.
pub fn run(
    pair: Pair<'_>,
    plan: &Plan,
    rails: u32,
    make: Make<'_>,
    each: &mut dyn FnMut(&Found),
) -> Result<(), BenchError> {
    let mut chance = Chance(plan.seed);
    for &len in &plan.lens {
        for both in [false, true] {
            let mut stream = Stream::new(len, both);
            // The first messages of a length wait for memory and for what is learnt.
            let begun = Instant::now();
            stream.run(pair, &|| begun.elapsed() >= FAILS.0)?;
            for _ in 0..plan.moments {
                let found = round(pair, &mut stream, episode(&mut chance, rails), make)?;
                found.iter().for_each(&mut *each);
            }
        }
    }
    Ok(())
}

/// One failure; its effect, at the active rank.
fn round(
    pair: Pair<'_>,
    stream: &mut Stream,
    episode: Episode,
    make: Make<'_>,
) -> Result<Option<Found>, BenchError> {
    if !pair.is_active() {
        let log = stream.run(pair, &|| false)?;
        pair.tell_long(&log.text())?;
        return Ok(None);
    }
    let over_at = Cell::new(None);
    let (log, times) = std::thread::scope(|scope| {
        let network = scope.spawn(|| fail(&episode, make));
        // A busy machine may take long for a change, and the stream lasts as long.
        let is_over = || {
            let at = over_at.get().or_else(|| network.is_finished().then(|| Instant::now() + AFTER));
            over_at.set(at);
            at.is_some_and(|at| Instant::now() >= at)
        };
        let log = stream.run(pair, &is_over);
        (log, network.join().unwrap_or_else(|_| Err("the thread that fails rails panicked".into())))
    });
    let mut logs = vec![Log::read(&pair.hear_long()?)];
    if stream.both {
        logs.push(log?);
    }
    let (failed, back) = times.map_err(|why| BenchError::Job(format!("the network: {why}")))?;
    Ok(Some(judge(stream, episode, &logs, failed, back)))
}

/// Takes the rail away after a while, and gives it back; when that was.
fn fail(episode: &Episode, make: Make<'_>) -> Result<(u64, u64), String> {
    let changes = episode.changes(&[]);
    let [(_, first), (_, last)] = &changes[..] else { return Err("a failure has an end".into()) };
    std::thread::sleep(episode.at);
    make(first)?;
    let failed = now_us();
    std::thread::sleep(episode.lasts);
    make(last)?;
    Ok((failed, now_us()))
}

fn judge(stream: &Stream, episode: Episode, logs: &[Log], failed: u64, back: u64) -> Found {
    let us = |length: Duration| length.as_micros() as u64;
    let rate = |log: &Log| (log.rate(log.begun, failed), log.rate(failed + us(SETTLED), back));
    let rates = logs.iter().map(rate).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let long = logs.iter().flat_map(|log| &log.pauses).filter(|(end, _)| *end > failed);
    let pause = Duration::from_micros(long.map(|(_, length)| *length).max().unwrap_or(0));
    let carried = logs.iter().map(|log| stream.len as f64 / log.rate(failed + us(SETTLED), back).max(1.0));
    let carried = Duration::from_secs_f64(carried.fold(0.0, f64::max).min(1.0));
    // Small messages may be limited by the processes, and no slower over the rail that is left.
    let is_slower = rates.1 < WHOLE * rates.0;
    let since =
        |log: &Log| if is_slower { log.whole_since(back, log.rate(log.begun, failed)) } else { Some(0) };
    let whole = logs.iter().map(since);
    Found {
        len: stream.len,
        both: stream.both,
        episode,
        pause,
        stall: pause.saturating_sub(carried),
        rates,
        whole: whole.reduce(|one, other| Some(one?.max(other?))).flatten().map(Duration::from_micros),
    }
}

/// Messages of one length, one way or both ways.
struct Stream {
    len: usize,
    both: bool,
    ours: Vec<Vec<u8>>,
    theirs: Vec<Vec<u8>>,
    count: u64,
}

impl Stream {
    fn new(len: usize, both: bool) -> Stream {
        let len = len.max(8);
        let count = (WINDOW.0 / len).clamp(2, WINDOW.1);
        let memory = || vec![vec![0; len]; count];
        Stream { len, both, ours: memory(), theirs: memory(), count: 0 }
    }

    /// Streams until it is over for the active rank, whose messages say which window is the last.
    fn run(&mut self, pair: Pair<'_>, is_over: &dyn Fn() -> bool) -> Result<Log, BenchError> {
        let (sends, receives) = (pair.is_active() || self.both, !pair.is_active() || self.both);
        meet(pair)?;
        let mut log = Log::begin();
        let mut is_last = false;
        while !is_last {
            is_last = pair.is_active() && is_over();
            if sends {
                let first = self.count << 1 | u64::from(is_last);
                (first..).step_by(2).zip(&mut self.ours).for_each(|(number, data)| write(data, number));
            }
            let window = (sends, receives);
            window_of(pair, (&self.ours, &mut self.theirs), window, &mut |len| log.note(len))?;
            for (place, data) in self.theirs.iter().enumerate().filter(|_| receives) {
                let number = read(data).filter(|number| number >> 1 == self.count + place as u64);
                let number = number.ok_or_else(|| damaged(self.count + place as u64, self.len))?;
                is_last |= !pair.is_active() && number & 1 != 0;
            }
            self.count += self.ours.len() as u64;
        }
        Ok(log)
    }
}

fn damaged(number: u64, len: usize) -> BenchError {
    BenchError::Job(format!("message {number} of {len} B is damaged or out of order"))
}

/// Both ranks are here.
fn meet(pair: Pair<'_>) -> Result<(), BenchError> {
    pair.tell("")?;
    pair.hear().map(drop)
}

/// Sends and receives a window; `arrived` gets the length of each message.
fn window_of(
    pair: Pair<'_>,
    (ours, theirs): (&[Vec<u8>], &mut [Vec<u8>]),
    (sends, receives): (bool, bool),
    arrived: &mut dyn FnMut(usize),
) -> Result<(), SessionError> {
    let Pair { session, other } = pair;
    session.scope(|scope| {
        let posted: Result<Vec<_>, _> = match receives {
            true => theirs.iter_mut().map(|data| scope.recv(other, TAG, data)).collect(),
            false => Ok(Vec::new()),
        };
        if sends {
            ours.iter().try_for_each(|data| scope.send(other, TAG, data).map(drop))?;
        }
        for request in posted? {
            arrived(scope.wait(request)?.len);
        }
        Ok(())
    })
}

/// A message: its number, and bytes that follow from it.
fn write(data: &mut [u8], number: u64) {
    let (head, body) = data.split_at_mut(8);
    head.copy_from_slice(&number.to_le_bytes());
    body.fill((number >> 1) as u8);
}

/// Its number, if each byte is right.
fn read(data: &[u8]) -> Option<u64> {
    let (head, body) = data.split_first_chunk::<8>()?;
    let number = u64::from_le_bytes(*head);
    body.iter().all(|byte| *byte == (number >> 1) as u8).then_some(number)
}

/// Microseconds by a clock that all processes of this machine share.
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

/// Arrivals at one rank in a round, with their times.
#[derive(Debug, Default, PartialEq, Eq)]
struct Log {
    begun: u64,
    last: u64,
    /// End and length of each pause.
    pauses: Vec<(u64, u64)>,
    /// Bytes of each slot.
    slots: Vec<u64>,
}

impl Log {
    fn begin() -> Log {
        let now = now_us();
        Log { begun: now, last: now, ..Log::default() }
    }

    fn note(&mut self, len: usize) {
        let now = now_us();
        let pause = now.saturating_sub(self.last);
        if u128::from(pause) > TOLD.as_micros() {
            self.pauses.push((now, pause));
        }
        self.last = now;
        let slot = self.slot(now);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += len as u64;
    }

    fn slot(&self, at: u64) -> usize {
        (at.saturating_sub(self.begun) / SLOT.as_micros() as u64) as usize
    }

    /// Bytes per second of the slots that lie between two times.
    fn rate(&self, from: u64, until: u64) -> f64 {
        let (first, end) = (self.slot(from) + 1, self.slot(until).min(self.slots.len()));
        let slots = self.slots.get(first..end.max(first)).unwrap_or_default();
        slots.iter().sum::<u64>() as f64 / (slots.len().max(1) as f64 * SLOT.as_secs_f64())
    }

    /// How long after a time the rate was first whole again.
    fn whole_since(&self, since: u64, rate: f64) -> Option<u64> {
        let first = self.slot(since) + 1;
        let slots = self.slots.get(first..)?;
        let wanted = WHOLE * rate * SLOT.as_secs_f64() * SPAN as f64;
        let place = slots.windows(SPAN).position(|span| span.iter().sum::<u64>() as f64 >= wanted)?;
        Some(place as u64 * SLOT.as_micros() as u64)
    }

    fn text(&self) -> String {
        let pauses: Vec<String> = self.pauses.iter().map(|(end, length)| format!("{end}:{length}")).collect();
        let slots: Vec<String> = self.slots.iter().map(u64::to_string).collect();
        format!("{};{};{}", self.begun, pauses.join(","), slots.join(","))
    }

    /// What [`Log::text`] has written; what cannot be read counts as nothing.
    fn read(text: &str) -> Log {
        let mut parts = text.split(';');
        let mut part = || parts.next().unwrap_or_default();
        let begun = part().parse().unwrap_or(0);
        let pause = |text: &str| {
            let (end, length) = text.split_once(':')?;
            Some((end.parse().ok()?, length.parse().ok()?))
        };
        let pauses = part().split(',').filter_map(pause).collect();
        let slots = part().split(',').filter_map(|text| text.parse().ok()).collect();
        Log { begun, last: begun, pauses, slots }
    }
}

/// The next failure; both ranks draw the same.
fn episode(chance: &mut Chance, rails: u32) -> Episode {
    let rail = chance.below(u64::from(rails)) as u32;
    let how = match chance.below(5) {
        0 | 1 => How::Hole,
        2 => How::OneWay(0),
        3 => How::OneWay(1),
        _ => How::Off(chance.below(2) as u32),
    };
    let span = (FAILS.1 - FAILS.0).as_micros() as u64;
    Episode { at: FAILS.0 + Duration::from_micros(chance.below(span)), lasts: AWAY, rail, how }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of one message of 1000 B each millisecond, with a pause.
    fn log(pause: std::ops::Range<u64>) -> Log {
        let mut log = Log { begun: 1_000_000, last: 1_000_000, ..Log::default() };
        log.slots = (0..200).map(|slot| if pause.contains(&slot) { 0 } else { 10_000 }).collect();
        log.pauses = vec![(1_000_000 + pause.end * 10_000, (pause.end - pause.start) * 10_000)];
        log
    }

    #[test]
    fn logs_travel_as_text() {
        let log = log(20..25);
        assert_eq!(Log::read(&log.text()), log);
        assert_eq!(Log::read(""), Log::default());
    }

    #[test]
    fn a_stall_is_the_longest_pause_from_the_failure_on() {
        let stream = Stream::new(1000, false);
        let episode = || episode(&mut Chance(1), 2);
        let found = judge(&stream, episode(), &[log(20..25)], 1_195_000, 1_600_000);
        assert_eq!(found.pause, Duration::from_millis(50));
        assert!(found.stall < found.pause && found.stall > Duration::from_millis(48), "{found:?}");
        assert!((found.rates.0 - 1e6).abs() < 1.0 && (found.rates.1 - 1e6).abs() < 1.0, "{found:?}");
        assert_eq!(found.whole, Some(Duration::ZERO));
        let earlier = judge(&stream, episode(), &[log(20..25)], 1_300_000, 1_600_000);
        assert_eq!(earlier.pause, Duration::ZERO, "a pause before the failure is none of its stalls");
    }

    #[test]
    fn damage_is_seen() {
        let mut data = vec![0; 100];
        write(&mut data, 77);
        assert_eq!(read(&data), Some(77));
        data[50] ^= 1;
        assert_eq!(read(&data), None);
    }
}
