//! Thresholds by which the messages of a running job go, and where they come from.

use super::Thresholds;
use newmadeleine::{Session, ThresholdOrigin};
use serde::Serialize;

/// Those of one rail to a rank.
#[derive(Debug, Serialize)]
pub(crate) struct InForce {
    pub(super) rail: String,
    pub(super) to: u32,
    /// `nominal`, `sampled` or `learnt`.
    origin: &'static str,
    /// Since when those that were learnt count, in seconds since the session was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_s: Option<f64>,
    /// From how many transfers and answers they were learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfers: Option<u32>,
    /// Those that the user has set: `eager_max`, `in_place_min`.
    set: Vec<&'static str>,
    /// Longest message that goes without asking, over all open rails together.
    eager_max: u64,
    thresholds: Thresholds,
    #[serde(skip)]
    pub(super) values: newmadeleine::engine::Thresholds,
}

impl InForce {
    /// Those of all open rails to a rank.
    pub(crate) fn to(session: &Session, rank: u32) -> Vec<InForce> {
        let Some(found) = session.in_force(rank) else { return Vec::new() };
        let names: Vec<String> = session.rails().into_iter().map(|rail| rail.name).collect();
        let is_set = [("eager_max", found.is_eager_max_set), ("in_place_min", found.is_in_place_min_set)];
        let set: Vec<&str> = is_set.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
        let row = |rail: &newmadeleine::RailInForce| {
            let learnt = match rail.origin {
                ThresholdOrigin::Learnt { since, count } => Some((since.as_ns() as f64 / 1e9, count)),
                _ => None,
            };
            InForce {
                rail: names[rail.rail.index()].clone(),
                to: rank,
                origin: rail.origin.name(),
                since_s: learnt.map(|(since_s, _)| since_s),
                transfers: learnt.map(|(_, count)| count),
                set: set.clone(),
                eager_max: found.eager_max as u64,
                thresholds: Thresholds::of(&rail.thresholds),
                values: rail.thresholds,
            }
        };
        found.rails.iter().map(row).collect()
    }

    /// Those of each rail to the first rank that it leads to.
    pub(crate) fn of_rails(session: &Session) -> Vec<InForce> {
        let others = (0..session.size()).filter(|rank| *rank != session.rank());
        let mut rows: Vec<InForce> = Vec::new();
        for row in others.flat_map(|rank| InForce::to(session, rank)) {
            if rows.iter().all(|known| known.rail != row.rail) {
                rows.push(row);
            }
        }
        rows
    }

    /// The origin for people.
    pub(super) fn origin_in_words(&self) -> String {
        let from = match (self.since_s, self.transfers) {
            (Some(since_s), Some(count)) => format!("learnt from {count} transfers, since {since_s:.2} s"),
            _ => self.origin.to_string(),
        };
        match self.set.is_empty() {
            true => from,
            false => format!("{from}; {} set by the user", self.set.join(", ")),
        }
    }
}
