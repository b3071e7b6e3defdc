//! Times of messages by their length.

/// Sizes at which curves have figures, in bytes.
pub const SIZES: [u64; 7] = [8, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20];

/// Nanoseconds from the post of a message to its arrival, by its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve(pub(super) [f64; SIZES.len()]);

impl Curve {
    /// A curve through figures at [`SIZES`].
    pub const fn new(ns: [f64; SIZES.len()]) -> Curve {
        Curve(ns)
    }

    /// A straight line.
    pub fn line(latency_ns: f64, ns_per_byte: f64) -> Curve {
        Curve(SIZES.map(|size| latency_ns + size as f64 * ns_per_byte))
    }

    /// Nanoseconds for a message of `len` bytes.
    pub fn ns(&self, len: u64) -> f64 {
        let above = SIZES.iter().position(|&size| len <= size).unwrap_or(SIZES.len() - 1);
        if above == 0 {
            return self.0[0];
        }
        let (x0, x1) = (SIZES[above - 1] as f64, SIZES[above] as f64);
        let slope = (self.0[above] - self.0[above - 1]) / (x1 - x0);
        self.0[above - 1] + (len as f64 - x0) * slope.max(0.0)
    }

    /// Nanoseconds for which a byte of a long message keeps a wire busy, whoever sends it: by the slope of
    /// the longest.
    pub(super) fn wire_ns_per_byte(&self) -> f64 {
        let [.., (x0, y0), (x1, y1)] =
            std::array::from_fn::<_, { SIZES.len() }, _>(|i| (SIZES[i], self.0[i]));
        ((y1 - y0) / (x1 - x0) as f64).max(0.0)
    }

    /// Nanoseconds that a message takes beyond those of a short one.
    pub(super) fn bytes_ns(&self, len: u64) -> f64 {
        (self.ns(len) - self.0[0]).max(0.0)
    }
}
