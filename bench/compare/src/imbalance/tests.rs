use super::*;
use crate::contestant::Contestant;
use crate::contestant::{Installation, Kind};
use crate::course::Batch as _;

fn plan(programs: &[&str], places: &[&str]) -> Plan {
    let own = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
    Plan {
        programs: own(programs),
        variants: own(&["plain", "both"]),
        places: own(places),
        degrees: Vec::new(),
        messages: Some(2),
        sizes: vec![1 << 15, 1 << 20],
        elements: vec![20],
    }
}

#[test]
fn threads_get_jobs_of_their_own_and_degrees_follow_the_ranks() {
    let batches = plan(&["overlap", "minife"], &["node2", "hosts8-4+2.8"]).batches().unwrap();
    let sizes: Vec<_> =
        batches.iter().map(|batch| (batch.place.name, batch.has_threads, batch.exercises.len())).collect();
    let expected =
        [("node2", false, 3), ("node2", true, 3), ("hosts8-4+2.8", false, 5), ("hosts8-4+2.8", true, 5)];
    assert_eq!(sizes, expected);
    let wide = &batches[2];
    assert_eq!(wide.list().lines().nth(3), Some("3 overlap plain 7 2 1048576"));
    assert_eq!(wide.list().lines().nth(4), Some("4 minife plain 0 0 20"));
    assert_eq!(wide.exercises[3].to_string(), "overlap plain degree 7 1 MiB");
    assert_eq!(wide.exercises[4].to_string(), "minife plain 20x20x20");
}

#[test]
fn a_flood_has_many_messages_and_one_variant() {
    let flood = Plan { messages: None, sizes: vec![1000], ..plan(&["flood", "overlap"], &["node2"]) };
    let lists: Vec<_> = flood.batches().unwrap().iter().map(Batch::list).collect();
    assert_eq!(lists, ["0 flood plain 1 1024 1000\n1 overlap plain 1 1 1000\n", "0 overlap both 1 1 1000\n"]);
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let refused = |plan: Plan| plan.batches().unwrap_err().to_string();
    assert!(refused(plan(&["toy"], &["node2"])).contains("nooverlap, overlap"));
    assert!(refused(plan(&["overlap"], &["moon"])).contains("hosts8"));
    let wide = Plan { degrees: vec![2], ..plan(&["overlap"], &["node2"]) };
    assert!(refused(wide).contains("there are 1"));
    assert!(refused(plan(&["overlap"], &[])).contains("nothing is measured"));
    let wide = Plan { messages: Some(60_000), ..plan(&["flood"], &["node2"]) };
    assert!(refused(wide).contains("fewer --messages"));
}

#[test]
fn the_lines_of_a_job_become_figures() {
    let batches = plan(&["overlap"], &["node2"]).batches().unwrap();
    let installation = Installation {
        kind: Kind::Nmad,
        prefix: "/p".into(),
        version: String::new(),
        identity: String::new(),
    };
    let who = Contestant::new("x", installation, "/w/x".into());
    let turn = Turn { round: 1, who: &who, batch: &batches[0] };
    let rank = |rank, communication_us, bytes| RankFigures {
        rank,
        communication_us,
        calculation_us: 60.0,
        synchronization_us: 10.0,
        messages: 2,
        bytes,
        memory: 0,
    };
    let mut heard = Heard::default();
    let lines = [
        Said::Begin(1),
        Said::Rank { number: 1, figures: rank(0, 10.0, 100) },
        Said::Rank { number: 1, figures: rank(1, 30.0, 300) },
        Said::Phase { number: 1, communication_us: 31.0, iteration_us: 99.0, gflops: 0.0 },
    ];
    assert!(lines.into_iter().all(|line| heard.listen(&turn, line).is_none()));
    let measured = heard.listen(&turn, Said::Cell { number: 1, us: 31.0, low: 20.0, high: 50.0 }).unwrap();
    assert_eq!(
        (measured.exercise.size, measured.communication_us, measured.highest_us),
        (1 << 20, 31.0, 50.0)
    );
    assert_eq!((measured.imbalance(), measured.imbalance_of_bytes()), (1.5, 1.5));
    assert_eq!((measured.imbalance_of_messages(), measured.share()), (1.0, 40.0 / 180.0));
}
