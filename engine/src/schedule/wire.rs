//! Rails that share a wire: two rails over one NIC do not have the bandwidth of two NICs.
//!
//! The bandwidths of streams and datagrams over one interface do not add up, so a strategy that splits a
//! body sees one rail per wire, the one predicted to carry this body first. Each share then uses the rail
//! of its wire that carries the share first: if a second wire takes part, the first one's share may be
//! short. Load belongs to the wire and not to the rail, so rails of one wire are compared by their profiles
//! without load.

use super::strategy::{RailView, ShareList, Shares, Strategy};
use crate::clock::Instant;
use crate::packet::RailId;

/// Splits a body of `len` bytes over `rails`; each wire counts once.
pub fn split(strategy: &mut dyn Strategy, now: Instant, len: u64, rails: &[RailView]) -> Shares {
    if rails.iter().all(|view| view.wire == view.rail) {
        return strategy.split(now, len, rails);
    }
    let Some((ways, count)) = ways(now, len, rails.iter().copied()) else { return Shares::FirstIdle };
    let Shares::Fixed(shares) = strategy.split(now, len, &ways[..count]) else { return Shares::FirstIdle };
    let best = |&(rail, len): &(_, u64)| (best_way(now, rails, rail, len), len);
    Shares::Fixed(shares.iter().map(best).collect::<ShareList>())
}

/// Rails and their number.
pub(super) type Ways<'a> = ([RailView<'a>; nmad_wire::MAX_RAILS], usize);

/// Returns for each wire the rail that carries `len` bytes first; `None` without rails.
pub(super) fn ways<'a>(
    now: Instant,
    len: u64,
    mut rails: impl Iterator<Item = RailView<'a>>,
) -> Option<Ways<'a>> {
    let (mut ways, mut count) = ([rails.next()?; nmad_wire::MAX_RAILS], 1);
    for view in &mut rails {
        match ways[..count].iter_mut().find(|way| way.wire == view.wire) {
            Some(way) => {
                let (primary, fastest) = (way.primary || view.primary, way.fastest || view.fastest);
                let best = if leads(now, &view, way, len) { view } else { *way };
                *way = RailView { primary, fastest, ..best };
            }
            None if count < nmad_wire::MAX_RAILS => {
                ways[count] = view;
                count += 1;
            }
            None => {}
        }
    }
    Some((ways, count))
}

/// Returns the rail that carries a share first, of all on the wire of `rail`.
fn best_way(now: Instant, rails: &[RailView], rail: RailId, len: u64) -> RailId {
    let Some(mut best) = rails.iter().find(|view| view.rail == rail) else { return rail };
    for way in rails.iter().filter(|view| view.wire == best.wire) {
        if leads(now, way, best, len) {
            best = way;
        }
    }
    best.rail
}

/// Whether one rail is predicted to carry `len` bytes earlier than another one on the same wire; the first
/// of equal ones counts.
pub(crate) fn leads(now: Instant, way: &RailView, other: &RailView, len: u64) -> bool {
    let finish_ns =
        |view: &RailView| view.busy_ns(now).saturating_add(view.forecast.profile().body().ns(len));
    (finish_ns(way), way.rail) < (finish_ns(other), other.rail)
}
