//! The place where the three layers meet, and the only one.
//!
//! This file holds the state; each of its neighbours joins the layers in one direction: `submit`
//! (application to window), `depart` (books what rails are given), `dispatch` (window to rail), `timers`
//! (retransmission on lossy rails), `arrive` (rail to application), `outcome` (completion of requests),
//! `fail` and `failover` (lost links and peers), `topology` (adding and removing rails and peers), `peer`
//! (state of one peer in all layers), `way` and `derive` (what its links allow), `view` (queries from
//! outside). The code of each protocol is in [`crate::protocol`], receives of the application are in
//! [`crate::receive`], and observation is in [`crate::observe`].

pub(crate) mod arrive;
pub(crate) mod depart;
mod derive;
mod dispatch;
mod fail;
pub(crate) mod failover;
pub(crate) mod fixed;
mod outcome;
pub(crate) mod peer;
mod peers;
mod submit;
mod timers;
mod topology;
mod view;
pub(crate) mod way;

use crate::clock::Instant;
use crate::collect::early::EarlySends;
use crate::collect::ended::Ended;
use crate::config::Config;
use crate::memory::{Buffer, Spare};
use crate::observe::Observers;
use crate::packet::{Packet, PeerId, RailId, RequestId};
use crate::protocol::{OtherCores, Request};
use crate::receive::Receives;
use crate::schedule::registry::UnknownStrategy;
use crate::schedule::strategy::Strategy;
use crate::slab::Slab;
use crate::transfer::rail::{Opening, Rail};
use crate::transfer::region::Region;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
pub use outcome::{NotWell, Owed};
use peer::Peer;
use peers::Peers;
pub use topology::Setup;
pub use view::{Inspect, LinkView, Notice, NoticeKind, PeerView};

/// The engine: handles messages and is independent of networks.
#[derive(Debug, Default)]
pub struct Engine {
    pub(crate) config: Config,
    // collect
    pub(crate) requests: Slab<Request>,
    pub(crate) receives: Receives,
    /// Completed requests, in order of completion.
    pub(crate) ended: Ended,
    /// Number of completed requests that were not reported yet.
    pub(crate) untold: usize,
    // transfer
    pub(crate) rails: Vec<Rail>,
    pub(crate) regions: Slab<Region>,
    /// Lossy links; only these have timers.
    pub(crate) timed: Vec<(PeerId, RailId)>,
    /// No timer of a lossy link is due before this time, unless something happens.
    pub(crate) rests_until: Instant,
    /// When timers of lossy links were last asked for.
    pub(crate) passed_at: Instant,
    /// All rails of the only ready peer are busy until this time, unless something happens, so they are not
    /// asked for each message that joins the others.
    pub(crate) busy_until: Instant,
    /// An acknowledgement that arrived with an awaited message and is not handled yet: time, rail, peer,
    /// and number.
    pub(crate) deferred_ack: Option<(Instant, RailId, PeerId, u32)>,
    pub(crate) has_errands: bool,
    /// Whether a thread has been waiting since before the last poll of the rails, so that the events of
    /// this poll were not delayed by a program that computes ([`Setup::waits`]).
    pub(crate) is_waiting: bool,
    /// Number of errands after which rails no longer use memory of completed requests.
    pub(crate) closing: usize,
    /// This process has said goodbye to all peers.
    pub(crate) is_leaving: bool,
    /// A rail may have a packet built in advance; false if that was never requested.
    pub(crate) prepares: bool,
    // both
    pub(crate) peers: Peers,
    /// Peers that are gone without having left the job, in the order in which that was found.
    pub(crate) failed: Vec<PeerId>,
    /// Peers with data for a rail, in the order in which they are served.
    pub(crate) ready: VecDeque<PeerId>,
    /// The strategy of the session, if it chooses between peers.
    pub(crate) chooser: Option<Box<dyn Strategy>>,
    pub(crate) buffers: Vec<Packet>,
    /// Buffers of the engine for unexpected data.
    pub(crate) spare: Spare,
    /// The same that rails may still use.
    pub(crate) unused: Vec<Buffer>,
    /// Copies of sends that have ended for the application only.
    pub(crate) early: EarlySends,
    /// Reused by packet builders.
    pub(crate) staged: Vec<RequestId>,
    pub(crate) notices: VecDeque<Notice>,
    /// Other cores, which may post a part.
    pub(crate) other_cores: OtherCores,
    pub(crate) observers: Observers,
}

impl Engine {
    /// Creates an engine without rails and peers.
    ///
    /// # Errors
    /// The configured strategy is not in the registry.
    pub fn new(config: Config) -> Result<Engine, UnknownStrategy> {
        let chooser = Some(config.registry.make(&config.strategy)?).filter(|strategy| strategy.chooses());
        Ok(Engine { chooser, config, ..Engine::default() })
    }

    pub(crate) fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer)
    }

    #[inline]
    pub(crate) fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer)
    }

    /// Adds a peer with data for a rail to the queue, and opens its links if necessary.
    #[inline]
    pub(crate) fn make_ready(&mut self, id: PeerId) {
        self.busy_until = Instant::default();
        let Some(peer) = self.peers.get_mut(id) else { return };
        if !peer.is_ready {
            peer.is_ready = true;
            self.ready.push_back(id);
        }
        if !peer.is_met {
            self.open_links(id);
        }
    }

    pub(crate) fn open_on(&mut self, rail: RailId, opening: Opening) {
        self.closing += usize::from(opening.frees_user_memory());
        self.rails[rail.index()].openings.push_back(opening);
        self.has_errands = true;
    }
}
