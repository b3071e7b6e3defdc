//! The colors and keys by which the ranks of a communicator are split, in little memory: ranks of one color
//! at equal distances, with keys at equal distances, are one run. Programs mostly split by rows, columns,
//! nodes or halves, which take a run for each color, however many ranks there are.

use std::collections::BTreeMap;

/// Ranks of one color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    color: i32,
    first: u32,
    len: u32,
    /// Distance of the ranks; 0 for a single one.
    step: u32,
    key: i32,
    /// Distance of the keys.
    key_step: i64,
}

impl Run {
    /// Returns this run and a later one as one, if the later one continues it.
    fn merged(&self, later: &Run) -> Option<Run> {
        let step = later.first.checked_sub(self.first + (self.len - 1) * self.step)?;
        let len = self.len.checked_add(later.len).filter(|_| step > 0)?;
        let last_key = i64::from(self.key) + i64::from(self.len - 1) * self.key_step;
        let key_step = i64::from(later.key) - last_key;
        let continues = |run: &Run| run.len == 1 || (run.step, run.key_step) == (step, key_step);
        (continues(self) && continues(later)).then_some(Run { len, step, key_step, ..*self })
    }

    /// Its last rank.
    fn end(&self) -> Option<u32> {
        self.step.checked_mul(self.len - 1)?.checked_add(self.first)
    }

    /// Its ranks with their keys.
    fn ranks(self) -> impl Iterator<Item = (i32, u32)> {
        let key = move |place: u32| i64::from(self.key) + i64::from(place) * self.key_step;
        (0..self.len).map(move |place| (key(place) as i32, self.first + place * self.step))
    }
}

/// The colors and keys of some ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Colors {
    runs: Vec<Run>,
    /// The last run of each color.
    last: BTreeMap<i32, usize>,
}

impl Colors {
    /// Those of one rank.
    pub fn of(rank: u32, color: i32, key: i32) -> Colors {
        let mut colors = Colors::default();
        colors.push(Run { color, first: rank, len: 1, step: 0, key, key_step: 0 });
        colors
    }

    fn push(&mut self, run: Run) {
        let last = self.last.get(&run.color).copied();
        match last.and_then(|last| Some((last, self.runs[last].merged(&run)?))) {
            Some((last, both)) => self.runs[last] = both,
            None => {
                self.last.insert(run.color, self.runs.len());
                self.runs.push(run);
            }
        }
    }

    /// Adds those of higher ranks, as [`Colors::write`] has written them, of `ranks` ranks in all. Returns
    /// whether they are well formed, and no more than these ranks.
    #[must_use]
    pub fn add(&mut self, written: &[u8], ranks: u32) -> bool {
        let mut left = self.runs.iter().fold(ranks, |left, run| left.saturating_sub(run.len));
        let mut rest = written;
        let mut before = Run { color: 0, first: 0, len: 0, step: 0, key: 0, key_step: 0 };
        while !rest.is_empty() {
            let Some(run) = read(&mut rest, &before) else { return false };
            let remains = left.checked_sub(run.len).filter(|_| run.end().is_some_and(|end| end < ranks));
            let Some(remains) = remains else { return false };
            left = remains;
            self.push(run);
            before = run;
        }
        true
    }

    /// Writes them; a number takes as many bytes as it needs.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before = Run { color: 0, first: 0, len: 0, step: 0, key: 0, key_step: 0 };
        for run in &self.runs {
            put(&mut out, i64::from(run.color) - i64::from(before.color));
            put(&mut out, i64::from(run.first) - i64::from(before.first));
            put(&mut out, i64::from(run.key) - i64::from(before.key));
            put(&mut out, run.len.into());
            if run.len > 1 {
                put(&mut out, run.step.into());
                put(&mut out, run.key_step);
            }
            before = *run;
        }
        out
    }

    /// Returns the ranks of a color, sorted by key, then by rank.
    pub fn ranks(&self, color: i32) -> Vec<u32> {
        let own = self.runs.iter().filter(|run| run.color == color);
        let mut ranks: Vec<(i32, u32)> = own.flat_map(|run| run.ranks()).collect();
        ranks.sort_unstable();
        ranks.into_iter().map(|(_, rank)| rank).collect()
    }
}

/// Appends a number in groups of seven bits, the lowest first (LEB128); small negative ones are short, too.
fn put(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn take(rest: &mut &[u8]) -> Option<i64> {
    let mut number = 0;
    for place in 0..10 {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte & 0x80 == 0 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

fn read(rest: &mut &[u8], before: &Run) -> Option<Run> {
    let mut number = |before: i64| take(rest)?.checked_add(before);
    let color = i32::try_from(number(before.color.into())?).ok()?;
    let first = u32::try_from(number(before.first.into())?).ok()?;
    let key = i32::try_from(number(before.key.into())?).ok()?;
    let len = u32::try_from(number(0)?).ok().filter(|len| *len > 0)?;
    let (step, key_step) = match len {
        1 => (0, 0),
        _ => (u32::try_from(number(0)?).ok().filter(|step| *step > 0)?, number(0)?),
    };
    // No key is beyond its type.
    let last = key_step.checked_mul(i64::from(len) - 1)?.checked_add(key.into())?;
    i32::try_from(last).ok()?;
    Some(Run { color, first, len, step, key, key_step })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;
    use proptest::prelude::*;

    /// Gathers the colors and keys along the tree of agreements.
    fn gathered(of: &dyn Fn(u32) -> (i32, i32), ranks: i32, rank: i32) -> Vec<u8> {
        let (color, key) = of(rank as u32);
        let mut colors = Colors::of(rank as u32, color, key);
        for child in tree::children(rank, ranks) {
            assert!(colors.add(&gathered(of, ranks, child), ranks as u32));
        }
        colors.write()
    }

    fn check(of: &dyn Fn(u32) -> (i32, i32), ranks: u32) -> usize {
        let written = gathered(of, ranks as i32, 0);
        let mut colors = Colors::default();
        assert!(colors.add(&written, ranks));
        let mut expected: BTreeMap<i32, Vec<(i32, u32)>> = BTreeMap::new();
        (0..ranks).for_each(|rank| expected.entry(of(rank).0).or_default().push((of(rank).1, rank)));
        for (color, mut members) in expected {
            members.sort_unstable();
            let members: Vec<u32> = members.into_iter().map(|(_, rank)| rank).collect();
            assert_eq!(colors.ranks(color), members, "color {color}");
        }
        written.len()
    }

    #[test]
    fn regular_splits_take_a_run_for_each_color() {
        const RANKS: u32 = 4096;
        for (of, most) in [
            (&(|_| (0, 0)) as &dyn Fn(u32) -> (i32, i32), 8),
            (&|rank| (0, -(rank as i32)), 8),
            (&|rank| ((rank >= RANKS / 2) as i32, rank as i32), 20),
            (&|rank| (rank as i32 % 2, rank as i32), 20),
            (&|rank| (rank as i32 / 64, rank as i32), 64 * 9),
            (&|rank| (rank as i32 % 64, rank as i32), 64 * 9),
            (&|rank| (if rank % 64 == 0 { 0 } else { -32766 }, 0), 64 * 12),
        ] {
            let len = check(of, RANKS);
            assert!(len <= most, "{len} B");
        }
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let written = Colors::of(7, 1, 2).write();
        for end in 1..written.len() {
            assert!(!Colors::default().add(&written[..end], 8), "{end}");
        }
        for bytes in
            [vec![0x80; 11], vec![0, 0, 0, 0], vec![0, 1, 0, 2], [&[0, 0, 0, 4][..], &[0xff; 9]].concat()]
        {
            assert!(!Colors::default().add(&bytes, 8), "{bytes:?}");
        }
    }

    #[test]
    fn more_ranks_than_there_are_are_refused() {
        let written = gathered(&|_| (0, 0), 8, 0);
        assert!(Colors::default().add(&written, 8));
        assert!(!Colors::default().add(&written, 7), "a rank that is not there");
        assert!(!Colors::of(0, 0, 0).add(&written, 8), "more ranks in all");
        let run = Run { color: 0, first: 0, len: u32::MAX, step: 1, key: 0, key_step: 0 };
        let many = Colors { runs: vec![run], ..Colors::default() };
        assert!(!Colors::default().add(&many.write(), 8));
        let repeated = Colors { runs: vec![Run { len: 8, ..run }; 1000], ..Colors::default() };
        assert!(!Colors::default().add(&repeated.write(), 8));
    }

    proptest! {
        #[test]
        fn any_split_survives(
            of in proptest::collection::vec((-3..4_i32, prop_oneof![any::<i32>(), -2..3_i32]), 1..80)
        ) {
            let len = check(&|rank| of[rank as usize], of.len() as u32);
            prop_assert!(len <= 16 * of.len());
        }
    }
}
