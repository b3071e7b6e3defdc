//! For programs with a loop of their own: progress, and a descriptor to sleep on.

use crate::code::{Answer, BUSY, Failure, OK, PENDING, SYSTEM};
use crate::live::SessionPointer;
use crate::raw::Out;
use newmadeleine::progress::Armed;
use std::ffi::c_int;

fn refused(error: std::io::Error) -> Failure {
    Failure::new(SYSTEM, format!("make a descriptor to wait on: {error}"))
}

pub fn progress(session: SessionPointer) -> Answer {
    Ok(if session.get()?.node().turn() { OK } else { PENDING })
}

pub fn descriptor(session: SessionPointer, fd: Out<c_int>) -> Answer {
    let (handle, fd) = (session.get()?, fd.required("fd")?);
    fd.set(handle.node().descriptor().map_err(refused)?);
    Ok(OK)
}

pub fn arm(session: SessionPointer, timeout_ns: Out<u64>) -> Answer {
    let (handle, timeout_ns) = (session.get()?, timeout_ns.required("timeout_ns")?);
    match handle.node().arm().map_err(refused)? {
        Armed::Busy => Ok(BUSY),
        Armed::Sleep(bound) => {
            timeout_ns.set(bound.as_ns());
            Ok(OK)
        }
    }
}
