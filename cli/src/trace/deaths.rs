//! Deaths that other ranks survived: how and when they were detected, and when the others went on.

use nmad_bench::table::Table;
use std::collections::BTreeMap;

use super::records::{Call, Records};
use super::show::{origin, us};

/// Beginning of the names of calls that record the detection of a failed rank; the source of the detection
/// follows.
const FAILED: &str = "rank failed: ";

/// A dead rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) rank: u32,
    /// When the first and the last rank detected it.
    pub(super) found_ns: (u64, u64),
    /// How the first one detected it.
    pub(super) how: String,
    /// When the last of these ranks completed its next shrink or agreement; `None` if one of them never did.
    pub(super) resumed_ns: Option<u64>,
}

/// Returns the deaths in the order of detection.
pub(super) fn deaths(all: &[Records]) -> Vec<Death> {
    let mut found: BTreeMap<u32, Vec<(&Records, &Call)>> = BTreeMap::new();
    for records in all {
        for call in records.calls.iter().filter(|call| call.call.starts_with(FAILED)) {
            let Some(rank) = call.from else { continue };
            found.entry(rank).or_default().push((records, call));
        }
    }
    let mut deaths: Vec<Death> =
        found.into_iter().filter_map(|(rank, detections)| death(rank, &detections)).collect();
    deaths.sort_by_key(|death| death.found_ns);
    deaths
}

/// Returns the death of a rank that these ranks have detected, each once.
fn death(rank: u32, detections: &[(&Records, &Call)]) -> Option<Death> {
    let (_, first) = detections.iter().min_by_key(|(_, call)| call.at_ns)?;
    let last_ns = detections.iter().map(|(_, call)| call.at_ns).max()?;
    let resumed: Option<Vec<u64>> =
        detections.iter().map(|(records, call)| resumed_ns(records, call.at_ns)).collect();
    Some(Death {
        rank,
        found_ns: (first.at_ns, last_ns),
        how: first.call.trim_start_matches(FAILED).into(),
        resumed_ns: resumed.and_then(|times| times.into_iter().max()),
    })
}

/// Returns when the first shrink of a rank after `after_ns` completed, or else its first agreement.
fn resumed_ns(records: &Records, after_ns: u64) -> Option<u64> {
    let ended = |names: [&str; 2]| {
        let is_such = |call: &&Call| call.until_ns > after_ns && names.contains(&call.call.as_str());
        records.calls.iter().filter(is_such).map(|call| call.until_ns).min()
    };
    ended(["MPIX_Comm_shrink", "MPIX_Comm_ishrink"])
        .or_else(|| ended(["MPIX_Comm_agree", "MPIX_Comm_iagree"]))
}

/// Returns the table of the deaths; `None` if no rank died.
pub(super) fn table(all: &[Records]) -> Option<Table> {
    let (origin, deaths) = (origin(all), deaths(all));
    if deaths.is_empty() {
        return None;
    }
    let header = ["rank", "detected at, us", "how", "detected by all after, us", "all went on after, us"];
    let mut table = Table::new("ranks that died", &header).words([2]);
    for Death { rank, found_ns: (first, last), how, resumed_ns } in deaths {
        table.row([
            rank.to_string(),
            us(first.saturating_sub(origin)),
            how,
            us(last - first),
            resumed_ns.map_or_else(|| "-".into(), |resumed| us(resumed.saturating_sub(first))),
        ]);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Records {
        Records::parse("t.0".into(), "").expect("an empty trace")
    }

    fn call(name: &str, at_ns: u64, until_ns: u64, from: Option<u32>) -> Call {
        Call { at_ns, call: name.into(), until_ns, from, thread: 0, core: None, delayed_ns: None }
    }

    fn rank(rank: u32, found_ns: u64, how: &str, shrink_ns: Option<u64>) -> Records {
        let failed = call(&format!("{FAILED}{how}"), found_ns, found_ns, Some(2));
        let before = call("MPIX_Comm_shrink", 0, 5, None);
        let shrink = shrink_ns.map(|until| call("MPIX_Comm_shrink", found_ns + 10, until, None));
        let calls = [before, failed].into_iter().chain(shrink).collect();
        Records { rank, calls, ..empty() }
    }

    #[test]
    fn a_death_is_over_when_the_last_rank_goes_on() {
        let all = [
            rank(0, 1_000, "reported by the launcher", Some(9_000)),
            rank(1, 900, "its links are lost", Some(8_000)),
        ];
        let [death] = &deaths(&all)[..] else { panic!("one rank died") };
        assert_eq!((death.rank, death.found_ns, &*death.how), (2, (900, 1_000), "its links are lost"));
        assert_eq!(death.resumed_ns, Some(9_000));
    }

    #[test]
    fn a_rank_that_never_goes_on_leaves_the_end_open() {
        let all = [
            rank(0, 1_000, "reported by the launcher", Some(9_000)),
            rank(1, 900, "its links are lost", None),
        ];
        assert_eq!(deaths(&all)[0].resumed_ns, None);
        assert!(deaths(&[empty()]).is_empty());
    }
}
