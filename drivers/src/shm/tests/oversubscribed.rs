//! Tests of shared-memory links on an oversubscribed node.

use super::{introduced, opened, turn};
use crate::conformance::memory::Memory;
use crate::shm::ShmRail;
use nmad_engine::packet::{PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Marks the node of this rail as oversubscribed.
fn oversubscribe(rail: &ShmRail) {
    rail.config.oversubscribed.store(true, Ordering::Relaxed);
}

#[test]
fn when_oversubscribed_nothing_is_pushed_and_the_links_know() {
    let pushes = |rail: &ShmRail| rail.limits().push;
    let rails = introduced([[5; 32]; 2]);
    assert_eq!(pushes(&rails[0]), 256 << 10);
    oversubscribe(&rails[0]);
    assert_eq!((pushes(&rails[0]), pushes(&rails[1])), (0, 256 << 10));
    let rails = opened(rails);
    let knows =
        |rank: usize| rails[rank].peers.link(PeerId(1 - rank as u32)).map(|l| l.shared.is_oversubscribed);
    assert_eq!((knows(0), knows(1)), (Some(true), Some(false)));
}

#[test]
fn when_oversubscribed_chunks_that_meet_are_left_to_their_receivers_for_a_while() {
    let rails = introduced([[5; 32]; 2]);
    rails.iter().for_each(oversubscribe);
    let mut rails = opened(rails);
    if !rails[0].peers.link(PeerId(1)).expect("a link").shared.peer_can() {
        return;
    }
    let kind = (1 << 20, false);
    (1..9).for_each(|number| drop(turn(&mut rails, number, &[0, 1], kind)));
    let untouched = (9..100).any(|number| {
        let (source, target) = (Memory::pattern(1 << 20, 3), Memory::zeroed(1 << 20));
        let (to, region, from) = (PeerId(1), RegionId(9), source.segments());
        let key = rails[1].open(region, PeerId(0), target.segments());
        let begun = Instant::now();
        rails[0].send(Departure::Order(Order::Chunk { to, number, ack: 0, region, key, offset: 0, from }));
        rails[0].flush();
        rails[0].poll(Scope::All, &mut |_| ());
        // If this test was preempted meanwhile, the sender has waited long enough to copy itself.
        let untouched = target.bytes().iter().all(|byte| *byte == 0);
        assert!(untouched || begun.elapsed() > Duration::from_micros(400), "it is the receiver's");
        let mut sent = false;
        while !sent {
            rails[0].poll(Scope::All, &mut |event| sent |= matches!(event, Event::Sent { .. }));
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "a sender that waits too long completes it itself"
            );
        }
        assert!(source.bytes() == target.bytes());
        until_landed(&mut rails);
        rails[1].close(region);
        untouched
    });
    assert!(untouched, "once at least");
}

fn until_landed(rails: &mut [ShmRail; 2]) {
    let (begun, mut landed) = (Instant::now(), false);
    while !landed {
        assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
        rails[1].poll(Scope::All, &mut |event| landed |= matches!(event, Event::Landed { .. }));
    }
}
