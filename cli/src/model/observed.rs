//! Times of rails and calls from a trace: the model of a run takes its times from the run itself. A profile
//! was measured at another time, on quieter machines, and one message after the other.

use newmadeleine::engine::{Forecast, Method, Profile, Provenance, Sample};
use nmad_bench::phase::outcome::{CallTimes, Rail};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trace::{Call, Links, Record, Records, State, What};

/// Fewest passages that a mean is taken of.
const FEWEST: usize = 3;

/// Longest packet that tells the start of a rail, in bytes.
const SHORT: u64 = 256;

/// Length in bytes for which a profile with a rail's rate has a time.
const LONG: u64 = 1 << 20;

/// Fewest bytes that tell the rate of a rail.
const LEAST: u64 = 4 << 10;

/// A rail with less than this part of all bytes was hardly used.
const USED_PART: u64 = 10;

/// Nanoseconds for a byte of a rail that carried nothing long.
const ASSUMED: f64 = 1.0;

/// The device of a rail's interface, as NMAD_RAILS names it.
pub(super) fn device(rail: &str) -> &str {
    rail.rsplit_once('/').map_or(rail, |(_, device)| device)
}

/// A packet or chunk that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    len: u64,
    posted_ns: u64,
    at_ns: u64,
    /// Its receiver was in a call since it was posted, or since what came before it had arrived.
    is_awaited: bool,
    /// Time of the record before it in the same call, or of the beginning of the call. None: the receiver
    /// was in no call.
    since: Option<u64>,
    is_body: bool,
}

/// Packets and chunks of a rail from one rank to another, each posted before the one before it had arrived.
pub(super) type Run = Vec<Arrival>;

/// By rail.
pub(super) type Runs = BTreeMap<String, Vec<Run>>;

/// Names and rails of the ranks of a run, in the order of their names. A rail without enough
/// samples counts as the first one that is known if it carried at least a tenth of all bytes; otherwise it is
/// left out.
pub(super) fn rails(runs: &Runs) -> Vec<(String, Rail)> {
    let all = |runs: &Vec<Run>| runs.iter().map(bytes).sum::<u64>();
    let least = runs.values().map(all).sum::<u64>() / USED_PART;
    let are_awaited = runs.values().any(|runs| forecast(runs, true).is_some());
    let first = runs.values().find_map(|runs| forecast(runs, are_awaited));
    let rail = |(name, runs): (&String, &Vec<Run>)| {
        let is_used = all(runs) >= least;
        Some((name.clone(), forecast(runs, are_awaited).or_else(|| first.clone().filter(|_| is_used))?))
    };
    runs.iter().filter_map(rail).collect()
}

fn bytes(run: &Run) -> u64 {
    run.iter().map(|arrival| arrival.len).sum()
}

/// All that passed each rail.
pub(super) fn runs(ranks: &[Records], calls: &[Vec<&Call>]) -> Runs {
    let mut runs = Runs::new();
    let links = Links::of(ranks);
    for rank in ranks {
        let mut open: BTreeMap<(u32, &str), Run> = BTreeMap::new();
        for (place, record) in rank.list.iter().enumerate().filter(|(_, each)| is_arrival(each)) {
            let run = open.entry((record.peer, &record.rail)).or_default();
            let Some(posted_ns) = links.times(rank.rank, record).0 else { continue };
            let until = run.last().map_or(0, |last| last.at_ns);
            let since = posted_ns.max(until);
            if since > record.at_ns {
                continue;
            }
            if posted_ns >= until && !run.is_empty() {
                runs.entry(interface(&record.rail).into()).or_default().push(std::mem::take(run));
            }
            let own = calls.get(rank.rank as usize);
            let is_awaited = own.is_some_and(|calls| awaits(calls, since, record.at_ns));
            let before = place.checked_sub(1).map_or(0, |place| rank.list[place].at_ns);
            let call = own.and_then(|calls| call_of(calls, record.at_ns));
            run.push(Arrival {
                len: record.len,
                posted_ns,
                at_ns: record.at_ns,
                is_awaited,
                since: call.map(|call| before.max(call.at_ns)),
                is_body: record.what == What::Landed,
            });
        }
        for ((_, rail), run) in open {
            runs.entry(interface(rail).into()).or_default().push(run);
        }
    }
    runs
}

fn is_arrival(record: &Record) -> bool {
    matches!(record.what, What::Arrived | What::Landed)
}

/// The name of a rail without its number, which differs from rank to rank.
pub(super) fn interface(rail: &str) -> &str {
    rail.split_once('#').map_or(rail, |(name, _)| name)
}

/// Whether a rank was in one call from `from` to `until`, and had its core nearly all the time.
fn awaits(calls: &[&Call], from: u64, until: u64) -> bool {
    call_of(calls, until).is_some_and(|call| call.at_ns <= from)
}

/// The call in which a rank was then, if it had its core in it.
fn call_of<'a>(calls: &[&'a Call], at_ns: u64) -> Option<&'a Call> {
    let call = calls[..calls.partition_point(|call| call.at_ns <= at_ns)].last()?;
    (call.until_ns >= at_ns && call.had_core()).then_some(*call)
}

/// The start of a rail from what found it idle, and its rate and burst from what it carried at most. The time
/// of data that waited for a rank that computed, or had no core, tells nothing of the rail. Where all of it
/// did, the third fastest counts, since a late receiver only adds time.
fn forecast(runs: &[Run], are_awaited: bool) -> Option<Rail> {
    let short = |is_one: fn(&Arrival) -> bool| {
        let alone = runs.iter().filter_map(|run| run.first()).filter(|first| is_one(first));
        let mut alone: Vec<(u64, u64)> =
            alone.map(|first| (first.len, first.at_ns - first.posted_ns)).collect();
        alone.sort_unstable();
        // Short ones, or whatever is shortest.
        alone.truncate(alone.partition_point(|passage| passage.0 <= SHORT).max(FEWEST));
        Some(alone.into_iter().map(|passage| passage.1).collect())
            .filter(|short: &Vec<u64>| short.len() >= FEWEST)
    };
    let start_ns = match are_awaited {
        true => mean(&short(|first| first.is_awaited)?),
        false => {
            let mut all = short(|_| true)?;
            all.sort_unstable();
            all[FEWEST - 1]
        }
    };
    let (ns_per_byte, burst) = rate_and_burst(runs, start_ns).unwrap_or((ASSUMED, 0));
    let sample = |len: u64| {
        let ns = start_ns + (ns_per_byte * len as f64) as u64;
        (Method::Copy, Sample { len, ns, low_ns: ns, high_ns: ns, count: FEWEST as u32 })
    };
    let provenance = Provenance { how: "a traced run".into(), ..Provenance::default() };
    let profile = Profile::new(provenance, vec![sample(1), sample(LONG)]).ok()?;
    Some(Rail { forecast: Forecast::new(Arc::new(profile)), burst })
}

/// Nanoseconds for a byte on the rail, and the burst that it carries beyond that rate after it was idle, in
/// bytes. A late receiver only lowers the rate, so the higher of two rates counts: of all runs, and of the
/// data that receivers waited for.
fn rate_and_burst(runs: &[Run], start_ns: u64) -> Option<(f64, u64)> {
    let awaited = |run: &Run| run.iter().take_while(|arrival| arrival.is_awaited).copied().collect();
    let awaited: Vec<Run> = runs.iter().map(awaited).collect();
    let longest = |runs: &[Run]| runs.iter().map(bytes).max().unwrap_or(0);
    // The awaited beginnings of runs may be too short.
    let is_known = longest(&awaited) >= longest(runs) / 4;
    let of_awaited = if is_known { fastest(&awaited, start_ns) } else { None };
    let of_all = fastest(runs, start_ns);
    of_awaited.into_iter().chain(of_all).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// The rate of these runs from the second halves of the fastest long ones, the burst from their first halves;
/// none if few are as long as that. A single run may have been misjudged, so the third one counts.
fn fastest(runs: &[Run], start_ns: u64) -> Option<(f64, u64)> {
    let mut lengths: Vec<u64> = runs.iter().map(bytes).collect();
    lengths.sort_unstable_by_key(|&len| Reverse(len));
    let longest = *lengths.get(FEWEST - 1).filter(|&&len| len >= LEAST)?;
    let fastest_to = |least: u64| {
        let mut times: Vec<(u64, u64)> = runs.iter().filter_map(|run| until(run, least, start_ns)).collect();
        times.sort_unstable();
        times.get(FEWEST - 1).copied()
    };
    let (ns, bytes) = fastest_to(longest - longest / 8)?;
    let (half_ns, half) = fastest_to(longest / 2)?;
    if bytes < half + LEAST || ns <= half_ns {
        return (ns > 0).then(|| (ns as f64 / bytes as f64, 0));
    }
    let ns_per_byte = (ns - half_ns) as f64 / (bytes - half) as f64;
    let carried = half_ns as f64 / ns_per_byte;
    Some((ns_per_byte, half.saturating_sub(carried as u64)))
}

/// When at least `least` bytes of a run had arrived, without the start of the rail, and the bytes by then.
fn until(run: &Run, least: u64, start_ns: u64) -> Option<(u64, u64)> {
    let mut sum = 0;
    let last = run.iter().find(|arrival| {
        sum += arrival.len;
        sum >= least
    });
    last.map(|last| (last.at_ns.saturating_sub(run[0].posted_ns + start_ns), sum))
}

/// What a call takes before the first of its packets leaves, and after the last of what it waits for has
/// come.
pub(super) fn call_times(
    ranks: &[Records],
    calls: &[Vec<&Call>],
    runs: &Runs,
    rails: &[(String, Rail)],
) -> CallTimes {
    let (mut enters, mut posts, mut leaves, mut keeps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (rank, calls) in ranks.iter().zip(calls) {
        for call in calls {
            let state = State::of(&call.call);
            let is_one = matches!(state, State::Sending | State::Waiting | State::Synchronizing);
            if !is_one || !call.had_core() {
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
                if state == State::Sending {
                    let until_ns = within().find(is_it).map_or(call.until_ns, |sent| sent.at_ns);
                    posts.push((posted.len, until_ns.saturating_sub(posted.at_ns)));
                }
            }
            if let Some(last) =
                within().filter(|record| is_arrival(record)).last().filter(|_| state != State::Sending)
            {
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
    let body_ps = mean(&bodies);
    CallTimes {
        body_ps,
        enter_ns: mean(&enters),
        post_ns: shortest(posts),
        read_ps: read_ps(runs, rails, body_ps),
        leave_ns: mean(&leaves),
        keep_ps,
    }
}

fn mean(list: &[u64]) -> u64 {
    list.iter().sum::<u64>() / (list.len() as u64).max(1)
}

fn median(mut list: Vec<u64>) -> u64 {
    list.sort_unstable();
    list.get(list.len() / 2).copied().unwrap_or(0)
}

/// Time of posting besides its bytes: the median of the shorter half.
fn shortest(mut posts: Vec<(u64, u64)>) -> u64 {
    posts.sort_unstable();
    posts.truncate(posts.len().div_ceil(2));
    median(posts.into_iter().map(|(_, ns)| ns).collect())
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

/// Of eager data and of bodies, what the core of a receiver takes for each byte that it reads, in
/// picoseconds: of what had come before the receiver began with it. Where nothing had, as much as posting
/// takes.
pub(super) fn read_ps(runs: &Runs, rails: &[(String, Rail)], otherwise: u64) -> [u64; 2] {
    let mut took: [Vec<u64>; 2] = Default::default();
    for (name, rail) in rails {
        let start_ns = rail.forecast.eager_ns(1);
        for run in runs.get(name).into_iter().flatten() {
            let mut sum = 0;
            for arrival in run {
                sum += arrival.len;
                let came_ns =
                    run[0].posted_ns + start_ns + rail.forecast.busy_ns(sum.saturating_sub(rail.burst));
                let Some(since) = arrival.since.filter(|since| *since >= came_ns) else { continue };
                if arrival.len >= COPIED {
                    took[usize::from(arrival.is_body)].push((arrival.at_ns - since) * 1000 / arrival.len);
                }
            }
        }
    }
    took.map(|took| if took.len() < FEWEST { otherwise } else { median(took) })
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
        let run = vec![Arrival {
            len: 48,
            posted_ns: 0,
            at_ns: 20_000,
            is_awaited: true,
            since: None,
            is_body: false,
        }];
        assert!(forecast(&vec![run.clone(); 2], true).is_none());
        let Rail { forecast: known, burst } = forecast(&vec![run; 3], true).expect("a start");
        assert_eq!(burst, 0);
        assert!(known.eager_ns(10_048).abs_diff(30_000) < 100);
    }

    /// Five pieces of 100 KB on a rail with 2 ns for a byte, a start of 10 us and a burst of 100 KB; the
    /// receiver computes for some time before it reads the last two.
    fn run(late_ns: u64) -> Run {
        let piece = |number: u64| Arrival {
            len: 100_000,
            posted_ns: 0,
            at_ns: 10_000 + number * 200_000 + if number < 3 { 0 } else { late_ns },
            is_awaited: number < 3,
            since: None,
            is_body: true,
        };
        (0..5).map(piece).collect()
    }

    #[test]
    fn the_fastest_runs_tell_rate_and_burst_and_late_receivers_do_not() {
        let late: Vec<Run> = vec![run(3_000_000); 20];
        let some = [late.clone(), vec![run(0); 3]].concat();
        let (rate, burst) = rate_and_burst(&some, 10_000).unwrap();
        assert!((rate - 2.0).abs() < 0.01 && burst.abs_diff(100_000) < 1_000, "{rate} {burst}");
        // All of them are late: what was waited for tells.
        let (rate, burst) = rate_and_burst(&late, 10_000).unwrap();
        assert!((rate - 2.0).abs() < 0.01 && burst.abs_diff(100_000) < 1_000, "{rate} {burst}");
    }

    #[test]
    fn what_lay_there_tells_how_fast_a_receiver_reads() {
        let rail = Rail { forecast: Forecast::nominal(10_000, 500_000_000, 1), burst: 0 };
        let read = Arrival {
            len: 100_000,
            posted_ns: 0,
            at_ns: 5_020_000,
            is_awaited: false,
            since: Some(5_000_000),
            is_body: true,
        };
        // The other one waited for the rail.
        let waited = Arrival { at_ns: 210_000, since: Some(10_000), is_awaited: true, ..read };
        let runs = Runs::from([("r".into(), [vec![vec![read]; 4], vec![vec![waited]; 9]].concat())]);
        assert_eq!(read_ps(&runs, &[("r".into(), rail)], 7), [7, 200]);
    }
}
