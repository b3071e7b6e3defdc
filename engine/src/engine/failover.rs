//! What is left of links that were lost.

use crate::clock::Instant;
use crate::packet::{RailId, RequestId};
use crate::transfer::link::Arrivals;
use alloc::string::String;
use alloc::vec::Vec;

/// What is left of the lost links of one peer, until others have taken over.
#[derive(Debug, Default)]
pub(crate) struct Failover {
    /// The peer's rails whose links have not opened on this side.
    pub(crate) orphans: Vec<Orphan>,
    /// Notices of lost links, for the time when it is clear that the peer is not about to end.
    pub(crate) unsaid: Vec<String>,
    /// Why links have never opened. While another one carries the traffic that is no news: it may be an
    /// interface that leads nowhere.
    pub(crate) unopened: Vec<String>,
    /// No link is there, and some may come back.
    pub(crate) lost: Option<Lost>,
    /// Packets that a dead link has not given back.
    pub(crate) late: Vec<LatePacket>,
}

/// All links are lost, and some may come back.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Until when that is waited for.
    pub(crate) until: Instant,
    /// What ended the last one.
    pub(crate) why: String,
}

/// A rail of the peer of which the peer told before our own rail did: packets that were replayed elsewhere
/// may still arrive on it, and it may be down already.
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
    /// The requests whose memory it refers to.
    pub(crate) requests: Vec<RequestId>,
}

impl Failover {
    /// The rail of the peer with this number, whose link has not opened on this side.
    pub(crate) fn orphan(&mut self, remote: u8) -> &mut Orphan {
        let known = self.orphans.iter().position(|orphan| orphan.remote == remote);
        let index = known.unwrap_or_else(|| {
            self.orphans.push(Orphan { remote, ..Orphan::default() });
            self.orphans.len() - 1
        });
        &mut self.orphans[index]
    }

    /// Takes the packet that a rail has given back late: the requests whose memory it refers to.
    pub(crate) fn take_late(&mut self, rail: RailId, number: u32) -> Vec<RequestId> {
        let place = self.late.iter().position(|late| (late.rail, late.number) == (rail, number));
        place.map(|place| self.late.swap_remove(place).requests).unwrap_or_default()
    }
}
