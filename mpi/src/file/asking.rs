//! Accesses of one rank by the owners of regions: messages that ask them, and their answers.
//!
//! If an owner dies, the next one owns its regions, and unanswered requests are sent there again. Data that
//! the dead owner had not written are lost; ranks that notice its death print a warning.

use super::service::{self, Reply};
use super::wire::{answer_tag, data_tag, process};
use super::{File, Kind, background, error_of, lock};
use crate::comm::{FILES, Kept, Way, fill, lend};
use crate::error::{Class, Error, Result};
use newmadeleine::Segments;
use newmadeleine::engine;
use newmadeleine::progress::Outcome;
use newmadeleine::tell_user;
use nmad_file::request::{self, ANSWER, DATA, INLINE};
use nmad_file::{Answer, Ask, Pieces, Request};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Requests that a rank has under way. One alone leaves the owner idle while the data travel.
const AHEAD: usize = 4;
/// A part of an access that one owner does as a whole.
#[derive(Clone)]
struct Part {
    region: u64,
    kind: request::Kind,
    pieces: Pieces,
    memory: Segments,
    releases: bool,
}

/// Why a request has no answer.
enum Failed {
    /// Its owner is gone.
    Gone,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Error(error)
    }
}

/// A request that is under way: the end of the file, as far as the owner knows.
type Asked = Pin<Box<dyn Future<Output = std::result::Result<u64, Failed>> + Send>>;

/// Does an access of this rank by owners: bytes that were moved.
///
/// # Errors
/// An owner could not do it, or all are gone.
pub(super) async fn access(
    file: &Arc<File>,
    kind: Kind,
    (pieces, memory): (&Pieces, &Segments),
) -> Result<u64> {
    let parts = parts(file, kind, pieces, memory);
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
pub(super) async fn end(file: &Arc<File>) -> Result<u64> {
    let layout = file.layout();
    let mut end = file.disk.size().map_err(error_of)?;
    let regions = 0..layout.regions.owners().len() as u64;
    let part = |region| Part {
        region,
        kind: request::Kind::End,
        pieces: Pieces::default(),
        memory: Segments::empty(),
        releases: false,
    };
    let mut asked: VecDeque<(Asked, Part)> = regions.map(part).map(|part| (ask(file, &part), part)).collect();
    let mut failed = None;
    while !asked.is_empty() {
        end = ended(file, asked.pop_front(), &mut failed).await.max(end);
    }
    failed.map_or(Ok(end), Err)
}

/// The parts of an access, in the order of its pieces.
fn parts(file: &File, kind: Kind, pieces: &Pieces, memory: &Segments) -> Vec<Part> {
    let layout = file.layout();
    let kind = if kind == Kind::Write { request::Kind::Write } else { request::Kind::Read };
    let (mut parts, mut done) = (Vec::new(), 0);
    for run in pieces.ascending() {
        for part in layout.regions.divide(&run) {
            let mut begin = done + part.begin;
            for pieces in part.pieces.chunks(DATA) {
                let memory = memory.slice(begin, pieces.len());
                begin += pieces.len();
                parts.push(Part { region: part.region, kind, pieces, memory, releases: false });
            }
        }
        done += run.len();
    }
    if layout.is_atomic && parts.len() > 1 {
        let (kind, memory) = (request::Kind::Hold, Segments::empty());
        if let Some(last) = parts.last_mut() {
            last.releases = true;
        }
        let region = parts[0].region;
        parts.insert(0, Part { region, kind, pieces: Pieces::default(), memory, releases: false });
    }
    parts
}

/// Waits for the end of a request; asks the next owner if that of the request is gone.
async fn ended(file: &Arc<File>, asked: Option<(Asked, Part)>, failed: &mut Option<Error>) -> u64 {
    let Some((mut asked, part)) = asked else { return 0 };
    loop {
        match asked.await {
            Ok(end) => return end,
            Err(Failed::Gone) => asked = ask(file, &part),
            Err(Failed::Error(error)) => {
                failed.get_or_insert(error);
                return 0;
            }
        }
    }
}

/// Asks the owner of a region. The messages are submitted at once.
fn ask(file: &Arc<File>, part: &Part) -> Asked {
    let gone = lock(&file.gone).clone();
    let owner = file.layout().regions.owner_alive(part.region, |rank| !gone.contains(&rank));
    let asked = match owner {
        Some(owner) if owner == file.rank() => Ok(ask_here(file, part)),
        Some(owner) => ask_there(file, owner, part),
        None => Err(all_gone(file)),
    };
    asked.unwrap_or_else(|error| Box::pin(async move { Err(Failed::Error(error)) }))
}

#[cold]
fn all_gone(file: &File) -> Error {
    let text = "all owners of its regions are gone: open it again with the ranks that are left";
    file.error(crate::health::class_of_loss(), text)
}

/// Has this process do it as an owner.
fn ask_here(file: &Arc<File>, part: &Part) -> Asked {
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
    let request = Request { ask, releases: part.releases };
    super::service::serve_here(file, Reply::Here(answer.clone()), request);
    let memory = part.memory.clone();
    let is_read = part.kind == request::Kind::Read;
    Box::pin(async move {
        let answer = background::Answer(answer).await;
        if let (Answer::Done { data, .. }, true) = (&answer, is_read) {
            memory.write(0, data);
        }
        told(answer).map_err(Failed::Error)
    })
}

fn told(answer: Answer) -> Result<u64> {
    match answer {
        Answer::Done { end, .. } => Ok(end),
        Answer::Failed(fault) => Err(error_of(fault)),
    }
}

/// Asks another process.
fn ask_there(file: &Arc<File>, owner: i32, part: &Part) -> Result<Asked> {
    let comm = &file.on.comm;
    let process = process(file, owner)?;
    let id = file.asked.fetch_add(1, Ordering::Relaxed);
    let way = |tag: u64| -> Way { (process, comm.context(), tag) };
    let is_read = part.kind == request::Kind::Read;
    let is_write = part.kind == request::Kind::Write;
    let answer = Kept::new(vec![0; ANSWER]);
    let answered = fill(way(answer_tag(id)), answer.segments())?;
    let filled = if is_read { Some(fill(way(data_tag(id)), part.memory.clone())?) } else { None };
    let mut bytes = request::encode(id, (part.kind, &part.pieces), part.releases);
    let is_far = is_write && part.memory.len() > INLINE;
    if is_write && !is_far {
        part.memory.append_to(&mut bytes);
    }
    let bytes = Kept::new(bytes);
    let sent = lend((process, FILES, service::name(file)), bytes.segments())?;
    let far = if is_far { Some(lend(way(data_tag(id)), part.memory.clone())?) } else { None };
    let file = file.clone();
    Ok(Box::pin(async move {
        // All messages have to end before their memory is used again.
        let mut ends = vec![sent.await?];
        bytes.release();
        for each in far.into_iter().chain(filled) {
            ends.push(each.await?);
        }
        let ended = answered.await?;
        let answer = answer.release();
        ends.push(ended);
        finish(&file, owner, &ends)?;
        let len = ended.map_or(0, |envelope| envelope.len as usize);
        let wrong = || Class::INTERN.error(format!("rank {owner} has sent an answer that is none"));
        let answer = Answer::decode(&answer[..len.min(ANSWER)]).ok_or_else(wrong)?;
        Ok(told(answer)?)
    }))
}

/// Looks whether all messages of a request have ended well.
fn finish(file: &File, owner: i32, ends: &[Outcome]) -> std::result::Result<(), Failed> {
    for end in ends {
        match end {
            Ok(_) => {}
            Err(engine::Error::PeerLost(_)) => {
                if lock(&file.gone).insert(owner) {
                    say_gone(file, owner);
                }
                return Err(Failed::Gone);
            }
            Err(error) => return Err(Failed::Error(crate::comm::failed(*error))),
        }
    }
    Ok(())
}

#[cold]
fn say_gone(file: &File, owner: i32) {
    tell_user(format_args!(
        "nmad: file {}: rank {owner} is gone, which owned regions of the file: what was written there since \
         the last MPI_File_sync may be lost; other ranks own its regions from now on",
        file.disk.path().display()
    ));
}
