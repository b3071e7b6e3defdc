//! Where the bytes of one element lie, in the order of its type map, as few pieces as possible.
//!
//! Made once, when the type is made. Neighbours become one run, runs at equal distances become one
//! strided piece, copies of something large stay a loop around it, so that a vector of a million blocks
//! is five numbers.

use std::sync::Arc;

/// Contiguous bytes, relative to the address of the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Displacement of the first byte.
    pub offset: i64,
    /// Bytes.
    pub len: i64,
}

/// Runs of equal length at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strided {
    /// The first of them.
    pub first: Run,
    /// How many.
    pub count: i64,
    /// Bytes from the begin of one to the begin of the next.
    pub stride: i64,
}

/// Loops and lists of up to this many runs are written out, so that neighbours across their seams become one.
const WRITTEN_OUT: i64 = 1024;

/// Where bytes lie.
#[derive(Debug, Clone)]
pub enum Layout {
    /// One run, perhaps of no bytes.
    Run(Run),
    /// Equal runs at equal distances, at least two.
    Strided(Strided),
    /// Different runs, none empty, no two of them neighbours.
    Runs(Arc<[Run]>),
    /// The same again and again.
    Loop { count: i64, stride: i64, body: Arc<Layout> },
    /// One after another, each displaced.
    Sequence(Arc<[(i64, Layout)]>),
}

impl Layout {
    pub const EMPTY: Layout = Layout::Run(Run { offset: 0, len: 0 });

    pub fn is_empty(&self) -> bool {
        matches!(self, Layout::Run(Run { len: 0, .. }))
    }

    /// `count` copies, `stride` apart. The caller has checked that all displacements fit into 64 bits.
    pub fn repeat(&self, count: i64, stride: i64) -> Layout {
        if count == 0 || self.is_empty() {
            return Layout::EMPTY;
        }
        match self {
            _ if count == 1 => self.clone(),
            Layout::Run(run) if stride == run.len => Layout::Run(Run { len: run.len * count, ..*run }),
            Layout::Run(first) => Layout::Strided(Strided { first: *first, count, stride }),
            Layout::Strided(inner) if inner.stride.checked_mul(inner.count) == Some(stride) => {
                Layout::Strided(Strided { count: inner.count * count, ..*inner })
            }
            Layout::Loop { count: inner, stride: step, body } if step.checked_mul(*inner) == Some(stride) => {
                Layout::Loop { count: inner * count, stride: *step, body: body.clone() }
            }
            _ if self.runs().saturating_mul(count) <= WRITTEN_OUT => {
                Layout::sequence((0..count).map(|i| (i * stride, self.clone())).collect())
            }
            _ => Layout::Loop { count, stride, body: Arc::new(self.clone()) },
        }
    }

    /// One after another, each displaced.
    pub fn sequence(mut parts: Vec<(i64, Layout)>) -> Layout {
        parts.retain(|(_, part)| !part.is_empty());
        if let [(offset, only)] = &parts[..] {
            return only.moved(*offset);
        }
        let runs = parts.iter().fold(0_i64, |sum, (_, part)| sum.saturating_add(part.runs()));
        if runs > WRITTEN_OUT.max(parts.len() as i64) {
            return Layout::Sequence(parts.into());
        }
        let mut list = Vec::with_capacity(runs as usize);
        for (offset, part) in &parts {
            part.write_out(*offset, &mut list);
        }
        Layout::from_runs(list)
    }

    fn moved(&self, by: i64) -> Layout {
        let move_run = |run: &Run| Run { offset: run.offset + by, len: run.len };
        match self {
            _ if by == 0 => self.clone(),
            Layout::Run(run) => Layout::Run(move_run(run)),
            Layout::Strided(strided) => {
                Layout::Strided(Strided { first: move_run(&strided.first), ..*strided })
            }
            Layout::Runs(runs) => Layout::Runs(runs.iter().map(move_run).collect()),
            Layout::Loop { count, stride, body } => {
                Layout::Loop { count: *count, stride: *stride, body: Arc::new(body.moved(by)) }
            }
            Layout::Sequence(parts) => {
                Layout::Sequence(parts.iter().map(|(offset, part)| (offset + by, part.clone())).collect())
            }
        }
    }

    fn from_runs(list: Vec<Run>) -> Layout {
        match list[..] {
            [] => Layout::EMPTY,
            [only] => Layout::Run(only),
            [first, second, ..] => {
                let stride = second.offset.wrapping_sub(first.offset);
                let equal = |pair: &[Run]| {
                    pair[0].len == pair[1].len && pair[1].offset.wrapping_sub(pair[0].offset) == stride
                };
                if list.windows(2).all(equal) {
                    return Layout::Strided(Strided { first, count: list.len() as i64, stride });
                }
                Layout::Runs(list.into())
            }
        }
    }

    /// Appends the runs; one that begins where the last one ends is added to it.
    fn write_out(&self, base: i64, list: &mut Vec<Run>) {
        match self {
            Layout::Run(run) => append(list, Run { offset: base + run.offset, len: run.len }),
            Layout::Strided(Strided { first, count, stride }) => {
                for i in 0..*count {
                    append(list, Run { offset: base + first.offset + i * stride, len: first.len });
                }
            }
            Layout::Runs(runs) => {
                for run in runs.iter() {
                    append(list, Run { offset: base + run.offset, len: run.len });
                }
            }
            Layout::Loop { count, stride, body } => {
                (0..*count).for_each(|i| body.write_out(base + i * stride, list));
            }
            Layout::Sequence(parts) => {
                parts.iter().for_each(|(offset, part)| part.write_out(base + offset, list));
            }
        }
    }

    /// How many runs there are before those of different parts are joined; saturates.
    pub fn runs(&self) -> i64 {
        match self {
            Layout::Run(_) => 1,
            Layout::Strided(strided) => strided.count,
            Layout::Runs(list) => list.len() as i64,
            Layout::Loop { count, body, .. } => body.runs().saturating_mul(*count),
            Layout::Sequence(parts) => {
                parts.iter().fold(0_i64, |sum, (_, part)| sum.saturating_add(part.runs()))
            }
        }
    }
}

fn append(list: &mut Vec<Run>, run: Run) {
    match list.last_mut() {
        Some(last) if last.offset.wrapping_add(last.len) == run.offset => last.len += run.len,
        _ => list.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(offset: i64, len: i64) -> Layout {
        Layout::Run(Run { offset, len })
    }

    #[test]
    fn touching_copies_are_one_run() {
        assert!(matches!(run(3, 8).repeat(5, 8), Layout::Run(Run { offset: 3, len: 40 })));
        assert!(run(0, 8).repeat(0, 8).is_empty());
    }

    #[test]
    fn runs_at_equal_distances_are_strided() {
        let list = vec![(0, run(0, 4)), (8, run(0, 4)), (16, run(0, 4))];
        let Layout::Strided(strided) = Layout::sequence(list) else { panic!("not strided") };
        assert_eq!((strided.count, strided.stride, strided.first.len), (3, 8, 4));
    }

    #[test]
    fn a_vector_of_touching_vectors_is_one_vector() {
        let vector = run(0, 4).repeat(1_000_000, 16).repeat(1000, 16_000_000);
        assert!(matches!(vector, Layout::Strided(Strided { count: 1_000_000_000, stride: 16, .. })));
    }

    #[test]
    fn large_copies_stay_a_loop() {
        let planes = run(0, 4).repeat(1_000_000, 16).repeat(1000, 32_000_000);
        let Layout::Loop { count: 1000, body, .. } = planes else { panic!("not a loop") };
        assert!(matches!(*body, Layout::Strided(_)));
    }

    #[test]
    fn neighbours_across_parts_are_joined() {
        let pair = Layout::sequence(vec![(0, run(0, 4)), (12, run(0, 4))]);
        let twice = pair.repeat(2, 16);
        let Layout::Runs(runs) = twice else { panic!("not written out") };
        assert_eq!(runs.iter().map(|r| (r.offset, r.len)).collect::<Vec<_>>(), [(0, 4), (12, 8), (28, 4)]);
    }
}
