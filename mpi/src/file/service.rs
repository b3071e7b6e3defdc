//! The owner's side of accesses of one rank. The node calls it from any thread that polls the rails:
//! one that waits in MPI, or the helper thread while the program computes. It runs with the node's lock
//! held, so a thread of its own makes the calls of the file system.

use super::background;
use super::wire::{answer_tag, data_tag};
use super::{File, lock};
use crate::comm::{FILES, Kept};
use crate::world::{World, world};
use newmadeleine::Hints;
use newmadeleine::engine::{Claim, Engine, PeerId, RequestId, Segments, Source, Tag, TagMatch};
use newmadeleine::progress::{Served, Service};
use nmad_file::request::{self, Head};
use nmad_file::{Answer, Ask, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

/// The name of the service.
const NAME: &str = "files";
/// Bytes of messages to owners that are received at the same time; further messages stay unreceived.
const ROOM: u64 = 64 << 20;

/// The number of a file in a process: the context of its communicator.
type Name = u64;

/// Where an answer goes.
pub(super) enum Reply {
    /// To a thread of this process.
    Here(Arc<OnceLock<Answer>>),
    /// To another process, under the number of its request; a read is also sent data.
    There { process: u32, id: u32, is_read: bool },
}

/// A message to an owner that is not complete.
struct Coming {
    name: Name,
    process: u32,
    request: RequestId,
    memory: Kept,
    /// Its beginning was received, and data come.
    head: Option<Head>,
}

struct Files {
    served: BTreeMap<Name, Arc<File>>,
    coming: Vec<Coming>,
    /// Answers that the engine reads.
    sending: Vec<(RequestId, Kept)>,
}

static ALL: Mutex<Files> =
    Mutex::new(Files { served: BTreeMap::new(), coming: Vec::new(), sending: Vec::new() });

pub(super) fn name(file: &File) -> Name {
    file.on.comm.context().0.into()
}

/// Serves what other ranks ask of this one from now on.
pub(super) fn begin(world: &World, file: &Arc<File>) {
    let mut twins = Vec::new();
    let is_first = {
        let mut all = lock(&ALL);
        for other in all.served.values().filter(|other| other.disk.is_same(&file.disk)) {
            // A handle does not see data that another handle keeps in memory.
            for each in [other, file] {
                each.is_twice.store(true, Ordering::Relaxed);
            }
            twins.push(other.clone());
        }
        all.served.insert(name(file), file.clone());
        all.served.len() == 1
    };
    twins.iter().for_each(File::settle);
    if is_first {
        world.node().set_service(NAME, Some(Box::new(All::default())));
    }
}

/// Serves a file no more; nobody asks any more.
pub(super) fn end(world: &World, file: &File) {
    let is_last = {
        let mut all = lock(&ALL);
        all.served.remove(&name(file));
        // Requests of processes that have died.
        all.coming.retain(|coming| coming.name != name(file));
        all.served.is_empty()
    };
    // Answers that are still read stay where they are until the next file is served, or forever.
    if is_last {
        world.node().set_service(NAME, None);
    }
}

/// Does what a thread of this process asks of the owner here.
pub(super) fn serve_here(file: &Arc<File>, reply: Reply, request: Request) {
    let from = file.rank() as usize;
    let answers = lock(&file.owner).ask(&file.disk, (from, reply), request);
    deliver(file, answers);
}

/// Sends answers from a thread that does not have the engine.
fn deliver(file: &File, answers: Vec<(Reply, Answer)>) {
    let Ok(world) = world() else { return };
    let is_far = |(reply, _): &(Reply, Answer)| matches!(reply, Reply::There { .. });
    if answers.iter().any(is_far) {
        world.node().submit(|engine| answer_all(engine, file, answers));
    } else {
        answers.into_iter().for_each(|(reply, answer)| answer_here(&reply, answer));
    }
    world.node().rouse();
}

fn answer_here(reply: &Reply, answer: Answer) {
    if let Reply::Here(place) = reply {
        // Each request has one answer.
        let _ = place.set(answer);
    }
}

fn answer_all(engine: &mut Engine, file: &File, answers: Vec<(Reply, Answer)>) {
    let mut all = lock(&ALL);
    for (reply, answer) in answers {
        let Reply::There { process, id, is_read } = reply else {
            answer_here(&reply, answer);
            continue;
        };
        let mut send = |tag: u64, bytes: Vec<u8>| {
            let bytes = Kept::new(bytes);
            let (to, context) = (PeerId(process), file.on.comm.context());
            let request = engine.send(to, context, Tag(tag), bytes.segments(), Hints::default());
            all.sending.push((request, bytes));
        };
        send(answer_tag(id), answer.encode());
        if is_read {
            send(data_tag(id), if let Answer::Done { data, .. } = answer { data } else { Vec::new() });
        }
    }
}

/// Serves all files.
#[derive(Default)]
struct All {
    /// Messages were not complete at the last look.
    is_due: bool,
    /// Failed processes that owners know of.
    failed: usize,
}

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let failed = engine.inspect().failed();
        // Most looks find nothing to do; they take no lock.
        if engine.inspect().unexpected() == 0 && !self.is_due && self.failed == failed.len() {
            return Served::default();
        }
        let mut all = lock(&ALL);
        let lost = all.have(failed.get(self.failed..).unwrap_or_default());
        self.failed = failed.len();
        let worked = all.receive(engine);
        let complete = all.complete(engine);
        let served = Served { worked: worked || !complete.is_empty(), ..Served::default() };
        self.is_due = !all.coming.is_empty();
        // Answers are kept in the list.
        drop(all);
        for (file, process) in lost {
            forget(&file, process);
        }
        for (file, process, head) in complete {
            serve_there(engine, &file, process, head);
        }
        served
    }
}

impl Files {
    /// All files, with each of these processes.
    fn have(&self, failed: &[PeerId]) -> Vec<(Arc<File>, u32)> {
        let of = |peer: &PeerId| {
            let process = peer.0;
            self.served.values().map(move |file| (file.clone(), process))
        };
        failed.iter().flat_map(of).collect()
    }

    /// Receives messages to owners, as far as there is room.
    fn receive(&mut self, engine: &mut Engine) -> bool {
        let before = self.sending.len();
        for (_, bytes) in self.sending.extract_if(.., |(request, _)| engine.take(*request).is_some()) {
            bytes.release();
        }
        let mut room: u64 = self.coming.iter().map(|coming| coming.memory.segments().len()).sum();
        let mut worked = self.sending.len() < before;
        while room < ROOM
            && let Some(claim) = engine.claim(Source::Any, FILES, TagMatch::Any)
        {
            room += claim.envelope.len;
            worked = true;
            self.coming.push(Coming::receive(engine, claim));
        }
        worked
    }

    /// Takes out the requests that are complete, those of one process in the order in which they were made.
    fn complete(&mut self, engine: &mut Engine) -> Vec<(Arc<File>, u32, Head)> {
        let (mut complete, mut waiting) = (Vec::new(), Vec::new());
        let mut behind = BTreeSet::new();
        for coming in std::mem::take(&mut self.coming) {
            let (name, process) = (coming.name, coming.process);
            let Some(file) = self.served.get(&name).cloned() else {
                // Its sender has opened the file, and this process is about to.
                waiting.push(coming);
                continue;
            };
            if behind.contains(&(name, process)) {
                waiting.push(coming);
                continue;
            }
            match coming.advance(engine, &file) {
                Step::Complete(head) => complete.push((file, process, head)),
                Step::Waits(coming) => {
                    behind.insert((name, process));
                    waiting.push(coming);
                }
                Step::Lost => {}
            }
        }
        self.coming = waiting;
        complete
    }
}

/// How far a message to an owner is.
enum Step {
    Complete(Head),
    Waits(Coming),
    /// Its sender is gone, or has sent something that is no request.
    Lost,
}

impl Coming {
    fn receive(engine: &mut Engine, claim: Claim) -> Coming {
        let (process, name) = (claim.envelope.peer.0, claim.envelope.tag.0);
        let memory = Kept::new(vec![0; claim.envelope.len as usize]);
        let request = engine.recv_claimed(claim, memory.segments());
        Coming { name, process, request, memory, head: None }
    }

    fn advance(self, engine: &mut Engine, file: &File) -> Step {
        let Some(outcome) = engine.take(self.request) else { return Step::Waits(self) };
        let (name, process) = (self.name, self.process);
        let bytes = self.memory.release();
        if outcome.is_err() {
            return Step::Lost;
        }
        if let Some(mut head) = self.head {
            if let Ask::Write(_, data) = &mut head.request.ask {
                *data = bytes;
            }
            return Step::Complete(head);
        }
        let Some(head) = request::decode(&bytes) else { return Step::Lost };
        if head.far == 0 {
            return Step::Complete(head);
        }
        let memory = Kept::new(vec![0; head.far as usize]);
        let from = (Source::Peer(PeerId(process)), file.on.comm.context(), Tag(data_tag(head.id)));
        let into: Segments = memory.segments();
        let request = engine.recv(from.0, from.1, TagMatch::Exact(from.2), into);
        Coming { name, process, request, memory, head: Some(head) }.advance(engine, file)
    }
}

/// Does what another process asks of the owner here: at once, if that takes no call of the file system.
fn serve_there(engine: &mut Engine, file: &Arc<File>, process: u32, head: Head) {
    let Some(rank) = file.on.comm.local().rank_of(process) else { return };
    let (from, Head { id, request, .. }) = (rank as usize, head);
    let reply = Reply::There { process, id, is_read: matches!(request.ask, Ask::Read(_)) };
    if file.busy.load(Ordering::Acquire) == 0
        && let Ok(mut owner) = file.owner.try_lock()
        && owner.has_at_hand(from, &request)
    {
        let answers = owner.ask(&file.disk, (from, reply), request);
        drop(owner);
        return answer_all(engine, file, answers);
    }
    by_thread(file, move |file| lock(&file.owner).ask(&file.disk, (from, reply), request));
}

/// Drops the requests of a process that has died.
fn forget(file: &Arc<File>, process: u32) {
    if let Some(rank) = file.on.comm.local().rank_of(process) {
        by_thread(file, move |file| lock(&file.owner).lost(&file.disk, rank as usize));
    }
}

/// Has the thread that calls the file system do something, in order.
fn by_thread(file: &Arc<File>, work: impl FnOnce(&File) -> Vec<(Reply, Answer)> + Send + 'static) {
    let file = file.clone();
    file.busy.fetch_add(1, Ordering::AcqRel);
    background::run(move || {
        let answers = work(&file);
        file.busy.fetch_sub(1, Ordering::AcqRel);
        deliver(&file, answers);
    });
}
