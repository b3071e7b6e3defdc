//! Chunks of short blocks, whose parts in bounce buffers are short.

use super::{connected, inject, until};
use crate::conformance::memory::Memory;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};

/// The receiver writes no cells, so it reports what it has consumed after TELL_BYTES, or when a chunk has
/// landed. A packet before each chunk shifts where the chunk begins.
#[test]
fn chunks_of_short_blocks_arrive_wherever_they_begin_in_the_bounce_buffer() {
    let mut rails = connected();
    let whole = Memory::pattern(120_000, 3);
    let before = Memory::pattern(2_000, 5);
    let blocks: Vec<_> = (0..6_000).map(|at| at * 20..at * 20 + 12).collect();
    for number in 0..60 {
        let from = whole.pieces(&blocks).slice(0, 30_000 + 700 * u64::from(number));
        let target = Memory::zeroed(from.len() as usize);
        let (to, region) = (PeerId(0), RegionId(u64::from(number)));
        let key = Key::PUSH;
        assert!(inject(&mut rails[1], to, &[1], &before.segments()));
        let mut expected = Vec::new();
        from.append_to(&mut expected);
        rails[1].send(Departure::Order(Order::Chunk { to, number, ack: 0, region, key, offset: 0, from }));
        until(&mut rails, |event| matches!(event, Event::Pushed { .. }).then_some(()));
        rails[0].open(region, PeerId(1), target.segments());
        rails[0].send(Departure::Order(Order::Accept { from: PeerId(1), region }));
        until(&mut rails, |event| matches!(event, Event::Landed { .. }).then_some(()));
        rails[0].close(region);
        // The sender removes the complete chunk, so that the next packet can be injected.
        rails[1].poll(Scope::All, &mut |_| ());
        assert!(target.bytes() == expected, "chunk {number}");
    }
}
