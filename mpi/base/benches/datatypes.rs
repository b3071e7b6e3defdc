//! How fast types are packed and numbers reduced, beside a plain copy of as many bytes.
//!
//! `cargo bench -p nmad-mpi-base --bench datatypes`: GB/s of packed data, median of 31 runs with the
//! quartiles, each run at least a millisecond. Lines are interleaved with the plain copy, so that both
//! see the same machine.

use nmad_mpi_base::datatype::{Basic, Datatype, Form};
use nmad_mpi_base::op::{Op, Predefined};
use std::ffi::c_void;
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 31;
const LEAST_NS: u128 = 1_000_000;

/// GB/s of one run of `work`, which handles `len` bytes at a time.
fn rate(len: usize, work: &mut dyn FnMut()) -> f64 {
    let (begin, mut times) = (Instant::now(), 0);
    while begin.elapsed().as_nanos() < LEAST_NS {
        work();
        times += 1;
    }
    (len * times) as f64 / begin.elapsed().as_nanos() as f64
}

fn quartiles(mut rates: Vec<f64>) -> [f64; 3] {
    rates.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| rates[rates.len() * quarter / 4])
}

/// Prints the rates of some work and of a plain copy of `len` bytes.
fn compare(name: &str, len: usize, mut work: impl FnMut()) {
    let (from, mut to) = (vec![1_u8; len], vec![0_u8; len]);
    let mut copy = || black_box(&mut to).copy_from_slice(black_box(&from));
    let (mut rates, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        rates.push(rate(len, &mut work));
        copies.push(rate(len, &mut copy));
    }
    let ([low, middle, high], [_, plain, _]) = (quartiles(rates), quartiles(copies));
    println!("{name:42} {middle:7.2} ({low:.2} to {high:.2})   copy {plain:7.2}   {:.2}", middle / plain);
}

/// Packing and unpacking of `len` bytes in blocks, with gaps of the same size between them.
fn vector(block: i64, len: i64) {
    let byte = Datatype::predefined(Basic::Byte);
    let datatype = Datatype::hvector(Form::Int, len / block, block, 2 * block, byte).expect("it is small");
    let (mut memory, mut packed) = (vec![1_u8; 2 * len as usize], vec![0_u8; len as usize]);
    // SAFETY: the memory has one element of the type.
    let gather = || unsafe {
        black_box(datatype.gather(black_box(memory.as_ptr()).cast(), 1, &mut packed));
    };
    compare(&format!("pack {len} B in blocks of {block}"), len as usize, gather);
    // SAFETY: as above.
    let scatter = || unsafe {
        black_box(datatype.scatter(&packed, black_box(memory.as_mut_ptr()).cast(), 1));
    };
    compare(&format!("unpack {len} B in blocks of {block}"), len as usize, scatter);
}

/// Blocks of different lengths.
fn indexed(len: i64) {
    let lengths: Vec<i64> = (0..len / 48).map(|i| if i % 2 == 0 { 64 } else { 32 }).collect();
    let places: Vec<i64> = (0..len / 48).map(|i| 128 * i).collect();
    let datatype =
        Datatype::hindexed(Form::Int, &lengths, &places, Datatype::predefined(Basic::Byte)).expect("small");
    let (memory, mut packed) = (vec![1_u8; 3 * len as usize], vec![0_u8; len as usize]);
    // SAFETY: the memory has one element of the type.
    let gather = || unsafe {
        black_box(datatype.gather(black_box(memory.as_ptr()).cast(), 1, &mut packed));
    };
    compare(&format!("pack {len} B indexed, 64 and 32 in turn"), len as usize, gather);
}

fn reduction(op: Predefined, basic: Basic, len: usize) {
    let (input, mut inout) = (vec![0_u8; len], vec![0_u8; len]);
    let datatype = Datatype::predefined(basic);
    let count = len as i64 / datatype.extent();
    let (from, to): (*const c_void, *mut c_void) = (input.as_ptr().cast(), inout.as_mut_ptr().cast());
    // SAFETY: both hold `count` elements.
    let reduce = || unsafe {
        Op::Predefined(op).reduce(black_box(from), to, count, datatype).expect("it is allowed");
    };
    compare(&format!("{} of {len} B {}", op.name(), basic.name()), len, reduce);
}

fn main() {
    for len in [64 << 10, 4 << 20] {
        for block in [4, 8, 16, 24, 64, 256, 4096] {
            vector(block, len);
        }
        indexed(len);
        for basic in [Basic::Int, Basic::Float, Basic::Double, Basic::CDoubleComplex, Basic::Int8] {
            reduction(Predefined::Sum, basic, len as usize);
        }
        for basic in [Basic::Float16, Basic::Bfloat16] {
            reduction(Predefined::Sum, basic, len as usize);
        }
        reduction(Predefined::Max, Basic::Double, len as usize);
        reduction(Predefined::Sum, Basic::LongDouble, len as usize);
        reduction(Predefined::Maxloc, Basic::DoubleInt, len as usize);
    }
    reduction(Predefined::Sum, Basic::Double, 8);
}
