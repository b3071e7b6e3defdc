//! Type signatures as numbers: which basic types in which order, wherever they lie (MPI 5.0, section 3.3.1).
//!
//! A sequence is a polynomial modulo 2^64, so that the signature of a million copies costs twenty
//! multiplications and does not depend on how the sequence was put together. Equal sequences have equal
//! numbers; different ones differ but for bad luck.

use super::Basic;

/// The number of a sequence of basic types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    hash: u64,
    /// The base to the power of the length.
    shift: u64,
}

impl Signature {
    /// No basic type at all.
    pub const EMPTY: Signature = Signature { hash: 0, shift: 1 };

    pub(super) fn of(basic: Basic) -> Signature {
        match basic {
            Basic::FloatInt => Signature::one(Basic::Float).then(Signature::one(Basic::Int)),
            Basic::DoubleInt => Signature::one(Basic::Double).then(Signature::one(Basic::Int)),
            Basic::LongInt => Signature::one(Basic::Long).then(Signature::one(Basic::Int)),
            Basic::ShortInt => Signature::one(Basic::Short).then(Signature::one(Basic::Int)),
            Basic::LongDoubleInt => Signature::one(Basic::LongDouble).then(Signature::one(Basic::Int)),
            Basic::TwoInt => Signature::one(Basic::Int).times(2),
            Basic::TwoReal => Signature::one(Basic::Real).times(2),
            Basic::TwoDoublePrecision => Signature::one(Basic::DoublePrecision).times(2),
            Basic::TwoInteger => Signature::one(Basic::Integer).times(2),
            Basic::LowerBound | Basic::UpperBound => Signature::EMPTY,
            _ => Signature::one(basic),
        }
    }

    /// A sequence of one.
    fn one(basic: Basic) -> Signature {
        // Two odd numbers without a pattern (the golden ratio, and the square root of two).
        let hash = (basic as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Signature { hash: hash ^ hash >> 29, shift: 0x6a09_e667_f3bc_c909 }
    }

    /// This sequence and then another one.
    pub fn then(self, next: Signature) -> Signature {
        Signature {
            hash: self.hash.wrapping_mul(next.shift).wrapping_add(next.hash),
            shift: self.shift.wrapping_mul(next.shift),
        }
    }

    /// This sequence `count` times.
    pub fn times(self, count: i64) -> Signature {
        let (mut result, mut power, mut left) = (Signature::EMPTY, self, count.max(0));
        while left > 0 {
            if left & 1 == 1 {
                result = result.then(power);
            }
            power = power.then(power);
            left >>= 1;
        }
        result
    }
}
