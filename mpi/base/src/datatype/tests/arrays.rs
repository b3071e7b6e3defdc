//! Subarrays and distributed arrays against loops over all indices.

use proptest::prelude::*;

use crate::datatype::{Basic, DEFAULT_ARGUMENT, Datatype, Distribution, Form, Order, Share};
use crate::error::Class;

/// Displacements of the chosen elements, in the order of memory, and the elements of the whole array.
fn chosen(sizes: &[i64], order: Order, is_chosen: impl Fn(&[i64]) -> bool) -> (Vec<i64>, i64) {
    let whole: i64 = sizes.iter().product();
    let mut found = Vec::new();
    for linear in 0..whole {
        let mut index = vec![0; sizes.len()];
        let mut left = linear;
        let mut split = |dimension: usize| {
            index[dimension] = left % sizes[dimension];
            left /= sizes[dimension];
        };
        match order {
            Order::C => (0..sizes.len()).rev().for_each(&mut split),
            Order::Fortran => (0..sizes.len()).for_each(&mut split),
        }
        if is_chosen(&index) {
            found.push(linear);
        }
    }
    (found, whole)
}

/// The elements that a type covers; the old type is an int.
fn covered(datatype: &Datatype) -> Vec<i64> {
    let mut found = Vec::new();
    datatype.for_each_run(1, |run| found.extend((0..run.len / 4).map(|i| run.offset / 4 + i)));
    found
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

proptest! {
    #[test]
    fn subarrays(
        dims in proptest::collection::vec((1..6_i64, 0..5_i64, 0..5_i64), 1..4),
        order in order(),
    ) {
        let sizes: Vec<i64> = dims.iter().map(|dim| dim.0).collect();
        let starts: Vec<i64> = dims.iter().map(|dim| dim.1 % dim.0).collect();
        let parts = dims.iter().zip(&starts).map(|(dim, start)| 1 + dim.2 % (dim.0 - start));
        let parts: Vec<i64> = parts.collect();
        let int = Datatype::predefined(Basic::Int);
        let datatype = Datatype::subarray(Form::Int, &sizes, &parts, &starts, order, int).unwrap();
        let is_chosen = |index: &[i64]| {
            index.iter().enumerate().all(|(d, i)| (starts[d]..starts[d] + parts[d]).contains(i))
        };
        let (expected, whole) = chosen(&sizes, order, is_chosen);
        prop_assert_eq!(covered(&datatype), expected);
        prop_assert_eq!((datatype.lower_bound(), datatype.extent()), (0, 4 * whole));
    }

    #[test]
    fn distributed_arrays(
        dims in proptest::collection::vec((1..9_i64, 0..3_usize, 1..4_i32, 1..4_i32), 1..4),
        order in order(),
    ) {
        let distributions = [Distribution::None, Distribution::Block, Distribution::Cyclic];
        let shares: Vec<Share> = dims.iter().map(|&(size, which, processes, argument)| {
            let distribution = distributions[which];
            let processes = if distribution == Distribution::None { 1 } else { processes };
            let covers = i64::from(argument * processes) >= size;
            let default = argument == 3 || (distribution == Distribution::Block && !covers);
            let argument = if default { DEFAULT_ARGUMENT } else { argument };
            Share { size, distribution, argument, processes }
        }).collect();
        let processes: i32 = shares.iter().map(|share| share.processes).product();
        let sizes: Vec<i64> = shares.iter().map(|share| share.size).collect();
        let int = Datatype::predefined(Basic::Int);
        for rank in 0..processes {
            let datatype = Datatype::darray(Form::Int, processes, rank, &shares, order, int).unwrap();
            let (expected, whole) = chosen(&sizes, order, |index| owner(&shares, index) == rank);
            prop_assert_eq!(covered(&datatype), expected, "rank {}", rank);
            prop_assert_eq!((datatype.lower_bound(), datatype.extent()), (0, 4 * whole));
        }
    }
}

/// The owner of an element, by the formulas of the standard: processes are in row-major order.
fn owner(shares: &[Share], index: &[i64]) -> i32 {
    shares.iter().zip(index).fold(0, |rank, (share, &i)| {
        let processes = i64::from(share.processes);
        let given = (share.argument != DEFAULT_ARGUMENT).then_some(i64::from(share.argument));
        let coordinate = match share.distribution {
            Distribution::None => 0,
            Distribution::Block => i / given.unwrap_or((share.size + processes - 1) / processes),
            Distribution::Cyclic => i / given.unwrap_or(1) % processes,
        };
        rank * share.processes + coordinate as i32
    })
}

#[test]
fn wrong_arrays_are_refused() {
    let int = Datatype::predefined(Basic::Int);
    let subarray = |size, part, start| {
        Datatype::subarray(Form::Int, &[size], &[part], &[start], Order::C, int)
            .map(|_| ())
            .unwrap_err()
            .class()
    };
    assert_eq!(
        [subarray(4, 0, 0), subarray(4, 5, 0), subarray(4, 2, 3), subarray(4, 2, -1)],
        [Class::ARG; 4]
    );
    let darray = |distribution, argument, processes, size| {
        let share = Share { size: 10, distribution, argument, processes };
        Datatype::darray(Form::Int, size, 0, &[share], Order::C, int).map(|_| ()).unwrap_err().class()
    };
    let wrong = [
        darray(Distribution::None, DEFAULT_ARGUMENT, 2, 2),
        darray(Distribution::Block, 4, 2, 2),
        darray(Distribution::Cyclic, 0, 2, 2),
        darray(Distribution::Cyclic, 1, 2, 3),
    ];
    assert_eq!(wrong, [Class::ARG; 4]);
}
