//! Rows of the tables that take long, as tests can afford to make them.

use super::minife::{MATRICES, SCALES, by_limit, scaled};
use super::toys::{LONG, by_size, remedied};
use super::{INFINIBAND, TEN_GIGABIT};

/// A few rows of each table that takes more than seconds: the name of its figure, and its cells joined by
/// spaces.
pub fn spots() -> Vec<(&'static str, String)> {
    let charts = [
        ("p5-6", by_size(&TEN_GIGABIT, 1)),
        ("p5-6", by_size(&INFINIBAND, 1)),
        ("p5-13", by_limit(MATRICES[0])),
        ("p5-16", remedied((&INFINIBAND, true, "17"), &LONG[..1])),
        ("p5-19", scaled((&INFINIBAND, "19", false), &SCALES[..1])),
    ];
    charts
        .into_iter()
        .flat_map(|(name, chart)| chart.rows().into_iter().map(move |row| (name, row)))
        .collect()
}
