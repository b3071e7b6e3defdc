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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use nmad_engine::packet::RequestId;

    fn ledger(tags: [u64; 2], receives: [Option<u64>; 2], partners: [usize; 2]) -> Ledger {
        let mut ledger = Ledger::default();
        let entry = |host, what| Entry {
            host,
            what,
            buffer: Buffer::new(&[]),
            len: 0,
            submitted: 0,
            ended: None,
            partner: None,
        };
        for (i, tag) in tags.into_iter().enumerate() {
            let seq = Some(ledger.next_seq((0, 1, 7)));
            let what = What::Send { to: 1, context: 7, tag, seq, payload: 0, synchronous: false };
            ledger.enter(RequestId(i as u64), entry(0, what)).unwrap();
        }
        for (i, tag) in receives.into_iter().enumerate() {
            let what = What::Recv { from: Some(0), context: 7, tag, cancelled: false };
            ledger.enter(RequestId(i as u64), entry(1, what)).unwrap();
            ledger.entries[2 + i].partner = Some(partners[i]);
            ledger.entries[partners[i]].partner = Some(2 + i);
        }
        ledger
    }

    #[test]
    fn messages_of_one_tag_must_not_overtake() {
        assert!(check(&ledger([1, 1], [Some(1), Some(1)], [0, 1])).is_ok());
        assert!(check(&ledger([1, 1], [Some(1), Some(1)], [1, 0])).is_err());
    }

    #[test]
    fn a_lost_message_must_not_be_overtaken_unless_its_receive_failed() {
        let mut lost = ledger([1, 1], [Some(1), Some(1)], [0, 1]);
        (lost.entries[0].partner, lost.entries[2].partner) = (None, None);
        lost.entries[2].ended = Some((9, Err(Error::Cancelled)));
        assert!(check(&lost).is_err());
        lost.entries[2].ended = Some((9, Err(Error::PeerLost(nmad_engine::PeerId(0)))));
        assert!(check(&lost).is_ok());
    }

    #[test]
    fn receives_of_other_tags_may_pass() {
        assert!(check(&ledger([1, 2], [Some(2), Some(1)], [1, 0])).is_ok());
    }

    #[test]
    fn a_wildcard_must_take_the_first_message() {
        assert!(check(&ledger([1, 2], [None, Some(1)], [1, 0])).is_err());
        assert!(check(&ledger([1, 2], [Some(1), None], [0, 1])).is_ok());
    }
}
