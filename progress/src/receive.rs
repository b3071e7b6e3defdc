//! Blocking receives. A thread that spins keeps the lock, so the engine needs no request for the receive,
//! and it polls for packets of the sender.

use crate::apart::Held;
use crate::core_sharing::Stage;
use crate::idle;
use crate::lock::{Guard, Release};
use crate::locked::{Core, Outcome};
use crate::node::Node;
use crate::shared::Shared;
use nmad_engine::{Context, Met, PeerId, RequestId, Segments, Source, TagMatch, pump};

/// Most polls for a packet of one peer between two turns of the pump. Where such a poll costs a few loads
/// it takes a quarter of the time of a turn, and other events are delayed by half a microsecond. Rails with
/// costlier polls use fewer.
const LOOKS: u32 = 32;

impl Node {
    /// Submits a receive.
    #[inline]
    pub fn submit_recv(
        &self,
        (from, context, tag): (Source, Context, TagMatch),
        into: Segments,
    ) -> RequestId {
        self.submit_to(&mut self.shared.lock(), |_, core| core.engine.recv(from, context, tag, into))
    }

    /// Receives a message and waits for it.
    #[inline]
    pub fn recv(&self, (from, context, tag): (Source, Context, TagMatch), into: Segments) -> Outcome {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        let expected = if core.is_shared() { None } else { core.engine.expect(from, context, tag, &into) };
        let Some(peer) = expected else {
            let request = core.engine.recv(from, context, tag, into);
            return self.finish(core, request);
        };
        if core.has_work() {
            self.shared.push(&mut core, true);
        }
        let mut active = None;
        // No other thread gets the lock while this one spins.
        let request = loop {
            match core.engine.met() {
                Met::Message(envelope) => return Ok(envelope),
                Met::Request(request) => break request,
                Met::Not => {}
            }
            let happened = self.shared.look_for(&mut core, peer) || self.shared.turn(&mut core, true);
            let active = active.get_or_insert(core.now);
            if happened {
                *active = core.now;
                core.happened();
                if self.is_turn_over(&core) {
                    core.engine.post_expected();
                }
            } else if self.next_stage(&mut core, *active) != Stage::Spin {
                core.engine.post_expected();
            }
        };
        self.wait_on(core, (active, None), |core| core.take(request)).expect("it waits until there is one")
    }
}

impl Core {
    /// Limits the polls before the next turn of the pump to one. A thread that yielded the core polls once
    /// when it is back; if nothing has come, it should rather yield again.
    #[inline]
    pub(crate) fn look_once(&mut self) {
        self.looks = LOOKS - 1;
    }
}

impl Shared {
    /// Polls for packets of one peer alone, at most LOOKS times; true: a packet has come. False: it is time
    /// to turn the pump.
    #[inline]
    pub(crate) fn look_for(&self, core: &mut Guard<'_, Core>, from: PeerId) -> bool {
        if core.is_shared() {
            // Other threads get the lock during the turn of the pump.
            core.look_once();
        }
        while core.looks < LOOKS {
            core.looks += 1;
            let now = core.now;
            match pump::look_for(&mut Held(core), now, from) {
                // All polls together may have taken long.
                Some(false) => self.forget_time(),
                None => break,
                Some(true) => {
                    // The rail believes now that sleeping threads are awake, as after a turn.
                    self.disarm(core);
                    self.forget_time();
                    if core.may_feed() {
                        self.push(core, true);
                    } else if core.engine.has_news() {
                        self.collect(core);
                    }
                    if !core.services.is_empty() {
                        self.serve(core);
                    }
                    return true;
                }
            }
            idle::end_speculation();
        }
        core.looks = 0;
        false
    }
}
