//! Workloads: what the applications of a run do, drawn from its seed, free of deadlock by construction.
//!
//! All requests of a run have one common order. Every host goes through it in that order and posts its own,
//! and it blocks only on requests that it has posted. Take the earliest request on which anybody blocks:
//! its partner blocks on nothing earlier, so it has posted or will post its side, and the request ends. Two
//! patterns need more care and get it where they are made: senders to wildcard receives, and receives posted
//! in another order than the sends, are waited for at the end of their act only.
//!
//! Where applications have several threads, the threads of one number have a common order of their own: no
//! receive takes what another thread has sent. They share hosts, rails and links, and one context in which
//! tags tell them apart.

pub mod access;
mod act;
pub mod contexts;
mod exposures;
pub mod files;
mod many;
mod one_sided;
mod packed;
mod pairs;

use crate::scenario::Scenario;
use access::{Access, Number};
use nmad_engine::Hints;
use std::collections::BTreeSet;

/// A request by its place in the plan.
pub type Op = usize;

/// What one request asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which host asks.
    pub host: usize,
    /// Send or receive.
    pub what: What,
    /// Lengths of the pieces of memory.
    pub pieces: Vec<usize>,
    /// It is part of an incremental message.
    pub part: Option<Part>,
}

impl Ask {
    /// The hosts of a message, the lower one first; a receive, which may be from anybody, says nothing.
    pub fn pair(&self) -> Option<(usize, usize)> {
        match self.what {
            What::Send { to, .. } => Some((self.host.min(to), self.host.max(to))),
            What::Recv { .. } => None,
        }
    }
}

/// Part of an incremental message (packed on one side, unpacked on the other).
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Which message, counted over the run.
    pub message: usize,
    /// Its place in its flow.
    pub first: u32,
    /// Which part, from zero.
    pub index: u32,
    /// The last one.
    pub last: bool,
}

/// Send or receive.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// A message.
    Send {
        /// To which host.
        to: usize,
        /// Context.
        context: u32,
        /// Tag.
        tag: u64,
        /// What the scheduler may know.
        hints: Hints,
    },
    /// A receive.
    Recv {
        /// From which host; none: from any.
        from: Option<usize>,
        /// Context.
        context: u32,
        /// Tag; none: any.
        tag: Option<u64>,
    },
}

/// One step of an application.
#[derive(Debug, Clone)]
pub enum Step {
    /// Submits a request.
    Post(Op),
    /// Waits until all of these have ended.
    Wait(Vec<Op>),
    /// Waits until at most this number of these are still under way.
    Drain(Vec<Op>, usize),
    /// Computes for this number of nanoseconds, without a call into the library.
    Compute(u64),
    /// Probes until there is a message that this receive, not yet posted, would take.
    Probe(Op),
    /// Tries to cancel a receive.
    Cancel(Op),
    /// If the first receive ended cancelled, posts the second; else forgets it.
    Again(Op, Op),
    /// Accesses the memory of another host.
    Access(Number),
    /// Waits until all accesses to this host are complete.
    Flush(usize),
    /// Asks for the lock of another host's memory.
    Lock {
        /// Whose.
        target: usize,
        /// Nobody else has it meanwhile.
        alone: bool,
    },
    /// Does a task with a file, to its end.
    File(files::Number),
    /// Waits until all threads of the application are at this step.
    Meet(usize),
    /// Completes all accesses, then gives it back.
    Unlock {
        /// Whose.
        target: usize,
        /// As it was taken.
        alone: bool,
    },
}

/// What the applications of a run do.
#[derive(Debug, Default)]
pub struct Plan {
    /// All requests.
    pub asks: Vec<Ask>,
    /// The steps of each host.
    pub scripts: Vec<Vec<Step>>,
    /// Those of further threads of its application: for each thread, the steps of each host.
    pub further: Vec<Vec<Vec<Step>>>,
    /// All accesses to memory of other hosts.
    pub accesses: Vec<Access>,
    /// Bytes that each host exposes; empty: there is no such memory.
    pub exposes: Vec<u64>,
    /// What happens to files; none: there are none.
    pub files: Option<files::Script>,
    /// Contexts that every host closes when it has the report of a death.
    pub closed: BTreeSet<u32>,
}

impl Plan {
    /// Draws what happens on a stage.
    pub fn draw(scenario: &Scenario) -> Plan {
        let files = scenario.has_files.then(|| files::Script::draw(scenario));
        let mut plan = act::Author::new(scenario, (0, Plan { files, ..Plan::default() })).write();
        for thread in 1..scenario.threads {
            let scripts = std::mem::take(&mut plan.scripts);
            plan = act::Author::new(scenario, (thread, plan)).write();
            let own = std::mem::replace(&mut plan.scripts, scripts);
            plan.further.push(own);
        }
        plan
    }

    /// The steps of a thread of a host; its first has number 0.
    pub fn script(&self, host: usize, thread: usize) -> &[Step] {
        let scripts = if thread == 0 { &self.scripts } else { &self.further[thread - 1] };
        &scripts[host]
    }

    /// Bytes of memory of a request.
    pub fn len(&self, op: Op) -> u64 {
        self.asks[op].pieces.iter().map(|&len| len as u64).sum()
    }
}
