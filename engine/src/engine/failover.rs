//! State of lost links.

use crate::clock::Instant;
use crate::packet::{RailId, RequestId};
use crate::transfer::arrivals::Arrivals;
use alloc::string::String;
use alloc::vec::Vec;

/// State of the lost links of one peer, until other links have taken over.
#[derive(Debug, Default)]
pub(crate) struct Failover {
    /// Rails of the peer whose links have not opened on this side.
    pub(crate) orphans: Vec<Orphan>,
    /// Notices of lost links, sent once it is clear that the peer is not about to end.
    pub(crate) unsaid: Vec<String>,
    /// Why links have never opened. While another one carries the traffic that is no news: it may be an
    /// interface that leads nowhere.
    pub(crate) unopened: Vec<String>,
    /// Set while no link is up and some may come back.
    pub(crate) lost: Option<Lost>,
    /// Packets that the rail of a dead link has not returned.
    pub(crate) late: Vec<LatePacket>,
}

/// All links are lost, and some may come back.
#[derive(Debug)]
pub(crate) struct Lost {
    /// How long the peer is kept.
    pub(crate) until: Instant,
    /// Why the last link was lost.
    pub(crate) why: String,
}

/// A rail of the peer whose link has not opened on this side: packets for it may still arrive as replays,
/// and the peer may already have lost it.
#[derive(Debug, Default)]
pub(crate) struct Orphan {
    pub(crate) remote: u8,
    pub(crate) rx: Arrivals,
    pub(crate) is_down: bool,
}

/// A packet that the rail of a dead link still holds.
#[derive(Debug)]
pub(crate) struct LatePacket {
    pub(crate) rail: RailId,
    pub(crate) number: u32,
    /// Requests whose memory it sends in place.
    pub(crate) requests: Vec<RequestId>,
}

impl Failover {
    /// Returns the rail of the peer with this number, whose link has not opened on this side.
    pub(crate) fn orphan(&mut self, remote: u8) -> &mut Orphan {
        let known = self.orphans.iter().position(|orphan| orphan.remote == remote);
        let index = known.unwrap_or_else(|| {
            self.orphans.push(Orphan { remote, ..Orphan::default() });
            self.orphans.len() - 1
        });
        &mut self.orphans[index]
    }

    /// Removes the packet that a rail has returned late; returns the requests whose memory it sends in
    /// place.
    pub(crate) fn take_late(&mut self, rail: RailId, number: u32) -> Vec<RequestId> {
        let place = self.late.iter().position(|late| (late.rail, late.number) == (rail, number));
        place.map(|place| self.late.swap_remove(place).requests).unwrap_or_default()
    }
}
