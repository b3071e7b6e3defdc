//! Fuzz targets, as functions from bytes: what a stranger may put on the wire ([`bytes`]), and what an
//! application may do in whatever order over whatever network ([`operations`]).
//!
//! They run on stable Rust as ordinary programs, which mutate a corpus with knowledge of its structure:
//!
//! ```text
//! cargo run --release --bin bytes -- --seconds 20 --seed 7
//! cargo run --release --bin operations -- artifacts/operations-7-1234
//! ```
//!
//! A failure prints seed and iteration and leaves its input in `artifacts/`. With cargo-fuzz a target is
//! `fuzz_target!(|data: &[u8]| nmad_fuzz::bytes(data));`, with the same corpus.
//!
//! This package knows the wire and the engine. The rails in memory are those of the engine's own tests.

mod bytes;
mod generate;
#[path = "../../engine/tests/all/common/heap.rs"]
mod heap;
#[path = "../../engine/tests/all/common/net.rs"]
#[allow(missing_docs)]
mod net;
mod operations;
mod rng;
pub mod runner;
mod seeds;
mod victim;

pub use bytes::bytes;
pub use operations::operations;

use runner::Target;

/// The target of [`bytes`], with its generator and the first files of its corpus.
pub fn bytes_target() -> Target {
    Target { name: "bytes", run: bytes, generate: generate::packets, seeds: seeds::packets }
}

/// The target of [`operations`], with its generator and the first files of its corpus.
pub fn operations_target() -> Target {
    Target { name: "operations", run: operations, generate: generate::script, seeds: seeds::scripts }
}
