//! What the operators do to one number.

use half::{bf16, f16};

/// A number of MAX, MIN, SUM and PROD.
pub(super) trait Number: Copy {
    fn sum(self, other: Self) -> Self;
    fn prod(self, other: Self) -> Self;
    fn difference(self, other: Self) -> Self;
    fn exceeds(self, other: Self) -> bool;
    fn equals(self, other: Self) -> bool;
}

/// A number of bits.
pub(super) trait Bits: Copy + PartialEq {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The lowest bits of a number.
    fn from_low(value: i64) -> Self;
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Number for $int {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn prod(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn difference(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn exceeds(self, other: Self) -> bool { self > other }
            #[inline(always)]
            fn equals(self, other: Self) -> bool { self == other }
        }

        impl Bits for $int {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn from_low(value: i64) -> Self { value as $int }
        }
    )*};
}

integers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 }

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl Number for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn prod(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn difference(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn exceeds(self, other: Self) -> bool { self > other }
            #[inline(always)]
            fn equals(self, other: Self) -> bool { self == other }
        }
    )*};
}

floats! { f32 f64 }

/// Arithmetic in binary32, rounded to nearest even: sums and products of two halves are exact or correctly
/// rounded in binary32, and rounding them once more gives the half that IEEE 754 asks for, since binary32 has
/// more than twice the digits, plus two.
macro_rules! halves {
    ($($half:ty)*) => {$(
        impl Number for $half {
            fn sum(self, other: Self) -> Self { <$half>::from_f32(self.to_f32() + other.to_f32()) }
            fn prod(self, other: Self) -> Self { <$half>::from_f32(self.to_f32() * other.to_f32()) }
            fn difference(self, other: Self) -> Self { <$half>::from_f32(self.to_f32() - other.to_f32()) }
            fn exceeds(self, other: Self) -> bool { self.to_f32() > other.to_f32() }
            fn equals(self, other: Self) -> bool { self.to_f32() == other.to_f32() }
        }
    )*};
}

halves! { f16 bf16 }

/// The real and the imaginary part.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Complex<T> {
    re: T,
    im: T,
}

impl<T: Number> Complex<T> {
    #[inline(always)]
    pub fn sum(self, other: Self) -> Self {
        Complex { re: self.re.sum(other.re), im: self.im.sum(other.im) }
    }

    #[inline(always)]
    pub fn prod(self, other: Self) -> Self {
        Complex {
            re: self.re.prod(other.re).difference(self.im.prod(other.im)),
            im: self.re.prod(other.im).sum(self.im.prod(other.re)),
        }
    }
}

/// A value and where it was found.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Located<V, I> {
    value: V,
    index: I,
}

impl<V: Number, I: Number> Located<V, I> {
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        if self.value.exceeds(other.value) { self } else { self.or_first(other) }
    }

    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        if other.value.exceeds(self.value) { self } else { self.or_first(other) }
    }

    /// The other one, unless the values are equal and this one was found first.
    #[inline(always)]
    fn or_first(self, other: Self) -> Self {
        if self.value.equals(other.value) && other.index.exceeds(self.index) { self } else { other }
    }
}
