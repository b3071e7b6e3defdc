//! The figures of a trace: time per rank and rail, imbalance, protocols and why, how well times were
//! predicted.

use nmad_bench::stats::{self, percentile};
use std::collections::BTreeMap;

use super::bars::bars;
use super::links::Links;
use super::messages::Message;
use super::records::{Records, What, program_ns};
use super::states::{State, sums};

/// What a rank did, in nanoseconds by state.
#[derive(Debug, Clone)]
pub(super) struct RankTime {
    pub(super) rank: u32,
    pub(super) by_state: [u64; State::ALL.len()],
    pub(super) sent: u64,
    pub(super) bytes: u64,
}

impl RankTime {
    /// In calls that communicate or wait, without collectives: what P5 calls the communication phase.
    pub(super) fn communication_ns(&self) -> u64 {
        [State::Sending, State::Beginning, State::Waiting, State::Testing, State::OneSided]
            .map(|state| self.by_state[state as usize])
            .iter()
            .sum()
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.by_state.iter().sum()
    }
}

/// What a rail of a rank did.
#[derive(Debug, Clone)]
pub(super) struct RailTime {
    pub(super) rank: u32,
    pub(super) rail: String,
    pub(super) packets: usize,
    pub(super) chunks: usize,
    pub(super) bytes: u64,
    /// It carried something while the program ran.
    pub(super) busy_ns: u64,
}

/// Messages of one protocol that took it for one reason.
#[derive(Debug, Clone)]
pub(super) struct Protocol {
    pub(super) name: String,
    pub(super) why: &'static str,
    pub(super) count: usize,
    pub(super) bytes: u64,
    /// From sending to arrival, the median; none: unknown.
    pub(super) median_ns: Option<u64>,
    /// Predicted less actual over actual time: the median, and that of the absolute values.
    pub(super) error: Option<(f64, f64)>,
}

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) ranks: Vec<RankTime>,
    pub(super) rails: Vec<RailTime>,
    pub(super) protocols: Vec<Protocol>,
    /// From the first call to the end of the last.
    pub(super) duration_ns: u64,
}

pub(super) fn report(all: &[Records], messages: &[Message]) -> Report {
    let rank = |records: &Records| {
        let sent = || messages.iter().filter(|message| message.from == records.rank);
        RankTime {
            rank: records.rank,
            by_state: sums(records),
            sent: sent().count() as u64,
            bytes: sent().map(|message| message.len).sum(),
        }
    };
    let links = Links::of(all);
    let span = program_ns(all).unwrap_or_default();
    Report {
        ranks: all.iter().map(rank).collect(),
        rails: all.iter().flat_map(|records| rails(records, &links, span)).collect(),
        protocols: protocols(messages),
        duration_ns: span.1 - span.0,
    }
}

impl Report {
    /// The longest time in communication over the mean: 1 is balance. `None`: no rank spent time in
    /// communication.
    pub(super) fn imbalance(&self) -> Option<f64> {
        stats::imbalance(self.ranks.iter().map(|rank| rank.communication_ns()))
    }
}

fn rails(records: &Records, links: &Links, (start_ns, end_ns): (u64, u64)) -> Vec<RailTime> {
    let bars = bars(records, links);
    let rail = |(place, name): (usize, &String)| {
        let posted = |what: What| {
            records.list.iter().filter(move |record| record.rail == *name && record.what == what)
        };
        // Bars of a rail do not overlap.
        let within = |at_ns: u64| at_ns.clamp(start_ns, end_ns);
        let busy = bars.of(place).map(|bar| within(bar.end_ns) - within(bar.start_ns));
        RailTime {
            rank: records.rank,
            rail: name.clone(),
            packets: posted(What::PostPacket).count(),
            chunks: posted(What::PostChunk).count(),
            bytes: posted(What::PostPacket).chain(posted(What::PostChunk)).map(|record| record.len).sum(),
            busy_ns: busy.sum(),
        }
    };
    bars.rails.iter().enumerate().map(rail).collect()
}

fn protocols(messages: &[Message]) -> Vec<Protocol> {
    let mut groups: BTreeMap<(&str, &'static str), Vec<&Message>> = BTreeMap::new();
    for message in messages {
        groups.entry((&message.protocol, message.why())).or_default().push(message);
    }
    let protocol = |((name, why), list): ((&str, &'static str), Vec<&Message>)| {
        let times = list.iter().filter_map(|each| Some(each.arrived_ns?.saturating_sub(each.sent_ns)));
        let errors: Vec<f64> = list.iter().filter_map(|message| message.error()).collect();
        let absolute = errors.iter().map(|error| error.abs()).collect();
        Protocol {
            name: name.into(),
            why,
            count: list.len(),
            bytes: list.iter().map(|message| message.len).sum(),
            median_ns: median(times.map(|ns| ns as f64).collect()).map(|ns| ns as u64),
            error: median(errors).zip(median(absolute)),
        }
    };
    groups.into_iter().map(protocol).collect()
}

fn median(values: Vec<f64>) -> Option<f64> {
    percentile(&values, 50)
}
