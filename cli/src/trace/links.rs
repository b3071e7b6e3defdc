//! Numbers on links: when something was posted at one side and arrived at the other.

use std::collections::HashMap;

use super::records::{Record, Records, What};

/// Nothing takes longer on its way; what seems to was traced by another clock.
const LONGEST_NS: u64 = 10_000_000_000;

/// A rank, a peer, and the rank's name of a rail between them.
type Rail = (u32, u32, String);
/// Sender, receiver, the receiver's name of the rail, and a number.
type OnLink = (u32, u32, String, u32);

/// What ranks say of what passed between them.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The peer's name of a rank's rail, where it differs.
    there: HashMap<Rail, String>,
    /// A number can come twice, when something was sent again.
    posted: HashMap<OnLink, Vec<u64>>,
    arrived: HashMap<OnLink, Vec<u64>>,
}

impl Links {
    pub(crate) fn of(all: &[Records]) -> Links {
        let mut links = Links { there: names(all), ..Links::default() };
        for (me, record) in all.iter().flat_map(|rank| rank.list.iter().map(move |each| (rank.rank, each))) {
            let key = links.key(me, record);
            match record.what {
                What::PostPacket | What::PostChunk => links.posted.entry(key).or_default().push(record.at_ns),
                What::Arrived | What::Landed => links.arrived.entry(key).or_default().push(record.at_ns),
                _ => {}
            }
        }
        links
    }

    /// What the peer calls a rail of this rank's.
    pub(crate) fn there(&self, me: u32, peer: u32, rail: &str) -> String {
        self.there.get(&(me, peer, rail.to_string())).map_or(rail, |name| name).to_string()
    }

    fn key(&self, me: u32, record: &Record) -> OnLink {
        let Record { peer, rail, number, .. } = record;
        match record.what {
            What::Arrived | What::Landed => (*peer, me, rail.clone(), *number),
            _ => (me, *peer, self.there(me, *peer, rail), *number),
        }
    }

    /// When something that a record of rank `me` is about was posted, and when it arrived.
    pub(crate) fn times(&self, me: u32, record: &Record) -> (Option<u64>, Option<u64>) {
        let key = self.key(me, record);
        match record.what {
            What::Arrived | What::Landed => {
                let posted = self.posted.get(&key).and_then(|times| {
                    let before = times.iter().rev().find(|at| **at <= record.at_ns);
                    before.or(times.first()).copied()
                });
                (posted, Some(record.at_ns))
            }
            _ => {
                let arrived = self.arrived.get(&key).and_then(|times| {
                    let plausible = record.at_ns..record.at_ns.saturating_add(LONGEST_NS);
                    // Clocks that differ may tell of an arrival before the posting.
                    times.iter().find(|at| plausible.contains(at)).or(times.first()).copied()
                });
                (Some(record.at_ns), arrived)
            }
        }
    }
}

/// What each rail is called at the other side of its links: the record of a link that came up says the number
/// that the rail has there.
fn names(all: &[Records]) -> HashMap<Rail, String> {
    let rails = all.iter().flat_map(|rank| rank.rails().into_iter().map(move |rail| (rank.rank, rail)));
    let by_number: HashMap<(u32, String), String> =
        rails.filter_map(|(rank, rail)| Some(((rank, rail.rsplit_once('#')?.1.to_string()), rail))).collect();
    let ups = all.iter().flat_map(|rank| {
        let ups = rank.list.iter().filter(|record| record.what == What::Up);
        ups.map(move |record| (rank.rank, record))
    });
    ups.filter_map(|(me, record)| {
        let there = by_number.get(&(record.peer, record.number.to_string()))?;
        (*there != record.rail).then(|| ((me, record.peer, record.rail.clone()), there.clone()))
    })
    .collect()
}
