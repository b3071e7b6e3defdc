//! What types with gaps cost: a ping-pong of two ranks with vectors of blocks of several lengths, beside
//! a contiguous message of the same size.
//!
//!     nmad run -n 2 target/release/examples/strided
//!
//! GB/s one way, median of 15 rounds of several messages each; the kinds of messages are interleaved.

use nmad_mpi::constant::ThreadLevel;
use nmad_mpi::datatype::Form;
use nmad_mpi::{Comm, Type, api};
use std::time::Instant;

const ROUNDS: usize = 15;
const WORLD: Comm = Comm::WORLD;

/// A type of `len` bytes in blocks, with gaps as long as the blocks; zero: without gaps.
fn vector(len: i64, block: i64) -> nmad_mpi::Result<Type> {
    let mut made = match block {
        0 => api::type_contiguous(Form::Int, len, Type::BYTE)?,
        _ => api::type_vector(Form::Int, len / block, block, 2 * block, Type::BYTE)?,
    };
    api::type_commit(&mut made)?;
    Ok(made)
}

/// GB/s of some messages there and back.
fn round(buffer: &mut [u8], datatype: Type, len: i64, times: usize) -> nmad_mpi::Result<f64> {
    let (other, address) = (1 - api::comm_rank(WORLD)?, buffer.as_mut_ptr().cast());
    let begin = Instant::now();
    for _ in 0..times {
        if other == 1 {
            api::send(address, 1, datatype, other, 0, WORLD)?;
            api::recv(address, 1, datatype, other, 0, WORLD, None)?;
        } else {
            api::recv(address, 1, datatype, other, 0, WORLD, None)?;
            api::send(address, 1, datatype, other, 0, WORLD)?;
        }
    }
    Ok((2 * len * times as i64) as f64 / begin.elapsed().as_nanos() as f64)
}

fn main() -> nmad_mpi::Result<()> {
    api::init_thread(ThreadLevel::Single)?;
    for len in [4 << 10, 64 << 10, 1 << 20, 8 << 20] {
        let blocks = [0, 8, 64, 512, 4096, 65536].into_iter().filter(|&block| 2 * block <= len);
        let blocks: Vec<i64> = blocks.collect();
        let mut buffer = vec![1_u8; 2 * len as usize];
        let times = (4 << 20) / len as usize + 2;
        let types: Vec<Type> = blocks.iter().map(|&block| vector(len, block)).collect::<Result<_, _>>()?;
        let mut rates = vec![Vec::new(); types.len()];
        for _ in 0..=ROUNDS {
            for (&datatype, rates) in types.iter().zip(&mut rates) {
                rates.push(round(&mut buffer, datatype, len, times)?);
            }
        }
        let middle = |rates: &mut Vec<f64>| {
            rates.remove(0);
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let medians: Vec<f64> = rates.iter_mut().map(middle).collect();
        if api::comm_rank(WORLD)? == 0 {
            for (block, rate) in blocks.iter().zip(&medians) {
                println!("{len:8} B, blocks of {block:6}: {rate:7.3} GB/s  {:.2}", rate / medians[0]);
            }
        }
    }
    api::finalize()
}
