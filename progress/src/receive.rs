//! Receives whose thread waits: while it spins it keeps the lock, so that the engine needs no request for
//! them.

use crate::idle::Stage;
use crate::node::{Node, Outcome};
use nmad_engine::{Context, Met, RequestId, Segments, Source, TagMatch};

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
        if !core.engine.expect(from, context, tag, &into) {
            let request = core.engine.recv(from, context, tag, into);
            return self.finish(core, request);
        }
        self.shared.push(&mut core, true);
        let mut active = None;
        // Nobody else gets the lock while this thread spins.
        let request = loop {
            match core.engine.met() {
                Met::Message(envelope) => return Ok(envelope),
                Met::Request(request) => break request,
                Met::Not => {}
            }
            let happened = self.shared.turn(&mut core, true);
            let active = active.get_or_insert(core.now);
            if happened {
                *active = core.now;
                core.crowd.happened();
            } else if core.crowd.idle(self.idle).stage(core.now.since(*active)) != Stage::Spin {
                core.engine.post_expected();
            }
        };
        self.wait_on(core, (active, None), |core| core.engine.take(request))
            .expect("it waits until there is one")
    }
}
