//! Memory budgets, counted by the allocator.

use crate::heap;
use crate::lone::{self, Lone};
use nmad_engine::{Config, PeerId};
use nmad_wire::Frame;

/// Bytes that stay on the heap after `what` has run.
fn cost(what: impl FnOnce()) -> usize {
    let before = heap::live();
    what();
    usize::try_from(heap::live() - before).unwrap_or(0)
}

#[test]
fn an_idle_peer_costs_less_than_32_b() {
    let mut lone = Lone::new(0..1, Config::default());
    let bytes = cost(|| (1..=1_000).for_each(|peer| lone.engine.setup().add_link(PeerId(peer), lone::RAIL)));
    assert!(bytes / 1_000 < 32, "{} B", bytes / 1_000);
}

#[test]
fn an_interface_that_loses_its_carrier_makes_no_idle_peer() {
    let mut lone = Lone::new(0..1, Config::default());
    (1..=1_000).for_each(|peer| lone.engine.setup().add_link(PeerId(peer), lone::RAIL));
    let bytes = cost(|| (1..=1_000).for_each(|peer| lone.carrier(peer, Some("has lost its carrier"))));
    assert!(bytes < 1_000, "{bytes} B");
}

#[test]
fn a_peer_after_one_message_costs_less_than_4_kib() {
    let mut lone = Lone::new(0..0, Config::default());
    let bytes = cost(|| {
        lone = Lone::new(1..1_001, Config::default());
        (1..1_001).for_each(|peer| lone.message(peer, 0, 0, &[1; 8]));
        lone.sent();
    });
    assert!(bytes / 1_000 < 4 << 10, "{} B", bytes / 1_000);
}

/// Heap bytes of each of `count` unexpected messages of 8 B.
fn unexpected(count: u64, tag: impl Fn(u64) -> u64) -> usize {
    let mut lone = Lone::new(1..2, Config { credit: 1 << 30, ..Config::default() });
    lone.arrive(1, &[]);
    let bytes = cost(|| (0..count).for_each(|i| lone.message(1, 0, tag(i), &[1; 8])));
    assert_eq!(lone.engine.inspect().unexpected() as u64, count);
    bytes / count as usize
}

#[test]
fn an_unexpected_message_of_8_b_costs_less_than_128_b() {
    let distinct = unexpected(10_000, |i| i);
    let same = unexpected(10_000, |_| 7);
    assert!(distinct < 128 && same < 128, "{distinct} B with tags of their own, {same} B with one tag");
}

#[test]
fn received_messages_cost_nothing() {
    let mut lone = Lone::new(1..2, Config::default());
    let mut round = || {
        for tag in 0..100 {
            lone.message(1, 0, tag, &[1; 100]);
        }
        for tag in (0..100).rev() {
            lone.recv_into(Some(1), 0, Some(tag), nmad_engine::Segments::empty());
        }
        while lone.engine.next_completion().is_some() {}
        lone.sent();
    };
    (0..10).for_each(|_| round());
    let bytes = cost(|| (0..100).for_each(|_| round()));
    assert_eq!(bytes, 0);
}

#[test]
fn eager_data_of_a_peer_is_bounded_by_its_credit() {
    let credit = 1 << 20;
    let mut lone = Lone::new(1..2, Config { credit, ..Config::default() });
    lone.arrive(1, &[]);
    let bytes = cost(|| {
        while lone.engine.inspect().failure(PeerId(1)).is_none() {
            let head = lone.head(1, 0, 0, 1_000);
            lone.arrive(1, &[Frame::Eager(head, &[1; 1_000])]);
        }
    });
    assert!(bytes as u64 <= credit + credit / 4, "{bytes} B before the peer was closed");
}
