//! The cost of non-contiguous data: per block and per byte, copied together or left in place.

use super::sample::{BLOCKS_LEN, Sample};

/// Cost of a message in blocks that lie apart, by one method, on both sides together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockCost {
    /// Nanoseconds for each block.
    pub block_ns: f64,
    /// Nanoseconds for each byte, in whatever blocks: the transfer too, and what the message takes at least.
    pub byte_ns: f64,
}

/// Cost of blocks by both methods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockCosts {
    /// Drivers copy blocks together.
    pub packed: BlockCost,
    /// Drivers leave blocks in place.
    pub gathered: BlockCost,
}

impl BlockCost {
    /// Fits the line through samples of one message in blocks of several sizes: least squares of time over
    /// number of blocks, each residual relative to its time, since disturbances grow with it. `None`: fewer
    /// than two sizes.
    pub fn through(samples: &[Sample]) -> Option<BlockCost> {
        let points = || {
            samples.iter().map(|sample| {
                let (count, ns) = (BLOCKS_LEN as f64 / sample.len.max(1) as f64, sample.ns as f64);
                (count, ns, 1.0 / (ns * ns).max(1.0))
            })
        };
        let sum =
            |of: &dyn Fn(f64, f64) -> f64| points().map(|(n, ns, weight)| weight * of(n, ns)).sum::<f64>();
        let weight = sum(&|_, _| 1.0);
        let (mean_n, mean_ns) = (sum(&|n, _| n) / weight, sum(&|_, ns| ns) / weight);
        let spread = sum(&|n, _| (n - mean_n) * (n - mean_n));
        if samples.len() < 2 || spread <= 0.0 {
            return None;
        }
        let block_ns = (sum(&|n, ns| (n - mean_n) * (ns - mean_ns)) / spread).max(0.0);
        let byte_ns = ((mean_ns - block_ns * mean_n) / BLOCKS_LEN as f64).max(0.0);
        Some(BlockCost { block_ns, byte_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_line_is_found_beside_noise() {
        let sizes = [64u64, 256, 1024, 4096, 16_384];
        let sample = |(index, len): (usize, u64)| {
            let exact = 40.0 * (BLOCKS_LEN / len) as f64 + 0.25 * BLOCKS_LEN as f64;
            Sample::of(len, &mut [(exact * [1.0, 0.98, 1.03, 0.99, 1.01][index]) as u64]).expect("a time")
        };
        let samples: Vec<Sample> = sizes.into_iter().enumerate().map(sample).collect();
        let cost = BlockCost::through(&samples).expect("five sizes");
        assert!((cost.block_ns - 40.0).abs() < 4.0 && (cost.byte_ns - 0.25).abs() < 0.02, "{cost:?}");
        let ns = (cost.block_ns * 32.0 + cost.byte_ns * BLOCKS_LEN as f64) as u64;
        assert!((17_000..19_500).contains(&ns), "{ns}");
        assert_eq!(BlockCost::through(&samples[..1]), None);
    }
}
