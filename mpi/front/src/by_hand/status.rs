//! Statuses: reading and setting their fields.

use crate::{Abi, give};
use nmad_mpi::Status;
use nmad_mpi::error::Result;

pub(crate) fn status_get_source<A: Abi>(status: &Status, source: *mut i32) -> Result<()> {
    give::value(source, A::rank_out(status.source));
    Ok(())
}

pub(crate) fn status_get_tag<A: Abi>(status: &Status, tag: *mut i32) -> Result<()> {
    give::value(tag, A::tag_out(status.tag));
    Ok(())
}

pub(crate) fn test_cancelled<A: Abi>(status: &Status, flag: *mut i32) -> Result<()> {
    give::value(flag, status.cancelled.into());
    Ok(())
}

pub(crate) fn status_set_cancelled<A: Abi>(status: &mut Status, flag: bool) -> Result<()> {
    status.cancelled = flag;
    Ok(())
}

pub(crate) fn status_set_source<A: Abi>(status: &mut Status, source: i32) -> Result<()> {
    status.source = source;
    Ok(())
}

pub(crate) fn status_set_tag<A: Abi>(status: &mut Status, tag: i32) -> Result<()> {
    status.tag = tag;
    Ok(())
}

pub(crate) fn status_get_error<A: Abi>(status: *const A::Status, error: *mut i32) -> Result<()> {
    let mut read = crate::take::read("status", status)?;
    give::value(error, *A::error(&mut read));
    Ok(())
}

pub(crate) fn status_set_error<A: Abi>(status: *mut A::Status, error: i32) -> Result<()> {
    let mut new = crate::take::read("status", status)?;
    *A::error(&mut new) = error;
    give::value(status, new);
    Ok(())
}
