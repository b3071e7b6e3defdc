//! Windows and splits of many ranks: what is sent is what ships, and the table is the committed one.

use nmad_rma::frame::Kind;
use nmad_scale::fabric::FABRICS;
use nmad_scale::golden::FOLDER;
use nmad_scale::stage::Stage;
use nmad_scale::windows::{Ask, Row, split};
use std::path::Path;

#[test]
fn an_origin_sends_few_messages() {
    let lens = |ask: Ask| ask.messages().iter().map(|each| (each.len, each.answer)).collect::<Vec<_>>();
    let (lock, put, all) = (lens(Ask::Lock), lens(Ask::PutUnlock(8)), lens(Ask::PutOfAll(8)));
    // The frames of the lock, of the put and of the unlock leave in one message.
    let frame = lock[0].0 / 2;
    assert!(matches!(lock[..], [(_, Some(0))]), "{lock:?}");
    assert!(matches!(put[..], [(len, Some(0))] if len == 2 * frame + 8), "{put:?}");
    assert!(matches!(all[..], [(len, Some(0))] if len == 3 * frame + 8), "{all:?}");
    let far = lens(Ask::Put(1 << 20));
    assert!(matches!(far[..], [(_, None), (1_048_576, None), (_, Some(0))]), "{far:?}");
    assert!(matches!(lens(Ask::Announce(Kind::Post))[..], [(_, None)]));
}

#[test]
fn the_table_has_these_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FOLDER).join("windows.txt");
    let text = std::fs::read_to_string(&path).expect("the table");
    let known: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for ranks in [64, 1024] {
        let row = Row::of(Stage::block(&FABRICS[0], ranks)).cells();
        assert!(known.iter().any(|line| *line == row), "no row {row:?}; if that is meant: --scale --bless");
    }
}

#[test]
fn regular_splits_are_described_in_little() {
    let stage = Stage::block(&FABRICS[0], 1024);
    let halves = split(stage, &|rank| i32::from(rank < 512));
    let alone = split(stage, &|rank| rank as i32);
    assert!(halves.1 < 20 && alone.1 < 9 * 1024, "{halves:?} {alone:?}");
    assert!(halves.0 < alone.0);
}
