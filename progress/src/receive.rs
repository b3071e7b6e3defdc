//! Receives whose thread waits: while it spins it keeps the lock, so that the engine needs no request for
//! them, and it looks where the message comes from.

use crate::apart::Held;
use crate::idle::{self, Stage};
use crate::lock::{Guard, Release};
use crate::locked::{Core, Outcome};
use crate::node::Node;
use crate::shared::Shared;
use nmad_engine::{Context, Met, PeerId, RequestId, Segments, Source, TagMatch, pump};

/// Looks for a packet of one peer alone from one turn of the pump to the next, at most. Where a look costs
/// but a few loads it takes a quarter of the time of a turn, and what else happens waits for half a
/// microsecond. Rails on which it costs more have fewer.
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
        // Nobody else gets the lock while this thread spins.
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
                core.crowd.happened();
            } else if core.crowd.next(self.idle, core.now.since(*active)) != Stage::Spin {
                core.engine.post_expected();
            }
        };
        self.wait_on(core, (active, None), |core| core.take(request)).expect("it waits until there is one")
    }
}

impl Core {
    /// Between two turns of the pump there is one look only, next time: a thread that gives the core away
    /// looks again when it has the core back, and if there is nothing, the core is better given away once
    /// more.
    #[inline]
    pub(crate) fn look_once(&mut self) {
        self.looks = LOOKS - 1;
    }
}

impl Shared {
    /// Looks for what comes from a peer and at nothing else, some times; true: a message has come. False: it
    /// is time to turn the pump.
    #[inline]
    pub(crate) fn look_for(&self, core: &mut Guard<'_, Core>, from: PeerId) -> bool {
        if core.is_shared() {
            // Other threads get the lock while the rails are looked at.
            core.look_once();
        }
        while core.looks < LOOKS {
            core.looks += 1;
            let now = core.now;
            match pump::look_for(&mut Held(core), now, from) {
                // All looks together may have taken long.
                Some(false) => self.forget_time(),
                None => break,
                Some(true) => {
                    // The rail takes sleeping threads for awake, as after a turn.
                    core.is_armed = false;
                    self.forget_time();
                    if core.may_feed() {
                        self.push(core, true);
                    } else if core.engine.has_news() {
                        self.collect(core);
                    }
                    if core.service.is_some() {
                        self.serve(core);
                    }
                    return true;
                }
            }
            idle::look_anew();
        }
        core.looks = 0;
        false
    }
}
