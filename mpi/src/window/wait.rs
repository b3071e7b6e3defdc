//! Waiting for what other ranks do to a window, while everything else goes on.

use super::Window;
use crate::error::{Class, Result};
use crate::task;
use crate::world::World;
use newmadeleine::RequestId;
use newmadeleine::engine::PeerId;
use newmadeleine::progress::{Outcome, Patience};
use std::time::{Duration, Instant};

/// A waiting thread checks at this interval whether a rank of the window is gone.
const CHECK: Duration = Duration::from_millis(10);

impl Window {
    /// Waits until `look` has found something.
    ///
    /// # Errors
    /// What `look` says, or a rank of the window is gone, which may be the one that all wait for.
    pub(super) fn until<R>(
        &self,
        world: &World,
        what: &str,
        mut look: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let mut patience = Patience::default();
        let mut checked = None;
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            task::advance(world);
            task::pause(world, &mut patience);
            let since = checked.get_or_insert_with(Instant::now);
            if since.elapsed() > CHECK {
                *since = Instant::now();
                self.look_for_the_lost(world, what)?;
            }
        }
    }

    fn look_for_the_lost(&self, world: &World, what: &str) -> Result<()> {
        for (rank, peer) in self.peers.iter().enumerate() {
            if let Some(why) = world.node().with(|engine| engine.inspect().failure(PeerId(peer.process))) {
                let text = format_args!("{what}: rank {rank} is gone: {why}");
                return Err(self.error(Class::PROC_ABORTED, text));
            }
        }
        Ok(())
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
