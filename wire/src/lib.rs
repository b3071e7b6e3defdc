//! Bytes and frames: the lowest room of the house.
//!
//! A *packet* is what a rail takes: a [`Header`] followed by *frames*. A *chunk* is a part of a large
//! message: a [`ChunkHeader`] followed by raw bytes that belong into a receive region. *Link control* (hello,
//! welcome, proof, refuse) opens a link. Everything is little endian and carries a version.
//!
//! This layer knows no peer, no request and no clock. It trusts no length that arrives: every decoder
//! answers [`Malformed`] instead of reading past its input, and there is no `unsafe` here.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alone;
mod blocks;
mod chunk;
mod code;
mod control;
mod cursor;
mod explain;
pub mod flags;
mod frame;
mod header;
mod part;
mod rts;
mod silence;

pub use alone::AloneHead;
pub use blocks::{Block, Blocks};
pub use chunk::ChunkHeader;
pub use control::{Cipher, Control, Hello, Offer, Proof, Refusal, RefusalCode, Welcome};
pub use cursor::Malformed;
pub use explain::{Explain, explain, explain_alone};
pub use frame::{
    Ack, Credit, Cts, Eager, Fin, Frame, Frames, Keys, Reclaim, Replay, Rtr, Withdraw, Withdrawn,
    begins_eager, frames,
};
pub use header::{Header, Kind};
pub use part::Part;
pub use rts::{Rts, rts_of};
pub use silence::{Ask, LinkDown, Seen};

/// Version of the format. Two sides with different versions refuse each other when a link opens.
pub const VERSION: u8 = 1;
/// Rails that one process may use at once; a rail's number fits into this many.
pub const MAX_RAILS: usize = 16;
/// Longest packet or chunk, header included, that any side may send, in bytes.
pub const MAX_LEN: u32 = 1 << 30;
