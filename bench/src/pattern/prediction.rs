//! How well the library predicts: each message's predicted time beside the time that it took, from receipts.
//!
//! One message at a time, one way, on rails that are otherwise quiet. Only messages that are announced have
//! a time to compare with: the sender knows when the receiver has them. That wants several rails.
use newmadeleine::engine::Receipt;

use super::{BenchError, Pair};
use crate::stats::{Summary, percentile};

const TAG: u64 = 7;
/// Messages before those that count: the first ones open links and fill caches.
const WARM_UPS: usize = 20;

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Messages of each length.
    pub repeat: usize,
}

impl Plan {
    /// 64 KiB to 16 MiB.
    pub const LENS: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
}

/// Predicted and measured times of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Bytes of each message.
    pub len: usize,
    /// From the decision to the arrival as predicted, in microseconds.
    pub predicted_us: Summary,
    /// From the decision until the sender knew of the arrival, in microseconds.
    pub took_us: Summary,
    /// Median of the relative errors, 0.05 for 5 percent.
    pub median: f64,
    /// 95th percentile of the relative errors.
    pub p95: f64,
}

/// Sends and compares; at the active rank `each` receives every length.
///
/// # Errors
/// A rank or a rail fails, or messages of a length were not announced.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Found)) -> Result<(), BenchError> {
    let Pair { session, other } = pair;
    for &len in &plan.lens {
        let mut memory = vec![1; len];
        if !pair.is_active() {
            (0..WARM_UPS + plan.repeat).try_for_each(|_| session.recv(other, TAG, &mut memory).map(drop))?;
            pair.tell("next")?;
            continue;
        }
        (0..WARM_UPS).try_for_each(|_| session.send(other, TAG, &memory))?;
        session.record_receipts(true);
        (0..plan.repeat).try_for_each(|_| session.send(other, TAG, &memory))?;
        let receipts: Vec<Receipt> = std::iter::from_fn(|| session.next_receipt()).collect();
        session.record_receipts(false);
        pair.hear()?;
        each(&compare(len, &receipts)?);
    }
    Ok(())
}

fn compare(len: usize, receipts: &[Receipt]) -> Result<Found, BenchError> {
    let announced: Vec<&Receipt> = receipts
        .iter()
        .filter(|receipt| {
            !receipt.protocol.is_eager() && receipt.envelope.len == len as u64 && receipt.candidates.len() > 1
        })
        .collect();
    let times =
        |time: fn(&Receipt) -> u64| announced.iter().map(|receipt| time(receipt) as f64 / 1e3).collect();
    let predicted: Vec<f64> = times(|receipt| receipt.predicted_ns);
    let took: Vec<f64> = times(|receipt| receipt.actual_ns);
    let errors: Vec<f64> =
        took.iter().zip(&predicted).map(|(took, predicted)| (took / predicted - 1.0).abs()).collect();
    let found = || {
        Some(Found {
            len,
            predicted_us: Summary::of(&predicted)?,
            took_us: Summary::of(&took)?,
            median: percentile(&errors, 50)?,
            p95: percentile(&errors, 95)?,
        })
    };
    found().ok_or_else(|| {
        BenchError::Job(format!(
            "messages of {len} B are not shared out between rails, and then nothing says when they arrived: \
             use longer ones, and several rails (--rails max,max)"
        ))
    })
}
