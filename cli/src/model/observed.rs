//! Times of rails and calls from a trace: the model of a run takes its times from the run itself. A profile
//! was measured at another time, on quieter machines, and one message after the other.

use newmadeleine::engine::{Forecast, Method, Profile, Provenance, Sample};
use nmad_bench::phase::outcome::CallTimes;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trace::{Call, Links, Record, Records, State, What};

/// Fewest passages that a mean is taken of.
const FEWEST: usize = 3;

/// Shortest thing behind others that tells the rate of a rail, in bytes.
const LONG: u64 = 16 << 10;

/// A rail with less than this part of all bytes was hardly used.
const USED_PART: u64 = 10;

/// Bytes that a rail of which one length is known is assumed to carry in as many nanoseconds.
const ASSUMED: u64 = 64 << 10;

/// The device of a rail's interface, as NMAD_RAILS names it.
pub(super) fn device(rail: &str) -> &str {
    rail.rsplit_once('/').map_or(rail, |(_, device)| device)
}

/// Bytes and nanoseconds of a packet or chunk on a rail.
type Passage = (u64, u64);

/// Packets and chunks of a rail.
#[derive(Default)]
struct Passed {
    /// While nothing else was under way, from its posting to its arrival.
    alone: Vec<Passage>,
    /// Behind something else, since that had arrived.
    behind: Vec<Passage>,
    /// Bytes of all.
    bytes: u64,
}

/// Names and forecasts of the rails of these ranks from the run, in the order of their names. A rail that too
/// little passed is left out: the run hardly used it. One that carried data which no rank awaited counts as
/// the first one that is known.
pub(super) fn rails(ranks: &[Records], calls: &[Vec<&Call>]) -> Vec<(String, Forecast)> {
    let mut passages: BTreeMap<String, Passed> = BTreeMap::new();
    let links = Links::of(ranks);
    for rank in ranks {
        // When the last thing from a peer over a rail arrived.
        let mut busy: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        for record in rank.list.iter().filter(|each| is_arrival(each)) {
            let until = busy.insert((record.peer, &record.rail), record.at_ns).unwrap_or(0);
            let Some(posted) = links.times(rank.rank, record).0 else { continue };
            let since = posted.max(until);
            if since > record.at_ns {
                continue;
            }
            let passed = passages.entry(interface(&record.rail).into()).or_default();
            passed.bytes += record.len;
            let own = calls.get(rank.rank as usize);
            let is_awaited = own.is_some_and(|calls| awaits(calls, since, record.at_ns));
            match posted >= until {
                // The time of data that waited for a rank that computed tells nothing of the rail.
                _ if !is_awaited => {}
                true => passed.alone.push((record.len, record.at_ns - posted)),
                false if record.len >= LONG => passed.behind.push((record.len, record.at_ns - until)),
                false => {}
            }
        }
    }
    let least = passages.values().map(|passed| passed.bytes).sum::<u64>() / USED_PART;
    let known = |(name, passed): (String, Passed)| (name, passed.bytes >= least, forecast(passed));
    let known: Vec<(String, bool, Option<Forecast>)> = passages.into_iter().map(known).collect();
    let first = known.iter().find_map(|(_, _, forecast)| forecast.clone());
    let rail = |(name, is_used, forecast): (String, bool, Option<Forecast>)| {
        Some((name, forecast.or_else(|| first.clone().filter(|_| is_used))?))
    };
    known.into_iter().filter_map(rail).collect()
}

fn is_arrival(record: &Record) -> bool {
    matches!(record.what, What::Arrived | What::Landed)
}

/// The name of a rail without its number, which differs from rank to rank.
pub(super) fn interface(rail: &str) -> &str {
    rail.split_once('#').map_or(rail, |(name, _)| name)
}

/// Whether a rank was in a call from then to then.
fn awaits(calls: &[&Call], from: u64, until: u64) -> bool {
    let place = calls.partition_point(|call| call.at_ns <= from);
    place > 0 && calls[place - 1].until_ns >= until
}

/// The means of what passed a rail, by length.
fn forecast(Passed { alone, behind, .. }: Passed) -> Option<Forecast> {
    let mut classes: BTreeMap<u32, Vec<Passage>> = BTreeMap::new();
    // Two classes for each doubling.
    let class = |passage: &Passage| ((passage.0.max(1) as f64).log2() * 2.0).round() as u32;
    for passage in alone {
        classes.entry(class(&passage)).or_default().push(passage);
    }
    classes.retain(|_, list| list.len() >= FEWEST);
    let sample = |list: Vec<Passage>| {
        let mean = |of: fn(&Passage) -> u64| mean(&list.iter().map(of).collect::<Vec<u64>>());
        let (len, ns) = (mean(|passage| passage.0), mean(|passage| passage.1));
        (Method::Copy, Sample { len, ns, low_ns: ns, high_ns: ns, count: list.len() as u32 })
    };
    let mut samples: Vec<(Method, Sample)> = classes.into_values().map(sample).collect();
    // A rail may carry a short burst faster than its rate: what is longer goes on with that of long bodies.
    if let (Some(&(_, longest)), true) = (samples.last(), behind.len() >= FEWEST) {
        let (bytes, ns) =
            behind.iter().fold((0, 0), |(bytes, ns), passage| (bytes + passage.0, ns + passage.1));
        let more = longest.len.max(LONG);
        let ns = longest.ns + (ns as f64 / bytes as f64 * more as f64) as u64;
        let len = longest.len + more;
        samples.push((Method::Copy, Sample { len, ns, low_ns: ns, high_ns: ns, count: behind.len() as u32 }));
    }
    if let [(_, Sample { len, ns, count, .. })] = samples[..] {
        // The start of the rail is known, and short messages depend on little else.
        let (len, ns) = (len + ASSUMED, ns + ASSUMED);
        samples.push((Method::Copy, Sample { len, ns, low_ns: ns, high_ns: ns, count }));
    }
    let provenance = Provenance { how: "a traced run".into(), ..Provenance::default() };
    Profile::new(provenance, samples).ok().map(|profile| Forecast::new(Arc::new(profile)))
}

/// What a call takes before the first of its packets leaves, and after the last of what it waits for has
/// come.
pub(super) fn call_times(ranks: &[Records], calls: &[Vec<&Call>]) -> CallTimes {
    let (mut enters, mut posts, mut leaves, mut keeps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (rank, calls) in ranks.iter().zip(calls) {
        for call in calls {
            let state = State::of(&call.call);
            if !matches!(state, State::Sending | State::Waiting | State::Synchronizing) {
                continue;
            }
            let first = rank.list.partition_point(|record| record.at_ns < call.at_ns);
            let within = || rank.list[first..].iter().take_while(|record| record.at_ns <= call.until_ns);
            // What comes later in a call has waited for something else.
            if let Some(posted) = within().next().filter(|record| record.what == What::PostPacket) {
                enters.push(posted.at_ns - call.at_ns);
                let of = |record: &Record| (record.peer, record.rail.clone(), record.number);
                let is_it = |record: &&Record| record.what == What::Sent && of(record) == of(posted);
                // A blocking send ends with it; other calls look for it between other things.
                let sent = within().find(is_it).filter(|_| state == State::Sending);
                posts.extend(sent.map(|sent| sent.at_ns.saturating_sub(posted.at_ns)));
            }
            if let Some(last) = within().filter(|record| is_arrival(record)).last() {
                leaves.push(call.until_ns - last.at_ns);
            }
            if state == State::Sending && within().any(|record| record.what == What::PostChunk) {
                keeps.push(keep_ps(within(), call.until_ns));
            }
        }
    }
    let bodies: Vec<u64> = ranks.iter().zip(calls).flat_map(|(rank, calls)| body_ps(rank, calls)).collect();
    // The model ends all sends of bodies in one way: with a copy if most of them did.
    let with_bodies = keeps.len();
    let keeps: Vec<u64> = keeps.into_iter().flatten().collect();
    let keep_ps = match keeps.len() {
        few if few < FEWEST || few * 2 < with_bodies => 0,
        _ => mean(&keeps).max(1),
    };
    CallTimes {
        body_ps: mean(&bodies),
        enter_ns: mean(&enters),
        post_ns: mean(&posts),
        leave_ns: mean(&leaves),
        keep_ps,
    }
}

/// The time of a blocking send for each byte after its rails had taken all of it, if it ended without news of
/// its receiver, in picoseconds.
fn keep_ps<'a>(within: impl Iterator<Item = &'a Record>, until_ns: u64) -> Option<u64> {
    let (mut given, mut last) = (0, None);
    for record in within {
        given += if record.what == What::PostChunk { record.len } else { 0 };
        last = Some(record);
    }
    let last = last.filter(|last| given > 0 && !is_arrival(last))?;
    Some((until_ns - last.at_ns) * 1000 / given)
}

/// The most bytes of chunks that a rail had taken from a rank and that had not arrived at a peer: in the
/// buffers of both kernels, which grow.
pub(super) fn swallows(ranks: &[Records]) -> u64 {
    let links = Links::of(ranks);
    let of_rank = |rank: &Records| {
        let mut changes: BTreeMap<(u32, &str), Vec<(u64, i64)>> = BTreeMap::new();
        for (place, chunk) in rank.list.iter().enumerate().filter(|(_, each)| each.what == What::PostChunk) {
            let is_it = |each: &&Record| {
                each.what == What::Sent
                    && (each.peer, &each.rail, each.number) == (chunk.peer, &chunk.rail, chunk.number)
            };
            let taken = rank.list[place..].iter().find(is_it).map(|sent| sent.at_ns);
            let Some((taken, arrived)) = taken.zip(links.times(rank.rank, chunk).1) else { continue };
            if taken < arrived {
                let changes = changes.entry((chunk.peer, &chunk.rail)).or_default();
                changes.extend([(taken, chunk.len as i64), (arrived, -(chunk.len as i64))]);
            }
        }
        changes.into_values().map(most).max().unwrap_or(0)
    };
    ranks.iter().map(of_rank).max().unwrap_or(0)
}

/// The largest sum of changes, each with its time.
fn most(mut changes: Vec<(u64, i64)>) -> u64 {
    changes.sort_unstable();
    let sums = changes.iter().scan(0, |sum: &mut i64, (_, change)| {
        *sum += change;
        Some(*sum)
    });
    sums.max().unwrap_or(0).max(0) as u64
}

/// Shortest packet that tells what the core takes for a byte.
const COPIED: u64 = 4 << 10;

/// What the core of a rank took for each byte of what it posted, in picoseconds: until it did the next
/// thing in that call.
fn body_ps(rank: &Records, calls: &[&Call]) -> Vec<u64> {
    let took = |pair: &[Record]| {
        let [posted, next] = pair else { return None };
        let is_posted = matches!(posted.what, What::PostChunk | What::PostPacket) && posted.len >= COPIED;
        let is_one = is_posted && awaits(calls, posted.at_ns, next.at_ns);
        is_one.then(|| (next.at_ns - posted.at_ns) * 1000 / posted.len)
    };
    rank.list.windows(2).filter_map(took).collect()
}

/// The mean of all but the slowest 15 %: there the core had another program for a turn. Over 43 runs on two
/// cores with other work (load 8 to 12), with 15 % left out the time in MPI is off by 24 % in the median,
/// with 7 % left out too, and with half of them (the median) by 34 % on two hosts.
fn mean(list: &[u64]) -> u64 {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.truncate((list.len() * 85 / 100).max(1));
    list.iter().sum::<u64>() / (list.len() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rail_holds_what_is_between_two_sums() {
        assert_eq!(most(vec![(1, 100), (4, -100), (2, 50), (3, -50), (5, 120), (6, -120)]), 150);
        assert_eq!(most(Vec::new()), 0);
    }

    #[test]
    fn a_rail_of_which_one_length_is_known_has_a_start_and_an_assumed_rate() {
        assert!(forecast(Passed { alone: vec![(48, 20_000); 2], ..Passed::default() }).is_none());
        let known = forecast(Passed { alone: vec![(48, 20_000); 3], ..Passed::default() }).expect("a start");
        assert_eq!((known.eager_ns(48), known.eager_ns(10_048)), (20_000, 30_000));
    }
}
