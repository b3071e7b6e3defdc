//! Lists of message lengths between two bounds, both included.

/// Zero, if the lower bound is, and all powers of two.
pub(super) fn powers(from: u64, to: u64) -> Vec<u64> {
    let zero = (from == 0).then_some(0);
    let powers = (0..64).map(|exponent| 1u64 << exponent);
    zero.into_iter().chain(powers.skip_while(|size| *size < from).take_while(|size| *size <= to)).collect()
}

/// The same, and a point between each two: half as much again.
pub(super) fn dense(from: u64, to: u64) -> Vec<u64> {
    let mut sizes = powers(from, to);
    let between: Vec<u64> = sizes.iter().filter(|size| **size >= 2).map(|size| size / 2 * 3).collect();
    sizes.extend(between.into_iter().filter(|size| *size <= to));
    sizes.sort_unstable();
    sizes
}

/// Some of them: where protocols usually change, and the ends.
pub(super) fn coarse(from: u64, to: u64) -> Vec<u64> {
    const ALL: [u64; 18] = [
        0,
        1,
        8,
        64,
        256,
        1 << 10,
        4 << 10,
        12 << 10,
        16 << 10,
        32 << 10,
        64 << 10,
        128 << 10,
        256 << 10,
        512 << 10,
        1 << 20,
        4 << 20,
        16 << 20,
        64 << 20,
    ];
    ALL.into_iter().filter(|size| (from..=to).contains(size)).collect()
}

/// A handful.
pub(super) fn few(from: u64, to: u64) -> Vec<u64> {
    const ALL: [u64; 7] = [8, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
    ALL.into_iter().filter(|size| (from..=to).contains(size)).collect()
}
