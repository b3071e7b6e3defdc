//! The steps of an application that access memory of other hosts.

use super::{Host, Mode};
use crate::buffer::Buffer;
use crate::exposed::{Landed, Windows};
use crate::messages::Calling;
use crate::network::lock;
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::workload::access::Number;
use crate::workload::{Plan, Step};
use nmad_engine::{Instant, pump};

impl Host {
    /// The host exposes memory and accesses that of others.
    pub fn expose(&mut self, windows: Windows) {
        self.windows = Some(windows);
    }

    /// The memory that it exposes.
    pub fn exposed(&self) -> Option<&Buffer> {
        self.windows.as_ref().map(Windows::memory)
    }

    /// Goes through a step; none: it is of another kind.
    pub(super) fn access_step(
        &mut self,
        step: &Step,
        plan: &Plan,
        oracle: &mut DeliveryOracle,
    ) -> Option<Mode> {
        let mode = match *step {
            Step::Access(number) => {
                self.access(number, plan, oracle);
                Mode::Ready
            }
            Step::Flush(target) => {
                Mode::Landing(self.with_windows(|windows, call| windows.flush(target, call)))
            }
            Step::Lock { target, alone } => {
                self.with_windows(|windows, call| windows.lock(target, alone, call));
                Mode::Ready
            }
            Step::Unlock { target, alone } => {
                Mode::Landing(self.with_windows(|windows, call| windows.unlock(target, alone, call)))
            }
            _ => return None,
        };
        self.push();
        Some(mode)
    }

    fn access(&mut self, number: Number, plan: &Plan, oracle: &mut DeliveryOracle) {
        let access = &plan.accesses[number];
        self.note(&[26, number as u64], || {
            format!("access {number} to h{}: {:?}", access.target, access.touch)
        });
        oracle.memory.issued(number);
        self.with_windows(|windows, call| windows.access(number, access, call));
        let mut network = lock(&self.network);
        let call_ns = network.machine.call_ns;
        network.work(self.id, call_ns);
    }

    /// Pushes what was submitted, as the library does, unless it expects a waiting call at once.
    pub(super) fn push(&mut self) {
        if !self.holds_back {
            self.feed(false);
        }
    }

    /// The application waits: what has gathered leaves before the rails are looked at, as in the library.
    pub(super) fn release(&mut self) {
        let now = self.told_time();
        if self.looks && self.engine.has_orders(now) {
            self.feed(true);
        }
    }

    /// Others wait for what was submitted.
    pub(super) fn push_urgently(&mut self) {
        self.feed(true);
    }

    fn feed(&mut self, urgent: bool) {
        let (now, mut clock) = (self.told_time(), self.clock());
        pump::feed(&mut self.node(), now, &mut clock, urgent);
    }

    /// Does what others have asked of the memory of this host; true: there was something.
    pub(super) fn serve(&mut self) -> bool {
        let Some(windows) = &mut self.windows else { return false };
        if !windows.serve(&mut self.engine) {
            return false;
        }
        self.push_urgently();
        true
    }

    /// Whether what was asked of a host is complete.
    pub(super) fn land(&mut self, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<bool, Objection> {
        let Host { windows: Some(windows), engine, threads, at, .. } = self else { return Ok(true) };
        let Mode::Landing(landing) = &mut threads[*at].mode else { return Ok(true) };
        let Some(Landed { target, accesses, failure }) = windows.landed(landing, engine) else {
            return Ok(false);
        };
        self.note(&[27, target as u64, accesses.len() as u64, u64::from(failure.is_some())], || {
            format!("{} accesses to h{target} are complete: {failure:?}", accesses.len())
        });
        let network = lock(&self.network);
        oracle.memory.landed(plan, (self.id, target), accesses, failure, &*network)?;
        Ok(true)
    }

    fn with_windows<R>(&mut self, ask: impl FnOnce(&mut Windows, Calling<'_>) -> R) -> R {
        let mut clock = self.clock();
        let clock: &mut (dyn FnMut() -> Instant + 'static) = &mut clock;
        let (node, windows) = self.parts();
        let windows = windows.as_mut().expect("hosts of a plan with accesses expose memory");
        ask(windows, Calling { node, clock })
    }
}
