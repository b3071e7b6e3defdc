//! Split collective accesses: begun by one call, ended by another. A file has one at a time.

use super::call::{Start, begun, check_together};
use super::{Buffer, Kind, lock, share};
use crate::error::{Class, Result};
use crate::handle;
use crate::request::State;
use crate::request::wait::await_state;
use crate::status::Status;
use crate::world::world;
use std::mem::discriminant;

/// An access that was begun.
pub(super) struct Split {
    kind: Kind,
    start: Start,
    state: State,
}

/// Begins an access.
///
/// # Errors
/// One is under way, or an argument is wrong.
pub(crate) fn begin(file: handle::File, (kind, start): (Kind, Start), buffer: Buffer) -> Result<()> {
    let file = share(file)?;
    check_together(&file, kind, start)?;
    let state = begun(&file, (kind, start), buffer)?;
    *lock(&file.split) = Some(Split { kind, start, state });
    Ok(())
}

/// Ends the access that was begun; of [`Start::At`] any offset stands for all.
///
/// # Errors
/// None is under way, or one of another kind; or it has failed.
pub(crate) fn end(
    file: handle::File,
    (kind, start): (Kind, Start),
    status: Option<&mut Status>,
) -> Result<()> {
    let file = share(file)?;
    let is_it = |split: &mut Split| split.kind == kind && discriminant(&split.start) == discriminant(&start);
    let Some(split) = lock(&file.split).take_if(is_it) else {
        let text = "no split collective access is under way that this call ends: begin one first";
        return Err(file.error(Class::OTHER, text));
    };
    let ended = await_state(world()?, split.state);
    crate::request::wait::tell(ended, status)
}
