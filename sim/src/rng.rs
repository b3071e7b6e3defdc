//! Chance from a seed: the only source of variety in the simulated world.
//!
//! xoshiro256++ seeded by splitmix64 (Blackman and Vigna, 2018). Written out here, because a seed is a bug
//! report and must mean the same run with every version of every dependency. Integers only: floating point
//! logarithms differ between machines.

/// A stream of random numbers, always the same for the same seed.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Rng { state: core::array::from_fn(|_| splitmix(&mut x)) }
    }

    /// A stream of its own for one `subject`, so that drawing more for one subject leaves the others as
    /// they were.
    pub fn of(seed: u64, subject: u64) -> Self {
        let mut x = subject ^ 0x6a09_e667_f3bc_c908;
        Rng::new(seed ^ splitmix(&mut x))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number below `bound`; zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index into something of `len` entries.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True in `percent` of the cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True in `per` of ten thousand cases.
    pub fn per_10k(&mut self, per: u64) -> bool {
        per > 0 && self.below(10_000) < per
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// A length up to `max` whose number of binary digits is evenly distributed; zero now and then, and
    /// often exactly at or beside a power of two, where thresholds are.
    pub fn len(&mut self, max: u64) -> u64 {
        let digits = u64::from(64 - max.leading_zeros());
        let top = 1u64 << self.below(digits + 1);
        let len = match self.below(8) {
            0 => top,
            1 => top - 1,
            2 => top + 1,
            _ => self.below(top),
        };
        len.min(max)
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
}

fn splitmix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
