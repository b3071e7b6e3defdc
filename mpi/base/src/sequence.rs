//! Numbers in order, stored by *runs* of equal distances: the ranks and nodes of large jobs follow patterns.

/// Numbers in order. It is stored as one run, as runs, or as a list if runs would take more memory. Two
/// sequences of the same numbers are stored alike, so comparing them takes no longer than reading their runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sequence {
    len: u32,
    /// The first run; the only one unless there is a rest.
    head: Run,
    rest: Option<Box<Rest>>,
}

/// A sequence that takes more than one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Rest {
    /// All runs, the first among them.
    Runs(Box<[Run]>),
    List(Box<[u32]>),
}

/// Numbers at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    /// Place of its first number in the sequence.
    start: u32,
    first: u32,
    /// Distance, modulo 2^32: perhaps zero or negative.
    step: u32,
}

/// Numbers at equal distances, and where they are in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    run: Run,
    len: u32,
}

/// Sequences up to this length are lists unless they are one run: a list finds a number in one step.
const SHORT: u32 = 64;
/// Longer ones are lists if a run has fewer numbers than this on average: then runs take more memory.
const RUN: u32 = 4;

impl Run {
    #[inline]
    fn at(&self, place: u32) -> u32 {
        self.first.wrapping_add(place.wrapping_mul(self.step))
    }

    /// Appends a number, which is the one at `place`. Returns false if it does not belong to this run.
    fn takes(&mut self, place: u32, value: u32) -> bool {
        let Some(last) = place.checked_sub(1) else { return false };
        let Ok(step) = i32::try_from(i64::from(value) - i64::from(self.at(last))) else { return false };
        if last == 0 {
            self.step = step as u32;
        }
        self.step == step as u32
    }
}

impl Span {
    /// The place of its first number in the sequence.
    pub fn start(&self) -> u32 {
        self.run.start
    }

    /// Returns the number of entries.it has.
    #[allow(clippy::len_without_is_empty, reason = "no span is empty")]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Its least and its greatest number.
    pub fn ends(&self) -> (u32, u32) {
        let (first, last) = (self.run.first, self.run.at(self.len - 1));
        (first.min(last), first.max(last))
    }

    /// The place of a number in the sequence.
    #[inline]
    pub fn place_of(&self, value: u32) -> Option<u32> {
        let place = match self.run.step {
            1 => value.wrapping_sub(self.run.first),
            0 => (value == self.run.first).then_some(0)?,
            step => {
                let (distance, step) = (i64::from(value) - i64::from(self.run.first), i64::from(step as i32));
                u32::try_from((distance % step == 0).then_some(distance / step)?).ok()?
            }
        };
        (place < self.len).then(|| self.run.start + place)
    }
}

impl Sequence {
    /// The number at a place.
    #[inline]
    pub fn get(&self, place: u32) -> Option<u32> {
        if place >= self.len {
            return None;
        }
        Some(match &self.rest {
            None => self.head.at(place),
            Some(rest) => rest.at(place),
        })
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the sequence is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The run that holds everything, if one does.
    #[inline]
    pub fn only(&self) -> Option<Span> {
        (self.rest.is_none() && self.len > 0).then_some(Span { run: self.head, len: self.len })
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        let list: &[u32] = match self.rest.as_deref() {
            Some(Rest::List(list)) => list,
            _ => &[],
        };
        let of = |span: Span| (0..span.len).map(move |place| span.run.at(place));
        self.spans().flat_map(of).chain(list.iter().copied())
    }

    /// The runs in order; none if a list is stored.
    pub fn spans(&self) -> impl Iterator<Item = Span> + Clone + '_ {
        let runs = match self.rest.as_deref() {
            None if self.len > 0 => std::slice::from_ref(&self.head),
            Some(Rest::Runs(runs)) => runs,
            _ => &[],
        };
        let ends = runs.iter().skip(1).map(|run| run.start).chain([self.len]);
        runs.iter().zip(ends).map(|(&run, end)| Span { run, len: end - run.start })
    }

    fn of_runs(len: u32, runs: Vec<Run>) -> Sequence {
        let head = runs.first().copied().unwrap_or(Run { start: 0, first: 0, step: 1 });
        if runs.len() <= 1 {
            return Sequence { len, head, rest: None };
        }
        let is_worth_it = len > SHORT && runs.len() as u64 * u64::from(RUN) <= u64::from(len);
        let all = Sequence { len, head, rest: Some(Box::new(Rest::Runs(runs.into()))) };
        if is_worth_it {
            return all;
        }
        let list = all.iter().collect();
        Sequence { len, head, rest: Some(Box::new(Rest::List(list))) }
    }
}

impl Rest {
    /// The number at a place, which must be in the sequence.
    fn at(&self, place: u32) -> u32 {
        match self {
            Rest::List(list) => list[place as usize],
            Rest::Runs(runs) => {
                let run = &runs[runs.partition_point(|run| run.start <= place) - 1];
                run.at(place - run.start)
            }
        }
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Sequence::of_runs(0, Vec::new())
    }
}

impl FromIterator<u32> for Sequence {
    fn from_iter<I: IntoIterator<Item = u32>>(values: I) -> Self {
        let (mut len, mut runs) = (0, Vec::<Run>::new());
        for value in values {
            if !runs.last_mut().is_some_and(|run| run.takes(len - run.start, value)) {
                runs.push(Run { start: len, first: value, step: 1 });
            }
            len += 1;
        }
        Sequence::of_runs(len, runs)
    }
}

impl From<std::ops::Range<u32>> for Sequence {
    fn from(range: std::ops::Range<u32>) -> Self {
        let (len, run) = (range.len() as u32, Run { start: 0, first: range.start, step: 1 });
        Sequence::of_runs(len, if len > 0 { vec![run] } else { Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs of any length and distance, one after the other.
    fn numbers() -> impl Strategy<Value = Vec<u32>> {
        let run = (0..1000_u32, 0..6_u32, 1..40_u32, any::<bool>());
        proptest::collection::vec(run, 0..12).prop_map(|runs| {
            let of = |(first, step, len, falls): (u32, u32, u32, bool)| {
                let mut run: Vec<u32> = (0..len).map(|place| first + place * step).collect();
                if falls {
                    run.reverse();
                }
                run
            };
            runs.into_iter().flat_map(of).collect()
        })
    }

    proptest! {
        #[test]
        fn a_sequence_has_the_numbers_that_it_was_made_of(numbers in numbers()) {
            let sequence: Sequence = numbers.iter().copied().collect();
            prop_assert_eq!(sequence.len() as usize, numbers.len());
            prop_assert_eq!(sequence.iter().collect::<Vec<_>>(), numbers.clone());
            for place in 0..numbers.len() + 2 {
                prop_assert_eq!(sequence.get(place as u32), numbers.get(place).copied());
            }
            for span in sequence.spans() {
                let part = &numbers[span.start() as usize..][..span.len() as usize];
                let ends = (*part.iter().min().unwrap(), *part.iter().max().unwrap());
                prop_assert_eq!(span.ends(), ends);
                for value in 0..1300 {
                    let place = part.iter().position(|&number| number == value);
                    prop_assert_eq!(span.place_of(value), place.map(|place| span.start() + place as u32));
                }
            }
        }

        #[test]
        fn sequences_are_equal_if_their_numbers_are((a, b) in (numbers(), numbers())) {
            let sequence = |numbers: &[u32]| numbers.iter().copied().collect::<Sequence>();
            prop_assert_eq!(sequence(&a) == sequence(&b), a == b);
            prop_assert_eq!(sequence(&[&a[..], &b].concat()), a.iter().chain(&b).copied().collect());
        }
    }

    #[test]
    fn patterns_are_runs_and_the_rest_are_lists() {
        let spans = |numbers: Vec<u32>| Sequence::from_iter(numbers).spans().count();
        assert_eq!(spans((0..100_000).collect()), 1);
        assert_eq!(spans((0..100_000).rev().step_by(2).collect()), 1);
        assert_eq!(spans((0..1000).filter(|number| number % 100 != 7).collect()), 11);
        assert_eq!(spans((0..1000).map(|rank| rank / 10).collect()), 100, "equal numbers are runs, too");
        assert_eq!(spans((0..1000).map(|number| number * number).collect()), 0);
        assert_eq!(Sequence::from(0..7), (0..7).collect());
        assert_eq!(Sequence::from(3..3), Sequence::default().iter().collect());
    }

    #[test]
    fn the_greatest_numbers_do_not_overflow() {
        let numbers = [u32::MAX, 0, u32::MAX, u32::MAX - 1, u32::MAX - 2];
        let sequence = Sequence::from_iter(numbers);
        assert_eq!(sequence.iter().collect::<Vec<_>>(), numbers);
        let falling = Sequence::from_iter((u32::MAX - 99..=u32::MAX).rev());
        let span = falling.only().unwrap();
        assert_eq!((span.place_of(u32::MAX - 99), span.place_of(0)), (Some(99), None));
    }
}
