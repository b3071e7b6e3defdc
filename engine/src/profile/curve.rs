//! A curve: the time that a number of bytes takes, and the number of bytes that fit into a time.
//!
//! Straight lines between knots (P3 section III-C: the closest samples and linear interpolation); the last
//! line has no end. Noisy samples are first made monotone, so that more bytes never take less time and the
//! inverse exists: neighbours that contradict each other are replaced by their mean (pool adjacent
//! violators, the least-squares monotone fit).

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Largest number of knots; an index fits into a byte.
const KNOTS_MAX: usize = 250;
/// Classes of lengths and times in the lookup tables: by number of bits, zero to 64, and the two bits after
/// the first.
const CLASSES: usize = 65 * 4;

/// A point of the curve and the line that begins there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    len: u64,
    ns: u64,
    ns_per_byte: f64,
    bytes_per_ns: f64,
}

/// Monotone times over sizes. A lookup in either direction costs a table access and a multiplication.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    knots: Box<[Knot]>,
    /// For each class of values: the last knot that is not beyond any value of the class.
    by_len: [u8; CLASSES],
    by_ns: [u8; CLASSES],
    last_ns_per_byte: f64,
}

impl Curve {
    /// Returns the curve through points (bytes, nanoseconds) in ascending order of bytes; `None` without
    /// points. Times below one nanosecond count as one.
    pub fn through(points: impl IntoIterator<Item = (u64, u64)>) -> Option<Curve> {
        let mut points = pooled(points);
        let &(len, ns) = points.first()?;
        if len > 0 {
            let start = match points.get(1) {
                // Extend the first line down to zero bytes, but not below half of the first time.
                Some(&(next, later)) => {
                    let slope = (later - ns) as f64 / (next - len) as f64;
                    ((ns as f64 - slope * len as f64) as u64).clamp(ns / 2, ns - 1).max(1)
                }
                // One point gives no start time: all of the time is attributed to its bytes.
                None => 1,
            };
            match start < ns {
                true => points.insert(0, (0, start)),
                false => points[0].0 = 0,
            }
        }
        points.truncate(KNOTS_MAX);
        Some(Curve::of(&points))
    }

    /// Returns the line of a latency in nanoseconds and a bandwidth in bytes per second.
    pub fn line(latency_ns: u64, bandwidth: u64) -> Curve {
        let ns_per_byte = 1e9 / bandwidth.max(1) as f64;
        let knot = Knot { len: 0, ns: latency_ns.max(1), ns_per_byte, bytes_per_ns: 1.0 / ns_per_byte };
        let tables = [0; CLASSES];
        Curve { knots: Box::new([knot]), by_len: tables, by_ns: tables, last_ns_per_byte: ns_per_byte }
    }

    /// Returns the curve through points that ascend strictly in bytes and time.
    fn of(points: &[(u64, u64)]) -> Curve {
        let line = |from: (u64, u64), to: (u64, u64)| {
            let (len, ns) = ((to.0 - from.0) as f64, (to.1 - from.1) as f64);
            Knot { len: from.0, ns: from.1, ns_per_byte: ns / len, bytes_per_ns: len / ns }
        };
        let mut knots: Vec<Knot> = points.windows(2).map(|pair| line(pair[0], pair[1])).collect();
        if let Some(&last) = points.last() {
            // The last line spans at least a doubling of the size, so that the noise of two close samples
            // does not determine all times beyond.
            let from = points.iter().rev().find(|point| point.0 <= last.0 / 2).copied().unwrap_or((0, 0));
            knots.push(if from.0 < last.0 && from.1 < last.1 {
                Knot { len: last.0, ns: last.1, ..line(from, last) }
            } else {
                let ns_per_byte = last.1 as f64 / last.0.max(1) as f64;
                Knot { len: last.0, ns: last.1, ns_per_byte, bytes_per_ns: 1.0 / ns_per_byte }
            });
        }
        let table = |value: fn(&Knot) -> u64| {
            core::array::from_fn(|class| {
                let least = least_of(class);
                knots.iter().rposition(|knot| value(knot) <= least).unwrap_or(0) as u8
            })
        };
        let (by_len, by_ns) = (table(|knot| knot.len), table(|knot| knot.ns));
        let last_ns_per_byte = knots.last().map_or(0.0, |knot| knot.ns_per_byte);
        Curve { knots: knots.into_boxed_slice(), by_len, by_ns, last_ns_per_byte }
    }

    /// Returns the nanoseconds that `len` bytes take.
    #[inline]
    pub fn ns(&self, len: u64) -> u64 {
        let index = self.find(&self.by_len, len, |knot| knot.len);
        let knot = &self.knots[index];
        let ns = knot.ns.saturating_add(scaled(len - knot.len, knot.ns_per_byte));
        self.knots.get(index + 1).map_or(ns, |next| ns.min(next.ns))
    }

    /// Returns the most bytes that take at most `ns` nanoseconds; zero if none do.
    #[inline]
    pub fn bytes(&self, ns: u64) -> u64 {
        self.bytes_and_rate(ns).0
    }

    /// Returns the most bytes that take at most `ns` nanoseconds, and the bytes that each further
    /// nanosecond adds.
    #[inline]
    pub(crate) fn bytes_and_rate(&self, ns: u64) -> (u64, f64) {
        let index = self.find(&self.by_ns, ns, |knot| knot.ns);
        let knot = &self.knots[index];
        let Some(beyond) = ns.checked_sub(knot.ns) else { return (0, 0.0) };
        let len = knot.len.saturating_add(scaled(beyond, knot.bytes_per_ns));
        (self.knots.get(index + 1).map_or(len, |next| len.min(next.len)), knot.bytes_per_ns)
    }

    /// Returns the last knot that is not beyond `at`, or the first one.
    #[inline]
    fn find(&self, table: &[u8; CLASSES], at: u64, value: impl Fn(&Knot) -> u64) -> usize {
        let is_before = |index: usize| self.knots.get(index).is_some_and(|knot| value(knot) <= at);
        let index = usize::from(table[class(at)]);
        // One step is as likely as none, so it is added without a branch; more steps are rare.
        let mut index = index + usize::from(is_before(index + 1));
        while is_before(index + 1) {
            index += 1;
        }
        index
    }

    /// Returns the asymptotic bandwidth: bytes per second at the end of the curve.
    pub fn bandwidth(&self) -> u64 {
        self.knots.last().map_or(0, |knot| (knot.bytes_per_ns * 1e9) as u64)
    }

    /// Returns the nanoseconds per further byte at the end of the curve.
    #[inline]
    pub(super) fn last_ns_per_byte(&self) -> f64 {
        self.last_ns_per_byte
    }

    /// Returns the nanoseconds of the shortest transfer.
    #[inline]
    pub fn start_ns(&self) -> u64 {
        self.knots[0].ns
    }

    /// Iterates over its points: bytes and nanoseconds.
    pub fn knots(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.knots.iter().map(|knot| (knot.len, knot.ns))
    }
}

/// Returns the product, rounded down. It converts through signed numbers, which takes one instruction;
/// larger values are longer than any transfer.
#[inline]
pub(super) fn scaled(value: u64, factor: f64) -> u64 {
    (value.min(i64::MAX as u64) as i64 as f64 * factor) as i64 as u64
}

/// Returns the class: the number of bits, and the two bits after the first.
#[inline]
fn class(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let behind = value << (u64::BITS - bits).min(u64::BITS - 1) >> (u64::BITS - 3) & 3;
    (bits * 4) as usize + behind as usize
}

/// Returns the smallest value of a class. Classes of fewer than three bits that no value has count like the
/// next ones.
fn least_of(class: usize) -> u64 {
    match (class / 4, class as u64 % 4) {
        (0, _) => 0,
        (bits, behind) => (u128::from(4 + behind) << (bits - 1) >> 2) as u64,
    }
}

/// Returns points that ascend strictly in bytes and time: neighbours that do not are replaced by their
/// mean.
fn pooled(points: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    /// Sum of lengths, sum of times, number of points.
    struct Block(u128, u128, u128);
    impl Block {
        fn mean(&self) -> (u64, u64) {
            ((self.0 / self.2) as u64, (self.1 / self.2) as u64)
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (len, ns) in points {
        let mut block = Block(u128::from(len), u128::from(ns.max(1)), 1);
        while let Some(last) = blocks.last()
            && (last.mean().1 >= block.mean().1 || last.mean().0 >= block.mean().0)
        {
            block = Block(last.0 + block.0, last.1 + block.1, last.2 + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.iter().map(Block::mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_its_points_and_straight_between_them() {
        let curve = Curve::through([(1, 100), (1_000, 1_099), (11_000, 3_099)]).unwrap();
        assert_eq!([1, 500, 1_000, 6_000, 11_000].map(|len| curve.ns(len)), [100, 599, 1_099, 2_099, 3_099]);
        assert_eq!(curve.ns(21_000), 5_099, "the last line goes on");
        assert_eq!(curve.ns(0), 99);
        assert_eq!([98, 99, 1_099, 2_099, 5_099].map(|ns| curve.bytes(ns)), [0, 0, 1_000, 6_000, 21_000]);
        assert_eq!(curve.bandwidth(), 5_000_000_000);
    }

    #[test]
    fn each_value_lies_in_its_class() {
        let all = (0..4096).chain((0..64).flat_map(|bit| (0..8).map(move |k| (1u64 << bit) | k << bit >> 3)));
        for value in all.chain([u64::MAX]) {
            assert!(least_of(class(value)) <= value, "{value}");
            let above =
                (class(value) + 1..CLASSES).map(least_of).find(|&least| least > least_of(class(value)));
            assert!(above.is_none_or(|least| value < least), "{value}");
        }
    }

    #[test]
    fn noise_is_averaged_away() {
        let curve = Curve::through([(100, 50), (200, 90), (300, 70), (400, 200)]).unwrap();
        let knots: Vec<_> = curve.knots().collect();
        assert_eq!(knots[1..], [(100, 50), (250, 80), (400, 200)]);
        assert!((0..1_000).all(|len| curve.ns(len) <= curve.ns(len + 1)));
    }

    #[test]
    fn a_single_point_is_a_bandwidth() {
        let curve = Curve::through([(1_000, 2_000)]).unwrap();
        assert_eq!(curve.ns(2_000), 3_999);
        assert_eq!(Curve::through([]), None);
    }

    #[test]
    fn a_line_has_its_latency_and_bandwidth() {
        let line = Curve::line(1_000, 500_000_000);
        assert_eq!((line.ns(0), line.ns(500)), (1_000, 2_000));
        assert_eq!((line.bytes(999), line.bytes(1_000), line.bytes(2_000)), (0, 0, 500));
        // Times are limited to 292 years, the range of signed numbers.
        assert_eq!(Curve::line(0, 0).bytes(u64::MAX), 9_223_372_036, "no bandwidth is a byte a second");
    }
}
