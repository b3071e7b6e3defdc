//! Where the three layers meet, and the only place where they do.
//!
//! This file holds the state; each of its neighbours joins the layers in one direction: `submit`
//! (application to window), `depart` (what rails are given, booked once), `dispatch` (window to rail),
//! `timers` (what lossy rails send again), `arrive` (rail to application), `outcome` (how requests end),
//! `fail` and `failover` (links and peers that are gone), `topology` (rails and peers that come and go),
//! `peer` (what the layers keep for one peer), `way` and `derive` (what its links allow), `view` (what can
//! be seen from outside). What belongs to one protocol is in [`crate::protocol`], receives of the
//! application are in [`crate::receive`], and what is only observed is in [`crate::observe`].

pub(crate) mod arrive;
pub(crate) mod depart;
mod derive;
mod dispatch;
mod fail;
pub(crate) mod failover;
pub(crate) mod fixed;
mod outcome;
pub(crate) mod peer;
mod submit;
mod timers;
mod topology;
mod view;
pub(crate) mod way;

use crate::clock::Instant;
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
pub use view::{LinkView, Notice, PeerView};

/// The engine: everything about messages, nothing about networks.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: Config,
    // collect
    pub(crate) requests: Slab<Request>,
    pub(crate) receives: Receives,
    /// Requests that have ended, in that order.
    pub(crate) ended: Ended,
    /// Requests that have ended and were not reported yet.
    pub(crate) untold: usize,
    // transfer
    pub(crate) rails: Vec<Rail>,
    pub(crate) regions: Slab<Region>,
    /// Lossy links, the only ones with timers.
    pub(crate) timed: Vec<(PeerId, RailId)>,
    /// No lossy link needs anything before, unless something happens.
    pub(crate) rests_until: Instant,
    /// Until then all rails of the only peer that is ready are busy, unless something happens: they need not
    /// be asked for each message that joins the others.
    pub(crate) busy_until: Instant,
    /// An acknowledgement that came with a message for which a thread waits, and is not booked yet: when,
    /// over which rail, of which peer, up to which number.
    pub(crate) deferred_ack: Option<(Instant, RailId, PeerId, u32)>,
    pub(crate) has_errands: bool,
    /// Errands after which a rail uses no more memory of requests that have ended.
    pub(crate) closing: usize,
    /// A rail may have a packet that was prepared; none has where that was never asked for.
    pub(crate) prepares: bool,
    // both
    pub(crate) peers: Vec<Option<Box<Peer>>>,
    /// Peers that have something for a rail, in the order of their turns.
    pub(crate) ready: VecDeque<PeerId>,
    /// The strategy of the session, if it chooses between peers.
    pub(crate) chooser: Option<Box<dyn Strategy>>,
    pub(crate) buffers: Vec<Packet>,
    /// Memory of our own for data that nobody has asked for.
    pub(crate) spare: Spare,
    /// The same that rails may still use.
    pub(crate) unused: Vec<Buffer>,
    /// Reused by packet builders.
    pub(crate) staged: Vec<RequestId>,
    pub(crate) notices: VecDeque<Notice>,
    /// Cores beside the caller's, which may post a part.
    pub(crate) other_cores: OtherCores,
    pub(crate) observers: Observers,
}

impl Engine {
    /// An engine without rails and peers.
    ///
    /// # Errors
    /// The configured strategy is not in the registry.
    pub fn new(config: Config) -> Result<Engine, UnknownStrategy> {
        let chooser = Some(config.registry.make(&config.strategy)?).filter(|strategy| strategy.chooses());
        Ok(Engine {
            chooser,
            config,
            requests: Slab::default(),
            receives: Receives::default(),
            ended: Ended::default(),
            untold: 0,
            rails: Vec::new(),
            regions: Slab::default(),
            timed: Vec::new(),
            rests_until: Instant::default(),
            busy_until: Instant::default(),
            deferred_ack: None,
            has_errands: false,
            closing: 0,
            prepares: false,
            peers: Vec::new(),
            ready: VecDeque::new(),
            buffers: Vec::new(),
            spare: Spare::default(),
            unused: Vec::new(),
            staged: Vec::new(),
            notices: VecDeque::new(),
            other_cores: OtherCores::default(),
            observers: Observers::default(),
        })
    }

    pub(crate) fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer.0 as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer.0 as usize)?.as_deref_mut()
    }

    /// A peer has something for a rail.
    #[inline]
    pub(crate) fn make_ready(&mut self, id: PeerId) {
        self.busy_until = Instant::default();
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
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
