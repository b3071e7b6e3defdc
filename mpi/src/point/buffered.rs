//! Buffered sends: the message is copied into a buffer that the program has attached, and goes from there.

use super::attached::{Attached, Message};
use super::send::{Arguments, STANDARD};
use crate::comm::{self, Communicator, Target};
use crate::error::{Class, Result};
use crate::message;
use crate::world::world;
use newmadeleine::Segments;

/// The buffer of the process; communicators may have their own.
static PROCESS: Attached = Attached::none();

/// Where the messages of a communicator go: to its buffer, to that of its session, or to that of the process.
fn place(comm: &Communicator) -> &Attached {
    let of_session = comm.session().map(|session| session.buffer());
    let own = [Some(comm.buffer()), of_session].into_iter().flatten();
    own.into_iter().find(|place| place.lock().is_some()).unwrap_or(&PROCESS)
}

/// The buffer of the process.
pub(crate) fn process() -> &'static Attached {
    &PROCESS
}

/// Copies a message into the buffer and submits it.
pub(crate) fn bsend((buffer, count, datatype, dest, tag, comm): Arguments) -> Result<()> {
    let comm = comm::lookup(comm)?;
    let data = message::with(dest, buffer, count, datatype)?;
    comm.target(dest, tag)?.map_or(Ok(()), |target| put(comm, target, &data))
}

/// As [`bsend`], with arguments that were looked up.
pub(crate) fn put(comm: &Communicator, (to, context, tag): Target, data: &Segments) -> Result<()> {
    let world = world()?;
    // Messages leave the room that they take.
    world.node().turn();
    let mut place = place(comm).lock();
    let Some(buffer) = &mut *place else {
        return Err(Class::BUFFER.error("no buffer is attached for buffered sends (MPI_Buffer_attach)"));
    };
    let len = data.len() as usize;
    let (offset, copy, own) = buffer.room(world, len)?;
    copy.copy_from(data);
    let hints = comm.hints(STANDARD);
    let id = world.node().submit(|engine| engine.send(to, context, tag, copy, hints));
    buffer.keep(Message { offset, len, own, id });
    Ok(())
}
