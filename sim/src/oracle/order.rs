//! In order per flow: MPI's rule, checked after the run by a reference of its own.
//!
//! Let a receive r have got a message m. An earlier ordered message m' of the same flow that r would have
//! taken as well must have gone to a receive that was posted before r: otherwise, when m' came, r was either
//! posted and free, or was posted later and had to take m' before m. This one condition for all pairs is
//! MPI's non-overtaking rule for both messages and receives, without having to know when anything arrived.

use super::Objection;
use super::delivery::takes;
use super::ledger::{Entry, Ledger, What};
use nmad_engine::Error;

/// Checks all flows.
///
/// # Errors
/// The first pair of messages that overtook.
pub fn check(ledger: &Ledger) -> Result<(), Objection> {
    for flow in ledger.flows.values() {
        let ordered: Vec<usize> = flow.iter().copied().filter(|&index| is_ordered(ledger, index)).collect();
        for (place, &later) in ordered.iter().enumerate() {
            let Some(recv) = ledger.entries[later].partner else { continue };
            for &earlier in &ordered[..place] {
                overtakes(ledger, earlier, later, recv)?;
            }
        }
    }
    Ok(())
}

fn is_ordered(ledger: &Ledger, index: usize) -> bool {
    matches!(ledger.entries[index].what, What::Send { seq: Some(_), .. })
}

/// Entries are in the order of submission on each host, so indices say which receive was posted first.
fn overtakes(ledger: &Ledger, earlier: usize, later: usize, recv: usize) -> Result<(), Objection> {
    let (first, second, taker) = (&ledger.entries[earlier], &ledger.entries[later], &ledger.entries[recv]);
    let in_order = match first.partner {
        Some(other) => other < recv,
        None => failed_before(ledger, first, recv),
    };
    if in_order || !takes(taker, first) {
        return Ok(());
    }
    Err(format!("[{second}] overtook [{first}]: [{taker}] should have got the earlier one"))
}

/// A message that nobody got may have been matched and then lost with its peer: then a receive that takes
/// it, posted before `recv`, has failed (or its host has died).
fn failed_before(ledger: &Ledger, message: &Entry, recv: usize) -> bool {
    ledger.entries[..recv].iter().any(|entry| {
        takes(entry, message) && matches!(entry.ended, None | Some((_, Err(Error::PeerLost(_)))))
    })
}
