//! A run: one execution of a schedule. It asks nobody for a thread; whoever makes progress advances it.

use super::alias;
use super::compare::compare;
use super::memory::{Buffers, Memory};
use super::schedule::{Action, SLOT_BITS, Schedule};
use super::transport::Transport;
use crate::error::{Class, Error, Result};
use nmad_engine::{Error as EngineError, RequestId};
use std::sync::Arc;

/// An execution of a schedule, to be started again and again.
pub struct Run {
    schedule: Arc<Schedule>,
    memory: Memory,
    /// The number of the collective on its communicator, in the upper bits of its tags.
    tag: u64,
    /// What each step still waits for.
    waits: Box<[u32]>,
    /// Steps in the order in which they become ready; each comes here once.
    ready: Vec<u32>,
    /// The next of `ready` to begin.
    next: usize,
    flying: Vec<Flying>,
    /// Steps that have not ended.
    left: usize,
    failure: Option<Error>,
    /// No further step is begun: it ends with what is under way.
    is_abandoned: bool,
}

/// A message under way.
#[derive(Clone, Copy)]
struct Flying {
    request: RequestId,
    step: u32,
}

/// Who advances a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A thread of the program's that is inside a call to the library.
    Program,
    /// A thread of the library's own, on which no function of the program's may be called.
    Library,
}

impl Run {
    /// A run that has not been started.
    pub fn new(schedule: Arc<Schedule>) -> Run {
        let steps = schedule.len();
        Run {
            memory: Memory::new(schedule.scratch()),
            tag: 0,
            waits: vec![0; steps].into(),
            ready: Vec::with_capacity(steps),
            next: 0,
            flying: Vec::new(),
            left: 0,
            failure: None,
            is_abandoned: false,
            schedule,
        }
    }

    /// Its schedule.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// Whether a step may call a function of the program's.
    pub fn calls_user(&self) -> bool {
        self.schedule.calls_user
    }

    /// Says which buffers it works on, which are lent to it while it runs. `sequence` numbers the
    /// collective on its communicator, the same on all ranks. A run that is started again may keep its
    /// number, since messages of one tag stay in order.
    pub fn bind(&mut self, sequence: u64, buffers: Buffers) {
        debug_assert!(self.is_over());
        self.memory.bind(buffers);
        // Numbers come again after 2^34 collectives of a kind; the highest bit marks other messages.
        self.tag = sequence << SLOT_BITS & (u64::MAX >> 1);
    }

    /// Refuses buffers that overlap.
    ///
    /// # Errors
    /// Class BUFFER if they do.
    pub fn check_buffers(&self) -> Result<()> {
        alias::check(&self.schedule, &self.memory)
    }

    /// Begins anew.
    pub fn start(&mut self) {
        debug_assert!(self.is_over());
        (self.next, self.left, self.is_abandoned) = (0, self.schedule.len(), false);
        self.ready.clear();
        for (index, node) in self.schedule.nodes.iter().enumerate() {
            self.waits[index] = node.waits;
            if node.waits == 0 {
                self.ready.push(index as u32);
            }
        }
    }

    /// Does what can be done now. Some: it has ended, and how.
    ///
    /// A run that meets an error goes on, since others wait for its messages; it tells the first error at
    /// its end. A lost rank ends it where the job survives that.
    #[inline]
    pub fn advance(&mut self, transport: &mut impl Transport, caller: Caller) -> Option<Result<()>> {
        self.land(transport);
        while let Some(&step) = self.ready.get(self.next) {
            if self.is_abandoned {
                break;
            }
            if caller == Caller::Library && self.calls_user_in(step) {
                break;
            }
            self.next += 1;
            self.begin(step, transport);
        }
        if self.left > 0 {
            return None;
        }
        Some(self.failure.take().map_or(Ok(()), Err))
    }

    /// How far it has come: steps that were begun, and those that have not ended.
    pub fn place(&self) -> (usize, usize) {
        (self.next, self.left)
    }

    /// Whether it has ended, or was never started.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    fn calls_user_in(&self, step: u32) -> bool {
        self.schedule.calls_user && matches!(self.schedule.nodes[step as usize].action, Action::Reduce { .. })
    }

    /// Looks which messages have ended.
    #[inline]
    fn land(&mut self, transport: &mut impl Transport) {
        let mut index = 0;
        while let Some(&Flying { request, step }) = self.flying.get(index) {
            let Some(outcome) = transport.take(request) else {
                index += 1;
                continue;
            };
            self.flying.swap_remove(index);
            if let Err(error) = self.judge(step, outcome, transport) {
                self.fail(error);
            }
            self.end(step);
        }
        if self.is_abandoned && self.flying.is_empty() {
            (self.left, self.next) = (0, self.ready.len());
        }
    }

    /// A job that survives failures has told all ranks, so that none waits for what is not sent; and it
    /// must not be sent, since it would be wrong and look right.
    #[cold]
    fn fail(&mut self, error: Error) {
        self.is_abandoned |= [Class::PROC_FAILED, Class::REVOKED].contains(&error.class());
        self.failure.get_or_insert(error);
    }

    #[inline]
    fn begin(&mut self, step: u32, transport: &mut impl Transport) {
        let request = match &self.schedule.nodes[step as usize].action {
            Action::Send { to, slot, data } => {
                transport.send(*to, self.tag | u64::from(*slot), self.memory.segments(data))
            }
            Action::Recv { from, slot, into } => {
                Some(transport.recv(*from, self.tag | u64::from(*slot), self.memory.segments(into)))
            }
            Action::Compare { records, seats } => {
                return self.compare(step, compare(self.memory.read(records), seats));
            }
            local => {
                self.memory.work(local, self.schedule.operator());
                return self.end(step);
            }
        };
        match request {
            Some(request) => self.flying.push(Flying { request, step }),
            None => self.end(step),
        }
    }

    /// Ranks that called different collectives find out all together, before any data is sent: none goes
    /// on.
    #[cold]
    fn compare(&mut self, step: u32, verdict: Result<()>) {
        match verdict {
            Ok(()) => self.end(step),
            Err(error) => {
                self.failure.get_or_insert(error);
                (self.left, self.next) = (0, self.ready.len());
            }
        }
    }

    #[inline]
    fn end(&mut self, step: u32) {
        self.left -= 1;
        for &follower in self.schedule.followers(step) {
            let waits = &mut self.waits[follower as usize];
            *waits -= 1;
            if *waits == 0 {
                self.ready.push(follower);
            }
        }
    }

    /// Whether a message was what the step expected.
    #[inline]
    fn judge(
        &self,
        step: u32,
        outcome: std::result::Result<u64, EngineError>,
        transport: &mut impl Transport,
    ) -> Result<()> {
        let action = &self.schedule.nodes[step as usize].action;
        match (outcome, action) {
            (Ok(len), Action::Recv { from, into, .. }) if len != into.len() => {
                Err(self.mismatch(*from, len, into.len()))
            }
            (Ok(_), _) => Ok(()),
            (Err(EngineError::Truncated { envelope, capacity }), Action::Recv { from, .. }) => {
                Err(self.mismatch(*from, envelope.len, capacity))
            }
            (Err(error), _) => Err(transport.explain(error)),
        }
    }

    #[cold]
    fn mismatch(&self, from: u32, sent: u64, expected: u64) -> Error {
        let is_checked = self.schedule.nodes.iter().any(|node| matches!(node.action, Action::Compare { .. }));
        let advice = if is_checked { "" } else { " (NMAD_MPI_CHECK=1 compares them)" };
        Class::TRUNCATE.error(format!(
            "rank {from} sent {sent} B where {expected} B were expected: do all ranks call the same \
             collective with matching counts and datatypes?{advice}"
        ))
    }
}
