//! Accesses of one process by the owners of regions: messages that ask them, and their answers.
//!
//! If an owner dies, the next one owns its regions, and unanswered requests are sent there again. Data that
//! the dead owner had not written are lost; processes that notice its death are told ([`Asking::is_gone`]).

use crate::fault::Fault;
use crate::layout::{Kind, Layout};
use crate::memory::Kept;
use crate::piece::Pieces;
use crate::request::{self, ANSWER, Answer, Ask, DATA, INLINE, Request, answer_tag, read_tag, written_tag};
use crate::serving::Reply;
use crate::word::Word;
use nmad_engine::{Error, Outcome, Segments};
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

/// Requests that a process has under way. One alone leaves the owner idle while the data travel.
const AHEAD: usize = 4;

/// Which messages of a file one belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Requests to an owner, which the process takes from all files at once.
    Requests,
    /// Those of the file, by tag.
    Tag(u64),
}

/// Why an access has failed.
#[derive(Debug)]
pub enum Failed {
    /// The system has refused it.
    Fault(Fault),
    /// A message was not carried.
    Message(Error),
    /// All owners of the regions are gone.
    AllGone,
    /// This rank has sent an answer that is none.
    NoAnswer(i32),
}

/// What a process knows of the owners of a file.
#[derive(Default)]
pub struct Owners {
    /// Number of the next request, or of an access that holds an owner.
    asked: AtomicU32,
    /// Owners that are gone.
    gone: Mutex<BTreeSet<i32>>,
}

impl Owners {
    /// A number that no other request under way has; never 0.
    fn next(&self) -> u32 {
        loop {
            let next = self.asked.fetch_add(1, Ordering::Relaxed);
            if next != 0 {
                return next;
            }
        }
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file as a process that accesses it by owners has it.
pub trait Asking: Send + Sync + 'static {
    /// An error of an access.
    type Error: Send + 'static;
    /// The end of a message.
    type Ending: Future<Output = Result<Outcome, Self::Error>> + Send + 'static;

    /// The rank of this process.
    fn rank(&self) -> i32;
    /// The layout in force.
    fn layout(&self) -> Arc<Layout>;
    /// What says how accesses of one process go, if that may change.
    fn word(&self) -> Option<&impl Word>;
    /// What is known of the owners.
    fn owners(&self) -> &Owners;
    /// The length of the file, without what owners have not written.
    ///
    /// # Errors
    /// The system does not say it.
    fn size(&self) -> Result<u64, Fault>;
    /// Sends memory, which stays as it is until the end.
    ///
    /// # Errors
    /// There is no such rank.
    fn send(&self, to: i32, channel: Channel, memory: Segments) -> Result<Self::Ending, Self::Error>;
    /// Receives into memory.
    ///
    /// # Errors
    /// There is no such rank.
    fn receive(&self, from: i32, tag: u64, memory: Segments) -> Result<Self::Ending, Self::Error>;
    /// Has the owner in this process do something, now or later.
    fn serve_here(self: &Arc<Self>, reply: Reply, request: Request);
    /// An owner is gone. Told once.
    fn is_gone(&self, owner: i32);
    /// The error of an access that has failed.
    fn error(&self, why: Failed) -> Self::Error;

    /// Whether accesses of one process go by owners now.
    fn goes_by_owners(&self) -> bool {
        self.layout().by_owners || self.word().is_some_and(Word::has_owners)
    }

    /// Whether the owner in this process keeps in memory what is asked of it now.
    fn keeps(&self) -> bool {
        self.layout().by_owners || self.word().is_some_and(Word::keeps)
    }
}

/// A part of an access that one owner does as a whole.
#[derive(Clone)]
struct Part {
    region: u64,
    kind: request::Kind,
    pieces: Pieces,
    memory: Segments,
    of: request::Part,
}

/// Why a request has no answer.
enum Unanswered<E> {
    /// Its owner is gone.
    Gone,
    Error(E),
}

impl<E> From<E> for Unanswered<E> {
    fn from(error: E) -> Unanswered<E> {
        Unanswered::Error(error)
    }
}

/// A request that is under way: the end of the file, as far as the owner knows.
type Asked<E> = Pin<Box<dyn Future<Output = Result<u64, Unanswered<E>>> + Send>>;

/// Does an access of this process by owners: bytes that were moved.
///
/// # Errors
/// An owner could not do it, or all are gone.
pub async fn access<A: Asking>(
    file: &Arc<A>,
    kind: Kind,
    (pieces, memory): (&Pieces, &Segments),
) -> Result<u64, A::Error> {
    let mut parts = parts(&file.layout(), kind, pieces, memory);
    if file.layout().is_atomic {
        hold(&mut parts, file.owners().next());
    }
    let (mut under_way, mut failed, mut known) = (VecDeque::new(), None, 0);
    for part in parts {
        // The other parts may go to other regions only once the owner is held.
        let must_wait = part.kind == request::Kind::Hold;
        under_way.push_back((ask(file, &part), part));
        while under_way.len() >= AHEAD || must_wait && !under_way.is_empty() {
            known = ended(file, under_way.pop_front(), &mut failed).await.max(known);
        }
    }
    while !under_way.is_empty() {
        known = ended(file, under_way.pop_front(), &mut failed).await.max(known);
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    let hull_end = pieces.hull().map_or(0, |(_, end)| end);
    if kind == Kind::Write || hull_end <= known {
        return Ok(pieces.len());
    }
    // Another owner may know of data further behind.
    Ok(pieces.inside(end(file).await?))
}

/// Where the file ends, with what owners have not written yet.
///
/// # Errors
/// The system does not say it.
pub async fn end<A: Asking>(file: &Arc<A>) -> Result<u64, A::Error> {
    let layout = file.layout();
    let mut end = file.size().map_err(|fault| file.error(Failed::Fault(fault)))?;
    let regions = 0..layout.regions.owners().len() as u64;
    let part = |region| Part {
        region,
        kind: request::Kind::End,
        pieces: Pieces::default(),
        memory: Segments::empty(),
        of: request::Part::default(),
    };
    let mut asked: VecDeque<_> = regions.map(part).map(|part| (ask(file, &part), part)).collect();
    let mut failed = None;
    while !asked.is_empty() {
        end = ended(file, asked.pop_front(), &mut failed).await.max(end);
    }
    failed.map_or(Ok(end), Err)
}

/// The parts of an access, in the order of its pieces.
fn parts(layout: &Layout, kind: Kind, pieces: &Pieces, memory: &Segments) -> Vec<Part> {
    let kind = if kind == Kind::Write { request::Kind::Write } else { request::Kind::Read };
    let (mut parts, mut done) = (Vec::new(), 0);
    for run in pieces.ascending() {
        for part in layout.regions.divide(&run) {
            let mut begin = done + part.begin;
            for pieces in part.pieces.chunks(DATA) {
                let memory = memory.slice(begin, pieces.len());
                begin += pieces.len();
                parts.push(Part { region: part.region, kind, pieces, memory, of: request::Part::default() });
            }
        }
        done += run.len();
    }
    parts
}

/// Has the owner do several parts of an access without one of another access between them.
fn hold(parts: &mut Vec<Part>, access: u32) {
    if parts.len() < 2 {
        return;
    }
    let (kind, pieces, memory) = (request::Kind::Hold, Pieces::default(), Segments::empty());
    let first = Part { region: parts[0].region, kind, pieces, memory, of: request::Part::default() };
    parts.insert(0, first);
    let last = parts.len() - 1;
    for (index, part) in parts.iter_mut().enumerate() {
        part.of = request::Part { access, releases: index == last };
    }
}

/// Waits for the end of a request; asks the next owner if that of the request is gone.
async fn ended<A: Asking>(
    file: &Arc<A>,
    asked: Option<(Asked<A::Error>, Part)>,
    failed: &mut Option<A::Error>,
) -> u64 {
    let Some((mut asked, part)) = asked else { return 0 };
    loop {
        match asked.await {
            Ok(end) => return end,
            Err(Unanswered::Gone) => asked = ask(file, &part),
            Err(Unanswered::Error(error)) => {
                failed.get_or_insert(error);
                return 0;
            }
        }
    }
}

/// Asks the owner of a region. The messages are submitted at once.
fn ask<A: Asking>(file: &Arc<A>, part: &Part) -> Asked<A::Error> {
    let gone = file.owners().gone().clone();
    let owner = file.layout().regions.owner_alive(part.region, |rank| !gone.contains(&rank));
    let asked = match owner {
        Some(owner) if owner == file.rank() => Ok(ask_here(file, part)),
        Some(owner) => ask_there(file, owner, part),
        None => Err(file.error(Failed::AllGone)),
    };
    asked.unwrap_or_else(|error| Box::pin(async move { Err(Unanswered::Error(error)) }))
}

/// Has this process do it as an owner.
fn ask_here<A: Asking>(file: &Arc<A>, part: &Part) -> Asked<A::Error> {
    let ask = match part.kind {
        request::Kind::Write => {
            let mut data = Vec::with_capacity(part.memory.len() as usize);
            part.memory.append_to(&mut data);
            Ask::Write(part.pieces.clone(), data)
        }
        request::Kind::Read => Ask::Read(part.pieces.clone()),
        request::Kind::Hold => Ask::Hold,
        request::Kind::End => Ask::End,
    };
    let answer = Arc::new(OnceLock::new());
    let request = Request { ask, part: part.of };
    file.serve_here(Reply::Here(answer.clone()), request);
    let memory = part.memory.clone();
    let is_read = part.kind == request::Kind::Read;
    let file = file.clone();
    Box::pin(async move {
        let answer = Given(answer).await;
        if let (Answer::Done { data, .. }, true) = (&answer, is_read) {
            memory.write(0, data);
        }
        Ok(told(&*file, answer)?)
    })
}

fn told<A: Asking>(file: &A, answer: Answer) -> Result<u64, A::Error> {
    match answer {
        Answer::Done { end, .. } => Ok(end),
        Answer::Failed(fault) => Err(file.error(Failed::Fault(fault))),
    }
}

/// Asks another process. If a message cannot be submitted, those before it are waited for all the same: the
/// request comes first, so that the owner receives or answers each of them.
fn ask_there<A: Asking>(file: &Arc<A>, owner: i32, part: &Part) -> Result<Asked<A::Error>, A::Error> {
    let id = file.owners().next();
    let is_write = part.kind == request::Kind::Write;
    let mut bytes = request::encode(id, part.kind, &part.pieces, part.of);
    let is_far = is_write && part.memory.len() > INLINE;
    if is_write && !is_far {
        part.memory.append_to(&mut bytes);
    }
    let (bytes, answer) = (Kept::new(bytes), Kept::new(vec![0; ANSWER]));
    let mut ends = vec![file.send(owner, Channel::Requests, bytes.segments())?];
    let submitted = submit_rest(&**file, owner, id, (part, is_far, &answer), &mut ends);
    let file = file.clone();
    Ok(Box::pin(async move {
        // All messages have to end before their memory is used again, also if one has failed.
        let mut outcomes = Vec::with_capacity(ends.len());
        for each in ends {
            outcomes.push(each.await);
        }
        submitted?;
        let outcomes = outcomes.into_iter().collect::<Result<Vec<Outcome>, A::Error>>()?;
        bytes.release();
        let answer = answer.release();
        finish(&*file, owner, &outcomes)?;
        // The answer is the last message.
        let len = outcomes.last().and_then(|last| last.ok()).map_or(0, |envelope| envelope.len as usize);
        let answer = Answer::decode(&answer[..len.min(ANSWER)]);
        let answer = answer.ok_or_else(|| file.error(Failed::NoAnswer(owner)))?;
        Ok(told(&*file, answer)?)
    }))
}

/// Submits the messages that follow a request, the answer last, as far as that is possible.
fn submit_rest<A: Asking>(
    file: &A,
    owner: i32,
    id: u32,
    (part, is_far, answer): (&Part, bool, &Kept),
    ends: &mut Vec<A::Ending>,
) -> Result<(), A::Error> {
    if is_far {
        ends.push(file.send(owner, Channel::Tag(written_tag(id)), part.memory.clone())?);
    }
    if part.kind == request::Kind::Read {
        ends.push(file.receive(owner, read_tag(id), part.memory.clone())?);
    }
    ends.push(file.receive(owner, answer_tag(id), answer.segments())?);
    Ok(())
}

/// Looks whether all messages of a request have ended well.
fn finish<A: Asking>(file: &A, owner: i32, ends: &[Outcome]) -> Result<(), Unanswered<A::Error>> {
    for end in ends {
        match end {
            Ok(_) => {}
            Err(Error::PeerLost(_)) => {
                let is_new = file.owners().gone().insert(owner);
                if is_new {
                    file.is_gone(owner);
                }
                return Err(Unanswered::Gone);
            }
            Err(error) => return Err(Unanswered::Error(file.error(Failed::Message(*error)))),
        }
    }
    Ok(())
}

/// An answer of the owner in this process.
struct Given(Arc<OnceLock<Answer>>);

impl Future for Given {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        self.0.get().map_or(Poll::Pending, |answer| Poll::Ready(answer.clone()))
    }
}

#[cfg(test)]
mod tests;
