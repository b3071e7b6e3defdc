//! The committed tables are what the code makes, as far as a test can afford to make them: whole ones take
//! minutes. If a change is meant: `cargo run --release -- sim --scale --bless`, and read the difference.

use nmad_mpi_base::algorithm::choice::Family;
use nmad_scale::case::Case;
use nmad_scale::fabric::FABRICS;
use nmad_scale::golden::{FOLDER, PICTURES, TABLES};
use nmad_scale::packet;
use nmad_scale::regret::{Cell, LONGEST, MESSAGES_MAX};
use nmad_scale::stage::Stage;
use nmad_scale::times::{MANY, Row, drawn};
use std::collections::BTreeSet;
use std::path::Path;

fn committed(folder: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Lines with cells joined by single spaces.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn has(name: &str, row: &[String]) {
    let (text, row) = (committed(FOLDER, &format!("{name}.txt")), row.join(" "));
    assert!(lines(&text).contains(&row), "{name} has no row \"{row}\"; if that is meant: --scale --bless");
}

#[test]
fn tables_have_these_rows() {
    for fabric in FABRICS {
        let spots = [(Family::Barrier, 512, 8), (Family::Bcast, 64, 256 << 10), (Family::Reduce, 512, 8)];
        for (family, ranks, len) in spots {
            let cell = Cell::of(Case { stage: Stage::block(fabric, ranks), family, len }, MESSAGES_MAX);
            let row: Vec<String> = cell.row().into_iter().map(|cell| cell.1).collect();
            has(&format!("regret-{}", fabric.name), &row);
        }
    }
    let long = Case { stage: Stage::block(&FABRICS[2], 64), family: Family::Bcast, len: LONGEST };
    let row: Vec<String> = Cell::of(long, MESSAGES_MAX).row().into_iter().map(|cell| cell.1).collect();
    has("regret-64M-two-rails", &row);
    let many = Case { stage: Stage::block(&FABRICS[0], MANY), family: Family::Gather, len: 1 << 10 };
    has("times-100000", &Row::of(many).cells());
    let many = Case { family: Family::Bcast, len: 1 << 20, ..many };
    has("times-100000-1M", &Row::of(many).cells());
    for (family, ranks) in [(Family::Scan, 256), (Family::Reduce, 1024), (Family::Barrier, 16_384)] {
        let case = Case { stage: Stage::block(&FABRICS[0], ranks), family, len: 1 << 10 };
        has("times-1K", &Row::of(case).cells());
    }
}

#[test]
fn the_model_is_as_far_off_as_it_says() {
    let ours = packet::table(&[Family::Barrier], &mut |_, _, _| {});
    let known = lines(&committed(FOLDER, "model.txt"));
    let rows: Vec<String> = lines(&ours).into_iter().filter(|line| line.starts_with("barrier ")).collect();
    assert!(rows.len() > 6 && rows.iter().all(|row| known.contains(row)), "{rows:#?}");
}

#[test]
fn pictures_are_drawn_from_their_tables() {
    for table in TABLES.iter().filter(|table| table.is_drawn) {
        let text = committed(FOLDER, &format!("{}.txt", table.name));
        let picture = committed(PICTURES, &format!("{}.svg", table.name));
        assert!(drawn(&text) == picture, "{}.svg is not that of its table: --scale --bless", table.name);
    }
}

#[test]
fn every_table_has_a_file_and_every_file_a_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let there = std::fs::read_dir(folder).expect("scale/golden");
    let files: BTreeSet<String> =
        there.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    assert_eq!(files, TABLES.iter().map(|table| format!("{}.txt", table.name)).collect());
}
