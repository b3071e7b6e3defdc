//! Contestants taking turns, and what comes of it.
use super::BenchError;
use crate::stats::Summary;

/// What a contestant stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// NewMadeleine.
    Ours,
    /// The reference that ours is compared with.
    Yardstick,
}

/// One way of moving the data. Both ranks have the same contestants in the same order.
pub struct Contestant<'a> {
    name: String,
    kind: Kind,
    turn: Box<dyn FnMut() -> Result<f64, BenchError> + 'a>,
}

impl<'a> Contestant<'a> {
    /// `turn` is this rank's part in one sample; its result counts at the active rank only.
    pub fn new(
        name: impl Into<String>,
        kind: Kind,
        turn: impl FnMut() -> Result<f64, BenchError> + 'a,
    ) -> Contestant<'a> {
        Contestant { name: name.into(), kind, turn: Box::new(turn) }
    }
}

/// What one contestant reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Who.
    pub name: String,
    /// Ours or a yardstick.
    pub kind: Kind,
    /// One figure for each turn, in the unit of the pattern.
    pub samples: Vec<f64>,
}

impl Entry {
    /// The samples condensed; of nothing if there are none.
    pub fn summary(&self) -> Summary {
        let nothing = Summary { count: 0, min: 0.0, lower: 0.0, median: 0.0, upper: 0.0, max: 0.0 };
        Summary::of(&self.samples).unwrap_or(nothing)
    }

    /// Turn by turn, `join` of our figure and the other's: what both had to suffer in one round cancels out.
    pub fn beside(&self, other: &Entry, join: impl Fn(f64, f64) -> f64) -> Option<Summary> {
        let pairs = self.samples.iter().zip(&other.samples);
        Summary::of(&pairs.map(|(ours, theirs)| join(*ours, *theirs)).collect::<Vec<_>>())
    }
}

/// What all contestants reached with one message size.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Length of a message in bytes.
    pub len: usize,
    /// The contestants, in the order in which they took turns.
    pub entries: Vec<Entry>,
}

impl Row {
    /// The entries of NewMadeleine.
    pub fn ours(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind == Kind::Ours)
    }

    /// The entries that ours are compared with.
    pub fn yardsticks(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind == Kind::Yardstick)
    }

    /// The yardstick with the best median; `best` says whether the first figure is better than the second.
    pub fn yardstick(&self, best: impl Fn(f64, f64) -> bool) -> Option<&Entry> {
        self.yardsticks().reduce(|a, b| if best(b.summary().median, a.summary().median) { b } else { a })
    }
}

/// Lets the contestants take `repeat` turns each, in rounds of `slices` slices: A B C A B C ... A sample is
/// the median of the slices of a turn. The shorter a slice, the more certainly all contestants meet the
/// machine in the same state, and the fewer slices a disturbance hits.
///
/// # Errors
/// That of the first contestant that fails.
pub fn interleave(
    len: usize,
    (repeat, slices): (usize, usize),
    contestants: &mut [Contestant<'_>],
) -> Result<Row, BenchError> {
    let entry = |c: &Contestant<'_>| Entry { name: c.name.clone(), kind: c.kind, samples: Vec::new() };
    let mut entries: Vec<Entry> = contestants.iter().map(entry).collect();
    for _ in 0..repeat {
        let mut figures = vec![Vec::with_capacity(slices); contestants.len()];
        for _ in 0..slices.max(1) {
            for (figures, contestant) in figures.iter_mut().zip(contestants.iter_mut()) {
                figures.push((contestant.turn)()?);
            }
        }
        for (entry, figures) in entries.iter_mut().zip(&figures) {
            entry.samples.extend(Summary::of(figures).map(|summary| summary.median));
        }
    }
    Ok(Row { len, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_take_turns_and_are_compared_turn_by_turn() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut contestants: Vec<_> = [("a", Kind::Ours, 1.0), ("b", Kind::Yardstick, 2.0)]
            .into_iter()
            .map(|(name, kind, step)| {
                let (order, mut value) = (&order, 0.0);
                Contestant::new(name, kind, move || {
                    order.borrow_mut().push(name);
                    value += step;
                    Ok(value)
                })
            })
            .collect();
        let row = interleave(8, (3, 1), &mut contestants).unwrap();
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a", "b"]);
        let (ours, theirs) = (row.ours().next().unwrap(), row.yardstick(|a, b| a > b).unwrap());
        assert_eq!((ours.samples.as_slice(), theirs.name.as_str()), (&[1.0, 2.0, 3.0][..], "b"));
        assert_eq!(ours.beside(theirs, |a, b| a / b).unwrap().max, 0.5);
        let row = interleave(8, (2, 3), &mut contestants).unwrap();
        assert_eq!(row.ours().next().unwrap().samples, [5.0, 8.0], "the medians of 4 5 6 and 7 8 9");
    }

    #[test]
    fn the_best_yardstick_is_the_one_to_beat() {
        let entry =
            |name: &str, value| Entry { name: name.into(), kind: Kind::Yardstick, samples: vec![value] };
        let row =
            Row { len: 1, entries: vec![entry("slow", 1.0), entry("fast", 3.0), entry("middling", 2.0)] };
        assert_eq!(row.yardstick(|a, b| a > b).unwrap().name, "fast");
        assert_eq!(row.yardstick(|a, b| a < b).unwrap().name, "slow");
    }
}
