//! Executes the sampler's plan between two ranks, on one rail.
//!
//! Data goes one way and an empty message answers it: shaped rails grant a burst after each pause, and with
//! data in both directions each would rest while the other is used. Half a round trip of empty messages,
//! measured on the same rail at the same time, is subtracted. Each visit begins with uncounted messages
//! that use up a burst. The sending rank has the plan and sends each probe to the other.

use super::doubt::Signs;
use super::host::Host;
use super::queue::Queue;
use super::talk::{Broken, Talk};
use crate::error::SessionError;
use nmad_engine::{
    BLOCKS_LEN, Effort, InPlace, LinkView, Method, Pair, PeerId, Probe, Profile, Provenance, RailId, Reach,
    Reads, Sampler,
};
use nmad_progress::Node;
use std::fmt;
use std::time::{Duration, Instant};

/// Time limit for opening a link; after it the rail counts as unable to reach the peer.
const OPENING: Duration = Duration::from_millis(4_500);
/// A link has at least this long to open, even if earlier rails have used up the time.
const OPENING_LEAST: Duration = Duration::from_millis(50);
/// The budget is extended by [`FURTHER_NS`] while more than 5 % of the points disagree between visits, up
/// to `until`.
const SETTLED: f64 = 0.05;
const FURTHER_NS: u64 = 50_000_000;
/// Bytes sent before a visit; more than the burst that shapers usually grant.
const BURST_LEN: u64 = 256 << 10;
/// Most messages sent before a visit.
const WARM_UPS: u64 = 64;
/// Most time for the messages before a visit, in nanoseconds: beside other programs each may take
/// milliseconds.
const WARM_UP_NS: u64 = 2_000_000;
/// First guess of half a round trip of an empty message, in nanoseconds.
const EMPTY_GUESS_NS: u64 = 50_000;
/// Empty round trips of one measurement, of which the median counts.
const EMPTY: usize = 9;
/// Visits after which empty round trips are measured again.
const EMPTY_EVERY: u32 = 16;
/// Bytes of a packet besides data, with room for the headers of replays.
const OVERHEAD: u64 = 1024;
/// Longest eager message that is measured, in bytes: longer ones always use rendezvous.
const EAGER_MAX: u64 = 64 << 10;
/// Longest message with quick and with full effort, in bytes.
const LEN_MAX: [u64; 2] = [4 << 20, 16 << 20];

/// A measurement.
pub(super) struct Task<'a> {
    pub(super) rail: RailId,
    pub(super) peer: PeerId,
    /// Number of the measurement, unique in the job.
    pub(super) number: u32,
    pub(super) effort: Effort,
    /// When it ends if there are enough samples for a profile, and when it ends in any case.
    pub(super) until: Instant,
    pub(super) latest: Instant,
    /// The bytes per second to which the rail is limited, if that is known.
    pub(super) limit: Option<u64>,
    pub(super) provenance: Provenance,
    /// Two cores of this node for each kind of pair.
    pub(super) pairs: &'a [(Pair, [usize; 2])],
    /// Receives the progress, zero to one.
    pub(super) progress: &'a mut dyn FnMut(f64),
}

/// Reason why there is no profile.
pub(super) enum Unmeasured {
    /// The rail does not reach this rank.
    NoWay(PeerId),
    /// The rail stopped delivering some or all messages.
    Silent(PeerId),
    /// This time was too short.
    TooBusy(Duration),
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmeasured::NoWay(peer) => write!(f, "rank {} does not answer on it", peer.0),
            Unmeasured::Silent(peer) => write!(f, "it fell silent; rank {} is reached over others", peer.0),
            Unmeasured::TooBusy(took) => write!(
                f,
                "{:.1} s were not enough (are the cores busy with something else?); the next job tries again",
                took.as_secs_f64()
            ),
        }
    }
}

/// Measures as the sending rank; returns a profile with its doubts.
///
/// # Errors
/// The other rank is gone.
pub(super) fn send(node: &Node, task: &mut Task<'_>) -> Result<Result<Profile, Unmeasured>, SessionError> {
    match sent(node, task) {
        Ok(found) => Ok(found),
        Err(Broken::Rail) => Ok(Err(Unmeasured::Silent(task.peer))),
        Err(Broken::Rank(error)) => Err(error),
    }
}

fn sent(node: &Node, task: &mut Task<'_>) -> Result<Result<Profile, Unmeasured>, Broken> {
    let Task { peer, rail, .. } = *task;
    let mut talk = Talk::new(node, peer, task.number);
    // Any traffic opens all links to a peer.
    talk.order("hello")?;
    let opening = task.latest.saturating_duration_since(Instant::now()).clamp(OPENING_LEAST, OPENING);
    node.wait_for(opening, |engine| engine.inspect().link(peer, rail) != Some(LinkView::Opening));
    let Some(LinkView::Up { remote }) = node.with(|engine| engine.inspect().link(peer, rail)) else {
        talk.order("none")?;
        talk.end();
        return Ok(Err(Unmeasured::NoWay(peer)));
    };
    talk.order(&format!("rail {remote}"))?;
    talk.rail = Some(rail);
    talk.receive_order()?;
    let before = node.with(|engine| {
        engine.setup().measure(peer, Some(rail));
        engine.inspect().counters(rail)
    });
    let begun = Instant::now();
    let measured = plan(&mut talk, task);
    let after = node.with(|engine| {
        engine.setup().measure(peer, None);
        engine.inspect().counters(rail)
    });
    let (sampler, signs) = measured?;
    talk.end();
    let carried = (after.packets + after.chunks).saturating_sub(before.packets + before.chunks);
    let lost = after.resent.saturating_sub(before.resent) as f64 / carried.max(1) as f64;
    let signs = Signs { lost, ..signs };
    log::debug!("rail {}: {signs:?}, {carried} orders", rail.0);
    let profile = sampler.finish(task.provenance.clone()).map(|profile| {
        let signs = Signs { contradiction: profile.contradiction(), ..signs };
        profile.doubted(signs.doubt())
    });
    Ok(profile.map_err(|_| Unmeasured::TooBusy(begun.elapsed())))
}

/// Executes the orders of the measuring rank, until it ends or the rail is silent.
///
/// # Errors
/// The other rank is gone.
pub(super) fn answer(node: &Node, peer: PeerId, number: u32) -> Result<(), SessionError> {
    match answered(node, peer, number) {
        Ok(()) | Err(Broken::Rail) => Ok(()),
        Err(Broken::Rank(error)) => Err(error),
    }
}

fn answered(node: &Node, peer: PeerId, number: u32) -> Result<(), Broken> {
    let mut talk = Talk::new(node, peer, number);
    let mut queue = Queue::begin();
    loop {
        let order = talk.receive_order()?;
        let words: Vec<&str> = order.split(' ').collect();
        match words[..] {
            ["hello"] => {}
            ["rail", rail] => {
                let rail = rail.parse().map(RailId).map_err(|_| talk.lost(&format!("it says '{order}'")))?;
                node.with(|engine| engine.setup().measure(peer, Some(rail)));
                talk.rail = Some(rail);
                queue = Queue::begin();
                talk.order("ready")?;
            }
            ["probe", len, count, times] => {
                let numbers = len.parse().ok().zip(count.parse().ok()).zip(times.parse().ok());
                let ((len, count), times) =
                    numbers.ok_or_else(|| talk.lost(&format!("it says '{order}'")))?;
                receive(&mut talk, len, count, times)?;
            }
            ["blocks", block, method, times] => {
                let numbers = block.parse().ok().zip(times.parse().ok());
                let blocks = numbers.zip(Method::named(method).filter(|method| method.has_blocks()));
                let ((block, times), method) =
                    blocks.ok_or_else(|| talk.lost(&format!("it says '{order}'")))?;
                receive_blocks(&mut talk, block, method, times)?;
            }
            ["end"] => break,
            // "none": the other rank has stopped listening.
            _ => {
                talk.end();
                return Ok(());
            }
        }
    }
    talk.order(&format!("done {:.4}", queue.part()))?;
    node.with(|engine| engine.setup().measure(peer, None));
    talk.end();
    Ok(())
}

/// Receives `times` times `count` messages of `len` bytes, and answers each time.
fn receive(talk: &mut Talk<'_>, len: usize, count: usize, times: u64) -> Result<(), Broken> {
    if count > 2 || len as u64 > LEN_MAX[1] {
        return Err(talk.lost(&format!("it wants to send {count} times {len} B")).into());
    }
    talk.make_room(len, count);
    let mut posted = talk.post(len, count);
    talk.order("ready")?;
    for turn in 0..times {
        talk.wait_all(posted)?;
        if turn + 1 < times {
            // The next receives are posted before their messages come.
            posted = talk.post(len, count);
        }
        let sent = talk.send(0, 1, Method::Copy);
        talk.wait_all(sent)?;
    }
    Ok(())
}

/// Receives `times` times a message in blocks of `block` bytes, and answers each time.
fn receive_blocks(talk: &mut Talk<'_>, block: usize, method: Method, times: u64) -> Result<(), Broken> {
    if !(1..=BLOCKS_LEN as usize).contains(&block) {
        return Err(talk.lost(&format!("it wants to send blocks of {block} B")).into());
    }
    talk.make_room_for_blocks();
    talk.leave_in_place(Some(in_place(method)));
    let mut posted = talk.post_blocks(block);
    talk.order("ready")?;
    for turn in 0..times {
        talk.wait_all(posted)?;
        if turn + 1 < times {
            posted = talk.post_blocks(block);
        }
        let sent = talk.send(0, 1, Method::Copy);
        talk.wait_all(sent)?;
    }
    talk.leave_in_place(None);
    Ok(())
}

/// Returns what drivers do with blocks while a message in blocks is measured.
fn in_place(method: Method) -> InPlace {
    if method == Method::Gathered { InPlace::ALWAYS } else { InPlace::NEVER }
}

/// Executes all probes; also returns the signs of disturbance that the two ranks see.
fn plan(talk: &mut Talk<'_>, task: &mut Task<'_>) -> Result<(Sampler, Signs), Broken> {
    let queue = Queue::begin();
    let mut sampler = Sampler::new(reach(talk.node, task), task.effort);
    sampler.limit(task.limit.unwrap_or(0));
    let mut host = Host::new(task.pairs);
    let (mut empty_ns, mut excess_ns, mut visits) = (None, 0, 0);
    while Instant::now() < if sampler.suffices() { task.until } else { task.latest } {
        let Some(probe) = sampler.next_probe() else {
            if sampler.disagreement() <= SETTLED || !sampler.prolong(FURTHER_NS) {
                break;
            }
            continue;
        };
        let mut times = match probe.method {
            Method::Memcpy => host.copies(&probe),
            Method::HandOff(pair) => host.hand_offs(&probe, pair),
            _ => {
                if visits % EMPTY_EVERY == 0 {
                    let now_ns = empty(talk, empty_ns)?;
                    // On a busy machine the first empty messages may take far longer than those from which
                    // they are subtracted.
                    let excess = empty_ns.map_or(0, |before: u64| before.saturating_sub(now_ns));
                    sampler.lengthen(excess);
                    excess_ns += excess;
                    empty_ns = Some(empty_ns.map_or(now_ns, |before| before.min(now_ns)));
                }
                visits += 1;
                let mut times = visit(talk, &probe, empty_ns)?;
                let answer_ns = if probe.method == Method::Post { 0 } else { empty_ns.unwrap_or(0) };
                times.iter_mut().for_each(|ns| *ns = ns.saturating_sub(answer_ns).max(1));
                times
            }
        };
        sampler.measured(&probe, &mut times);
        (task.progress)(sampler.progress());
    }
    let here = queue.part();
    talk.order("end")?;
    let done = talk.receive_order()?;
    let there = done.strip_prefix("done ").and_then(|part| part.parse().ok());
    let there: f64 = there.ok_or_else(|| talk.lost(&format!("it says '{done}'")))?;
    let late = excess_ns as f64 / empty_ns.unwrap_or(1).max(1) as f64;
    let apart = sampler.disagreement();
    let signs = Signs { apart, queued: here.max(there), late, ..Signs::default() };
    Ok((sampler, signs))
}

fn reach(node: &Node, task: &Task<'_>) -> Reach {
    let limits = node.with_rails(|rails| rails[task.rail.index()].limits());
    let is_full = task.effort.rounds > Effort::QUICK.rounds;
    Reach {
        packet_max: (limits.packet as u64).saturating_sub(OVERHEAD).min(EAGER_MAX),
        len_max: LEN_MAX[usize::from(is_full)],
        gathers: limits.gather > 0,
        // Inject is never worse than push if a driver has both, so they are not compared.
        pushes: limits.push > 0 && !limits.inject,
        reads: limits.reads != Reads::Never,
        blocks: limits.blocks,
        posts: true,
        host: true,
        hand_offs: Pair::ALL.map(|pair| match pair {
            Pair::Busy => !task.pairs.is_empty(),
            _ => task.pairs.iter().any(|(kind, _)| *kind == pair),
        }),
    }
}

/// Returns half a round trip of empty messages in nanoseconds: the median of the lower half, since noise
/// only adds.
fn empty(talk: &mut Talk<'_>, before_ns: Option<u64>) -> Result<u64, Broken> {
    let probe = Probe { method: Method::Copy, len: 0, repetitions: EMPTY as u32, round_trips: 1 };
    let mut times = visit(talk, &probe, before_ns)?;
    times.sort_unstable();
    Ok(times[times.len() / 4] / 2)
}

/// Executes the repetitions of one probe; returns nanoseconds from the beginning of the send to the end of
/// the answer, or only of the call that sends. `empty_ns` is half a round trip of empty messages, if known.
fn visit(talk: &mut Talk<'_>, probe: &Probe, empty_ns: Option<u64>) -> Result<Vec<u64>, Broken> {
    let &Probe { method, len, repetitions, round_trips } = probe;
    if method.has_blocks() {
        return visit_blocks(talk, probe);
    }
    let count = if matches!(method, Method::Pair | Method::Aggregate) { 2 } else { 1 };
    let in_time = WARM_UP_NS / (2 * empty_ns.unwrap_or(EMPTY_GUESS_NS)).max(1);
    let warm_ups = (BURST_LEN / (len * count).max(1)).min(WARM_UPS).min(in_time).max(1);
    let all = warm_ups + u64::from(repetitions) * u64::from(round_trips);
    let (len, count) = (len as usize, count as usize);
    talk.make_room(len, count);
    talk.order(&format!("probe {len} {count} {all}"))?;
    talk.receive_order()?;
    for _ in 0..warm_ups {
        round_trip(talk, len, count, method)?;
    }
    match method {
        Method::Post => posts(talk, len, repetitions * round_trips),
        _ => repeated((repetitions, round_trips), || round_trip(talk, len, count, method)),
    }
}

/// Returns the nanoseconds of each call that sent a message at once, on an idle rail.
fn posts(talk: &Talk<'_>, len: usize, count: u32) -> Result<Vec<u64>, Broken> {
    let mut times = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let answer = talk.post_empty();
        let sent = talk.send_at_once(len);
        talk.wait_all([Some(answer), sent.err()])?;
        times.extend(sent.ok().map(nanos));
    }
    Ok(times)
}

/// Executes the repetitions of a probe of messages in blocks, as [`visit`] does.
fn visit_blocks(talk: &mut Talk<'_>, probe: &Probe) -> Result<Vec<u64>, Broken> {
    let &Probe { method, len, repetitions, round_trips } = probe;
    let warm_ups = BURST_LEN / BLOCKS_LEN;
    let all = warm_ups + u64::from(repetitions) * u64::from(round_trips);
    talk.make_room_for_blocks();
    talk.order(&format!("blocks {len} {} {all}", method.name()))?;
    talk.receive_order()?;
    talk.leave_in_place(Some(in_place(method)));
    let there_and_back = || {
        let answer = talk.post_empty();
        let sent = talk.send_blocks(len as usize, method);
        talk.wait_all([Some(answer), None])?;
        talk.wait_all(sent)
    };
    for _ in 0..warm_ups {
        there_and_back()?;
    }
    let times = repeated((repetitions, round_trips), there_and_back);
    talk.leave_in_place(None);
    times
}

/// Returns the nanoseconds of one round trip in each of several repetitions.
fn repeated(
    (repetitions, round_trips): (u32, u32),
    mut round_trip: impl FnMut() -> Result<(), Broken>,
) -> Result<Vec<u64>, Broken> {
    let mut times = Vec::with_capacity(repetitions as usize);
    for _ in 0..repetitions {
        let start = Instant::now();
        for _ in 0..round_trips {
            round_trip()?;
        }
        times.push(nanos(start.elapsed()) / u64::from(round_trips.max(1)));
    }
    Ok(times)
}

fn round_trip(talk: &Talk<'_>, len: usize, count: usize, method: Method) -> Result<(), Broken> {
    let answer = talk.post_empty();
    let sent = talk.send(len, count, method);
    talk.wait_all([Some(answer), None])?;
    talk.wait_all(sent)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
