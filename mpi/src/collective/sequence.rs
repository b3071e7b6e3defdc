//! Calls that are no schedule of their own, but belong to the sequence of collectives: those that make
//! communicators, and those that this rank refuses because of its arguments.

use super::call::{Call, next_blocking};
use super::settings::settings;
use crate::algorithm::check::{ARGUMENTS, Alike, Form, Operation};
use crate::error::{Class, Error, Result};
use crate::handle::Comm;
use crate::request::wait;
use crate::world::world;

/// In the checking mode, finds out whether all ranks begin the same operation, which is no collective of
/// [`crate::algorithm`], with the same arguments; `checked` is what this rank has made of its own.
///
/// # Errors
/// This rank or another one refuses its arguments, or they differ.
pub(crate) fn announce<T>(
    operation: Operation,
    comm: Comm,
    checked: Result<T>,
    arguments: impl FnOnce(&T) -> [Option<u64>; ARGUMENTS],
) -> Result<T> {
    if !settings().check {
        return checked;
    }
    let checked = checked.map_err(|why| refuse(operation, (Form::Blocking, comm), why))?;
    let call = Call::new(operation, Form::Blocking, comm)?;
    tell(call, Alike { arguments: arguments(&checked), ..Alike::default() })?;
    Ok(checked)
}

/// Exchanges what ranks say about a call, and nothing else.
fn tell(call: Call, alike: Alike) -> Result<()> {
    let (form, nothing) = (call.form(), (std::ptr::null(), std::ptr::null_mut()));
    let ready = call.ready(None, alike, nothing, |_, _, _| Ok(()))?;
    match form {
        Form::Blocking => ready.block(),
        // The ranks that did not refuse go on; they hear of it when they wait.
        _ => wait::free(world()?, &mut ready.begin()?),
    }
}

/// Counts a call that this rank refuses because of its arguments, so that the next one meets that of the
/// other ranks. In the checking mode they learn of it, and refuse theirs. What the call answers.
#[cold]
pub(crate) fn refuse(operation: Operation, (form, comm): (Form, Comm), why: Error) -> Error {
    const OF_ARGUMENTS: [Class; 10] = [
        Class::BUFFER,
        Class::COUNT,
        Class::TYPE,
        Class::ROOT,
        Class::OP,
        Class::ARG,
        Class::RANK,
        Class::GROUP,
        Class::DIMS,
        Class::INFO,
    ];
    let Some(call) = Call::new(operation, form, comm).ok().filter(|_| OF_ARGUMENTS.contains(&why.class()))
    else {
        return why;
    };
    match (settings().check, form) {
        // What the others say changes nothing.
        (true, _) => _ = tell(call, Alike { refused: Some(why.class()), ..Alike::default() }),
        (false, Form::Blocking) => _ = next_blocking(call.on.comm),
        (false, _) => _ = call.on.comm.next_in_background(),
    }
    why
}
