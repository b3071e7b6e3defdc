//! Messages that are built and taken apart piece by piece: which are under way, by name.

use crate::code::{Answer, Failure, MESSAGE, OK};
use crate::live::SessionPointer;
use crate::message::{Address, CHints, Wanted, check_rank};
use crate::raw::{In, Out};
use crate::session::Handle;
use newmadeleine::engine::{Engine, PeerId, RequestId, Tag};
use newmadeleine::{Segments, SessionError};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages under way in one direction.
pub struct Table<M>(Mutex<Messages<M>>);

struct Messages<M> {
    named: HashMap<u64, Open<M>>,
    last: u64,
}

/// A message, and its pieces that it waits for at its end.
struct Open<M> {
    message: M,
    kept: Vec<RequestId>,
}

impl<M> Default for Table<M> {
    fn default() -> Self {
        Table(Mutex::new(Messages { named: HashMap::new(), last: 0 }))
    }
}

impl<M> Table<M> {
    fn lock(&self) -> MutexGuard<'_, Messages<M>> {
        // The call that panicked reported it; the table itself is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, message: M) -> u64 {
        let mut messages = self.lock();
        messages.last += 1;
        let name = messages.last;
        messages.named.insert(name, Open { message, kept: Vec::new() });
        name
    }

    /// Adds a piece; the caller receives its request, or the message keeps it.
    fn add(&self, name: u64, request: Out<u64>, submit: impl FnOnce(&mut M) -> RequestId) -> Answer {
        let mut messages = self.lock();
        let open = messages.named.get_mut(&name).ok_or_else(|| unknown(name))?;
        let piece = submit(&mut open.message);
        if request.is_null() {
            open.kept.push(piece);
        } else {
            request.set(piece.0);
        }
        Ok(OK)
    }

    fn end(&self, name: u64) -> Result<Open<M>, Failure> {
        self.lock().named.remove(&name).ok_or_else(|| unknown(name))
    }
}

#[cold]
fn unknown(name: u64) -> Failure {
    Failure::new(MESSAGE, format!("message {name} was never begun, or is ended"))
}

/// Waits for the pieces; returns the first failure.
fn wait_kept(handle: &Handle, kept: Vec<RequestId>) -> Answer {
    let ends: Vec<_> = kept.into_iter().map(|piece| handle.end_of(piece)).collect();
    ends.into_iter().collect::<Result<(), Failure>>()?;
    Ok(OK)
}

pub fn begin_packing(session: SessionPointer, to: Address, packing: Out<u64>) -> Answer {
    let (handle, packing) = (session.get()?, packing.required("packing")?);
    let channel = handle.channel(to.context)?;
    let (rank, size) = (to.to, handle.session.size());
    if rank >= size {
        return Err(SessionError::NoSuchRank { rank, size }.into());
    }
    let begin = |engine: &mut Engine| engine.begin_packing(PeerId(rank), channel.context(), Tag(to.tag));
    packing.set(handle.packings.begin(handle.node().with(begin)));
    Ok(OK)
}

pub fn pack(
    session: SessionPointer,
    packing: u64,
    data: Result<Segments, Failure>,
    hints: In<CHints>,
    request: Out<u64>,
) -> Answer {
    let handle = session.get()?;
    let (data, hints) = (data?, hints.hints(handle.rails)?);
    let submit = |message: &mut _| handle.node().submit(|engine| engine.pack(message, data, hints));
    handle.packings.add(packing, request, submit)
}

pub fn end_packing(session: SessionPointer, packing: u64) -> Answer {
    let handle = session.get()?;
    wait_kept(handle, handle.packings.end(packing)?.kept)
}

pub fn begin_unpacking(session: SessionPointer, wanted: Wanted, unpacking: Out<u64>) -> Answer {
    let (handle, unpacking) = (session.get()?, unpacking.required("unpacking")?);
    let channel = wanted.channel(handle)?;
    let (from, tag) = wanted.names()?;
    check_rank(handle, wanted.from)?;
    let begin = |engine: &mut Engine| engine.begin_unpacking(from.into(), channel.context(), tag.into());
    unpacking.set(handle.unpackings.begin(handle.node().with(begin)));
    Ok(OK)
}

pub fn unpack(
    session: SessionPointer,
    unpacking: u64,
    into: Result<Segments, Failure>,
    request: Out<u64>,
) -> Answer {
    let handle = session.get()?;
    let into = into?;
    let submit = |message: &mut _| handle.node().submit(|engine| engine.unpack(message, into));
    handle.unpackings.add(unpacking, request, submit)
}

pub fn end_unpacking(session: SessionPointer, unpacking: u64) -> Answer {
    let handle = session.get()?;
    let Open { message, kept } = handle.unpackings.end(unpacking)?;
    handle.node().with(|engine| engine.end_unpacking(message));
    wait_kept(handle, kept)
}
