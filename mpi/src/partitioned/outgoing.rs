//! The sender of a partitioned message.

use super::{Arguments, CHANNELS, Parts, Side, divided, header_tag, not_started, part_tag};
use crate::comm::{Named, submit_data};
use crate::error::{Class, Result};
use crate::handle::Comm;
use crate::point::send::STANDARD;
use crate::request::{Ended, Persistent, State, sent};
use crate::status::Status;
use crate::task::{self, Async, Served, Work};
use crate::world::{World, world};
use newmadeleine::engine::{self, Engine, PeerId};
use newmadeleine::{RequestId, Segments};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A message that is sent in parts, again and again.
pub(crate) struct Outgoing {
    on: Named,
    /// None: no process.
    peer: Option<PeerId>,
    data: Segments,
    parts: Parts,
    channel: u32,
    round: Mutex<Round>,
}

/// From its start to its end.
struct Round {
    is_active: bool,
    ready: Vec<bool>,
    /// Parts that are not ready.
    left: usize,
    flying: Vec<RequestId>,
    /// How the first part failed that did.
    failed: Option<engine::Error>,
}

impl Outgoing {
    /// A request for it, which tells the receiver how the message is divided.
    ///
    /// # Errors
    /// An argument is wrong.
    pub(crate) fn request(arguments: Arguments, comm: Comm) -> Result<State> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (world, on) = (world()?, Named::of(comm)?);
        let (data, parts) = divided(arguments)?;
        let (.., dest, tag) = arguments;
        let peer = on.comm.target(dest, tag)?.map(|(peer, ..)| peer);
        let channel = NEXT.fetch_add(1, Ordering::Relaxed) % CHANNELS;
        if let Some(peer) = peer {
            let header = [u64::from(channel), u64::from(parts.count), parts.len];
            let header = header.iter().flat_map(|number| number.to_le_bytes()).collect();
            let leaves = submit_data(header)((peer.0, on.comm.collective(), header_tag(tag).0))?;
            let work = Async::new(async { leaves.await.map(|()| Status::EMPTY) });
            task::start(world, Box::new(work));
        }
        let ready = vec![false; parts.count as usize];
        let round = Round { is_active: false, ready, left: 0, flying: Vec::new(), failed: None };
        let own = Arc::new(Outgoing { on, peer, data, parts, channel, round: Mutex::new(round) });
        let side = Side::Out(own.clone());
        Ok(State::Persistent(Persistent::partitioned(side, move || own.start())))
    }

    pub(super) fn on(&self) -> &Named {
        &self.on
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(self: &Arc<Outgoing>) -> Result<State> {
        {
            let mut round = self.round();
            round.is_active = true;
            round.ready.fill(false);
            round.left = self.parts.count as usize;
        }
        Ok(State::Task(task::start(world()?, Box::new(Sending(self.clone()))), self.on.clone()))
    }

    /// These parts may leave.
    ///
    /// # Errors
    /// It is not started, or there is no such part, or it is ready already: then those before it leave.
    pub(crate) fn ready(&self, parts: impl Iterator<Item = i32>) -> Result<()> {
        let (node, context) = (world()?.node(), self.on.comm.collective());
        let mut round = self.round();
        if !round.is_active {
            return Err(not_started());
        }
        for part in parts {
            let index = self.parts.index(part)?;
            if std::mem::replace(&mut round.ready[index], true) {
                return Err(Class::ARG.error(format!("partition {part} was ready before")));
            }
            round.left -= 1;
            let Some(peer) = self.peer else { continue };
            let data = self.data.slice(index as u64 * self.parts.len, self.parts.len);
            let to = (peer, context, part_tag(self.channel, index as u32));
            round.flying.push(node.send_between(&to, &data, STANDARD));
        }
        Ok(())
    }
}

/// A round under way.
struct Sending(Arc<Outgoing>);

impl Round {
    /// Looks which parts have left; true: all have.
    fn go_on(&mut self, engine: &mut Engine) -> bool {
        let Round { flying, failed, .. } = self;
        flying.retain(|&id| {
            let Some(outcome) = engine.take(id) else { return true };
            if let Err(error) = outcome {
                failed.get_or_insert(error);
            }
            false
        });
        self.left == 0 && self.flying.is_empty()
    }
}

impl Work for Sending {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let mut round = self.0.round();
        if !world.node().with(|engine| round.go_on(engine)) {
            return None;
        }
        round.is_active = false;
        Some(round.failed.take().map_or(Ended::well(Status::SENT), |error| sent(world, Err(error))))
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        // A thread of the program that has it waits for the engine.
        let Ok(mut round) = self.0.round.try_lock() else { return Served::Busy };
        let before = round.flying.len();
        // A call explains what has failed.
        if round.go_on(engine) && round.failed.is_none() {
            round.is_active = false;
            return Served::Ended(Ended::well(Status::SENT));
        }
        if before == round.flying.len() { Served::Nothing } else { Served::Moved }
    }
}
