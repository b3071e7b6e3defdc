//! The failures that this process knows, and its reactions to them. This code runs in a thread that holds
//! the lock of the engine: as a service after each poll of the rails, and when the launcher reports a
//! death. Lock order: first the engine, then [`STATE`].

use super::agreement::{Agreement, Decision, Message, Value};
use super::alert;
use super::message::{AgreementId, Notice};
use super::set::Set;
use crate::comm::{Communicator, FAULTS, Members};
use crate::health::{FAILED, any_failed};
use crate::world::world;
use newmadeleine::engine::{
    Context, Engine, Error, Hints, PeerId, RequestId, Segments, Source, Tag, TagMatch,
};
use newmadeleine::progress::{Served, Service};
use newmadeleine::tell_user;
use nmad_file::Kept;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

static STATE: Mutex<State> = Mutex::new(State {
    comms: Vec::new(),
    failed: Vec::new(),
    reported: Vec::new(),
    confirmed: Vec::new(),
    agreements: BTreeMap::new(),
    deferred: Vec::new(),
    sending: Vec::new(),
    receiving: Vec::new(),
});

/// Bound on stored agreements. A decision is stored for ranks that request it later.
const AGREEMENTS_MAX: usize = 256;

/// Bound on deferred notices. More are dropped.
const DEFERRED_MAX: usize = 4096;

/// Failures, and the communicators and agreements that they affect.
pub(super) struct State {
    comms: Vec<Weak<Communicator>>,
    /// Failed processes, in the order of detection by this process.
    failed: Vec<u32>,
    /// Failed processes that agreements leave out. A process whose links are lost may be alive, and two live
    /// processes must not leave each other out. So within a job the launcher decides: it reports a death, or
    /// ends one of two processes that cannot reach each other. Where it does not report, lost links suffice.
    confirmed: Vec<u32>,
    /// Processes whose failure was reported and that are not in `failed` yet.
    reported: Vec<(u32, Reporter)>,
    agreements: BTreeMap<AgreementId, Running>,
    /// Notices about communicators that this process has not created yet, with their senders.
    deferred: Vec<(u32, Notice)>,
    sending: Vec<(RequestId, Kept)>,
    /// Senders of notices whose receives have not completed.
    receiving: Vec<(u32, RequestId, Kept)>,
}

/// The source of the report of a failure.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reporter {
    Launcher,
    Process(u32),
}

/// An agreement in progress, or a decided one whose decision is stored.
struct Running {
    agreement: Agreement,
    /// Its ranks ([`ranks`]).
    ranks: Arc<Members>,
}

/// Locks the state. A caller that needs the engine must already hold the engine's lock.
pub(super) fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The service that handles notices and failures that the engine has detected.
pub(super) struct Faults;

impl Service for Faults {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let is_quiet = engine.inspect().unexpected() == 0
            && engine.inspect().failed().len() == FAILED.load(Ordering::Relaxed);
        if is_quiet {
            return Served::default();
        }
        let worked = lock().progress(engine);
        Served { worked, waits: false }
    }

    /// After a failure other ranks may request the decision of an agreement at any time.
    fn needs_helper(&self) -> bool {
        any_failed()
    }
}

impl State {
    /// Handles notices that have arrived and failures that the engine has detected; returns whether there
    /// were any.
    pub(super) fn progress(&mut self, engine: &mut Engine) -> bool {
        let mut worked = self.receive_notices(engine);
        while let Some(process) = self.next_failed(engine) {
            worked = true;
            self.on_failed(engine, process);
        }
        engine.discard_closed();
        for (_, data) in self.sending.extract_if(.., |(request, _)| engine.take(*request).is_some()) {
            data.release();
        }
        worked
    }

    /// Marks a process as failed on the report of the launcher or of another process.
    pub(super) fn declare(&mut self, engine: &mut Engine, process: u32, by: Reporter) {
        let why = match by {
            Reporter::Launcher => "the launcher reports its death".into(),
            Reporter::Process(from) => format!("rank {from} reports its failure"),
        };
        if world().is_ok_and(|world| world.session().rank() == process) {
            // The other processes have closed their links to this one, and never open them again.
            tell_user(format_args!(
                "nmad: rank {process}: the other ranks have declared this process dead ({why}) and continue \
                 without it, so it ends now"
            ));
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        if !self.failed.contains(&process) {
            self.reported.push((process, by));
        }
        engine.setup().declare_failed(PeerId(process), &why);
        self.progress(engine);
        self.confirm(engine, process);
    }

    fn next_failed(&mut self, engine: &mut Engine) -> Option<u32> {
        let PeerId(process) = *engine.inspect().failed().get(self.failed.len())?;
        self.failed.push(process);
        FAILED.store(self.failed.len(), Ordering::Relaxed);
        Some(process)
    }

    fn on_failed(&mut self, engine: &mut Engine, process: u32) {
        let reported = self.reported.extract_if(.., |(reported, _)| *reported == process).next();
        // `nmad trace` reads these names.
        let name = match reported {
            Some((_, Reporter::Launcher)) => "rank failed: reported by the launcher",
            Some((_, Reporter::Process(_))) => "rank failed: reported by another rank",
            None => "rank failed: its links are lost",
        };
        trace(name, Some(process));
        let is_reported = alert::is_reported_by_launcher(process);
        for comm in self.live() {
            self.interrupt_collectives(engine, &comm, process);
            if !is_reported {
                self.report_failure(engine, &comm, process);
            }
        }
        if !is_reported {
            self.confirm(engine, process);
        }
        alert::recheck_waits();
    }

    /// Leaves a failed process out of all agreements.
    fn confirm(&mut self, engine: &mut Engine, process: u32) {
        if self.confirmed.contains(&process) {
            return;
        }
        self.confirmed.push(process);
        let ids: Vec<AgreementId> = self.agreements.keys().copied().collect();
        for id in ids {
            let Some(running) = self.agreements.get_mut(&id) else { continue };
            if let Some(rank) = running.ranks.rank_of(process) {
                let out = running.agreement.on_failed(rank as usize);
                self.send_all(engine, id, out);
            }
        }
        alert::recheck_waits();
    }

    /// Ends the receives of collectives on a communicator if the failed process is a member.
    fn interrupt_collectives(&self, engine: &mut Engine, comm: &Communicator, process: u32) {
        if is_member(comm, process) {
            comm.health().mark_broken();
            if !comm.health().is_revoked() {
                engine.close_context(comm.collective(), Error::PeerLost(PeerId(process)));
            }
        }
    }

    /// Registers a new communicator, and applies failures and notices that arrived earlier.
    pub(super) fn watch(&mut self, engine: &mut Engine, comm: &Arc<Communicator>) {
        self.comms.push(Arc::downgrade(comm));
        for process in self.failed.clone() {
            self.interrupt_collectives(engine, comm, process);
        }
        for (from, notice) in std::mem::take(&mut self.deferred) {
            self.handle_notice(engine, from, notice);
        }
    }

    /// Opens the contexts of a number that a new communicator gets, and removes the agreements of the
    /// communicator that had the number before.
    pub(super) fn reset_contexts(&mut self, engine: &mut Engine, number: u32) {
        let contexts = contexts(number);
        contexts.into_iter().for_each(|context| engine.reopen_context(context));
        self.agreements.retain(|id, _| id.0 != contexts[0].0);
    }

    /// Revokes a communicator, and notifies its processes.
    pub(super) fn revoke(&mut self, engine: &mut Engine, comm: &Communicator) {
        if !comm.health().revoke() {
            return;
        }
        trace("communicator revoked", None);
        for context in [comm.context(), comm.collective()] {
            engine.close_context(context, Error::Revoked);
        }
        let notice = Notice::Revoked(comm.context());
        self.send_to_all(engine, comm, &notice);
        alert::recheck_waits();
    }

    /// Contributes to an agreement of a communicator; returns its id.
    pub(super) fn join(&mut self, engine: &mut Engine, comm: &Communicator, value: Value) -> AgreementId {
        let id = (comm.context().0, comm.health().next_agreement());
        self.begin_agreement(comm, id);
        let Some(running) = self.agreements.get_mut(&id) else { return id };
        let out = running.agreement.join(value);
        self.send_all(engine, id, out);
        id
    }

    /// Returns the decision of an agreement; `None` while it is undecided.
    pub(super) fn decision(&mut self, engine: &mut Engine, id: AgreementId) -> Option<Decision> {
        self.progress(engine);
        let decision = self.agreements.get(&id)?.agreement.decision()?.clone();
        // Every survivor has contributed to this agreement, hence has the decision of the one before. No
        // rank requests that again.
        self.agreements.retain(|kept, _| kept.0 != id.0 || kept.1 >= id.1);
        if self.agreements.len() > AGREEMENTS_MAX {
            let is_over = |running: &Running| running.agreement.decision().is_some();
            let oldest = self.agreements.iter().find(|(kept, running)| **kept != id && is_over(running));
            oldest.map(|(kept, _)| *kept).and_then(|kept| self.agreements.remove(&kept));
        }
        Some(decision)
    }

    /// Returns the failed processes of a communicator, in the order of detection, each with its index in
    /// [`State::failed`].
    pub(super) fn failed_of<'a>(&'a self, comm: &'a Communicator) -> impl Iterator<Item = (usize, u32)> + 'a {
        self.failed.iter().copied().enumerate().filter(|(_, process)| is_member(comm, *process))
    }

    /// Returns the ranks of a communicator whose failures the program has acknowledged.
    pub(super) fn acknowledged(&self, comm: &Communicator) -> Set {
        let known = comm.health().acknowledged.load(Ordering::Relaxed);
        ranks_of(&ranks(comm), &self.failed[..known])
    }

    /// Returns all failed processes, in the order of detection by this process.
    pub(super) fn failed(&self) -> &[u32] {
        &self.failed
    }

    /// Returns a failed process that may be the source of a receive on a communicator and whose failure the
    /// program has not acknowledged there.
    pub(super) fn unacknowledged(&self, comm: &Communicator) -> Option<u32> {
        let known = comm.health().acknowledged.load(Ordering::Relaxed);
        let later = self.failed.get(known..)?;
        later.iter().copied().find(|process| comm.peers().rank_of(*process).is_some())
    }

    /// Returns whether a process of a communicator has left the job without failing.
    pub(super) fn has_any_left(&self, engine: &mut Engine, comm: &Communicator) -> bool {
        let has_left = |process: u32| {
            engine.inspect().failure(PeerId(process)).is_some() && !self.failed.contains(&process)
        };
        comm.local().processes().any(has_left)
    }

    fn live(&mut self) -> Vec<Arc<Communicator>> {
        self.comms.retain(|comm| comm.strong_count() > 0);
        self.comms.iter().filter_map(Weak::upgrade).collect()
    }

    fn find_comm(&mut self, context: u32) -> Option<Arc<Communicator>> {
        self.live().into_iter().find(|comm| comm.context().0 == context)
    }

    fn begin_agreement(&mut self, comm: &Communicator, id: AgreementId) {
        if self.agreements.contains_key(&id) {
            return;
        }
        let ranks = ranks(comm);
        let me = world().ok().and_then(|world| ranks.rank_of(world.session().rank())).unwrap_or(0);
        let failed = ranks_of(&ranks, &self.confirmed);
        let agreement = Agreement::new(me as usize, ranks.len() as usize, failed);
        self.agreements.insert(id, Running { agreement, ranks });
    }

    /// Receives and handles notices; returns whether any has arrived.
    fn receive_notices(&mut self, engine: &mut Engine) -> bool {
        while let Some(claim) = engine.claim(Source::Any, FAULTS, TagMatch::Any) {
            let into = Kept::new(vec![0; claim.envelope.len as usize]);
            let request = engine.recv_claimed(claim, into.segments());
            self.receiving.push((claim.envelope.peer.0, request, into));
        }
        let mut arrived = Vec::new();
        for (from, request, into) in std::mem::take(&mut self.receiving) {
            match engine.take(request) {
                None => self.receiving.push((from, request, into)),
                Some(Ok(_)) => arrived.push((from, into.release())),
                Some(Err(_)) => drop(into.release()),
            }
        }
        let any = !arrived.is_empty();
        for (from, bytes) in arrived {
            if let Some(notice) = Notice::decode(&bytes).filter(|_| !self.failed.contains(&from)) {
                self.handle_notice(engine, from, notice);
            }
        }
        any
    }

    fn handle_notice(&mut self, engine: &mut Engine, from: u32, notice: Notice) {
        match &notice {
            Notice::Failed(context, rank) => {
                let Some(comm) = self.find_comm(context.0) else { return self.defer_notice(from, notice) };
                let process = ranks(&comm).world(*rank as i32);
                self.adopt_failures(engine, from, process.as_slice());
            }
            Notice::Revoked(context) => match self.find_comm(context.0) {
                Some(comm) => self.revoke(engine, &comm),
                None => self.defer_notice(from, notice),
            },
            Notice::Agreement(id, bytes) => {
                if !self.agreements.contains_key(id) {
                    let Some(comm) = self.find_comm(id.0) else { return self.defer_notice(from, notice) };
                    self.begin_agreement(&comm, *id);
                }
                self.handle_agreement_message(engine, from, *id, bytes);
            }
        }
    }

    fn defer_notice(&mut self, from: u32, notice: Notice) {
        if self.deferred.len() < DEFERRED_MAX {
            self.deferred.push((from, notice));
        }
    }

    fn handle_agreement_message(&mut self, engine: &mut Engine, from: u32, id: AgreementId, bytes: &[u8]) {
        let Some(Running { agreement, ranks }) = self.agreements.get_mut(&id) else { return };
        let Some(rank) = ranks.rank_of(from) else { return };
        let Some(message) = Message::decode(bytes, ranks.len() as usize) else { return };
        let out = agreement.on_message(rank as usize, message);
        let failed = agreement.failed().iter().filter_map(|rank| ranks.world(rank as i32));
        let failed: Vec<u32> = failed.collect();
        self.send_all(engine, id, out);
        self.adopt_failures(engine, from, &failed);
    }

    /// Marks processes as failed that the process `from` has reported as failed.
    fn adopt_failures(&mut self, engine: &mut Engine, from: u32, failed: &[u32]) {
        for process in failed {
            if !self.confirmed.contains(process) {
                self.declare(engine, *process, Reporter::Process(from));
            }
        }
    }

    fn send_all(&mut self, engine: &mut Engine, id: AgreementId, out: Vec<(usize, Message)>) {
        for (rank, message) in out {
            let process = self.agreements.get(&id).and_then(|running| running.ranks.world(rank as i32));
            if let Some(process) = process {
                self.send(engine, process, &Notice::Agreement(id, message.encode()));
            }
        }
    }

    /// Notifies the processes of a communicator of the failure of one of them.
    fn report_failure(&mut self, engine: &mut Engine, comm: &Communicator, failed: u32) {
        if let Some(rank) = ranks(comm).rank_of(failed) {
            self.send_to_all(engine, comm, &Notice::Failed(comm.context(), rank as u32));
        }
    }

    fn send_to_all(&mut self, engine: &mut Engine, comm: &Communicator, notice: &Notice) {
        ranks(comm).processes().for_each(|process| self.send(engine, process, notice));
    }

    fn send(&mut self, engine: &mut Engine, process: u32, notice: &Notice) {
        let me = world().map_or(u32::MAX, |world| world.session().rank());
        if process == me || self.failed.contains(&process) {
            return;
        }
        let data = Kept::new(notice.encode());
        let segments: Segments = data.segments();
        let request = engine.send(PeerId(process), FAULTS, Tag(0), segments, Hints::default());
        self.sending.push((request, data));
    }
}

/// Records an event in the trace, if the session writes one.
fn trace(what: &'static str, process: Option<u32>) {
    if let Ok(world) = world()
        && let Some(now) = world.session().trace_now()
    {
        world.session().trace_call(what, now, process);
    }
}

/// Returns the point-to-point and the collective context of a communicator with this number.
fn contexts(number: u32) -> [Context; 2] {
    [false, true].map(|is_collective| Context(number << 1 | u32::from(is_collective)))
}

fn is_member(comm: &Communicator, process: u32) -> bool {
    let is_in = |group: &Arc<Members>| group.rank_of(process).is_some();
    is_in(comm.local()) || comm.remote().is_some_and(is_in)
}

/// Returns the processes of a communicator, of both groups if there are two, in an order that is the same in
/// each of them: their ranks in agreements and notices.
pub(super) fn ranks(comm: &Communicator) -> Arc<Members> {
    let Some(remote) = comm.remote() else { return comm.local().clone() };
    let mut both: Vec<u32> = comm.local().processes().chain(remote.processes()).collect();
    both.sort_unstable();
    Arc::new(Members::new(both))
}

/// Returns the ranks of those of these processes that have any.
fn ranks_of(ranks: &Members, processes: &[u32]) -> Set {
    let mut set = Set::none(ranks.len() as usize);
    let found = processes.iter().filter_map(|process| ranks.rank_of(*process));
    found.for_each(|rank| set.add(rank as usize));
    set
}
