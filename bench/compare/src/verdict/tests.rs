use super::*;
use crate::machine::Machine;
use crate::plan::Extent;
use crate::report::FORMAT;
use crate::store::tests::{cell, figure, who};

/// A report without figures.
pub(crate) fn empty() -> Report {
    Report {
        format: FORMAT,
        made: "2026-01-01T00:00:00Z".into(),
        command: "nmad bench compare".into(),
        extent: Extent::Quick,
        machine: Machine { host: "a<b".into(), processor: "P".into(), cores: 2, kernel: "6".into() },
        rounds: 0,
        method: "medians".into(),
        contestants: Vec::new(),
        missing: Vec::new(),
        failed: Vec::new(),
        figures: 0,
        busy_figures: 0,
        overall: None,
        patterns: Vec::new(),
        places: Vec::new(),
        behind: Vec::new(),
        undecided: Vec::new(),
        modes: Vec::new(),
        cells: Vec::new(),
    }
}

/// The report on these figures.
pub(crate) fn judged(figures: Vec<Figure>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let names = [who("ours"), who("openmpi"), who("mpich")];
    let path = folder.path().join("results.jsonl");
    let mut store = Store::open(&path, true, &Machine::default(), &names).unwrap();
    figures.into_iter().for_each(|figure| store.add(figure).unwrap());
    judge(&store, empty())
}

/// Three rounds of one cell.
pub(crate) fn rounds(name: &str, cell: &Cell, times: [f64; 3]) -> Vec<Figure> {
    (1..).zip(times).map(|(round, us)| figure(name, cell.clone(), round, us)).collect()
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} is not {expected}");
}

#[test]
fn a_cell_is_compared_with_its_best_peer_round_by_round() {
    let cell = cell("pingpong", 8);
    let mut figures = rounds("ours", &cell, [2.0, 4.0, 8.0]);
    figures.extend(rounds("openmpi", &cell, [1.0, 2.0, 4.0]));
    figures.extend(rounds("mpich", &cell, [10.0, 10.0, 10.0]));
    let report = judged(figures);
    let row = &report.cells[0];
    // The machine slowed down from round to round; the ratio did not.
    assert_eq!(row.best.as_deref(), Some("openmpi"));
    for found in [row.ratio, row.low, row.high] {
        near(found.unwrap(), 2.0);
    }
    assert_eq!((report.behind.len(), report.undecided.len()), (0, 1));
    assert_eq!(row.times["mpich"].len(), 3);
}

#[test]
fn means_are_geometric_and_have_the_worst_cell() {
    let (short, long) = (cell("pingpong", 8), cell("pingpong", 4096));
    let mut figures = rounds("ours", &short, [4.0, 4.0, 4.0]);
    figures.extend(rounds("openmpi", &short, [1.0, 1.0, 1.0]));
    figures.extend(rounds("ours", &long, [1.0, 1.0, 1.0]));
    figures.extend(rounds("openmpi", &long, [1.0, 1.0, 1.0]));
    let other = cell("bcast", 8);
    figures.extend(rounds("ours", &other, [0.5, 0.5, 0.5]));
    figures.extend(rounds("openmpi", &other, [1.0, 1.0, 1.0]));
    let report = judged(figures);
    near(report.overall.unwrap().ratio, 2f64.powf(1.0 / 3.0));
    let names: Vec<&str> = report.patterns.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["pingpong", "bcast"]);
    let row = &report.patterns[0];
    near(row.mean.ratio, 2.0);
    assert_eq!((row.mean.cells, row.mean.undecided, row.worst.cell.bytes), (2, 1, 8));
    assert_eq!(report.places[0].mean.cells, 3);
}

#[test]
fn figures_of_a_busy_machine_are_left_out_if_there_are_enough_others() {
    let cell = cell("pingpong", 8);
    let mut figures = rounds("ours", &cell, [1.0, 1.0, 1.0]);
    figures.extend(rounds("openmpi", &cell, [1.0, 1.0, 1.0]));
    figures.push(Figure { busy: 1.5, ..figure("ours", cell.clone(), 4, 9.0) });
    figures.push(figure("openmpi", cell.clone(), 4, 1.0));
    let report = judged(figures.clone());
    near(report.cells[0].ratio.unwrap(), 1.0);
    assert_eq!((report.cells[0].busy, report.busy_figures), (false, 1));
    // Two quiet rounds are not enough: all are used, and the cell says so.
    figures.retain(|figure| figure.round != 3);
    let report = judged(figures);
    near(report.cells[0].ratio.unwrap(), 1.0);
    near(report.cells[0].high.unwrap(), 9.0);
    assert!(report.cells[0].busy);
}

#[test]
fn without_peers_there_are_figures_but_no_verdict() {
    let report = judged(rounds("ours", &cell("pingpong", 8), [1.0, 2.0, 3.0]));
    assert_eq!((report.cells.len(), report.overall, report.patterns.len()), (1, None, 0));
    assert!(report.cells[0].ratio.is_none());
}

#[test]
fn variants_are_in_the_order_of_their_numbers() {
    let with = |variant: &str| Cell { variant: variant.into(), ..cell("oneway", 8) };
    let figures = ["w256", "w4", "w16", "w1"].map(|variant| figure("ours", with(variant), 1, 1.0)).to_vec();
    let report = judged(figures);
    let variants: Vec<&str> = report.cells.iter().map(|row| row.cell.variant.as_str()).collect();
    assert_eq!(variants, ["w1", "w4", "w16", "w256"]);
}

#[test]
fn cells_at_which_mad_mpi_failed_are_told_first() {
    let failure = |who: &str| FailedRow { who: who.into(), cell: cell("threads", 8), why: "hung".into() };
    let report = Report { failed: vec![failure("mpich"), failure("ours")], ..empty() };
    assert_eq!(report.ours_failed(), 1);
    let text = crate::text(&report);
    let at = |words: &str| text.find(words).expect(words);
    assert!(at("MAD-MPI crashed or hung: 1 cells") < at("without a figure: 2 cells"), "{text}");
}

/// Rounds of one cell in which MAD-MPI takes these times, and a peer one microsecond.
fn beside(cell: &Cell, times: &[f64]) -> Vec<Figure> {
    let both = |(round, us): (u32, &f64)| {
        [figure("ours", cell.clone(), round, *us), figure("openmpi", cell.clone(), round, 1.0)]
    };
    (1..).zip(times).flat_map(both).collect()
}

#[test]
fn a_cell_is_behind_only_if_its_interval_says_so() {
    let cells = [8, 16, 32, 64].map(|bytes| cell("pingpong", bytes));
    let mut figures = beside(&cells[0], &[1.3, 1.2, 1.25, 1.4, 1.22, 1.3]);
    // In one round of six it was as fast; in three rounds there is no interval with 95 %; and ahead.
    figures.extend(beside(&cells[1], &[1.3, 1.2, 1.25, 1.4, 0.99, 1.3]));
    figures.extend(beside(&cells[2], &[1.3, 1.2, 1.25]));
    figures.extend(beside(&cells[3], &[0.5, 0.5, 0.5]));
    let report = judged(figures);
    let bytes = |rows: &[BehindRow]| rows.iter().map(|row| row.cell.bytes).collect::<Vec<_>>();
    assert_eq!((bytes(&report.behind), bytes(&report.undecided)), (vec![8], vec![16, 32]));
    let mean = report.overall.unwrap();
    assert_eq!((mean.behind, mean.undecided), (1, 2));
    let row = &report.behind[0];
    near(row.ratio, 1.275);
    assert_eq!((row.low, row.high), (Some(1.2f64.ln().exp()), Some(1.4f64.ln().exp())));
    assert!(row.confidence > 0.96 && report.undecided[1].confidence == 0.75);
    let text = crate::text(&report);
    assert!(text.contains("interval of 75 %"), "{text}");
}

#[test]
fn cells_that_were_near_in_some_round_get_more_jobs_and_undecided_ones_more_still() {
    let row = |times: &[f64]| judged(beside(&cell("bcast", 8), times)).cells.remove(0);
    for (times, near, open) in [
        (vec![0.5, 0.5, 0.5], false, false),
        (vec![0.5, 0.5, 1.2], true, true),
        (vec![1.0, 1.02, 0.99], true, false),
        (vec![1.2, 1.21, 1.19], true, true),
        (vec![1.2, 1.21, 1.19, 1.2, 1.2, 1.2], true, false),
        (vec![1.2, 1.21, 0.98], true, true),
    ] {
        let row = row(&times);
        assert_eq!((is_near(&row), is_open(&row)), (near, open), "{times:?}");
    }
    // Without a peer there is nothing to be near to.
    assert!(!is_near(&judged(rounds("ours", &cell("bcast", 8), [1.0, 1.0, 1.0])).cells[0]));
}

#[test]
fn jobs_with_two_modes_are_told_on_every_page() {
    let cell = cell("allreduce", 8);
    let mut figures = beside(&cell, &[0.4, 0.98, 0.41, 0.97, 0.4, 0.99]);
    let facts = |us| crate::facts::tests::facts(if us < 0.5 { 0.07 } else { 0.28 }, 3, None);
    figures.iter_mut().for_each(|figure| figure.facts = Some(facts(figure.us)));
    let report = judged(figures);
    let [row] = &*report.modes else { panic!("{:?}", report.modes) };
    assert!(row.libraries["ours"].split.is_some() && row.libraries["openmpi"].split.is_none());
    let pages = [crate::text(&report), crate::page::html(&report), crate::markdown::markdown(&report)];
    for page in pages {
        for part in [
            "0.400 us in 3 and 0.980 us in 3 of 6 jobs",
            "1.00 us in 6 jobs",
            "bare line, us 0.070 fast, 0.280 slow",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let text = serde_json::to_string(&report).unwrap();
    assert!(text.contains("\"slow_us\":0.98") && text.contains("\"line_us\":0.07"), "{text}");
}

#[test]
fn rounds_whose_jobs_had_their_cores_in_different_places_are_left_out() {
    let cell = cell("gather", 8);
    let mut figures = beside(&cell, &[0.9, 0.9, 2.5, 0.9]);
    for figure in &mut figures {
        let line_us = if figure.us > 2.0 { 0.24 } else { 0.06 };
        figure.facts = Some(crate::facts::tests::facts(line_us, 0, None));
    }
    let row = &judged(figures.clone()).cells[0];
    assert_eq!((row.unlike, row.high), (1, Some(0.9f64.ln().exp())));
    // With two others it is used.
    figures.retain(|figure| figure.round < 4);
    let row = &judged(figures).cells[0];
    assert_eq!((row.unlike, row.high), (0, Some(2.5f64.ln().exp())));
}
