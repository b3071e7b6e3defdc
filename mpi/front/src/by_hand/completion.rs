//! Completion of one or some of several requests, and messages that may not be there.

use crate::{Abi, give, take};
use nmad_mpi::Status;
use nmad_mpi::api;
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Comm, Request};

pub(crate) fn improbe<A: Abi>(
    source: i32,
    tag: i32,
    comm: Comm,
    flag: *mut i32,
    message: *mut A::Handle,
    status: Option<&mut Status>,
) -> Result<()> {
    let found = api::improbe(source, tag, comm, status)?;
    give::value(flag, found.is_some().into());
    if let Some(found) = found {
        give::value(message, give::message::<A>(found));
    }
    Ok(())
}

pub(crate) fn waitany<A: Abi>(
    _count: usize,
    requests: &mut [Request],
    index: *mut i32,
    status: Option<&mut Status>,
) -> Result<()> {
    let mut found = 0;
    let answer = api::waitany(requests, &mut found, status);
    give::value(index, found);
    answer
}

/// A request that has failed has ended, unless it only may wait for a failed process.
fn tested(flag: *mut i32, answer: Result<bool>) -> Result<()> {
    let has_ended =
        answer.as_ref().map_or_else(|error| error.class() != Class::PROC_FAILED_PENDING, |ended| *ended);
    give::value(flag, has_ended.into());
    answer.map(drop)
}

#[inline]
pub(crate) fn test<A: Abi>(request: &mut Request, flag: *mut i32, status: Option<&mut Status>) -> Result<()> {
    tested(flag, api::test(request, status))
}

pub(crate) fn testall<A: Abi>(
    _count: usize,
    requests: &mut [Request],
    flag: *mut i32,
    statuses: Option<&mut [Status]>,
) -> Result<()> {
    tested(flag, api::testall(requests, statuses))
}

pub(crate) fn testany<A: Abi>(
    _count: usize,
    requests: &mut [Request],
    index: *mut i32,
    flag: *mut i32,
    status: Option<&mut Status>,
) -> Result<()> {
    let mut found = 0;
    let answer = api::testany(requests, &mut found, status);
    give::value(index, found);
    tested(flag, answer)
}

pub(crate) fn request_get_status_any<A: Abi>(
    _count: usize,
    requests: &[Request],
    index: *mut i32,
    flag: *mut i32,
    status: Option<&mut Status>,
) -> Result<()> {
    let mut found = 0;
    let answer = api::request_get_status_any(requests, &mut found, status);
    give::value(index, found);
    tested(flag, answer)
}

macro_rules! some {
    ($($name:ident($requests:ty);)*) => {$(
        pub(crate) fn $name<A: Abi>(
            incount: usize,
            requests: $requests,
            outcount: *mut i32,
            indices: *mut i32,
            statuses: Option<&mut [Status]>,
        ) -> Result<()> {
            take::places("array_of_indices", indices, incount)?;
            let mut count = 0;
            let mut found = vec![0; incount];
            let answer = api::$name(requests, &mut count, &mut found, statuses);
            give::value(outcount, count);
            // MPI_UNDEFINED is negative: there are none.
            give::list(indices, usize::try_from(count).unwrap_or(0), found, |index| index);
            answer
        }
    )*};
}

some! {
    waitsome(&mut [Request]);
    testsome(&mut [Request]);
    request_get_status_some(&[Request]);
}
