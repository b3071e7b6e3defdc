//! What a rail carried from when to when: the posting of an order joined with its end.

use nmad_bench::plot::{RailLane, Span};
use std::collections::HashMap;

use super::links::Links;
use super::records::{Record, Records, What};

/// A packet or chunk on a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    /// Number of the rail among [`Bars::rails`].
    rail: usize,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) len: u64,
    pub(crate) is_chunk: bool,
}

/// All that one rank sent, in the order of posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bars {
    pub(crate) rails: Vec<String>,
    list: Vec<Bar>,
}

/// The orders that `sender` posted, as bars. An order ends when the receiver had it, if its trace is there
/// and says so, else when the rail reported it as sent, which for a socket is when the kernel had taken it. A
/// rail carries one order after the other: an order posted to a busy rail begins when the one before ends.
pub(crate) fn bars(sender: &Records, links: &Links) -> Bars {
    let rails = sender.rails();
    let sent = sent(&sender.list);
    let mut free_ns = vec![0; rails.len()];
    let bar = |record: &Record| {
        let is_chunk = match record.what {
            What::PostChunk => true,
            What::PostPacket => false,
            _ => return None,
        };
        let rail = rails.binary_search(&record.rail).ok()?;
        let arrival = links.times(sender.rank, record).1.filter(|arrived| *arrived >= record.at_ns);
        let left = || {
            let times = sent.get(&(record.rail.as_str(), record.peer, record.number))?;
            times.iter().copied().find(|at| *at >= record.at_ns)
        };
        let end_ns = arrival.or_else(left)?;
        let start_ns = record.at_ns.max(free_ns[rail]).min(end_ns);
        free_ns[rail] = end_ns.max(free_ns[rail]);
        Some(Bar { rail, start_ns, end_ns, len: record.len, is_chunk })
    };
    let list = sender.list.iter().filter_map(bar).collect();
    Bars { rails, list }
}

/// When rails reported what they had sent, by rail, peer and number.
fn sent(list: &[Record]) -> HashMap<(&str, u32, u32), Vec<u64>> {
    let mut sent: HashMap<_, Vec<u64>> = HashMap::new();
    for record in list.iter().filter(|record| record.what == What::Sent) {
        sent.entry((record.rail.as_str(), record.peer, record.number)).or_default().push(record.at_ns);
    }
    sent
}

impl Bars {
    /// The chunks of each large message of `len` bytes, if messages came one after the other.
    pub(crate) fn messages(&self, len: u64) -> Vec<Bars> {
        let mut messages: Vec<Vec<Bar>> = Vec::new();
        let mut missing = 0;
        for bar in self.list.iter().filter(|bar| bar.is_chunk) {
            if missing == 0 {
                messages.push(Vec::new());
                missing = len;
            }
            missing = missing.saturating_sub(bar.len);
            messages.last_mut().expect("pushed above").push(*bar);
        }
        messages.into_iter().map(|list| Bars { rails: self.rails.clone(), list }).collect()
    }

    /// Those of one rail, by its place among the names.
    pub(crate) fn of(&self, rail: usize) -> impl Iterator<Item = &Bar> {
        self.list.iter().filter(move |bar| bar.rail == rail)
    }

    /// Names of the rails, in the order of the lanes.
    pub(crate) fn rails(&self) -> &[String] {
        &self.rails
    }

    /// As lanes of a picture that begins with the first bar; `names` are added to those of the rails.
    pub(crate) fn lanes(&self, names: &[String]) -> Vec<RailLane> {
        let origin = self.list.iter().map(|bar| bar.start_ns).min().unwrap_or(0);
        self.lanes_since(origin, names)
    }

    /// As lanes of a picture that begins at `origin_ns`.
    pub(crate) fn lanes_since(&self, origin_ns: u64, names: &[String]) -> Vec<RailLane> {
        let us = |at_ns: u64| at_ns.saturating_sub(origin_ns) as f64 / 1e3;
        let span = |bar: &Bar| Span {
            start_us: us(bar.start_ns),
            end_us: us(bar.end_ns),
            len: Some(bar.len),
            label: String::new(),
        };
        let lane = |(rail, name): (usize, &String)| RailLane {
            label: names.get(rail).map_or_else(|| name.clone(), |more| format!("{name}, {more}")),
            spans: self.list.iter().filter(|bar| bar.rail == rail).map(span).collect(),
        };
        self.rails.iter().enumerate().map(lane).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_us: u64, rail: &str, what: What, number: u32, len: u64) -> Record {
        let (at_ns, rail) = (at_us * 1000, rail.to_string());
        let peer = u32::from(!matches!(what, What::Landed));
        Record { at_ns, rail, what, peer, number, len, text: String::new() }
    }

    fn records(rank: u32, list: Vec<Record>) -> Records {
        Records { list, ..Records::parse(format!("t.{rank}"), "").unwrap() }
    }

    #[test]
    fn chunks_last_from_their_posting_to_their_region() {
        let sender = records(
            0,
            vec![
                record(10, "a", What::PostChunk, 1, 60),
                record(10, "b", What::PostChunk, 1, 40),
                record(11, "a", What::PostChunk, 2, 100),
                record(12, "a", What::Sent, 1, 0),
                record(13, "b", What::Sent, 1, 0),
                record(14, "a", What::Sent, 2, 0),
            ],
        );
        let receiver =
            records(1, vec![record(20, "a", What::Landed, 1, 60), record(40, "a", What::Landed, 2, 100)]);
        let bars = bars(&sender, &Links::of(&[sender.clone(), receiver]));
        let messages = bars.messages(100);
        assert_eq!(messages.len(), 2);
        let lanes = messages[0].lanes(&["fast".into()]);
        assert_eq!((lanes[0].label.as_str(), lanes[1].label.as_str()), ("a, fast", "b"));
        assert_eq!((lanes[0].spans[0].end_us, lanes[1].spans[0].end_us), (10.0, 3.0));
        // Posted while the rail carried the one before.
        assert_eq!(messages[1].list[0].start_ns, 20_000);
    }
}
