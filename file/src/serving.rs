//! The owner's side of accesses of one process: messages that ask the owners in this process, and their
//! answers. It moves no rail and waits for nothing.

use crate::backing::Backing;
use crate::memory::Kept;
use crate::owner::Owner;
use crate::request::{self, Answer, Ask, Head, Request, answer_tag, read_tag, written_tag};
use nmad_engine::{Claim, Claims, Context, PeerId, Port, RequestId, Source, Tag, TagMatch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of messages to owners that are received at the same time; further messages stay unreceived.
const ROOM: u64 = 64 << 20;

/// The number of a file in a process.
pub type Name = u64;

/// Where an answer goes.
pub enum Reply {
    /// To a thread of this process.
    Here(Arc<OnceLock<Answer>>),
    /// To another process, under the number of its request; a read is also sent data.
    There {
        /// The process.
        process: u32,
        /// The number.
        id: u32,
        /// Data follow the answer.
        is_read: bool,
    },
}

impl Reply {
    /// Gives an answer to a thread of this process; false: it has to be sent.
    pub fn give(&self, answer: &Answer) -> bool {
        let Reply::Here(place) = self else { return false };
        // Each request has one answer.
        let _ = place.set(answer.clone());
        true
    }
}

/// The owner of a process. Requests that need no system call run on the receiving thread; all others run on
/// one thread, in order of arrival.
pub struct Desk {
    owner: Mutex<Owner<Reply>>,
    /// Requests that a thread has to do.
    waiting: AtomicUsize,
}

impl Desk {
    /// The desk of an owner.
    pub fn new(owner: Owner<Reply>) -> Desk {
        Desk { owner: Mutex::new(owner), waiting: AtomicUsize::new(0) }
    }

    /// The owner.
    pub fn owner(&self) -> MutexGuard<'_, Owner<Reply>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a request; `keeps` says whether data may stay in memory.
    pub fn ask(
        &self,
        backing: &impl Backing,
        keeps: impl FnOnce() -> bool,
        from: (usize, Reply),
        request: Request,
    ) -> Vec<(Reply, Answer)> {
        let mut owner = self.owner();
        // Asked while this thread has the owner: what is kept is written by a hand-over that comes later.
        owner.cache.set_kept(keeps());
        owner.ask(backing, from, request)
    }

    /// Does a request at once, if nothing is before it and it needs no call of the file system.
    ///
    /// # Errors
    /// A thread has to do it, between [`Desk::enter`] and [`Desk::leave`].
    // The request goes on as it came; a box would cost an allocation each time.
    #[allow(clippy::result_large_err)]
    pub fn at_once(
        &self,
        backing: &impl Backing,
        keeps: impl FnOnce() -> bool,
        (from, reply): (usize, Reply),
        request: Request,
    ) -> Result<Vec<(Reply, Answer)>, (Reply, Request)> {
        if self.waiting.load(Ordering::Acquire) == 0
            && let Ok(mut owner) = self.owner.try_lock()
            && keeps()
            && owner.has_at_hand(from, &request)
        {
            owner.cache.set_kept(true);
            return Ok(owner.ask(backing, (from, reply), request));
        }
        Err((reply, request))
    }

    /// A thread has to do something.
    pub fn enter(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// It was done.
    pub fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A file whose regions this process may own.
pub trait Owned {
    /// The context of its messages.
    fn context(&self) -> Context;
    /// The rank of a process in it.
    fn rank_of(&self, process: u32) -> Option<usize>;
}

/// A request of another process, complete.
pub struct Asked<F> {
    /// The file.
    pub file: Arc<F>,
    /// The rank of the process.
    pub from: usize,
    /// Where the answer goes.
    pub reply: Reply,
    /// The request.
    pub request: Request,
}

/// The messages of other processes to the owners of this one.
pub struct Serving<F> {
    /// The context of requests.
    requests: Context,
    files: BTreeMap<Name, Arc<F>>,
    coming: Vec<Coming>,
    /// Answers that the engine reads.
    sending: Vec<(RequestId, Kept)>,
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

impl<F: Owned> Serving<F> {
    /// No file is served yet; requests come in this context.
    pub const fn new(requests: Context) -> Serving<F> {
        Serving { requests, files: BTreeMap::new(), coming: Vec::new(), sending: Vec::new() }
    }

    /// The files that are served.
    pub fn files(&self) -> impl Iterator<Item = &Arc<F>> {
        self.files.values()
    }

    /// Serves a file from now on.
    pub fn begin(&mut self, name: Name, file: Arc<F>) {
        self.files.insert(name, file);
    }

    /// Serves a file no more; nobody asks any more. True: it was the last one.
    pub fn end(&mut self, name: Name) -> bool {
        self.files.remove(&name);
        // Requests of processes that have died. Answers that are still read stay where they are until the
        // next file is served, or forever.
        self.coming.retain(|coming| coming.name != name);
        self.files.is_empty()
    }

    /// Whether messages are not complete.
    pub fn is_due(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Receives messages to owners, as far as there is room; true: there was something.
    pub fn receive(&mut self, port: &mut impl Claims) -> bool {
        let before = self.sending.len();
        for (_, bytes) in self.sending.extract_if(.., |(request, _)| port.take(*request).is_some()) {
            bytes.release();
        }
        let mut room: u64 = self.coming.iter().map(|coming| coming.memory.segments().len()).sum();
        let mut worked = self.sending.len() < before;
        while room < ROOM
            && let Some(claim) = port.claim((Source::Any, self.requests, TagMatch::Any))
        {
            room += claim.envelope.len;
            worked = true;
            self.coming.push(Coming::receive(port, claim));
        }
        worked
    }

    /// Takes out the requests that are complete, those of one process in the order in which they were made.
    pub fn complete(&mut self, port: &mut impl Port) -> Vec<Asked<F>> {
        let (mut complete, mut waiting) = (Vec::new(), Vec::new());
        let mut behind = BTreeSet::new();
        for coming in std::mem::take(&mut self.coming) {
            let (name, process) = (coming.name, coming.process);
            let Some(file) = self.files.get(&name).cloned() else {
                // Its sender has opened the file, and this process is about to.
                waiting.push(coming);
                continue;
            };
            if behind.contains(&(name, process)) {
                waiting.push(coming);
                continue;
            }
            match coming.advance(port, &*file) {
                Step::Complete(head) => complete.extend(asked(file, process, head)),
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

    /// Sends answers, and gives those that stay in this process.
    pub fn answer(&mut self, port: &mut impl Port, context: Context, answers: Vec<(Reply, Answer)>) {
        for (reply, answer) in answers {
            let Reply::There { process, id, is_read } = reply else {
                reply.give(&answer);
                continue;
            };
            let mut send = |tag: u64, bytes: Vec<u8>| {
                let bytes = Kept::new(bytes);
                match port.send(&(PeerId(process), context, Tag(tag)), &bytes.segments()) {
                    Some(request) => self.sending.push((request, bytes)),
                    None => drop(bytes.release()),
                }
            };
            send(answer_tag(id), answer.encode());
            if is_read {
                send(read_tag(id), if let Answer::Done { data, .. } = answer { data } else { Vec::new() });
            }
        }
    }
}

fn asked<F: Owned>(file: Arc<F>, process: u32, head: Head) -> Option<Asked<F>> {
    let from = file.rank_of(process)?;
    let Head { id, request, .. } = head;
    let reply = Reply::There { process, id, is_read: matches!(request.ask, Ask::Read(_)) };
    Some(Asked { file, from, reply, request })
}

/// How far a message to an owner is.
enum Step {
    Complete(Head),
    Waits(Coming),
    /// Its sender is gone, or has sent something that is no request.
    Lost,
}

impl Coming {
    fn receive(port: &mut impl Claims, claim: Claim) -> Coming {
        let (process, name) = (claim.envelope.peer.0, claim.envelope.tag.0);
        let memory = Kept::new(vec![0; claim.envelope.len as usize]);
        let request = port.receive_claimed(claim, memory.segments());
        Coming { name, process, request, memory, head: None }
    }

    fn advance(self, port: &mut impl Port, file: &impl Owned) -> Step {
        let Some(outcome) = port.take(self.request) else { return Step::Waits(self) };
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
        let tag = TagMatch::Exact(Tag(written_tag(head.id)));
        let request = port.receive((Source::Peer(PeerId(process)), file.context(), tag), memory.segments());
        Coming { name, process, request, memory, head: Some(head) }.advance(port, file)
    }
}
