//! The decision about one message, with what it was made from.

use newmadeleine::engine::schedule::lone::rail_of_lone;
use newmadeleine::engine::schedule::wire;
use newmadeleine::engine::{Config, Forecast, Instant, PeerId, RailId, RailView, Registry, Shares};
use nmad_bench::stats::{bytes, number};
use nmad_bench::table::Table;
use serde::Serialize;
use std::fmt;

/// A time at which nothing has happened yet.
const NOW: Instant = Instant::from_ns(0);
/// What a short message is, where rails are compared.
const SHORT: u64 = 8;

/// A rail that might carry it.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) forecast: Forecast,
    /// For how long it has something to do, in nanoseconds.
    pub(super) busy_ns: u64,
    /// In bytes per second, zero if unknown.
    pub(super) bandwidth: u64,
    /// In nanoseconds, zero if unknown.
    pub(super) latency_ns: u64,
}

/// The message and the strategy that the user asks about.
pub(super) struct Question {
    pub(super) len: u64,
    /// The rank that it goes to.
    pub(super) to: u32,
    pub(super) strategy: String,
    /// The registered strategies.
    pub(super) registry: Registry,
    pub(super) lanes: Vec<Lane>,
    /// Longest message that is not announced, where that is fixed.
    pub(super) eager_max: Option<u64>,
}

/// The decision and its reasons.
#[derive(Serialize)]
pub(super) struct Answer {
    bytes: u64,
    strategy: String,
    /// `eager` or `rendezvous`.
    method: &'static str,
    /// The size from which on messages are announced, and the rail whose profile says so.
    rendezvous_from: u64,
    threshold_of: String,
    rails: Vec<Candidate>,
    /// Until the message is there, in microseconds.
    predicted_us: f64,
    /// The rail that alone would be done first, and when, in microseconds.
    best_alone: String,
    best_alone_us: f64,
    why: String,
}

/// One rail and its part.
#[derive(Serialize)]
struct Candidate {
    rail: String,
    measured: bool,
    busy_us: f64,
    /// The whole message in a packet, on this rail alone; none: it is too long.
    eager_us: Option<f64>,
    /// The whole message announced first, on this rail alone.
    rendezvous_us: f64,
    /// Bytes that it gets.
    share: u64,
    /// When it is done with them; none: it gets nothing.
    ends_us: Option<f64>,
}

impl Candidate {
    fn is_used(&self) -> bool {
        self.ends_us.is_some()
    }
}

/// Asks the strategy.
pub(super) fn decide(question: &Question) -> Result<Answer, String> {
    let Question { len, strategy, lanes, .. } = question;
    let fastest = fastest(lanes).ok_or("no rail leads there")?;
    let to = PeerId(question.to);
    let mut maker = question.registry.make(strategy).map_err(|error| error.to_string())?;
    maker.meet(to);
    let pushes = lanes.len() == 1 && push_min(&lanes[fastest]).is_some();
    let rendezvous_from = question.eager_max.unwrap_or_else(|| threshold(&lanes[fastest], pushes)) + 1;
    let reads = lanes.len() == 1 && is_read(&lanes[fastest], *len);
    let is_eager = *len < rendezvous_from && !reads;
    let names: Vec<String> = lanes.iter().map(|lane| lane.name.clone()).collect();
    let wires = newmadeleine::wires(&names);
    let views: Vec<RailView> =
        lanes.iter().enumerate().map(|lane| view(lane, wires[lane.0], fastest)).collect();
    // None: the rail gets nothing, which is not the same as a message of no bytes.
    let shares: Vec<Option<u64>> = if is_eager {
        let chosen = rail_of_lone(&mut *maker, to, (NOW, u32::try_from(*len).unwrap_or(u32::MAX)), &views);
        let chosen = chosen.map_or(fastest, RailId::index);
        (0..lanes.len()).map(|index| (index == chosen).then_some(*len)).collect()
    } else {
        let shares = shares_of(&wire::split(&mut *maker, NOW, *len, &views), question);
        shares.into_iter().map(|share| Some(share).filter(|&share| share > 0)).collect()
    };
    let handshake_ns =
        if is_eager || pushes || reads { 0 } else { 2 * lanes[fastest].forecast.eager_ns(SHORT) };
    let ends_ns = |lane: &Lane, share: u64| match is_eager {
        true => lane.busy_ns + lane.forecast.eager_ns(share),
        // The request and its answer go while the rail still has something to do.
        false => lane.busy_ns.max(handshake_ns) + lane.forecast.body_ns(share),
    };
    let alone = |lane: &Lane| ends_ns(lane, *len);
    let best = lanes.iter().min_by_key(|lane| alone(lane)).unwrap_or(&lanes[fastest]);
    let candidate = |(lane, &share): (&Lane, &Option<u64>)| Candidate {
        rail: lane.name.clone(),
        measured: lane.forecast.is_measured(),
        busy_us: us(lane.busy_ns),
        eager_us: is_eager.then(|| us(lane.busy_ns + lane.forecast.eager_ns(*len))),
        rendezvous_us: us(lane.busy_ns + lane.forecast.profile().rendezvous_ns(*len)),
        share: share.unwrap_or(0),
        ends_us: share.map(|share| us(ends_ns(lane, share))),
    };
    let rails: Vec<Candidate> = lanes.iter().zip(&shares).map(candidate).collect();
    let predicted_us = rails.iter().filter_map(|rail| rail.ends_us).fold(0.0, f64::max);
    let answer = Answer {
        bytes: *len,
        strategy: strategy.clone(),
        method: match is_eager {
            true => "eager",
            false if reads => "read",
            false if pushes => "pushed",
            false => "rendezvous",
        },
        rendezvous_from,
        threshold_of: lanes[fastest].name.clone(),
        rails,
        predicted_us,
        best_alone: best.name.clone(),
        best_alone_us: us(alone(best)),
        why: String::new(),
    };
    Ok(Answer { why: why(&answer), ..answer })
}

/// The rail for short messages.
fn fastest(lanes: &[Lane]) -> Option<usize> {
    (0..lanes.len()).min_by_key(|&index| lanes[index].forecast.eager_ns(SHORT))
}

/// Longest message that a rail's profile would not announce; `pushes`: data need not wait for an answer.
fn threshold(lane: &Lane, pushes: bool) -> u64 {
    let measured = lane.forecast.profile().thresholds();
    let announced = measured.map(|thresholds| thresholds.rendezvous_min);
    let from = if pushes { push_min(lane) } else { announced };
    from.map_or(Config::EAGER_MAX as u64, |from| from.saturating_sub(1))
}

/// From which size on data follows its announcement at once, if the rail is alone and does that.
fn push_min(lane: &Lane) -> Option<u64> {
    Some(lane.forecast.profile().thresholds()?.push_min).filter(|&from| from != u64::MAX)
}

/// Whether the receiver reads such a message from the sender's memory, where the rail is alone.
fn is_read(lane: &Lane, len: u64) -> bool {
    let measured = lane.forecast.profile().thresholds();
    measured.is_some_and(|thresholds| (thresholds.read_min..thresholds.read_max).contains(&len))
}

fn view<'a>((index, lane): (usize, &'a Lane), wire: usize, fastest: usize) -> RailView<'a> {
    RailView {
        rail: RailId(index as u8),
        wire: RailId(wire as u8),
        idle_at: Instant::from_ns(lane.busy_ns),
        bandwidth: lane.bandwidth,
        latency_ns: lane.latency_ns,
        primary: index == 0,
        fastest: index == fastest,
        forecast: &lane.forecast,
        rivals: &[],
    }
}

fn shares_of(shares: &Shares, question: &Question) -> Vec<u64> {
    let lanes = &question.lanes;
    match shares {
        Shares::Fixed(list) => {
            let of = |index: usize| list.iter().filter(|s| s.0.index() == index).map(|s| s.1).sum();
            (0..lanes.len()).map(of).collect()
        }
        Shares::FirstIdle => {
            let first = (0..lanes.len()).min_by_key(|&index| lanes[index].busy_ns);
            (0..lanes.len()).map(|index| if Some(index) == first { question.len } else { 0 }).collect()
        }
    }
}

/// The reason in a sentence or two.
fn why(answer: &Answer) -> String {
    let Answer { bytes: len, rendezvous_from, threshold_of, best_alone, best_alone_us, .. } = answer;
    let (size, threshold) = (bytes(*len), bytes(*rendezvous_from));
    let used: Vec<&Candidate> = answer.rails.iter().filter(|rail| rail.is_used()).collect();
    let first = match answer.method {
        "eager" => {
            format!("{size} is below {threshold}, from where on messages over {threshold_of} are announced")
        }
        _ => format!("{size} is announced first: the threshold of {threshold_of} is {threshold}"),
    };
    let second = match used[..] {
        [only] if only.busy_us > 0.0 => format!("{} is done first although it is busy", only.rail),
        [only] if only.rail == *best_alone => format!("{} alone is done first", only.rail),
        [only] => {
            format!("{} is the choice of {}; {best_alone} would be done first", only.rail, answer.strategy)
        }
        _ => {
            let gain = 100.0 * answer.predicted_us / best_alone_us.max(1e-9);
            let idle = answer.rails.len() - used.len();
            let rest = if idle > 0 { format!(" ({idle} would only be late)") } else { String::new() };
            format!("{} rails share it{rest}: {gain:.0} % of the time of {best_alone} alone", used.len())
        }
    };
    format!("{first}; {second}")
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("{} with strategy {}, us", bytes(self.bytes), self.strategy);
        let header = ["rail", "busy", "eager, alone", "announced, alone", "gets", "part", "is done after"];
        let mut table = Table::new(title, &header);
        for rail in &self.rails {
            let figure = |value: Option<f64>| value.map_or("-".into(), |value| number(value).to_string());
            let name = if rail.measured { rail.rail.clone() } else { format!("{} (nominal)", rail.rail) };
            let part = (self.bytes > 0).then(|| 100.0 * rail.share as f64 / self.bytes as f64);
            table.row([
                name,
                figure(Some(rail.busy_us).filter(|&us| us > 0.0)),
                figure(rail.eager_us),
                figure(Some(rail.rendezvous_us)),
                if rail.is_used() { format!("{} B", rail.share) } else { "-".into() },
                part.filter(|_| rail.is_used()).map_or("-".into(), |part| format!("{part:.1} %")),
                figure(rail.ends_us),
            ]);
        }
        write!(f, "{table}")?;
        writeln!(f, "{} after {} us: {}", self.method, number(self.predicted_us), self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use newmadeleine::engine::{Method, Profile, Provenance, Sample};
    use std::sync::Arc;

    /// A rail of 100 MB/s.
    fn lane(name: &str) -> Lane {
        let sample = |len: u64| (Method::Copy, Sample::of(len, &mut [1000 + 10 * len]).expect("a time"));
        let profile = Profile::new(Provenance::default(), [8, 1 << 22].map(sample)).expect("two sizes");
        let forecast = Forecast::new(Arc::new(profile));
        Lane { name: name.into(), forecast, busy_ns: 0, bandwidth: 100_000_000, latency_ns: 1000 }
    }

    fn answer(len: u64, names: &[&str]) -> Answer {
        let (strategy, lanes) = ("auto".into(), names.iter().map(|name| lane(name)).collect());
        let registry = Registry::default();
        let question = Question { len, to: 1, strategy, registry, lanes, eager_max: None };
        decide(&question).expect("there is such a strategy")
    }

    fn used(names: [&str; 2]) -> usize {
        answer(4 << 20, &names).rails.iter().filter(|rail| rail.is_used()).count()
    }

    #[test]
    fn a_message_of_no_bytes_goes_over_a_rail_and_takes_its_time() {
        for names in [&["tcp/r0"][..], &["tcp/r0", "tcp/r1"]] {
            let answer = answer(0, names);
            let ends: Vec<Option<f64>> = answer.rails.iter().map(|rail| rail.ends_us).collect();
            assert_eq!(ends[0], answer.rails[0].eager_us);
            assert!(ends[1..].iter().all(Option::is_none), "{ends:?}");
            assert_eq!(Some(answer.predicted_us), ends[0]);
            assert!(
                answer.predicted_us > 0.0 && answer.why.ends_with("tcp/r0 alone is done first"),
                "{answer}"
            );
            assert!(answer.to_string().contains("0 B"), "{answer}");
        }
    }

    #[test]
    fn two_drivers_of_one_interface_do_not_share_a_message() {
        assert_eq!(used(["tcp/r0", "tcp/r1"]), 2);
        assert_eq!(used(["tcp/r0", "udp/r0"]), 1);
    }
}
