//! Tests that make tables from strategies in Rust, and read and call them as the library does.

use crate::layout::{DEPENDS, FASTEST, First};
use crate::{
    ABI, Exports, Fill, Forecast, Offered, PlugIn, Predict, RawStrategy, Split, Strategy, Table, Turn,
    Waiting, Way, table_of,
};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

/// A model of a rail: 1 ns per byte, and in packets 1000 ns of latency.
struct Rail;

impl Predict for Rail {
    fn ns(&self, len: u64, large: bool) -> u64 {
        if large { len } else { 1000 + len }
    }
}

fn way<'a>(rail: u32, forecast: &'a Forecast<'a>) -> Way<'a> {
    let flags = if rail == 0 { FASTEST } else { 0 };
    Way { rail, wire: rail, idle_in_ns: 0, bandwidth: 0, latency_ns: 0, flags, reserved: 0, forecast }
}

/// Calls of `carried` and `relearnt`.
type Reports = Arc<Mutex<Vec<String>>>;

/// Chooses entries with a dependency, and splits by predictions. Panics for rank 13 and for 13 B.
struct Careful(Reports);

impl Strategy for Careful {
    const CHOOSES: bool = true;

    fn fill(&mut self, rank: u32, rail: &Way<'_>, waiting: &[Waiting], room: u64, chosen: &mut Vec<usize>) {
        assert_ne!(rank, 13, "a panic on purpose");
        assert!(rail.is_fastest() && !rail.is_primary() && room == 100);
        chosen.extend((0..waiting.len()).rev().filter(|place| waiting[*place].flags & DEPENDS != 0));
    }

    fn split(&mut self, _: u32, len: u64, ways: &[Way<'_>], shares: &mut [u64]) -> Split {
        assert_ne!(len, 13, "a panic on purpose");
        if ways.len() == 1 {
            return Split::FirstIdle;
        }
        shares[0] = ways[0].predict(len, true);
        shares[1] = ways[1].predict(len, false);
        Split::Shares
    }

    fn carried(&mut self, rank: u32, len: u64, ways: usize, took_ns: u64) {
        self.0.lock().expect("no panic").push(format!("{rank} {len} {ways} {took_ns}"));
    }

    fn relearnt(&mut self, rank: u32) {
        self.0.lock().expect("no panic").push(format!("{rank}"));
    }

    fn choose(&mut self, _: u32, turns: &[Turn]) -> Option<usize> {
        turns.iter().position(|turn| turn.backlog > 1)
    }
}

fn read(raw: &RawStrategy) -> Result<Table, String> {
    // SAFETY: the table is valid.
    unsafe { Table::read(raw) }
}

#[test]
fn a_strategy_in_rust_answers_through_its_table() {
    let reports = Reports::default();
    let table = read(&table_of("careful", Careful(reports.clone()))).expect("a table");
    let forecast = Forecast::of(&Rail);
    let ways = [way(0, &forecast), way(1, &forecast)];
    let waiting = [DEPENDS, 0, DEPENDS].map(|flags| Waiting { flags, ..Waiting::default() });
    let ask = |rank| table.fill(Fill { rank, rail: &ways[0], waiting: &waiting, room: 100 });
    assert_eq!(ask(1), Ok(vec![2, 0]));
    assert_eq!(table.split(1, 5, &ways), Ok(Some(vec![5, 1005])));
    assert_eq!(table.split(1, 5, &ways[..1]), Ok(None));
    table.carried(1, 2, 3, 4);
    table.relearnt(7);
    assert_eq!(*reports.lock().expect("no panic"), ["1 2 3 4", "7"]);
    let turns = [0, 2].map(|backlog| Turn { backlog, ..Turn::default() });
    assert!(table.chooses());
    assert_eq!((table.choose(0, &turns), table.choose(0, &turns[..1])), (Some(1), None));
    // A panic fails its call only; the next call works.
    assert_eq!(ask(13), Err("it failed".into()));
    assert_eq!(table.split(1, 13, &ways), Err("it failed with -14".into()));
    assert_eq!(ask(1), Ok(vec![2, 0]));
}

/// Answers `fill` with the indices it holds.
struct Fixed(Vec<usize>);

impl Strategy for Fixed {
    fn fill(&mut self, _: u32, _: &Way<'_>, _: &[Waiting], _: u64, chosen: &mut Vec<usize>) {
        chosen.clone_from(&self.0);
    }

    fn split(&mut self, _: u32, _: u64, _: &[Way<'_>], _: &mut [u64]) -> Split {
        Split::FirstIdle
    }
}

#[test]
fn duplicate_and_invalid_indices_are_rejected() {
    let forecast = Forecast::of(&Rail);
    let rail = way(0, &forecast);
    for (places, expected) in [
        (vec![0, 1, 2], "it chose 3 of 2 messages"),
        (vec![0, 2], "it chose message 2 of 2"),
        (vec![1, 1], "it chose message 1 twice"),
    ] {
        let table = read(&table_of("wrong", Fixed(places))).expect("a table");
        let question = Fill { rank: 0, rail: &rail, waiting: &[Waiting::default(); 2], room: 9 };
        assert_eq!(table.fill(question), Err(expected.into()));
        assert!(!table.chooses() && table.choose(0, &[]).is_none());
    }
}

#[test]
fn incomplete_tables_are_rejected_and_older_ones_accepted() {
    let whole = table_of("t", Fixed(Vec::new()));
    let with = |change: &dyn Fn(&mut First)| {
        let mut raw = whole;
        change(&mut raw.first);
        read(&raw).map(|table| table.name().to_string())
    };
    assert_eq!(with(&|first| first.size = size_of::<First>()), Ok("t".into()));
    // SAFETY: NULL is allowed.
    let missing = unsafe { Table::read(null()) };
    assert_eq!(missing.map(drop), Err("strategy is NULL".into()));
    for (error, expected) in [
        (with(&|first| first.size += 8), "nmad_strategy_t has no version of size 72 (known: 56, 64)"),
        (with(&|first| first.name = null()), "name of the strategy is NULL"),
        (
            with(&|first| first.name = c"a b".as_ptr()),
            "'a b' is not a valid name: it must have letters, and no spaces",
        ),
        (with(&|first| first.fill = None), "strategy 't' lacks a function: fill and split must not be NULL"),
    ] {
        assert_eq!(error, Err(expected.into()));
    }
    // A function that the smaller table lacks is not called.
    let mut old = whole;
    old.first.size = size_of::<First>();
    old.first.carried = None;
    let table = read(&old).expect("a table");
    table.carried(0, 0, 0, 0);
    table.relearnt(0);
}

#[test]
fn a_plug_in_of_another_version_or_without_valid_strategies_is_rejected() {
    // SAFETY: the tables are valid.
    let read = |at: *const PlugIn| unsafe { Offered::read(at) }.map(|offered| offered.version);
    let two = || vec![table_of("a", Fixed(Vec::new())), table_of("b", Fixed(Vec::new()))];
    let exports = Exports::new("2.1", two());
    // SAFETY: `exports` is alive.
    let right = unsafe { *exports.table() };
    assert_eq!(read(&right), Ok("2.1".into()));
    assert_eq!(read(&PlugIn { version: null(), ..right }), Ok(String::new()));
    let other = read(&PlugIn { abi: ABI + 1, ..right }).expect_err("another version");
    assert!(
        other.starts_with("was compiled for version 2 of the interface, and this library has 1: "),
        "{other}"
    );
    let mut bare = two();
    bare[1].first.split = None;
    let bare = read(Exports::new("1", bare).table()).expect_err("a function is missing");
    assert!(bare.starts_with("offers an invalid strategy: strategy 'b' lacks"), "{bare}");
    let twice = [two(), two()].concat();
    for (error, expected) in [
        (read(null()), "returns NULL from nmad_strategies()"),
        (read(&PlugIn { count: 0, ..right }), "offers no strategy: count is 0, or strategies is NULL"),
        (
            read(&PlugIn { strategies: null_mut(), ..right }),
            "offers no strategy: count is 0, or strategies is NULL",
        ),
        (read(Exports::new("1", twice).table()), "offers two strategies with the name 'a'"),
    ] {
        assert_eq!(error, Err(expected.into()));
    }
}
