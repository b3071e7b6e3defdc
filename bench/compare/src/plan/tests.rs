use super::*;
use std::collections::HashSet;

fn all(extent: Extent) -> Vec<Cell> {
    plan(extent, &[], &[]).unwrap().into_iter().flat_map(|batch| batch.cells).collect()
}

#[test]
fn no_cell_is_there_twice_and_quick_is_much_less_than_full() {
    let (quick, full) = (all(Extent::Quick), all(Extent::Full));
    for cells in [&quick, &full] {
        assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
    }
    assert!((400..800).contains(&quick.len()), "{}", quick.len());
    assert!((1500..3500).contains(&full.len()), "{}", full.len());
}

#[test]
fn every_pattern_is_measured_and_can_be_chosen() {
    for extent in [Extent::Quick, Extent::Full] {
        for family in Family::ALL {
            for pattern in family.patterns() {
                let batches = plan(extent, std::slice::from_ref(&pattern), &[]).unwrap();
                let cells: Vec<_> = batches.iter().flat_map(|batch| &batch.cells).collect();
                assert!(!cells.is_empty() && cells.iter().all(|cell| cell.pattern == pattern), "{pattern}");
            }
        }
    }
}

#[test]
fn the_full_plan_has_all_sizes_and_no_buffer_is_too_long() {
    let full = all(Extent::Full);
    let sizes: Vec<u64> = full
        .iter()
        .filter(|cell| cell.place == "node2" && cell.pattern == "pingpong")
        .map(|c| c.bytes)
        .collect();
    for exponent in 0..=26 {
        assert!(sizes.contains(&(1 << exponent)), "{exponent}");
    }
    assert!(sizes.contains(&0) && sizes.contains(&3072) && sizes.contains(&(48 << 20)), "{sizes:?}");
    for cell in &full {
        let ranks = PLACES.iter().find(|place| place.name == cell.place).unwrap().ranks;
        let count = match &*cell.variant {
            window if window.starts_with('w') => window[1..].parse().unwrap(),
            "stream" => 64,
            "loop" | "apart" => u64::from(ranks),
            _ => 1,
        };
        assert!(cell.bytes * count <= LONGEST, "{cell}");
    }
}

#[test]
fn names_that_are_not_there_are_refused_with_those_that_are() {
    let error = plan(Extent::Quick, &["pingpng".into()], &[]).unwrap_err().to_string();
    assert!(error.contains("pingpng") && error.contains("pingpong, streams"), "{error}");
    let error = plan(Extent::Quick, &[], &["nod2".into()]).unwrap_err().to_string();
    assert!(error.contains("node2"), "{error}");
    let error = plan(Extent::Quick, &["pairs".into()], &["node2".into()]).unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
}

#[test]
fn lengths_are_written_with_units() {
    let texts = [0, 12, 1024, 1536, 3 << 20, 3 << 19, 1000].map(bytes);
    assert_eq!(texts, ["0 B", "12 B", "1 KiB", "1.5 KiB", "3 MiB", "1.5 MiB", "1000 B"]);
}
