//! Which rail a strategy gives a message that is alone in its window, for those who explain its decisions.

use super::builder::{Bounds, PacketBuilder};
use super::strategy::{RailView, Strategy};
use crate::clock::Instant;
use crate::collect::request::Hints;
use crate::collect::window::{Entry, Window};
use crate::memory::Spare;
use crate::packet::{Packet, PeerId, RailId, RequestId};
use alloc::vec::Vec;
use nmad_wire::Eager;

/// Limits that no message meets; data stays in place, so that none is copied.
const BOUNDS: Bounds =
    Bounds { len: usize::MAX, in_place_min: 0, block_min: 0, aggregate_max: usize::MAX, gather: usize::MAX };

/// Returns the rail over which an eager message of `len` bytes leaves that is alone in the window, while its
/// sender waits; `rails` are the open ones to the peer. `None`: the strategy leaves it to all of them.
pub fn rail_of_lone(
    strategy: &mut dyn Strategy,
    peer: PeerId,
    (now, len): (Instant, u32),
    rails: &[RailView],
) -> Option<RailId> {
    if let Some(rail) = strategy.lone(now, len.into(), rails) {
        return Some(rail);
    }
    let buffer = Spare::default().take(len as usize);
    let head = Eager { flags: 0, context: 0, tag: 0, seq: 0, len, request: 0 };
    let mut window = Window::new(peer);
    window.submit(None, Entry::eager(head, buffer.segments(), RequestId::NONE, &Hints::default()));
    taken_by(strategy, now, rails, &mut window)
}

/// Returns the rail that empties the window when the rails are asked in turn.
pub(super) fn taken_by(
    strategy: &mut dyn Strategy,
    now: Instant,
    rails: &[RailView],
    window: &mut Window,
) -> Option<RailId> {
    let rivals = |rail: &RailView| rails.iter().filter(|other| other.rail != rail.rail).copied().collect();
    let mut asked = rails.iter().filter(|rail| {
        let rivals: Vec<RailView> = rivals(rail);
        let mut packet = PacketBuilder::new(Packet::default(), BOUNDS, Vec::new());
        strategy.fill(now, &RailView { rivals: &rivals, ..**rail }, window, &mut packet);
        window.is_empty()
    });
    asked.next().map(|rail| rail.rail)
}
