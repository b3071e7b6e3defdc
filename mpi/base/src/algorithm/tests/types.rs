//! Datatypes and operators that tests use: elements of two numbers.

use crate::algorithm::operator::Operator;
use crate::datatype::{Basic, Datatype, Form};
use crate::op::{Op, Predefined};
use nmad_engine::Segments;
use std::ffi::c_void;

/// The memory of a message.
pub(super) fn memory<T>(data: &mut [T]) -> Segments {
    // SAFETY: tests keep the data where it is until the message has ended.
    unsafe { Segments::from_raw(data.as_mut_ptr().cast(), size_of_val(data)) }
}

/// Two numbers in a row.
pub(super) fn pair() -> Datatype {
    Datatype::contiguous(Form::Int, 2, &Datatype::of(Basic::Int32)).expect("a type")
}

/// Two numbers, the second before the first, with gaps at both ends.
pub(super) fn gappy() -> Datatype {
    let apart =
        Datatype::hindexed(Form::Int, &[1, 1], &[12, 4], &Datatype::of(Basic::Int32)).expect("a type");
    Datatype::resized(Form::Int, 0, 20, &apart).expect("a type")
}

/// Both.
pub(super) fn types() -> [Datatype; 2] {
    [pair(), gappy()]
}

/// The numbers of a rank.
pub(super) fn numbers(rank: usize, elements: i64) -> Vec<i32> {
    let number = |index: i64| (rank as i64 * 7919 + index * 104_729 + 17) as i32 | 1;
    (0..2 * elements).map(number).collect()
}

/// A pair (a, b) stands for x -> a x + b; the operator does the left one first. It is associative, but not
/// commutative.
pub(super) fn then(left: [i32; 2], right: [i32; 2]) -> [i32; 2] {
    let ([a, b], [c, d]) = (left, right);
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

fn add(left: [i32; 2], right: [i32; 2]) -> [i32; 2] {
    [left[0].wrapping_add(right[0]), left[1].wrapping_add(right[1])]
}

/// An operator and what it does.
pub(super) struct Reduction {
    pub(super) operator: Operator,
    pub(super) of: fn([i32; 2], [i32; 2]) -> [i32; 2],
}

impl Reduction {
    /// What the operands of ranks combine to, in order.
    pub(super) fn over(&self, ranks: impl Iterator<Item = Vec<i32>>) -> Option<Vec<i32>> {
        ranks.reduce(|left, right| {
            let mut all = Vec::with_capacity(left.len());
            for (l, r) in left.chunks_exact(2).zip(right.chunks_exact(2)) {
                all.extend_from_slice(&(self.of)([l[0], l[1]], [r[0], r[1]]));
            }
            all
        })
    }
}

/// A commutative and an ordered operator of the program's, on elements with and without gaps.
pub(super) fn reductions() -> Vec<Reduction> {
    let user = |of: fn([i32; 2], [i32; 2]) -> [i32; 2], commutes: bool| {
        let function = move |left: *const c_void, right: *mut c_void, count: i64, datatype: &Datatype| {
            let places = places(datatype);
            for element in 0..count {
                combine(left, right, places.map(|place| element * datatype.extent() + place), of);
            }
        };
        Op::new(Box::new(function), commutes)
    };
    let ops = [(user(add, true), add as fn(_, _) -> _), (user(then, false), then as fn(_, _) -> _)];
    let each = ops.iter().flat_map(|(op, of)| {
        types()
            .map(|datatype| Reduction { operator: Operator::new(op, &datatype).expect("allowed"), of: *of })
    });
    each.collect()
}

/// The sum of numbers, as the standard defines it.
pub(super) fn sum() -> Operator {
    Operator::new(&Op::Predefined(Predefined::Sum), &Datatype::of(Basic::Int32)).expect("allowed")
}

/// Where the numbers of an element are, from its beginning.
fn places(datatype: &Datatype) -> [i64; 2] {
    let mut places = Vec::new();
    datatype.for_each_run(1, |run| places.extend((0..run.len / 4).map(|index| run.offset + 4 * index)));
    places.try_into().expect("two numbers")
}

/// Works on millions of elements, without optimisation: no iterators here.
fn combine(
    left: *const c_void,
    right: *mut c_void,
    [first, second]: [i64; 2],
    of: fn([i32; 2], [i32; 2]) -> [i32; 2],
) {
    // SAFETY: all of them are numbers of an element that the reduction works on.
    unsafe {
        let left = [
            left.byte_offset(first as isize).cast::<i32>().read_unaligned(),
            left.byte_offset(second as isize).cast::<i32>().read_unaligned(),
        ];
        let places = [
            right.byte_offset(first as isize).cast::<i32>(),
            right.byte_offset(second as isize).cast::<i32>(),
        ];
        let result = of(left, [places[0].read_unaligned(), places[1].read_unaligned()]);
        places[0].write_unaligned(result[0]);
        places[1].write_unaligned(result[1]);
    }
}
