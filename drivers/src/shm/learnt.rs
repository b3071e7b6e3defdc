//! Speeds measured by the selector, as text lines stored with the profile of the rail. The next job starts
//! from them, for all pairs of cores at the same distance.
//!
//! A line is the name of a row (distance, shape, shortest length of the class in bytes) and the speed of
//! each method in bytes per nanosecond: `near-8192 bounce 8.100 cma 6.900`.

use super::selector::{CLASSES, KINDS, LEAST, Method, Row, Selector};

/// Names of the kinds of rows: distances, for each shape in turn.
const NAMES: [&str; KINDS] =
    ["far", "near", "far-blocks", "near-blocks", "far-short-blocks", "near-short-blocks"];
/// Upper limit of a speed in bytes per nanosecond; no memory is as fast, so a line above it is damaged.
const SPEED_MAX: f64 = 1e6;

impl Selector {
    /// Loads the speeds that earlier jobs have measured. Lines that cannot be parsed are ignored.
    pub fn recall(&mut self, lines: &[String]) {
        let known: Vec<(&str, [f64; 3])> = lines.iter().filter_map(|line| parse(line)).collect();
        for (name, row) in self.named() {
            if let Some((_, speeds)) = known.iter().find(|(other, _)| *other == name) {
                row.recall(*speeds);
            }
        }
    }

    /// The rows whose fastest method differs from the one that earlier jobs had found.
    pub fn learnt(&self) -> Vec<String> {
        let rows = self.rows.iter().flatten().zip(names());
        rows.filter_map(|(row, name)| Some(print(&name, row.news()?))).collect()
    }

    fn named(&mut self) -> impl Iterator<Item = (String, &mut Row)> {
        names().zip(self.rows.iter_mut().flatten())
    }
}

/// The names of all rows, in their order.
fn names() -> impl Iterator<Item = String> {
    let of = |kind| (0..CLASSES).map(move |class| format!("{kind}-{}", LEAST << class));
    NAMES.into_iter().flat_map(of)
}

fn print(name: &str, speeds: [f64; 3]) -> String {
    let known = Method::NAMES.iter().zip(speeds).filter(|(_, speed)| *speed > 0.0);
    known.fold(String::from(name), |line, (method, speed)| format!("{line} {method} {speed:.3}"))
}

fn parse(line: &str) -> Option<(&str, [f64; 3])> {
    let mut words = line.split(' ');
    let (name, mut speeds) = (words.next()?, [0.0; 3]);
    while let Some(method) = words.next() {
        let place = Method::NAMES.iter().position(|known| *known == method)?;
        let speed: f64 = words.next()?.parse().ok()?;
        speeds[place] = Some(speed).filter(|speed| *speed > 0.0 && *speed < SPEED_MAX)?;
    }
    Some((name, speeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::probe::Probe;
    use crate::shm::shape::Shape;
    use std::time::Duration;

    const LEN: u64 = 100_000;

    /// Counts how many of a hundred messages between far cores take each method, given the methods' speeds.
    fn taken(selector: &mut Selector, speeds: [u64; 3]) -> [usize; 3] {
        let (probe, mut taken) = (Probe::default(), [0; 3]);
        for _ in 0..100 {
            let choice = probe.choose(selector, (LEN, Shape::Whole), Method::ALL, false);
            selector.note(choice, Duration::from_micros(1000 / speeds[choice.method as usize]));
            taken[choice.method as usize] += 1;
        }
        taken
    }

    #[test]
    fn the_next_job_begins_with_what_this_one_has_learnt() {
        let mut first = Selector::default();
        assert!(first.learnt().is_empty(), "nothing yet");
        let [_, cma, _] = taken(&mut first, [10, 20, 5]);
        let lines = first.learnt();
        assert!(lines.len() == 1 && lines[0].starts_with("far-65536 bounce 1.000 cma 2.000"), "{lines:?}");
        let mut second = Selector::default();
        second.recall(&lines);
        let [_, more, _] = taken(&mut second, [10, 20, 5]);
        assert!(more > cma && more > 90, "fewer trials: {cma} and {more}");
        assert!(second.learnt().is_empty(), "the same is no news");
        // The machine has changed.
        for _ in 0..10 {
            taken(&mut second, [20, 10, 5]);
        }
        assert!(second.learnt()[0].contains("bounce 2.000"), "{:?}", second.learnt());
    }

    #[test]
    fn damaged_and_foreign_lines_count_for_nothing() {
        let mut whole = Selector::default();
        taken(&mut whole, [10, 20, 5]);
        let line = &whole.learnt()[0];
        let foreign = ["", "far", "far-65537 cma 2.0", "far-65536 cma", "far-65536 cma -1"];
        let more = ["far-65536 cma NaN", "far-65536 cma inf", "far-65536 dma 2.0"];
        let cut: Vec<String> = (0..line.len() - 20).map(|end| line[..end].to_string()).collect();
        let mut selector = Selector::default();
        selector.recall(&foreign.into_iter().chain(more).map(String::from).chain(cut).collect::<Vec<_>>());
        let mut fresh = Selector::default();
        assert_eq!(taken(&mut selector, [10, 20, 5]), taken(&mut fresh, [10, 20, 5]));
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let all: std::collections::BTreeSet<String> = names().collect();
        assert_eq!(all.len(), Selector::default().named().count());
        assert!(all.contains("near-4096") && all.contains("far-blocks-1048576"), "{all:?}");
    }
}
