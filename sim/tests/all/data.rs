//! What is random, what messages hold, and the memory that they lie in.

use nmad_sim::buffer::{Buffer, FILLER, POISON, first_other};
use nmad_sim::payload::payload;
use nmad_sim::rng::Rng;
use std::rc::Rc;

#[test]
fn a_seed_always_means_the_same_numbers() {
    let mut rng = Rng::new(1);
    let first = [rng.bits(), rng.bits(), rng.bits()];
    assert_eq!(first, [0xcfc5d07f6f03c29b, 0xbf424132963fe08d, 0x19a37d5757aaf520]);
}

#[test]
fn lengths_stay_in_bounds_and_reach_them() {
    let mut rng = Rng::new(2);
    let lens: Vec<u64> = (0..10_000).map(|_| rng.len(65536)).collect();
    assert!(lens.iter().all(|&l| l <= 65536));
    assert!(lens.contains(&0) && lens.contains(&65536));
}

#[test]
fn messages_differ_and_a_shorter_one_is_a_prefix() {
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    payload(1, 100, &mut a);
    payload(2, 100, &mut b);
    payload(1, 33, &mut c);
    assert_ne!(a, b);
    assert_eq!(a[..33], c[..]);
}

#[test]
fn a_byte_beside_the_message_is_seen() {
    let mut buffer = Buffer::new(&[3, 0, 5]);
    buffer.fill(&[1, 2, 3, 4, 5]);
    assert_eq!(buffer.check(&[1, 2, 3, 4, 5]), Ok(()));
    assert!(buffer.check(&[1, 2, 3, 4]).unwrap_err().outside);
    assert_eq!(buffer.check(&[1, 2, 9, 4, 5]).unwrap_err().offset, 2);
    let mut all = Vec::new();
    buffer.segments().append_to(&mut all);
    assert_eq!(all[..5], [1, 2, 3, 4, 5]);
}

#[test]
fn a_byte_that_is_written_after_the_end_is_seen() {
    let mut buffer = Buffer::new(&[10_000]);
    buffer.poison();
    assert!(buffer.is_poisoned());
    buffer.fill(&[POISON; 9_000]);
    assert!(buffer.is_poisoned());
    buffer.fill(&[&[POISON; 9_000][..], &[0]].concat());
    assert!(!buffer.is_poisoned());
    assert_eq!(first_other(&buffer.bytes(), POISON), Some(9_000));
    assert_eq!(first_other(&[FILLER; 5_000], FILLER), None);
}

#[test]
fn shared_memory_is_never_wrong() {
    let memory = Rc::new(Buffer::new(&[100]));
    let (mut a, b) = (Buffer::within(&memory, 100), Buffer::within(&memory, 7));
    a.fill(&[1; 100]);
    a.poison();
    assert!(a.is_poisoned() && b.check(&[3; 7]).is_ok());
    assert_eq!((a.segments().len(), b.segments().len()), (100, 7));
    assert_eq!(memory.check(&[]), Ok(()));
}
