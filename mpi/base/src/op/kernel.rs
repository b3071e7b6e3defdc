//! The loops of the predefined operators: `inout[i] = input[i] op inout[i]`. Raw pointers, as MPI gets
//! them; they may have any alignment.

use std::ffi::c_void;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Predefined;
use super::number::{Bits, Complex, Located, Number};
use super::wide::{self, Wide};
use crate::datatype::{Basic, Family, Fortran, Scalar};

/// The operands: equal numbers of elements of the same type.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    /// Left operands.
    pub input: *const c_void,
    /// Right operands and results.
    pub inout: *mut c_void,
    /// Elements.
    pub count: usize,
}

// SAFETY: addresses of buffers that are lent to the reduction, not to a thread; pieces of them that several
// threads combine have no element in common.
unsafe impl Sync for Operands {}

impl Operands {
    /// Those from one element to before another one, which are `extent` bytes apart.
    pub(super) fn part(&self, from: u64, to: u64, extent: u64) -> Operands {
        let at = (from * extent) as usize;
        let (input, inout) = (self.input.wrapping_byte_add(at), self.inout.wrapping_byte_add(at));
        Operands { input, inout, count: (to - from) as usize }
    }

    /// # Safety
    /// Both addresses have `count` values of `T`, those of `inout` are writable.
    #[inline(always)]
    unsafe fn each<T: Copy>(self, f: impl Fn(T, T) -> T) {
        let (input, inout) = (self.input.cast::<T>(), self.inout.cast::<T>());
        let one = |i| {
            // SAFETY: the caller's promise.
            unsafe {
                let place: *mut T = inout.add(i);
                place.write_unaligned(f(input.add(i).read_unaligned(), place.read_unaligned()));
            }
        };
        // Accumulates are of one element often, and sums of ranks are: no loop has to be prepared for it.
        match self.count {
            1 => one(0),
            count => (0..count).for_each(one),
        }
    }
}

/// Reduces elements of a basic type that the operator allows. Each further step is a function of its own that
/// ends with the next: all loops in one take more to begin with than a sum.
///
/// # Safety
/// The operands have elements of this type; those of `inout` are writable.
#[inline(always)]
pub(super) unsafe fn reduce(op: Predefined, basic: Basic, operands: &Operands) {
    // SAFETY: the caller's promise: the scalar of a type is what it consists of.
    unsafe {
        match (op, basic.family()) {
            (Predefined::Minloc | Predefined::Maxloc, _) => locate(op, basic, operands),
            (Predefined::Sum | Predefined::Prod, Family::Complex) => complex(op, basic, operands),
            (Predefined::Sum | Predefined::Prod | Predefined::Max | Predefined::Min, _) => {
                number(op, basic, operands);
            }
            _ => bits(op, basic, operands),
        }
    }
}

/// Calls a generic function for the Rust type of a scalar.
macro_rules! for_scalar {
    ($scalar:expr, { $($variant:ident $type:ty),* }, $function:ident $arguments:tt) => {
        match $scalar {
            $(Scalar::$variant => $function::<$type> $arguments,)*
            _ => unreachable!("the operator does not allow this type"),
        }
    };
}

/// # Safety
/// As [`reduce`].
#[inline(never)]
unsafe fn number(op: Predefined, basic: Basic, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match basic.scalar() {
            Scalar::LongDouble => number_in_c(op, &wide::EXTENDED, operands),
            Scalar::F128 => number_in_c(op, &wide::QUAD, operands),
            Scalar::F16 => halves(op, operands),
            scalar => for_scalar!(
                scalar,
                {
                    I8 i8, I16 i16, I32 i32, I64 i64, I128 i128, U8 u8, U16 u16, U32 u32, U64 u64,
                    Bf16 bf16, F32 f32, F64 f64
                },
                number_of(op, operands)
            ),
        }
    }
}

/// # Safety
/// As [`reduce`], for elements `T`.
#[inline(never)]
unsafe fn number_of<T: Number>(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Predefined::Sum => operands.each(T::sum),
            Predefined::Prod => operands.each(T::prod),
            Predefined::Max => operands.each(|a: T, b| if a.exceeds(b) { a } else { b }),
            _ => operands.each(|a: T, b| if b.exceeds(a) { a } else { b }),
        }
    }
}

/// # Safety
/// As [`reduce`], for elements of binary16.
unsafe fn halves(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Predefined::Sum => blocks(*operands, |a, b| a + b),
            Predefined::Prod => blocks(*operands, |a, b| a * b),
            Predefined::Max => blocks(*operands, |a, b| if a > b { a } else { b }),
            _ => blocks(*operands, |a, b| if b > a { a } else { b }),
        }
    }
}

/// Combines in binary32, in blocks: processors convert several halves at a time, which takes half as long as
/// one after the other (0.8 against 1.7 ns for an element of a sum, on an EPYC of AMD).
///
/// # Safety
/// As [`halves`].
#[inline(always)]
unsafe fn blocks(operands: Operands, combine: impl Fn(f32, f32) -> f32) {
    const BLOCK: usize = 64;
    let (mut halves, mut left, mut right) = ([f16::ZERO; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    let (input, inout) = (operands.input.cast::<[u8; 2]>(), operands.inout.cast::<[u8; 2]>());
    for begin in (0..operands.count).step_by(BLOCK) {
        let count = BLOCK.min(operands.count - begin);
        let (halves, left, right) = (&mut halves[..count], &mut left[..count], &mut right[..count]);
        // SAFETY: the caller's promise: both have `count` halves from `begin` on; bytes have no alignment.
        unsafe {
            std::ptr::copy_nonoverlapping(input.add(begin), halves.as_mut_ptr().cast(), count);
            halves.convert_to_f32_slice(left);
            std::ptr::copy_nonoverlapping(inout.add(begin), halves.as_mut_ptr().cast(), count);
            halves.convert_to_f32_slice(right);
            left.iter().zip(&mut *right).for_each(|(a, b)| *b = combine(*a, *b));
            halves.convert_from_f32_slice(right);
            std::ptr::copy_nonoverlapping(halves.as_ptr().cast(), inout.add(begin), count);
        }
    }
}

/// # Safety
/// As [`reduce`], for elements of this kind.
unsafe fn number_in_c(op: Predefined, wide: &Wide, operands: &Operands) {
    let reduce = match op {
        Predefined::Sum => wide.sum,
        Predefined::Prod => wide.prod,
        Predefined::Max => wide.max,
        _ => wide.min,
    };
    // SAFETY: the caller's promise.
    unsafe { reduce(operands.input, operands.inout, operands.count) };
}

/// # Safety
/// As [`reduce`].
#[inline(never)]
unsafe fn complex(op: Predefined, basic: Basic, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match basic.scalar() {
            Scalar::LongDouble => complex_in_c(op, &wide::EXTENDED, operands),
            Scalar::F128 => complex_in_c(op, &wide::QUAD, operands),
            scalar => for_scalar!(scalar, { F16 f16, F32 f32, F64 f64 }, complex_of(op, operands)),
        }
    }
}

/// # Safety
/// As [`reduce`], for parts `T`.
#[inline(never)]
unsafe fn complex_of<T: Number>(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Predefined::Sum => operands.each(Complex::<T>::sum),
            _ => operands.each(Complex::<T>::prod),
        }
    }
}

/// # Safety
/// As [`reduce`], for parts of this kind.
unsafe fn complex_in_c(op: Predefined, wide: &Wide, operands: &Operands) {
    // SAFETY: the caller's promise; the sum is that of twice as many parts.
    unsafe {
        match op {
            Predefined::Sum => (wide.sum)(operands.input, operands.inout, 2 * operands.count),
            _ => (wide.complex_prod)(operands.input, operands.inout, operands.count),
        }
    }
}

/// # Safety
/// As [`reduce`].
#[inline(never)]
unsafe fn bits(op: Predefined, basic: Basic, operands: &Operands) {
    let is_fortran = basic.family() == Family::Logical && !matches!(basic, Basic::CBool | Basic::CxxBool);
    let fortran = Fortran::current();
    let truth = if is_fortran { [fortran.falsehood, fortran.truth] } else { [0, 1] };
    // SAFETY: the caller's promise.
    unsafe {
        for_scalar!(
            basic.scalar(),
            {
                I8 i8, I16 i16, I32 i32, I64 i64, I128 i128, U8 u8, U16 u16, U32 u32, U64 u64, U128 u128
            },
            bits_of(op, truth, operands)
        );
    }
}

/// # Safety
/// As [`reduce`], for elements `T`.
#[inline(never)]
unsafe fn bits_of<T: Bits>(op: Predefined, truth: [i64; 2], operands: &Operands) {
    let [no, yes] = truth.map(T::from_low);
    let logical = |value: bool| if value { yes } else { no };
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Predefined::Band => operands.each(T::and),
            Predefined::Bor => operands.each(T::or),
            Predefined::Bxor => operands.each(T::xor),
            Predefined::Land => operands.each(|a: T, b| logical((a != no) & (b != no))),
            Predefined::Lor => operands.each(|a: T, b| logical((a != no) | (b != no))),
            _ => operands.each(|a: T, b| logical((a != no) ^ (b != no))),
        }
    }
}

/// # Safety
/// As [`reduce`], for pairs.
#[inline(never)]
unsafe fn locate(op: Predefined, basic: Basic, operands: &Operands) {
    let same_index = basic.index() == Some(basic.scalar());
    // SAFETY: the caller's promise; the structures of C have the offsets that `Basic` says.
    unsafe {
        match basic.scalar() {
            Scalar::LongDouble => locate_in_c(op, basic, &wide::EXTENDED, operands),
            Scalar::F128 => locate_in_c(op, basic, &wide::QUAD, operands),
            scalar if same_index => for_scalar!(
                scalar,
                { I8 i8, I16 i16, I32 i32, I64 i64, I128 i128, F16 f16, F32 f32, F64 f64 },
                locate_same(op, operands)
            ),
            scalar => for_scalar!(
                scalar,
                { I16 i16, I32 i32, I64 i64, F32 f32, F64 f64 },
                locate_int(op, operands)
            ),
        }
    }
}

/// # Safety
/// As [`reduce`], for pairs of two `V`.
unsafe fn locate_same<V: Number>(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe { locate_of::<V, V>(op, operands) }
}

/// # Safety
/// As [`reduce`], for pairs of a `V` and an `int`.
unsafe fn locate_int<V: Number>(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe { locate_of::<V, i32>(op, operands) }
}

/// # Safety
/// As [`reduce`], for pairs of a `V` and an `I`.
#[inline(never)]
unsafe fn locate_of<V: Number, I: Number>(op: Predefined, operands: &Operands) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Predefined::Maxloc => operands.each(Located::<V, I>::max),
            _ => operands.each(Located::<V, I>::min),
        }
    }
}

/// # Safety
/// As [`reduce`], for pairs whose value is of this kind.
unsafe fn locate_in_c(op: Predefined, basic: Basic, wide: &Wide, operands: &Operands) {
    let reduce = if op == Predefined::Maxloc { wide.maxloc } else { wide.minloc };
    let offset = basic.index_offset().unwrap_or(0) as usize;
    // SAFETY: the caller's promise.
    unsafe { reduce(operands.input, operands.inout, operands.count, offset, basic.extent() as usize) };
}
