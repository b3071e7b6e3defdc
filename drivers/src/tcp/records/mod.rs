//! Records: the stream of an encrypted link, in encrypted and authenticated pieces.
//!
//! A record is the length of its data (4 B), the encrypted data, and a tag that covers both. The numbers of
//! records are not sent, since a stream keeps their order. If records are repeated, left out, reordered or
//! sent back to their sender, the receiver expects another number, so the tag is wrong and the link ends. No
//! record crosses the end of the header or of the data of a chunk: so the bytes behind a chunk stay encrypted
//! until the next poll. The data of a chunk is cut every [`LONGEST`] bytes: so the receiver knows where the
//! data of each record belongs before it has read the record.

mod direct;
mod sealing;
#[cfg(test)]
mod tests;
mod unsealing;

pub use sealing::Sealing;
pub use unsealing::Unsealing;

use nmad_engine::memory::together::{Kind, together};
use nmad_seal::TAG;
use nmad_wire::Malformed;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes before the data of a record.
const HEAD: usize = 4;
/// Longest data of a record in bytes, as in TLS. A record costs some 100 ns beside the 4 us for its data.
const LONGEST: usize = 16 << 10;

/// Returns the length of a record with `len` bytes of data.
const fn around(len: usize) -> usize {
    HEAD + len + TAG
}

/// Returns the length of the record at the beginning of `bytes`; `None` if its head is incomplete.
fn record_len(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    match u32::from_le_bytes(*head) as usize {
        len @ 1..=LONGEST => Ok(Some(around(len))),
        _ => Err(Malformed("record of an invalid length (was it changed on its way?)")),
    }
}

/// Returns the length of the record at the beginning of `bytes`; `None` if it is incomplete.
#[inline]
fn whole(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    Ok(record_len(bytes)?.filter(|len| *len <= bytes.len()))
}

/// Encrypts or decrypts records, several at a time if other cores are idle. Returns their number; `None` if
/// `work` was wrong for one of them.
fn each<R: Send>(records: impl Iterator<Item = R>, work: impl Fn(R) -> bool + Sync) -> Option<usize> {
    let records: Vec<Mutex<Option<R>>> = records.map(|record| Mutex::new(Some(record))).collect();
    let is_right = AtomicBool::new(true);
    together(Kind::Cipher, records.len() as u64, LONGEST as u64, &|range| {
        for record in &records[range.start as usize..range.end as usize] {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner).take();
            if !record.is_none_or(&work) {
                is_right.store(false, Ordering::Relaxed);
            }
        }
    });
    is_right.into_inner().then_some(records.len())
}
