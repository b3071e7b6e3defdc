//! Messages that are built and taken apart piece by piece.

use crate::code::{Answer, Failure, OK};
use crate::handle::Handle;
use crate::live::SessionPointer;
use crate::message::{Address, CHints, Wanted, check_rank};
use crate::raw::{In, Out};
use crate::table::Open;
use newmadeleine::engine::{Engine, Packing, PeerId, RequestId, Tag, Unpacking};
use newmadeleine::{Segments, SessionError};

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
    packing.set(handle.packings.begin(Packing::new(PeerId(rank), channel.context(), Tag(to.tag))));
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
    let (data, hints) = (data?, hints.hints(handle)?);
    let submit = |message: &mut Packing| handle.node().submit(|engine| message.pack(engine, data, hints));
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
    let begin = |engine: &mut Engine| Unpacking::new(engine, from.into(), channel.context(), tag.into());
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
    let submit = |message: &mut Unpacking| handle.node().submit(|engine| message.unpack(engine, into));
    handle.unpackings.add(unpacking, request, submit)
}

pub fn end_unpacking(session: SessionPointer, unpacking: u64) -> Answer {
    let handle = session.get()?;
    let Open { message, kept } = handle.unpackings.end(unpacking)?;
    handle.node().with(|engine| message.end(engine));
    wait_kept(handle, kept)
}
