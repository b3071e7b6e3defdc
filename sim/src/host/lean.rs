//! Hosts of runs of which only the time counts: memory that all requests share, and applications that nobody
//! looks after while they compute.

use super::Host;
use crate::buffer::Buffer;
use crate::payload::payload;
use crate::workload::{Op, Plan, What};
use std::rc::Rc;

/// How they differ.
#[derive(Debug, Clone)]
pub(crate) struct Lean {
    /// The memory that all send from, and that all receive into.
    pub(crate) out: Rc<Buffer>,
    pub(crate) into: Rc<Buffer>,
    /// Nobody turns the pump while the application computes: a library without progress of its own.
    pub(crate) sleeps: bool,
}

impl Host {
    /// Has all requests use shared memory; see [`crate::world::World::share_memory`].
    pub(crate) fn set_lean(&mut self, lean: Lean) {
        self.lean = Some(lean);
    }

    /// Whether the application computes, and nobody else looks after the engine.
    pub(super) fn is_asleep(&self) -> bool {
        self.computes() && self.lean.as_ref().is_some_and(|lean| lean.sleeps)
    }

    /// The memory of a request, with its payload if it is a send.
    pub(super) fn memory(&mut self, op: Op, plan: &Plan) -> Buffer {
        let (ask, len) = (&plan.asks[op], plan.len(op) as usize);
        let is_send = matches!(ask.what, What::Send { .. });
        if let Some(lean) = &self.lean {
            return Buffer::within(if is_send { &lean.out } else { &lean.into }, len);
        }
        let mut buffer = Buffer::new(&ask.pieces);
        if is_send {
            payload(op as u64, len, &mut self.scratch);
            buffer.fill(&self.scratch);
        }
        buffer
    }
}
