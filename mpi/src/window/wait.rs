//! Waiting for what other ranks do to a window, while everything else goes on.

use super::Window;
use super::locks::Locks;
use crate::error::Result;
use crate::health::class_of_loss;
use crate::lost::{Checks, first_lost};
use crate::sleepers;
use crate::task;
use crate::world::World;
use newmadeleine::RequestId;
use newmadeleine::engine::Engine;
use newmadeleine::progress::{Outcome, Patience};
use nmad_rma::locks::Ticket;

/// What a thread that waits for a lock says if a rank is gone.
pub(super) const WAITING: &str = "waiting for a lock, which a rank that is gone may hold";

impl Window {
    /// Waits until `look` has found something.
    ///
    /// # Errors
    /// What `look` says, or a rank of the window is gone, which may be the one that all wait for.
    pub(super) fn until<R>(
        &self,
        world: &World,
        what: &str,
        look: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.until_woken(world, what, &mut || true, look)
    }

    /// Waits for memory to change until it is our turn.
    pub(super) fn until_turn(&self, world: &World, locks: Locks<'_>, ticket: Ticket) -> Result<()> {
        let (sleepers, me, mut is_set) = (locks.sleepers(), self.place(), false);
        let look = || Ok(locks.turns().has_turn(ticket).then_some(()));
        let ended = self.until_woken(world, WAITING, &mut || sleepers.may_sleep(me, &mut is_set), look);
        if is_set {
            sleepers.is_awake(me);
        }
        ended
    }

    /// Wakes the ranks of this node that wait for a lock that was given back.
    #[inline]
    pub(super) fn wake(&self, locks: Locks<'_>, with: impl FnOnce(&dyn Fn(&mut Engine))) {
        match locks.sleepers().take() {
            0 => {}
            bits => with(&|engine| sleepers::wake(engine, self.neighbors(), bits)),
        }
    }

    /// Our place among the ranks of this node.
    fn place(&self) -> usize {
        self.peer(self.rank()).locks.unwrap_or(0)
    }

    /// The places and processes of the others.
    fn neighbors(&self) -> impl Iterator<Item = (usize, u32)> {
        let me = self.place();
        let here = self.peers.records().filter_map(|(rank, peer)| Some((peer.locks?, self.process(rank))));
        here.filter(move |(place, _)| *place != me)
    }

    /// Waits until `look` has found something; `may_sleep` as [`newmadeleine::progress::Node::pause`] says.
    fn until_woken<R>(
        &self,
        world: &World,
        what: &str,
        may_sleep: &mut dyn FnMut() -> bool,
        mut look: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let mut patience = Patience::default();
        let mut checks = Checks::default();
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            task::advance(world);
            task::pause_for(world, &mut patience, may_sleep);
            if checks.is_due() {
                self.look_for_the_lost(world, what)?;
            }
        }
    }

    pub(super) fn look_for_the_lost(&self, world: &World, what: &str) -> Result<()> {
        let Some((rank, why)) = first_lost(world, self.on.comm.local().processes()) else {
            return Ok(());
        };
        Err(self.error(class_of_loss(), format_args!("{what}: rank {rank} is gone: {why}")))
    }
}

/// Waits for the end of a request, while tasks go on.
pub(super) fn end_of(world: &World, request: RequestId) -> Outcome {
    loop {
        if let Some(outcome) = world.node().wait_unless(request, task::any) {
            return outcome;
        }
        task::advance(world);
        let mut patience = Patience::default();
        while task::any() {
            if let Some(outcome) = world.node().take(request) {
                return outcome;
            }
            task::advance(world);
            task::pause(world, &mut patience);
        }
    }
}
