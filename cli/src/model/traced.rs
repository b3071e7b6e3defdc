//! A trace as input of the model: what each rank sent, received and computed, in the order of its calls, and
//! how long that took.

use nmad_bench::phase::outcome::{CallTimes, Rail, Turns};
use nmad_bench::phase::pattern::{CARRIERS, Carried, Pattern, Step, Way};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;

use super::observed;
use crate::trace::{Call, Job, Machine, Message, Record, Records, State, What, read};

/// What a trace tells the model.
pub(super) struct Traced {
    pub(super) pattern: Pattern,
    /// The length up to which messages did not ask, as far as one length says it.
    pub(super) eager_max: Option<u64>,
    pub(super) measured: Vec<Measured>,
    /// What rails took in the run, as far as enough passed each of them.
    pub(super) rails: Option<Vec<Rail>>,
    /// Their names.
    pub(super) names: Vec<String>,
    pub(super) calls: CallTimes,
    /// Bytes that a rail held at most: taken from a rank, and not arrived yet.
    pub(super) swallows: u64,
    /// Receivers say that a receive is posted.
    pub(super) invites: bool,
    pub(super) turns: Turns,
}

/// The times of a rank, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    /// In calls of MPI.
    pub(super) communication_ns: u64,
    /// From the first call of any rank to its last one.
    pub(super) end_ns: u64,
}

/// Whether this is a trace, or a folder with one, and no text of a pattern.
pub(super) fn is_trace(path: &Path) -> bool {
    let begins = |path: &Path| std::fs::read(path).is_ok_and(|text| text.first() == Some(&b'{'));
    path.is_dir() || begins(path) || (!path.exists() && begins(&path.with_added_extension("0")))
}

/// Reads a trace.
///
/// # Errors
/// It cannot be read, is cut short, or has not the calls of two ranks.
pub(super) fn traced(path: &Path) -> Result<Traced, String> {
    let Job { ranks, messages } = read(&[path.to_owned()])?;
    let wrong = |why: String| format!("{}: {why}", path.display());
    if let Some(rank) = ranks.iter().find(|rank| rank.cut.is_some() || rank.dropped > 0) {
        let why = rank.cut.clone().unwrap_or_else(|| "its beginning is dropped: trace a shorter run".into());
        return Err(wrong(format!("the trace of rank {} is not whole: {why}", rank.rank)));
    }
    let in_order = ranks.iter().enumerate().all(|(place, rank)| rank.rank as usize == place);
    if ranks.len() < 2 || !in_order {
        return Err(wrong("a model needs the traces of all ranks: name FILE, not FILE.RANK".into()));
    }
    if let Some(rank) = ranks.iter().find(|rank| rank.calls.is_empty()) {
        return Err(wrong(format!(
            "rank {} made no call of MPI, so what it computed is not known",
            rank.rank
        )));
    }
    let origin = ranks.iter().map(|rank| rank.calls[0].at_ns).min().unwrap_or(0);
    let main: Vec<Vec<&Call>> = ranks.iter().map(main_calls).collect();
    let runs = observed::runs(&ranks, &main);
    let rails = observed::rails(&runs);
    let calls = observed::call_times(&ranks, &main, &runs, &rails);
    let (names, rails): (Vec<String>, Vec<Rail>) = rails.into_iter().unzip();
    let rails = (!rails.is_empty()).then_some(rails);
    let scripts = Scripts::new(&ranks, &messages, &names);
    let mut cores = Cores::of(&ranks);
    let steps = (0..ranks.len()).map(|rank| scripts.steps(rank, origin, &mut cores));
    let pattern = Pattern { ranks: steps.collect() };
    let measured = ranks.iter().map(|rank| measured(&main_calls(rank), origin)).collect();
    let (eager_max, swallows) = (eager_max(&messages), observed::swallows(&ranks));
    Ok(Traced {
        pattern,
        eager_max,
        measured,
        rails,
        names,
        calls,
        swallows,
        invites: true,
        turns: turns(&ranks, origin),
    })
}

fn measured(calls: &[&Call], origin: u64) -> Measured {
    let last = calls.iter().map(|call| call.until_ns).max().unwrap_or(origin);
    let communication_ns = calls.iter().map(|call| call.until_ns.saturating_sub(call.at_ns)).sum();
    Measured { communication_ns, end_ns: last - origin }
}

/// Calls of the thread that makes most of them.
fn main_calls(rank: &Records) -> Vec<&Call> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    rank.calls.iter().for_each(|call| *counts.entry(call.thread).or_default() += 1);
    let main = counts.into_iter().max_by_key(|(thread, count)| (*count, std::cmp::Reverse(*thread)));
    let main = main.map_or(0, |(thread, _)| thread);
    rank.calls.iter().filter(|call| call.thread == main).collect()
}

/// What each of the rails with these names carried of a message; none unless that is all of it.
fn carried(message: &Message, names: &[String]) -> Option<Carried> {
    let mut carried = [0; CARRIERS];
    for (rail, len) in &message.carried {
        let place = names.iter().position(|name| name == observed::interface(rail))?;
        *carried.get_mut(place)? += len;
    }
    (carried.iter().sum::<u64>() == message.len).then_some(carried)
}

fn way(message: &Message) -> Way {
    match &*message.protocol {
        "rendezvous" | "rtr" => Way::Asks,
        _ => Way::Eager,
    }
}

/// Whether its body waited for its receiver.
fn asked(message: &Message) -> bool {
    way(message) != Way::Eager
}

/// The length that parts messages that asked from those that did not, with the fewest exceptions.
fn eager_max(messages: &[Message]) -> Option<u64> {
    let mut lengths: Vec<(u64, bool)> = messages.iter().map(|each| (each.len, asked(each))).collect();
    lengths.sort_unstable();
    // With a limit below all: whatever did not ask is an exception.
    let mut exceptions = lengths.iter().filter(|(_, asks)| !asks).count() as i64;
    let mut best = (exceptions, lengths.first()?.0.saturating_sub(1));
    for (place, &(len, asks)) in lengths.iter().enumerate() {
        exceptions += if asks { 1 } else { -1 };
        let is_last = lengths.get(place + 1).is_none_or(|next| next.0 > len);
        if is_last && exceptions < best.0 {
            best = (exceptions, len);
        }
    }
    Some(best.1)
}

/// The cores of all machines.
struct Cores {
    /// Of each rank, if it may share its cores.
    machines: Vec<Option<String>>,
    known: Vec<(String, u32)>,
}

impl Cores {
    fn of(ranks: &[Records]) -> Cores {
        let name = |rank: &Records| rank.machine.as_ref().map(|machine| machine.name.clone());
        Cores { machines: ranks.iter().map(name).collect(), known: Vec::new() }
    }

    /// A number for a core of a rank's machine.
    fn place(&mut self, rank: usize, core: Option<u32>) -> Option<usize> {
        let core = (self.machines[rank].clone()?, core?);
        let place = self.known.iter().position(|known| *known == core);
        Some(place.unwrap_or_else(|| {
            self.known.push(core);
            self.known.len() - 1
        }))
    }
}

/// How cores are shared where the ranks ran, with times from `origin` on.
fn turns(ranks: &[Records], origin: u64) -> Turns {
    let machine = ranks.iter().find_map(|rank| rank.machine.as_ref().filter(|machine| machine.tick_ns > 0));
    let Some(Machine { cores, tick_ns, .. }) = machine else { return Turns::default() };
    // The slice of Linux for so many cores, see [`Turns::default`].
    let slice_ns = 700_000 * (1 + u64::from((*cores).clamp(1, 8).ilog2()));
    Turns { tick_ns: *tick_ns, first_ns: tick_ns - origin % tick_ns, slice_ns }
}

/// A step of a rank, and in which of its calls it happens and when.
type Placed = (usize, u64, Step);

/// What ranks do in their calls.
struct Scripts<'a> {
    calls: Vec<Vec<&'a Call>>,
    placed: Vec<Vec<Placed>>,
    /// By rank: sends that block and ended before their message had left, since its data was kept for it.
    early: Vec<HashSet<usize>>,
}

impl<'a> Scripts<'a> {
    fn new(ranks: &'a [Records], messages: &[Message], names: &[String]) -> Scripts<'a> {
        let calls: Vec<Vec<&Call>> = ranks.iter().map(main_calls).collect();
        let mut placed: Vec<Vec<Placed>> = vec![Vec::new(); ranks.len()];
        let mut received: Vec<Received> = calls.iter().map(|calls| Received::of(calls)).collect();
        let mut early: Vec<HashSet<usize>> = vec![HashSet::new(); ranks.len()];
        let senders = senders(&calls, messages);
        for (message, call) in messages.iter().zip(senders) {
            let (from, to) = (message.from as usize, message.to as usize);
            let Some(call) = call else { continue };
            let state = State::of(&calls[from][call].call);
            let until_ns = calls[from][call].until_ns;
            if state == State::Sending && leaves_ns(&ranks[from], message) > until_ns {
                early[from].insert(call);
            }
            let is_early = early[from].contains(&call);
            let way = message.receipt.map(|_| way(message));
            let way = way.map(|way| if is_early && way == Way::Asks { Way::Kept } else { way });
            let step = Step::Send {
                to,
                len: message.len,
                blocks: state == State::Sending && !is_early,
                way,
                carried: message.receipt.and_then(|_| carried(message, names)),
            };
            placed[from].push((call, message.sent_ns.min(until_ns), step));
            let at_ns = message.arrived_ns.unwrap_or(message.sent_ns);
            let nth = (state == State::Synchronizing).then(|| collectives(&calls[from][..call]).count());
            let there = match nth {
                // The same collective of the receiver.
                Some(nth) => collectives(&calls[to]).nth(nth).map(|(place, _)| (place, at_ns)),
                None => received[to].take(from as u32).map(|place| (place, calls[to][place].at_ns)),
            };
            let (place, at_ns) = there.unwrap_or_else(|| (call_at(&calls[to], at_ns), at_ns));
            placed[to].push((place, at_ns, Step::Recv(from)));
        }
        placed.iter_mut().for_each(|steps| steps.sort_by_key(|(call, at_ns, _)| (*call, *at_ns)));
        Scripts { calls, placed, early }
    }

    /// The steps of a rank: between calls it computes.
    fn steps(&self, rank: usize, origin: u64, cores: &mut Cores) -> Vec<Step> {
        let mut steps = Vec::new();
        let (mut until, mut delayed, mut core) = (origin, None, None);
        let ran_ns = |wall_ns: u64, delays: Option<[u64; 2]>| {
            wall_ns - delays.map_or(0, |[from, until]| until.saturating_sub(from).min(wall_ns))
        };
        let mut placed = self.placed[rank].iter().peekable();
        for (place, call) in self.calls[rank].iter().enumerate() {
            if call.at_ns > until {
                let delays = call.delayed_ns.zip(delayed).map(|([now, _], before)| [before, now]);
                steps.push(Step::Compute(ran_ns(call.at_ns - until, delays)));
            }
            (until, delayed) = (call.until_ns, call.delayed_ns.map(|[_, until]| until));
            let wall_ns = call.until_ns.saturating_sub(call.at_ns);
            let took_ns = ran_ns(wall_ns, call.delayed_ns);
            let place_of = cores.place(rank, call.core.filter(|_| call.delayed_ns.is_some()));
            if place_of.is_some() && place_of != core {
                core = place_of;
                steps.extend(core.map(Step::On));
            }
            let state = State::of(&call.call);
            while let Some((_, _, step)) = placed.next_if(|(at, ..)| *at == place) {
                steps.push(*step);
                // A collective goes on when it has what it waits for.
                if state == State::Synchronizing && matches!(step, Step::Recv(_)) {
                    steps.push(Step::Wait);
                }
            }
            match state {
                State::Waiting | State::Synchronizing => steps.push(Step::Wait),
                // They return in any case.
                State::Testing | State::Beginning => {
                    steps.push(Step::Call(took_ns));
                }
                State::Sending if self.early[rank].contains(&place) => {
                    steps.push(Step::Call(took_ns));
                }
                _ => {}
            }
        }
        steps.push(Step::Wait);
        steps
    }
}

/// For each message the call that sent it; `None`: the library's own, before the first call or after the last
/// one, or of ranks without a trace.
fn senders(calls: &[Vec<&Call>], messages: &[Message]) -> Vec<Option<usize>> {
    let sends = |call: &Call| {
        let name = call.function();
        !name.ends_with("_init") && (name.ends_with("send") || name.ends_with("Send"))
    };
    // Sends that have no message yet, by rank, in their order.
    let of = |calls: &Vec<&Call>| (0..calls.len()).filter(|&place| sends(calls[place])).collect();
    let mut open: Vec<BTreeSet<usize>> = calls.iter().map(of).collect();
    let mut found: Vec<Option<usize>> = Vec::new();
    for message in messages {
        let own = calls.get(message.from as usize).filter(|_| (message.to as usize) < calls.len());
        let is_within = |calls: &&Vec<&Call>| {
            let until_ns = calls.iter().map(|call| call.until_ns).max().unwrap_or(0);
            (calls[0].at_ns..=until_ns).contains(&message.sent_ns)
        };
        let place = own.filter(is_within).map(|calls| call_at(calls, message.sent_ns));
        place.map(|place| open[message.from as usize].remove(&place));
        found.push(place);
    }
    // A message may leave in a later call than the one that sent it, which has ended by then.
    for (place, message) in found.iter_mut().zip(messages).filter(|(_, message)| !message.is_collective()) {
        let Some(call) = *place else { continue };
        let (calls, open) = (&calls[message.from as usize], &mut open[message.from as usize]);
        if !sends(calls[call])
            && let Some(&earlier) = open.range(..call).next()
        {
            open.remove(&earlier);
            *place = Some(earlier);
        }
    }
    found
}

/// When the data of a message begins to leave, as far as its sender's trace says it: with the first packet,
/// or, of one that asks, with the first chunk to that rank behind its request.
fn leaves_ns(rank: &Records, message: &Message) -> u64 {
    if way(message) == Way::Eager {
        return message.sent_ns;
    }
    let first = rank.list.partition_point(|record| record.at_ns < message.sent_ns);
    let is_chunk = |record: &&Record| record.what == What::PostChunk && record.peer == message.to;
    rank.list[first..].iter().find(is_chunk).map_or(message.sent_ns, |record| record.at_ns)
}

/// The call in which a rank was then, or the one before.
fn call_at(calls: &[&Call], at_ns: u64) -> usize {
    calls.partition_point(|call| call.at_ns <= at_ns).saturating_sub(1)
}

fn collectives<'a>(calls: &'a [&'a Call]) -> impl Iterator<Item = (usize, &'a &'a Call)> {
    calls.iter().enumerate().filter(|(_, call)| State::of(&call.call) == State::Synchronizing)
}

/// Calls that receive, and have got no message yet.
struct Received {
    from: HashMap<u32, VecDeque<usize>>,
    /// From any rank.
    any: VecDeque<usize>,
}

impl Received {
    fn of(calls: &[&Call]) -> Received {
        let mut received = Received { from: HashMap::new(), any: VecDeque::new() };
        for (place, call) in calls.iter().enumerate() {
            let name = call.function();
            let receives =
                ["Recv", "Irecv", "Sendrecv", "Isendrecv", "Sendrecv_replace", "Isendrecv_replace"];
            match call.from {
                Some(from) if receives.contains(&name) => {
                    received.from.entry(from).or_default().push_back(place);
                }
                None if ["Recv", "Irecv", "Mrecv", "Imrecv"].contains(&name) => received.any.push_back(place),
                _ => {}
            }
        }
        received
    }

    fn take(&mut self, from: u32) -> Option<usize> {
        self.from.get_mut(&from).and_then(VecDeque::pop_front).or_else(|| self.any.pop_front())
    }
}

#[cfg(test)]
#[path = "traced_tests.rs"]
mod tests;
