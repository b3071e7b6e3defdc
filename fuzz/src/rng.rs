//! Random numbers from a seed; the same seed gives the same run on every machine.

/// A stream of random numbers (splitmix64).
pub struct Rng(u64);

impl Rng {
    /// The stream of one iteration of one run.
    pub fn new(seed: u64, iteration: u64) -> Rng {
        let mut rng = Rng(seed ^ iteration.wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `list`, which is not empty.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
