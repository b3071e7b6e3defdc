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
    assert_eq!(report.behind.len(), 1);
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
    assert_eq!((row.mean.cells, row.mean.behind, row.worst.cell.bytes), (2, 1, 8));
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
    near(report.cells[0].ratio.unwrap(), 9f64.powf(1.0 / 3.0));
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
