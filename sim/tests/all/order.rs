//! The oracle of order sees what overtakes.

use nmad_engine::Error;
use nmad_engine::packet::RequestId;
use nmad_sim::buffer::Buffer;
use nmad_sim::oracle::ledger::{Entry, Ledger, What};
use nmad_sim::oracle::order::check;

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
