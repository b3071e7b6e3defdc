//! Profiles as tables.

use newmadeleine::engine::{Doubt, Method, Profile, Thresholds};
use newmadeleine::sampling::{Origin, ProfileInfo};
use nmad_bench::stats::{bytes, number};
use nmad_bench::table::Table;
use std::collections::BTreeSet;

use super::{InForce, measured_hand_offs, us};

/// Where the figures of each rail come from.
pub(crate) fn origins(list: &[ProfileInfo]) -> Table {
    let header = ["rail", "to", "latency us", "MB/s", "from", "of"];
    let mut table = Table::new("profiles: what the rails were measured to do", &header).words([1, 4, 5]);
    for info in list {
        let figure = |figure: f64| number(figure).to_string();
        let [latency, rate] = match &info.known {
            Some((profile, _)) => {
                [us(profile.eager().ns(1)), profile.body().bandwidth() as f64 / 1e6].map(figure)
            }
            None => ["-", "-"].map(String::from),
        };
        let to = info.key.distance.name().to_string();
        table.row([info.rail.clone(), to, latency, rate, from(info), info.key.rail.clone()]);
    }
    table
}

fn from(info: &ProfileInfo) -> String {
    let Some((profile, origin)) = &info.known else { return "nominal figures (nmad sample)".into() };
    let when = &profile.provenance().when;
    let from = match origin {
        Origin::Measured => format!("measured now, {}", profile.provenance().how),
        Origin::Cache(_) => format!("measured {when}, {}", profile.provenance().how),
        Origin::Shipped(path) => format!("{}, measured {when}", path.display()),
    };
    match &profile.provenance().doubt {
        Some(Doubt { count: 1, why, .. }) => format!("{from}, provisional: {why}"),
        Some(Doubt { count, why, .. }) => format!("{from}, provisional, the best of {count}: {why}"),
        None => from,
    }
}

/// The heads of columns of thresholds.
const THRESHOLDS: [&str; 7] = [
    "in place from",
    "rendezvous from",
    "pushed from",
    "read from",
    "together up to",
    "blocks in place from",
    "chunks from",
];

/// An empty table of thresholds.
fn of_thresholds(title: &str) -> Table {
    let header: Vec<&str> = ["rail", "to"].into_iter().chain(THRESHOLDS).chain(["origin"]).collect();
    Table::new(title, &header).words([1, 9])
}

/// The thresholds of each rail, and whether somebody has measured them.
pub(crate) fn thresholds(list: &[ProfileInfo]) -> Table {
    let mut table = of_thresholds("thresholds, bytes");
    for info in list {
        let known = info.known.as_ref().and_then(|(profile, _)| profile.thresholds());
        let origin = if known.is_some() { "sampled" } else { "nominal" };
        let to = info.key.distance.name().to_string();
        table.row([info.rail.clone(), to].into_iter().chain(cells(known)).chain([origin.into()]));
    }
    table
}

/// Times of handing work from a core to another one; none: they were measured nowhere.
pub(crate) fn hand_offs(list: &[ProfileInfo]) -> Option<Table> {
    let header = ["measured with", "to", "cores", "us"];
    let mut table = Table::new("hand-off from a core to another one", &header).words([1, 2]);
    let known = list.iter().filter_map(|info| Some((info, &info.known.as_ref()?.0)));
    let mut any = false;
    for (info, (pair, ns)) in
        known.flat_map(|(info, p)| measured_hand_offs(p).map(move |found| (info, found)))
    {
        any = true;
        let to = info.key.distance.name().to_string();
        table.row([info.rail.clone(), to, pair.name().into(), number(us(ns)).to_string()]);
    }
    any.then_some(table)
}

/// What drivers have learnt for their own choices, in their words; none if nothing is known.
pub(crate) fn learnt(list: &[ProfileInfo]) -> Option<Table> {
    let mut table = Table::new("learnt by drivers from messages, bytes per ns", &["rail", "what"]).words([1]);
    let known = list.iter().filter_map(|info| Some((info, &info.known.as_ref()?.0)));
    let lines = known.flat_map(|(info, profile)| profile.learnt().iter().map(move |line| (info, line)));
    let mut any = false;
    for (info, line) in lines {
        any = true;
        table.row([info.rail.clone(), line.clone()]);
    }
    any.then_some(table)
}

/// The thresholds that are in force in a running job.
pub(crate) fn in_force(list: &[InForce]) -> Table {
    let mut table = of_thresholds("thresholds in force, bytes");
    for row in list {
        let to = format!("rank {}", row.to);
        let cells = cells(Some(&row.values));
        table.row([row.rail.clone(), to].into_iter().chain(cells).chain([row.origin_in_words()]));
    }
    table
}

fn cells(thresholds: Option<&Thresholds>) -> [String; 7] {
    match thresholds {
        Some(t) => [
            from_size(t.in_place_min),
            from_size(t.rendezvous_min),
            from_size(t.push_min),
            from_size(t.read_min),
            if t.aggregate_max == u64::MAX { "any".into() } else { t.aggregate_max.to_string() },
            from_size(t.block_min),
            from_size(t.chunk_min),
        ],
        None => ["default"; 7].map(String::from),
    }
}

fn from_size(threshold: u64) -> String {
    if threshold == u64::MAX { "never".into() } else { threshold.to_string() }
}

/// Every sample of a profile, a row for each size.
pub(crate) fn samples(info: &ProfileInfo, profile: &Profile) -> Table {
    let title = format!("{} to {}, us (half of the repetitions within)", info.rail, info.key.distance.name());
    let methods: Vec<Method> =
        Method::ALL.into_iter().filter(|&method| !profile.samples(method).is_empty()).collect();
    let mut header = vec!["size"];
    header.extend(methods.iter().map(|method| method.name()));
    let mut table = Table::new(title, &header);
    let lens: BTreeSet<u64> = super::all(profile).map(|(_, sample)| sample.len).collect();
    for len in lens {
        let cell = |method: &Method| {
            let found = profile.samples(*method).iter().find(|sample| sample.len == len);
            found.map_or_else(String::new, |s| format!("{} ±{:.0}%", number(us(s.ns)), 100.0 * s.spread()))
        };
        table.row([bytes(len)].into_iter().chain(methods.iter().map(cell)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use newmadeleine::engine::{Pair, Provenance, Sample};
    use newmadeleine::sampling::{Distance, Key};
    use std::sync::Arc;

    fn profile() -> Profile {
        let sample = |len: u64| (Method::Copy, Sample::of(len, &mut [1_000 + len]).expect("a time"));
        let provenance = Provenance { when: "today".into(), how: "a test".into(), ..Provenance::default() };
        Profile::new(provenance, [8, 1024].map(sample)).expect("two sizes")
    }

    fn kept(profile: Profile) -> ProfileInfo {
        let key = Key { rail: "tcp".into(), distance: Distance::OtherHost, host: "a machine".into() };
        let known = Some((Arc::new(profile), Origin::Cache("file".into())));
        ProfileInfo { rail: "tcp/eth0".into(), number: 0, key, known }
    }

    #[test]
    fn what_drivers_have_learnt_is_a_table_of_its_own() {
        assert!(learnt(&[kept(profile())]).is_none());
        let line = "near-busy-8192 bounce 8.100 cma 6.900";
        let table = learnt(&[kept(profile().with_learnt(vec![line.into()]))]).expect("a line");
        let text = table.to_string();
        assert!(text.contains("tcp/eth0") && text.contains(line), "{text}");
    }

    #[test]
    fn hand_offs_are_told_by_how_near_the_cores_are() {
        assert!(hand_offs(&[kept(profile())]).is_none());
        let sample = |len: u64, ns| Sample::of(len, &mut [ns]).expect("a time");
        let copies = [8, 1024].map(|len| (Method::Copy, sample(len, 1_000 + len)));
        let pairs = [(Pair::Cache, 200), (Pair::Across, 900)];
        let pairs = pairs.map(|(pair, ns)| (Method::HandOff(pair), sample(0, ns)));
        let all = copies.into_iter().chain(pairs);
        let profile = Profile::new(Provenance::default(), all).expect("two sizes");
        let text = hand_offs(&[kept(profile)]).expect("two pairs").to_string();
        for expected in ["same cache", "0.2", "across sockets", "0.9"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("same socket"), "{text}");
    }

    #[test]
    fn a_provisional_profile_is_told_from_others() {
        let told = |count: Option<u32>| {
            let doubt = count.map(|count| Doubt { count, degree: 200, why: "others were there".into() });
            from(&kept(profile().doubted(doubt)))
        };
        assert_eq!(told(None), "measured today, a test");
        assert_eq!(told(Some(1)), "measured today, a test, provisional: others were there");
        assert_eq!(told(Some(3)), "measured today, a test, provisional, the best of 3: others were there");
    }
}
