//! Point-to-point messages.

use crate::error::Result;
use crate::handle::{Comm, Message, Request, Type};
use crate::point::send::{self as sending, Arguments, STANDARD, SYNCHRONOUS};
use crate::point::{buffered, pair, persistent, probe as probing, recv as receiving};
use crate::request::{Ended, State};
use crate::status::Status;
use newmadeleine::Hints;
use std::ffi::c_void;

fn bsend_with(arguments: Arguments, _: Hints) -> Result<()> {
    buffered::bsend(arguments)
}

fn ibsend_with(arguments: Arguments, _: Hints) -> Result<Request> {
    buffered::bsend(arguments)?;
    Ok(State::ended(Status::SENT).into_request())
}

fn bsend_init_with(arguments: Arguments, _: Hints) -> Result<Request> {
    persistent::bsend(arguments)
}

macro_rules! sends {
    ($($(#[$doc:meta])* $name:ident = $way:path, $hints:ident -> $answer:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// An argument is wrong, or the receiver is gone.
        #[inline]
        pub fn $name(
            buf: *const c_void,
            count: i64,
            datatype: Type,
            dest: i32,
            tag: i32,
            comm: Comm,
        ) -> Result<$answer> {
            $way((buf, count, datatype, dest, tag, comm), $hints)
        }
    )*};
}

sends! {
    /// `MPI_Send`
    send = sending::send, STANDARD -> ();
    /// `MPI_Ssend`
    ssend = sending::send, SYNCHRONOUS -> ();
    /// `MPI_Rsend`: a receive is posted, the program says; nothing is gained by knowing it.
    rsend = sending::send, STANDARD -> ();
    /// `MPI_Bsend`; an error too if the attached buffer has no room.
    bsend = bsend_with, STANDARD -> ();
    /// `MPI_Isend`
    isend = sending::isend, STANDARD -> Request;
    /// `MPI_Issend`
    issend = sending::isend, SYNCHRONOUS -> Request;
    /// `MPI_Irsend`
    irsend = sending::isend, STANDARD -> Request;
    /// `MPI_Ibsend`; an error too if the attached buffer has no room.
    ibsend = ibsend_with, STANDARD -> Request;
    /// `MPI_Send_init`
    send_init = persistent::send, STANDARD -> Request;
    /// `MPI_Ssend_init`
    ssend_init = persistent::send, SYNCHRONOUS -> Request;
    /// `MPI_Rsend_init`
    rsend_init = persistent::send, STANDARD -> Request;
    /// `MPI_Bsend_init`
    bsend_init = bsend_init_with, STANDARD -> Request;
}

fn tell(ended: Ended, status: Option<&mut Status>) -> Result<()> {
    if let Some(status) = status {
        *status = ended.status;
    }
    ended.answer().map(drop)
}

/// `MPI_Recv`; the status is written with an error too.
///
/// # Errors
/// An argument is wrong, the message is longer than the buffer, or its sender is gone.
#[inline]
pub fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    source: i32,
    tag: i32,
    comm: Comm,
    status: Option<&mut Status>,
) -> Result<()> {
    tell(receiving::recv((buf, count, datatype, source, tag, comm))?, status)
}

/// `MPI_Irecv`
///
/// # Errors
/// An argument is wrong.
#[inline]
pub fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    source: i32,
    tag: i32,
    comm: Comm,
) -> Result<Request> {
    receiving::irecv((buf, count, datatype, source, tag, comm))
}

/// `MPI_Recv_init`
///
/// # Errors
/// An argument is wrong.
pub fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    source: i32,
    tag: i32,
    comm: Comm,
) -> Result<Request> {
    persistent::recv((buf, count, datatype, source, tag, comm))
}

/// `MPI_Sendrecv`
///
/// # Errors
/// As [`send`] and [`recv`].
#[allow(clippy::too_many_arguments)]
pub fn sendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Type,
    dest: i32,
    sendtag: i32,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Type,
    source: i32,
    recvtag: i32,
    comm: Comm,
    status: Option<&mut Status>,
) -> Result<()> {
    let out = (sendbuf, sendcount, sendtype, dest, sendtag, comm);
    let into = (recvbuf.cast_const(), recvcount, recvtype, source, recvtag, comm);
    tell(pair::sendrecv(out, into)?, status)
}

/// `MPI_Sendrecv_replace`
///
/// # Errors
/// As [`send`] and [`recv`].
#[allow(clippy::too_many_arguments)]
pub fn sendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: Comm,
    status: Option<&mut Status>,
) -> Result<()> {
    let buffer = (buf.cast_const(), count, datatype);
    tell(pair::sendrecv_replace(buffer, (dest, sendtag), (source, recvtag), comm)?, status)
}

/// `MPI_Isendrecv`
///
/// # Errors
/// An argument is wrong.
#[allow(clippy::too_many_arguments)]
pub fn isendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Type,
    dest: i32,
    sendtag: i32,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Type,
    source: i32,
    recvtag: i32,
    comm: Comm,
) -> Result<Request> {
    let out = (sendbuf, sendcount, sendtype, dest, sendtag, comm);
    let into = (recvbuf.cast_const(), recvcount, recvtype, source, recvtag, comm);
    pair::isendrecv(out, into).map(State::into_request)
}

/// `MPI_Isendrecv_replace`
///
/// # Errors
/// An argument is wrong.
#[allow(clippy::too_many_arguments)]
pub fn isendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: Comm,
) -> Result<Request> {
    let buffer = (buf.cast_const(), count, datatype);
    pair::isendrecv_replace(buffer, (dest, sendtag), (source, recvtag), comm).map(State::into_request)
}

fn found(found: Option<Status>, status: Option<&mut Status>) -> bool {
    if let (Some(found), Some(status)) = (&found, status) {
        *status = *found;
    }
    found.is_some()
}

/// `MPI_Probe`
///
/// # Errors
/// An argument is wrong, or the sender is gone.
pub fn probe(source: i32, tag: i32, comm: Comm, status: Option<&mut Status>) -> Result<()> {
    found(probing::probe(source, tag, comm, true)?, status);
    Ok(())
}

/// `MPI_Iprobe`: whether there is such a message.
///
/// # Errors
/// An argument is wrong, or the sender is gone.
pub fn iprobe(source: i32, tag: i32, comm: Comm, status: Option<&mut Status>) -> Result<bool> {
    Ok(found(probing::probe(source, tag, comm, false)?, status))
}

/// `MPI_Mprobe`: the message.
///
/// # Errors
/// An argument is wrong, or the sender is gone.
pub fn mprobe(source: i32, tag: i32, comm: Comm, status: Option<&mut Status>) -> Result<Message> {
    let (message, known) = probing::matched(source, tag, comm, true)?.unzip();
    found(known, status);
    Ok(message.unwrap_or(Message::NULL))
}

/// `MPI_Improbe`: the message, if there is one.
///
/// # Errors
/// An argument is wrong, or the sender is gone.
pub fn improbe(source: i32, tag: i32, comm: Comm, status: Option<&mut Status>) -> Result<Option<Message>> {
    let (message, known) = probing::matched(source, tag, comm, false)?.unzip();
    found(known, status);
    Ok(message)
}

/// `MPI_Mrecv`
///
/// # Errors
/// As [`recv`], and there is no such message.
pub fn mrecv(
    buf: *mut c_void,
    count: i64,
    datatype: Type,
    message: &mut Message,
    status: Option<&mut Status>,
) -> Result<()> {
    tell(probing::mrecv(buf, count, datatype, message)?, status)
}

/// `MPI_Imrecv`
///
/// # Errors
/// An argument is wrong.
pub fn imrecv(buf: *mut c_void, count: i64, datatype: Type, message: &mut Message) -> Result<Request> {
    probing::imrecv(buf, count, datatype, message).map(State::into_request)
}
