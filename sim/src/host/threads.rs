//! The threads of an application: each goes through a script of its own, in turns and for some steps that are
//! drawn; and while a rail works without the engine's lock, one may submit what comes next in its script.

use super::{Host, Mode};
use crate::buffer::Buffer;
use crate::cores::{Meanwhile, Other};
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::workload::{Ask, Op, Plan, Step, What};
use nmad_engine::packet::PeerId;
use nmad_engine::{Context, Engine, Tag};

/// Steps that a thread takes in its turn, at most, where there are others.
const STEPS: u64 = 6;
/// Of a hundred calls of the pump this number let another thread submit something.
const INTRUDES: u64 = 40;

/// A thread of the application.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) mode: Mode,
    pub(super) next_step: usize,
}

/// A thread that is about to submit something, and its memory.
pub(super) struct Intruder {
    thread: usize,
    op: Op,
    buffer: Buffer,
}

impl Host {
    /// All threads of the application have come to their ends.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| matches!(thread.mode, Mode::Done))
    }

    /// What the thread does whose turn it is.
    pub(super) fn mode(&self) -> &Mode {
        &self.threads[self.at].mode
    }

    /// Whether a thread waits in a call.
    pub(super) fn waits(&self) -> bool {
        let waits = |mode: &Mode| !matches!(mode, Mode::Ready | Mode::Computing(_) | Mode::Done);
        self.threads.iter().any(|thread| waits(&thread.mode))
    }

    /// Whether the application computes, and no thread of it makes a call.
    pub(super) fn computes(&self) -> bool {
        let mut left = self.threads.iter().filter(|thread| !matches!(thread.mode, Mode::Done)).peekable();
        left.peek().is_some() && left.all(|thread| matches!(thread.mode, Mode::Computing(_)))
    }

    /// Threads that have computed for long enough go on.
    pub(super) fn end_computing(&mut self, now: u64) {
        for thread in &mut self.threads {
            if matches!(thread.mode, Mode::Computing(until) if until <= now) {
                thread.mode = Mode::Ready;
                self.engine.setup().waits(false);
            }
        }
    }

    /// Each thread goes through its script as far as possible, or for some steps; whether anything was done.
    /// Afterwards it is the turn of one that waits, if there is one.
    pub(super) fn act(&mut self, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<bool, Objection> {
        if self.threads.len() == 1 {
            return self.act_for(usize::MAX, plan, oracle);
        }
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        self.turns.shuffle(&mut order);
        let mut acted = false;
        for &thread in &order {
            self.at = thread;
            let steps = self.turns.range(0, STEPS) as usize;
            acted |= self.act_for(steps, plan, oracle)? | (steps == 0 && self.is_ready(thread));
        }
        let waits = |&&thread: &&usize| matches!(self.threads[thread].mode, Mode::Waiting(..));
        self.at = order.iter().find(waits).copied().unwrap_or(0);
        Ok(acted)
    }

    fn is_ready(&self, thread: usize) -> bool {
        matches!(self.threads[thread].mode, Mode::Ready)
    }

    /// Now and then the next submission of a thread comes while another one uses a rail.
    pub(super) fn expect_intruder(&mut self, plan: &Plan) {
        if self.threads.len() == 1 || !self.turns.percent(INTRUDES) {
            return;
        }
        let next = |thread: usize| plan.script(self.id, thread).get(self.threads[thread].next_step);
        let others = (0..self.threads.len()).filter(|&thread| thread != self.at && self.is_ready(thread));
        let posts = others.filter_map(|thread| match next(thread) {
            Some(&Step::Post(op)) if plan.asks[op].part.is_none() => Some((thread, op)),
            _ => None,
        });
        let posts: Vec<(usize, Op)> = posts.collect();
        if posts.is_empty() {
            return;
        }
        let &(thread, op) = self.turns.pick(&posts);
        let buffer = self.memory(op, plan);
        self.meanwhile = Meanwhile::Waits(Other { submit: submission(&plan.asks[op], &buffer) });
        self.intruder = Some(Intruder { thread, op, buffer });
    }

    /// Enters what has come meanwhile into the books.
    pub(super) fn book_intruder(
        &mut self,
        plan: &Plan,
        oracle: &mut DeliveryOracle,
    ) -> Result<(), Objection> {
        let meanwhile = std::mem::replace(&mut self.meanwhile, Meanwhile::Nobody);
        let (Some(Intruder { thread, op, buffer }), Meanwhile::Came(request, at)) =
            (self.intruder.take(), meanwhile)
        else {
            return Ok(());
        };
        self.threads[thread].next_step += 1;
        self.note(&[29, op as u64], || format!("op {op}: thread {thread} submits it while a rail works"));
        self.book((op, request, at), buffer, plan, oracle)
    }
}

/// Submits what a thread asks for, by way of the window.
fn submission(ask: &Ask, buffer: &Buffer) -> Box<dyn FnOnce(&mut Engine) -> nmad_engine::RequestId> {
    let (memory, what) = (buffer.segments(), ask.what);
    Box::new(move |engine| match what {
        What::Send { to, context, tag, hints } => {
            engine.send(PeerId(to as u32), Context(context), Tag(tag), memory, hints)
        }
        What::Recv { from, context, tag } => {
            let (source, tag) = super::names(from, tag);
            engine.recv(source, Context(context), tag, memory)
        }
    })
}
