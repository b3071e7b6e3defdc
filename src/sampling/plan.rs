//! Assignment of measurements to ranks: all ranks of a job agree on it through the launcher, when one lacks
//! a profile.
//!
//! Each rank offers, for every missing profile, to give it or to measure it with a peer. Rank 0 chooses one
//! offer for each, and all ranks read the choice. Pairs measure one after the other, so that they do not
//! disturb each other; the others wait for the launcher without spinning.

use crate::error::SessionError;
use nmad_launch::Bootstrap;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Offer of a rank for a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// The rank has the profile.
    Give,
    /// The rank can measure its rail of this number with this peer.
    Measure { rail: u8, peer: u32 },
}

/// Task of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stage {
    /// Hash of the profile's key.
    pub(super) hash: u64,
    /// The rank.
    pub(super) rank: u32,
    /// The accepted offer.
    pub(super) offer: Offer,
}

/// Sends this rank's offers and receives the chosen ones: the given profiles first, then the measurements,
/// those of a pair together.
///
/// # Errors
/// The launcher is gone.
pub(super) fn agree(job: &mut dyn Bootstrap, offers: &[(u64, Offer)]) -> Result<Vec<Stage>, SessionError> {
    job.put(&format!("sample-{}", job.rank()), &encode(offers.iter().copied()))?;
    job.fence()?;
    if job.rank() == 0 {
        let mut told = Vec::new();
        job.get_each("sample-", &mut |text| told.push(decode(&text.unwrap_or_default())))?;
        let plan = choose(&told);
        let text: Vec<_> =
            plan.iter().map(|stage| format!("{} {}", stage.rank, line(stage.hash, stage.offer))).collect();
        job.put("sample-plan", &text.join("\n"))?;
    }
    job.fence()?;
    let text = job.get("sample-plan")?.unwrap_or_default();
    let stage = |line: &str| {
        let (rank, rest) = line.split_once(' ')?;
        let (hash, offer) = parse(rest)?;
        Some(Stage { hash, rank: rank.parse().ok()?, offer })
    };
    Ok(text.lines().filter_map(stage).collect())
}

/// Chooses the best offer for each profile: to give it, else that of the lowest rank.
fn choose(told: &[Vec<(u64, Offer)>]) -> Vec<Stage> {
    let mut best: BTreeMap<u64, Stage> = BTreeMap::new();
    for (rank, offers) in told.iter().enumerate() {
        for &(hash, offer) in offers {
            let stage = Stage { hash, rank: rank as u32, offer };
            let gives = |stage: &Stage| stage.offer == Offer::Give;
            match best.get(&hash) {
                Some(other) if gives(other) || !gives(&stage) => {}
                _ => drop(best.insert(hash, stage)),
            }
        }
    }
    let mut plan: Vec<Stage> = best.into_values().collect();
    plan.sort_by_key(|stage| match stage.offer {
        Offer::Give => (0, stage.rank, 0, 0),
        Offer::Measure { rail, peer } => (1, stage.rank, peer, rail),
    });
    plan
}

fn encode(offers: impl Iterator<Item = (u64, Offer)>) -> String {
    let mut text = String::new();
    for (hash, offer) in offers {
        let _ = writeln!(text, "{}", line(hash, offer));
    }
    text
}

fn line(hash: u64, offer: Offer) -> String {
    match offer {
        Offer::Give => format!("{hash:016x} give"),
        Offer::Measure { rail, peer } => format!("{hash:016x} measure {rail} {peer}"),
    }
}

fn decode(text: &str) -> Vec<(u64, Offer)> {
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<(u64, Offer)> {
    let words: Vec<&str> = line.split(' ').collect();
    let hash = |text| u64::from_str_radix(text, 16).ok();
    match words[..] {
        [key, "give"] => Some((hash(key)?, Offer::Give)),
        [key, "measure", rail, peer] => {
            Some((hash(key)?, Offer::Measure { rail: rail.parse().ok()?, peer: peer.parse().ok()? }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_gives_its_profile_and_otherwise_the_first_pair_measures() {
        let measure = |rail, peer| Offer::Measure { rail, peer };
        let told = [
            vec![(7, measure(1, 2)), (8, measure(0, 3)), (9, measure(0, 2))],
            vec![(8, Offer::Give)],
            vec![(7, Offer::Give), (8, Offer::Give), (9, measure(0, 0))],
        ];
        let told = told.map(|offers| decode(&encode(offers.into_iter())));
        let stage = |hash, rank, offer| Stage { hash, rank, offer };
        let expected = [stage(8, 1, Offer::Give), stage(7, 2, Offer::Give), stage(9, 0, measure(0, 2))];
        assert_eq!(choose(&told), expected);
    }

    #[test]
    fn malformed_offers_are_ignored() {
        for text in ["", "7", "x give", "7 measure 1", "7 measure 300 1", "7 take"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
