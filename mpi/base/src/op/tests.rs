//! Every predefined operator on every type that it allows, against arithmetic done one number at a time.

use std::ffi::c_void;

use super::kernel::{self, Operands};
use super::{Op, Predefined};
use crate::datatype::{Basic, Datatype, Family, Form};
use crate::error::Class;
use nmad_engine::memory::together::{Helpers, Kind, install};
use std::ops::Range;

/// Reduces two arrays of elements that are given as bytes.
fn reduce(op: Predefined, basic: Basic, input: &[u8], inout: &[u8]) -> Vec<u8> {
    let mut result = inout.to_vec();
    let count = input.len() as i64 / basic.extent();
    let (from, to): (*const c_void, *mut c_void) = (input.as_ptr().cast(), result.as_mut_ptr().cast());
    // SAFETY: both have `count` elements.
    unsafe { Op::Predefined(op).reduce(from, to, count, Datatype::predefined(basic)) }.unwrap();
    result
}

/// Arrays of a Rust type through an operator.
fn through<T: Copy, const N: usize>(op: Predefined, basic: Basic, input: [T; N], inout: [T; N]) -> [T; N] {
    assert_eq!(size_of::<T>() as i64, basic.extent(), "{}", basic.name());
    let mut result = inout;
    let (from, to): (*const c_void, *mut c_void) = (input.as_ptr().cast(), result.as_mut_ptr().cast());
    // SAFETY: both have N elements.
    unsafe { Op::Predefined(op).reduce(from, to, N as i64, Datatype::predefined(basic)) }.unwrap();
    result
}

macro_rules! check_integers {
    ($($basic:ident $int:ty),*) => {$(
        let (a, b): ([$int; 5], [$int; 5]) = ([0, 1, 7, <$int>::MAX, <$int>::MIN], [3, 0, 7, 2, <$int>::MAX]);
        let expected = |f: fn($int, $int) -> $int| std::array::from_fn(|i| f(a[i], b[i]));
        let truth = |value: bool| <$int>::from(value);
        let cases: [(Predefined, [$int; 5]); 10] = [
            (Predefined::Sum, expected(<$int>::wrapping_add)),
            (Predefined::Prod, expected(<$int>::wrapping_mul)),
            (Predefined::Max, expected(|a, b| a.max(b))),
            (Predefined::Min, expected(|a, b| a.min(b))),
            (Predefined::Band, expected(|a, b| a & b)),
            (Predefined::Bor, expected(|a, b| a | b)),
            (Predefined::Bxor, expected(|a, b| a ^ b)),
            (Predefined::Land, std::array::from_fn(|i| truth(a[i] != 0 && b[i] != 0))),
            (Predefined::Lor, std::array::from_fn(|i| truth(a[i] != 0 || b[i] != 0))),
            (Predefined::Lxor, std::array::from_fn(|i| truth((a[i] != 0) != (b[i] != 0)))),
        ];
        for (op, expected) in cases {
            assert_eq!(through(op, Basic::$basic, a, b), expected, "{op:?} {}", stringify!($basic));
        }
    )*};
}

#[test]
fn integers() {
    check_integers! {
        SignedChar i8, UnsignedChar u8, Short i16, UnsignedShort u16, Int i32, Unsigned u32, LongLong i64,
        UnsignedLongLong u64, Int8 i8, Uint8 u8, Int16 i16, Uint16 u16, Int32 i32, Uint32 u32, Int64 i64,
        Uint64 u64, Integer i32, Integer1 i8, Integer2 i16, Integer4 i32, Integer8 i64, Integer16 i128,
        Aint i64, Count i64, Offset i64
    }
}

macro_rules! check_floats {
    ($($basic:ident $float:ty),*) => {$(
        let (a, b): ([$float; 4], [$float; 4]) = ([0.1, -2.5, 1e30, 3.0], [0.2, 4.0, 1e30, -0.0]);
        let expected = |f: fn($float, $float) -> $float| std::array::from_fn(|i| f(a[i], b[i]));
        assert_eq!(through(Predefined::Sum, Basic::$basic, a, b), expected(|a, b| a + b));
        assert_eq!(through(Predefined::Prod, Basic::$basic, a, b), expected(|a, b| a * b));
        assert_eq!(through(Predefined::Max, Basic::$basic, a, b), expected(<$float>::max));
        assert_eq!(through(Predefined::Min, Basic::$basic, a, b), expected(<$float>::min));
    )*};
}

#[test]
fn floats() {
    check_floats! { Float f32, Double f64, Real f32, DoublePrecision f64, Real4 f32, Real8 f64 }
}

#[test]
fn complex_numbers() {
    let (a, b) = ([[1.0, 2.0], [0.5, -1.0]], [[3.0, -1.0], [2.0, 4.0]]);
    let (sum, product) = ([[4.0, 1.0], [2.5, 3.0]], [[5.0, 5.0], [5.0, 0.0]]);
    for basic in [Basic::CDoubleComplex, Basic::CxxDoubleComplex, Basic::DoubleComplex, Basic::Complex16] {
        assert_eq!(through(Predefined::Sum, basic, a, b), sum);
        assert_eq!(through(Predefined::Prod, basic, a, b), product);
    }
    let single = |list: [[f64; 2]; 2]| list.map(|z| z.map(|part| part as f32));
    for basic in [Basic::CFloatComplex, Basic::CxxFloatComplex, Basic::Complex, Basic::Complex8] {
        assert_eq!(through(Predefined::Sum, basic, single(a), single(b)), single(sum));
        assert_eq!(through(Predefined::Prod, basic, single(a), single(b)), single(product));
    }
}

/// Bytes of numbers in a type that Rust has not: from the halves of a binary64 by way of `external32`.
fn wide(basic: Basic, numbers: &[f64]) -> Vec<u8> {
    let mut external = Vec::new();
    for number in numbers {
        let bits = number.to_bits();
        let exponent = match (bits >> 52) & 0x7ff {
            0 => 0,
            exponent => u128::from(exponent) + 16383 - 1023,
        };
        let fraction = u128::from(bits & ((1 << 52) - 1)) << 60;
        external.extend((u128::from(bits >> 63) << 127 | exponent << 112 | fraction).to_be_bytes());
    }
    let scalars = basic.size() / 16;
    let mut native = vec![0; 16 * numbers.len()];
    let count = numbers.len() as i64 / scalars;
    // SAFETY: there is room for the elements.
    unsafe {
        let buffer = native.as_mut_ptr().cast();
        Datatype::predefined(basic).unpack_external(&external, &mut 0, buffer, count).unwrap();
    }
    native
}

#[test]
fn long_doubles_and_quads() {
    let (a, b) = ([0.5, -3.0, 1e300, 8.0], [0.25, 4.0, 1e300, 8.5]);
    let zip = |f: fn(f64, f64) -> f64| a.iter().zip(b).map(|(&a, b)| f(a, b)).collect::<Vec<_>>();
    for basic in [Basic::LongDouble, Basic::Real16] {
        let (left, right) = (wide(basic, &a), wide(basic, &b));
        let cases = [
            (Predefined::Sum, zip(|a, b| a + b)),
            (Predefined::Max, zip(f64::max)),
            (Predefined::Min, zip(f64::min)),
        ];
        for (op, expected) in cases {
            assert_eq!(reduce(op, basic, &left, &right), wide(basic, &expected), "{op:?} {}", basic.name());
        }
        let product = reduce(Predefined::Prod, basic, &left[..32], &right[..32]);
        assert_eq!(product, wide(basic, &[0.125, -12.0]));
    }
    for basic in [Basic::CLongDoubleComplex, Basic::CxxLongDoubleComplex, Basic::Complex32] {
        let (left, right) = (wide(basic, &[1.0, 2.0]), wide(basic, &[3.0, -1.0]));
        assert_eq!(reduce(Predefined::Sum, basic, &left, &right), wide(basic, &[4.0, 1.0]));
        assert_eq!(reduce(Predefined::Prod, basic, &left, &right), wide(basic, &[5.0, 5.0]));
    }
}

#[test]
fn long_doubles_keep_the_digits_that_doubles_lose() {
    // 2^60 + 1 has 61 binary digits: too many for binary64.
    let (large, one) = (wide(Basic::LongDouble, &[2_f64.powi(60)]), wide(Basic::LongDouble, &[1.0]));
    let sum = reduce(Predefined::Sum, Basic::LongDouble, &large, &one);
    let back = wide(Basic::LongDouble, &[-(2_f64.powi(60))]);
    assert_eq!(reduce(Predefined::Sum, Basic::LongDouble, &sum, &back), one);
}

#[test]
fn halves() {
    use half::{bf16, f16};
    let half = |x: f32| f16::from_f32(x).to_bits();
    for basic in [Basic::Real2, Basic::Float16] {
        let (a, b) = ([half(1.5), half(-2.0)], [half(0.25), half(3.0)]);
        assert_eq!(through(Predefined::Sum, basic, a, b), [half(1.75), half(1.0)]);
        assert_eq!(through(Predefined::Max, basic, a, b), [half(1.5), half(3.0)]);
    }
    let (a, b) = ([bf16::from_f32(1.5).to_bits()], [bf16::from_f32(4.0).to_bits()]);
    assert_eq!(through(Predefined::Prod, Basic::Bfloat16, a, b), [bf16::from_f32(6.0).to_bits()]);
    let (a, b) = ([[half(1.0), half(2.0)]], [[half(3.0), half(-1.0)]]);
    assert_eq!(through(Predefined::Prod, Basic::Complex4, a, b), [[half(5.0), half(5.0)]]);
}

/// More halves than are converted at a time, at an odd address.
#[test]
fn many_halves() {
    use half::f16;
    let of = |n: usize| f16::from_f32(n as f32 / 4.0);
    for count in [1, 63, 64, 65, 200] {
        let bytes = |shift: usize| -> Vec<u8> {
            let halves = (0..count).flat_map(|n| of(n * shift % 97).to_bits().to_ne_bytes());
            std::iter::once(0).chain(halves).collect()
        };
        let (input, mut inout) = (bytes(5), bytes(7));
        // SAFETY: both hold `count` halves behind their first byte.
        unsafe {
            Op::Predefined(Predefined::Max)
                .reduce(
                    input[1..].as_ptr().cast(),
                    inout[1..].as_mut_ptr().cast(),
                    count as i64,
                    Datatype::predefined(Basic::Float16),
                )
                .unwrap();
        }
        for n in 0..count {
            let found = f16::from_bits(u16::from_ne_bytes([inout[1 + 2 * n], inout[2 + 2 * n]]));
            assert_eq!(found, of((n * 5 % 97).max(n * 7 % 97)), "{n} of {count}");
        }
    }
}

#[test]
fn truth() {
    let (a, b) = ([0_u8, 0, 1, 2], [0_u8, 1, 0, 1]);
    for basic in [Basic::CBool, Basic::CxxBool, Basic::Logical1] {
        assert_eq!(through(Predefined::Land, basic, a, b), [0, 0, 0, 1]);
        assert_eq!(through(Predefined::Lor, basic, a, b), [0, 1, 1, 1]);
        assert_eq!(through(Predefined::Lxor, basic, a, b), [0, 1, 1, 0]);
    }
    assert_eq!(through(Predefined::Lor, Basic::Logical, [0_u32, 1], [0, 0]), [0, 1]);
    assert_eq!(through(Predefined::Lor, Basic::Logical16, [0_u128, 1], [0, 0]), [0, 1]);
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Located<V, I>(V, I);

#[test]
fn of_equal_values_the_lower_index_wins() {
    let (a, b) = (
        [Located(1_i16, 5), Located(7, 2), Located(3, 3)],
        [Located(2_i16, 9), Located(7, 1), Located(1, 1)],
    );
    let highest = [Located(2, 9), Located(7, 1), Located(3, 3)];
    let lowest = [Located(1, 5), Located(7, 1), Located(1, 1)];
    assert_eq!(through(Predefined::Maxloc, Basic::ShortInt, a, b), highest);
    assert_eq!(through(Predefined::Minloc, Basic::ShortInt, a, b), lowest);
    let of_double = |list: [Located<i16, i32>; 3]| list.map(|Located(v, i)| Located(f64::from(v), i));
    assert_eq!(through(Predefined::Maxloc, Basic::DoubleInt, of_double(a), of_double(b)), of_double(highest));
    let of_float = |list: [Located<i16, i32>; 3]| list.map(|Located(v, i)| Located(f32::from(v), i));
    assert_eq!(through(Predefined::Minloc, Basic::FloatInt, of_float(a), of_float(b)), of_float(lowest));
    let of_long = |list: [Located<i16, i32>; 3]| list.map(|Located(v, i)| Located(i64::from(v), i));
    assert_eq!(through(Predefined::Minloc, Basic::LongInt, of_long(a), of_long(b)), of_long(lowest));
    let of_int = |list: [Located<i16, i32>; 3]| list.map(|Located(v, i)| Located(i32::from(v), i));
    for basic in [Basic::TwoInt, Basic::TwoInteger] {
        assert_eq!(through(Predefined::Maxloc, basic, of_int(a), of_int(b)), of_int(highest));
    }
    let of_real =
        |list: [Located<i16, i32>; 3]| list.map(|Located(v, i)| Located(f64::from(v), f64::from(i)));
    assert_eq!(
        through(Predefined::Minloc, Basic::TwoDoublePrecision, of_real(a), of_real(b)),
        of_real(lowest)
    );
}

#[test]
fn long_doubles_are_located_like_the_others() {
    let pair = |value: f64, index: i32| {
        let mut bytes = wide(Basic::LongDouble, &[value]);
        bytes.extend(index.to_ne_bytes());
        bytes.resize(32, 0);
        bytes
    };
    let join = |list: [Vec<u8>; 2]| list.concat();
    let (a, b) = (join([pair(2.0, 4), pair(1.0, 8)]), join([pair(2.0, 3), pair(9.0, 5)]));
    assert_eq!(reduce(Predefined::Maxloc, Basic::LongDoubleInt, &a, &b), join([pair(2.0, 3), pair(9.0, 5)]));
    assert_eq!(reduce(Predefined::Minloc, Basic::LongDoubleInt, &a, &b), join([pair(2.0, 3), pair(1.0, 8)]));
}

#[test]
fn every_allowed_combination_works_and_no_other() {
    for &op in Predefined::ALL {
        for &basic in Basic::ALL {
            let (mut a, mut b) = ([0_u8; 64], [0_u8; 64]);
            let datatype = Datatype::predefined(basic);
            let (input, inout) = (a.as_mut_ptr().cast(), b.as_mut_ptr().cast());
            // SAFETY: no element is longer than 32 bytes.
            let result = unsafe { Op::Predefined(op).reduce(input, inout, 1, datatype) };
            assert_eq!(result.is_ok(), op.allows(basic), "{op:?} {}", basic.name());
            let check = Op::Predefined(op).check(datatype);
            assert_eq!(check.is_ok(), op.allows(basic) && !op.is_for_windows_only());
        }
    }
    assert!(!Predefined::Max.allows(Basic::CDoubleComplex) && !Predefined::Band.allows(Basic::Double));
    assert!(Basic::ALL.iter().filter(|b| b.family() == Family::Packed).all(|&b| !Predefined::Sum.allows(b)));
}

#[test]
fn derived_types_need_an_operator_of_their_own() {
    let pair = Datatype::contiguous(Form::Int, 2, Datatype::predefined(Basic::Int)).unwrap();
    assert_eq!(Op::Predefined(Predefined::Sum).check(&pair).unwrap_err().class(), Class::OP);
    let function = |input: *const c_void, inout: *mut c_void, count: i64, datatype: &Datatype| {
        for i in 0..(count * datatype.size() / 4) as usize {
            // SAFETY: the test lends `count` elements of ints.
            unsafe { *inout.cast::<i32>().add(i) -= *input.cast::<i32>().add(i) };
        }
    };
    let op = Op::new(Box::new(function), false);
    let (input, mut inout) = ([1, 2, 3, 4], [10, 10, 10, 10]);
    // SAFETY: two pairs each.
    unsafe { op.reduce(input.as_ptr().cast(), inout.as_mut_ptr().cast(), 2, &pair).unwrap() };
    assert_eq!((inout, op.is_commutative()), ([9, 8, 7, 6], false));
}

#[test]
fn replacing_copies_what_the_type_covers() {
    let every_other = Datatype::vector(Form::Int, 2, 1, 2, Datatype::predefined(Basic::Int)).unwrap();
    let (input, mut inout) = ([1, 2, 3], [7, 7, 7]);
    // SAFETY: one element of the type covers three ints.
    unsafe {
        let (input, inout) = (input.as_ptr().cast(), inout.as_mut_ptr().cast());
        Op::Predefined(Predefined::Replace).reduce(input, inout, 1, &every_other).unwrap();
    }
    assert_eq!(inout, [1, 7, 3]);
}

/// As if several cores shared all long work of this process: pieces of it, the last one first.
struct Pieces;

impl Helpers for Pieces {
    fn share(&self, _: Kind, units: u64, _: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
        let step = units.div_ceil(7);
        (0..7).rev().map(|piece| piece * step..units.min((piece + 1) * step)).for_each(|range| {
            if !range.is_empty() {
                work(range);
            }
        });
    }
}

/// From now on, work on long memory is done in pieces.
pub fn work_in_pieces() {
    static PIECES: &dyn Helpers = &Pieces;
    install(&PIECES);
}

#[test]
fn long_vectors_are_combined_in_pieces() {
    work_in_pieces();
    const COUNT: usize = 20_001;
    let cases = [
        (Predefined::Sum, Basic::Double),
        (Predefined::Max, Basic::Int),
        (Predefined::Prod, Basic::DoubleComplex),
        (Predefined::Maxloc, Basic::DoubleInt),
        (Predefined::Sum, Basic::LongDouble),
    ];
    for (op, basic) in cases {
        let len = COUNT * basic.extent() as usize;
        // Small numbers, whatever the type.
        let bytes = |seed: usize| (0..len).map(|at| ((at * seed) % 61) as u8).collect::<Vec<u8>>();
        let (input, inout) = (bytes(7), bytes(11));
        let mut expected = inout.clone();
        let (from, to) = (input.as_ptr().cast(), expected.as_mut_ptr().cast());
        let operands = Operands { input: from, inout: to, count: COUNT };
        // SAFETY: both have that many elements.
        unsafe { kernel::reduce(op, basic, &operands) };
        assert!(reduce(op, basic, &input, &inout) == expected, "{op:?} {}", basic.name());
    }
}
