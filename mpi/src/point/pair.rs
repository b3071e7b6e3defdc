//! A send and a receive in one call. All arguments are checked before the receive is posted: nobody would
//! wait for it, or for ever, if the send were refused afterwards.

use super::{recv, send};
use crate::algorithm::alias;
use crate::collective::is_checking;
use crate::comm::Named;
use crate::error::Result;
use crate::handle::{Comm, Type};
use crate::memory;
use crate::message;
use crate::request::{Ended, Sender, State, received, sent};
use crate::status::Status;
use crate::task::{self, Async, Ending};
use crate::world::world;
use newmadeleine::Segments;
use std::ffi::c_void;

/// Sends and receives; both go on at once. How the receive ended.
pub(crate) fn sendrecv(out: send::Arguments, into: recv::Arguments) -> Result<Ended> {
    let world = world()?;
    let outgoing = send::ready(out, send::STANDARD)?;
    check_buffers(outgoing.as_ref(), into)?;
    let request = recv::irecv(into)?;
    let outgoing = outgoing.map_or(Ok(()), |ready| send::complete(world, ready, out.5));
    let ended = crate::request::wait::wait_for_recv(world, request)?;
    outgoing.map(|()| ended)
}

/// Sends what is in the buffer and receives into it.
pub(crate) fn sendrecv_replace(
    (buffer, count, datatype): (*const c_void, i64, Type),
    (dest, send_tag): (i32, i32),
    (source, recv_tag): (i32, i32),
    comm: Comm,
) -> Result<Ended> {
    let copy = copy_of(&message::with(dest, buffer, count, datatype)?);
    let out = (copy.as_ptr().cast(), copy.len() as i64, Type::BYTE, dest, send_tag, comm);
    sendrecv(out, (buffer, count, datatype, source, recv_tag, comm))
}

/// As [`sendrecv`], in steps.
pub(crate) fn isendrecv(out: send::Arguments, into: recv::Arguments) -> Result<State> {
    both(out, into, Vec::new())
}

/// As [`sendrecv_replace`], in steps.
pub(crate) fn isendrecv_replace(
    (buffer, count, datatype): (*const c_void, i64, Type),
    (dest, send_tag): (i32, i32),
    (source, recv_tag): (i32, i32),
    comm: Comm,
) -> Result<State> {
    let copy = copy_of(&message::with(dest, buffer, count, datatype)?);
    let out = (copy.as_ptr().cast(), copy.len() as i64, Type::BYTE, dest, send_tag, comm);
    both(out, (buffer, count, datatype, source, recv_tag, comm), copy)
}

fn both(out: send::Arguments, into: recv::Arguments, copy: Vec<u8>) -> Result<State> {
    let (world, comm) = (world()?, Named::of(into.5)?);
    let outgoing = send::ready(out, send::STANDARD)?;
    check_buffers(outgoing.as_ref(), into)?;
    let receive = recv::submit(into, &comm.comm)?;
    let sender = Sender::Any(comm.comm.clone());
    let send = outgoing.and_then(|ready| send::begin(world, &ready));
    let work = Async::new(async move {
        let outgoing = match send {
            Some(id) => sent(self::world()?, Ending(id).await?),
            None => Ended::well(Status::SENT),
        };
        drop(copy);
        let incoming = match receive {
            Some(id) => received(self::world()?, |envelope| sender.rank(envelope), Ending(id).await?),
            None => Ended::well(Status::NO_PROC),
        };
        outgoing.answer()?;
        incoming.answer()
    });
    Ok(State::Task(task::start(world, Box::new(work)), comm))
}

/// In the checking mode, refuses buffers that overlap.
fn check_buffers(outgoing: Option<&send::Ready>, into: recv::Arguments) -> Result<()> {
    let (buffer, count, datatype, source, ..) = into;
    match outgoing {
        Some((_, data, _)) if is_checking() => {
            alias::refuse(std::slice::from_ref(data), &[message::with(source, buffer, count, datatype)?])
        }
        _ => Ok(()),
    }
}

fn copy_of(data: &Segments) -> Vec<u8> {
    let mut copy = vec![0; data.len() as usize];
    memory::contiguous(copy.as_mut_ptr().cast(), copy.len()).copy_from(data);
    copy
}
