//! Data to send that lies where data is received (`NMAD_MPI_CHECK=1`): the standard forbids it, and what is
//! received then depends on the algorithm.

use super::memory::Memory;
use super::place::{Buffer, Place};
use super::schedule::{Action, Schedule};
use crate::error::{Class, Result};
use nmad_engine::Segments;

/// Looks at all data of a schedule whose buffers are bound.
///
/// # Errors
/// Class BUFFER if a byte of the buffer to send is one of the buffer to receive.
pub(super) fn check(schedule: &Schedule, memory: &Memory) -> Result<()> {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut note = |place: &Place| match place.spot.buffer {
        Buffer::Send => sent.push(memory.segments(place)),
        Buffer::Recv => received.push(memory.segments(place)),
        Buffer::Scratch => {}
    };
    for node in &schedule.nodes {
        match &node.action {
            Action::Send { data, .. } => note(data),
            Action::Recv { into, .. } => note(into),
            Action::Copy { from, into } => [from, into].into_iter().for_each(&mut note),
            Action::Reduce { from, into, count } => {
                let operands = |spot| schedule.operator().map(|operator| operator.place(spot, *count));
                [*from, *into].into_iter().filter_map(operands).for_each(|place| note(&place));
            }
            Action::Write { .. } | Action::Join | Action::Compare { .. } => {}
        }
    }
    refuse(&sent, &received)
}

/// Refuses memory that both have.
///
/// # Errors
/// As [`check`].
pub fn refuse(sent: &[Segments], received: &[Segments]) -> Result<()> {
    match overlap(&ranges(sent), &ranges(received)) {
        None => Ok(()),
        Some(address) => Err(Class::BUFFER.error(format!(
            "the byte at {address:#x} is both sent and received: give buffers that do not overlap, or \
             MPI_IN_PLACE where the standard allows it"
        ))),
    }
}

/// Addresses from the first to behind the last, in their order.
fn ranges(memory: &[Segments]) -> Vec<(usize, usize)> {
    let pieces = memory.iter().flat_map(Segments::iter).filter(|piece| piece.len > 0);
    let mut ranges: Vec<_> =
        pieces.map(|piece| (piece.start.addr(), piece.start.addr() + piece.len)).collect();
    ranges.sort_unstable();
    ranges
}

/// The first address of both lists, if there is one.
fn overlap(sent: &[(usize, usize)], received: &[(usize, usize)]) -> Option<usize> {
    let (mut sent, mut received) = (sent.iter().peekable(), received.iter().peekable());
    // Where the latest of those passed over ends; ranges of one list may overlap each other.
    let (mut sent_to, mut received_to) = (0, 0);
    loop {
        let (from, into) = (sent.peek(), received.peek());
        let is_sent_first = match (from, into) {
            (None, None) => return None,
            (Some(from), Some(into)) => from.0 <= into.0,
            (from, _) => from.is_some(),
        };
        let ((begin, end), (own, others)) = match is_sent_first {
            true => (*sent.next()?, (&mut sent_to, received_to)),
            false => (*received.next()?, (&mut received_to, sent_to)),
        };
        if begin < others {
            return Some(begin);
        }
        *own = end.max(*own);
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<(usize, usize)>> {
        let range = (1..60usize, 1..6usize).prop_map(|(begin, len)| (begin, begin + len));
        prop::collection::vec(range, 0..5).prop_map(|mut ranges| {
            ranges.sort_unstable();
            ranges
        })
    }

    proptest! {
        #[test]
        fn a_byte_of_both_is_found(sent in ranges(), received in ranges()) {
            let has = |list: &[(usize, usize)], byte| {
                list.iter().any(|range| (range.0..range.1).contains(&byte))
            };
            let first = (0..70).find(|&byte| has(&sent, byte) && has(&received, byte));
            prop_assert_eq!(overlap(&sent, &received), first);
        }
    }
}
