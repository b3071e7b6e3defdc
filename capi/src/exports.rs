//! The exported functions, in the order of the header. Each turns its arguments into those of the function
//! that does the work; `unsafe` is the claim that nobody else exports these names.

use crate::code::{self, call};
use crate::live::SessionPointer;
use crate::message::{self, Address, CHints, CMessage, Wanted};
use crate::rails::CRailInfo;
use crate::raw::{Buffer, Data, In, InOut, IoVec, Memory, Out, Text};
use crate::session::{self, Setting};
use crate::strategy;
use crate::wait::{self, FOREVER, NOT_AT_ALL};
use crate::{loops, pieces, rails};
use newmadeleine::plugin::RawStrategy;
use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
extern "C" fn nmad_version(major: Out<c_int>, minor: Out<c_int>, patch: Out<c_int>) -> c_int {
    call("nmad_version", || session::version(major, minor, patch))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_strerror(code: c_int) -> *const c_char {
    code::meaning(code)
}

#[unsafe(no_mangle)]
extern "C" fn nmad_last_error() -> *const c_char {
    code::last()
}

#[unsafe(no_mangle)]
extern "C" fn nmad_open(session: Out<SessionPointer>) -> c_int {
    call("nmad_open", || session::open(In::none(), 0, session))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_open_with(options: In<Setting>, count: usize, session: Out<SessionPointer>) -> c_int {
    call("nmad_open_with", || session::open(options, count, session))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_close(session: SessionPointer) -> c_int {
    call("nmad_close", || session::close(session))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_abort(session: SessionPointer, code: c_int, why: Text) -> c_int {
    call("nmad_abort", || session::abort(session, code, why))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_rank(session: SessionPointer, rank: Out<u32>) -> c_int {
    call("nmad_rank", || session::rank(session, rank))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_size(session: SessionPointer, size: Out<u32>) -> c_int {
    call("nmad_size", || session::size(session, size))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_send(
    session: SessionPointer,
    to: u32,
    context: u32,
    tag: u64,
    data: Memory<Data>,
    len: usize,
    hints: In<CHints>,
) -> c_int {
    call("nmad_send", || message::send(session, Address { to, context, tag }, data.segments(len), hints))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_sendv(
    session: SessionPointer,
    to: u32,
    context: u32,
    tag: u64,
    data: In<IoVec>,
    count: usize,
    hints: In<CHints>,
) -> c_int {
    call("nmad_sendv", || message::send(session, Address { to, context, tag }, data.segments(count), hints))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_recv(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    buffer: Memory<Buffer>,
    capacity: usize,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_recv", || {
        message::recv(session, Wanted { from, context, tag, flags }, buffer.segments(capacity), message)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_recvv(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    buffers: In<IoVec>,
    count: usize,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_recvv", || {
        message::recv(session, Wanted { from, context, tag, flags }, buffers.segments(count), message)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_isend(
    session: SessionPointer,
    to: u32,
    context: u32,
    tag: u64,
    data: Memory<Data>,
    len: usize,
    hints: In<CHints>,
    request: Out<u64>,
) -> c_int {
    call("nmad_isend", || {
        message::isend(session, Address { to, context, tag }, data.segments(len), hints, request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_isendv(
    session: SessionPointer,
    to: u32,
    context: u32,
    tag: u64,
    data: In<IoVec>,
    count: usize,
    hints: In<CHints>,
    request: Out<u64>,
) -> c_int {
    call("nmad_isendv", || {
        message::isend(session, Address { to, context, tag }, data.segments(count), hints, request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_irecv(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    buffer: Memory<Buffer>,
    capacity: usize,
    request: Out<u64>,
) -> c_int {
    call("nmad_irecv", || {
        message::irecv(session, Wanted { from, context, tag, flags }, buffer.segments(capacity), request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_irecvv(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    buffers: In<IoVec>,
    count: usize,
    request: Out<u64>,
) -> c_int {
    call("nmad_irecvv", || {
        message::irecv(session, Wanted { from, context, tag, flags }, buffers.segments(count), request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_probe(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_probe", || message::probe(session, Wanted { from, context, tag, flags }, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_begin_packing(
    session: SessionPointer,
    to: u32,
    context: u32,
    tag: u64,
    packing: Out<u64>,
) -> c_int {
    call("nmad_begin_packing", || pieces::begin_packing(session, Address { to, context, tag }, packing))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_pack(
    session: SessionPointer,
    packing: u64,
    data: Memory<Data>,
    len: usize,
    hints: In<CHints>,
    request: Out<u64>,
) -> c_int {
    call("nmad_pack", || pieces::pack(session, packing, data.segments(len), hints, request))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_end_packing(session: SessionPointer, packing: u64) -> c_int {
    call("nmad_end_packing", || pieces::end_packing(session, packing))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_begin_unpacking(
    session: SessionPointer,
    from: u32,
    context: u32,
    tag: u64,
    flags: u32,
    unpacking: Out<u64>,
) -> c_int {
    call("nmad_begin_unpacking", || {
        pieces::begin_unpacking(session, Wanted { from, context, tag, flags }, unpacking)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nmad_unpack(
    session: SessionPointer,
    unpacking: u64,
    buffer: Memory<Buffer>,
    capacity: usize,
    request: Out<u64>,
) -> c_int {
    call("nmad_unpack", || pieces::unpack(session, unpacking, buffer.segments(capacity), request))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_end_unpacking(session: SessionPointer, unpacking: u64) -> c_int {
    call("nmad_end_unpacking", || pieces::end_unpacking(session, unpacking))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait(session: SessionPointer, request: InOut<u64>, message: Out<CMessage>) -> c_int {
    call("nmad_wait", || wait::one(session, request, FOREVER, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait_for(
    session: SessionPointer,
    request: InOut<u64>,
    timeout_ns: u64,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_wait_for", || wait::one(session, request, timeout_ns, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_test(session: SessionPointer, request: InOut<u64>, message: Out<CMessage>) -> c_int {
    call("nmad_test", || wait::one(session, request, NOT_AT_ALL, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait_any(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    index: Out<usize>,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_wait_any", || wait::any(session, requests, count, FOREVER, index, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait_any_for(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    timeout_ns: u64,
    index: Out<usize>,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_wait_any_for", || wait::any(session, requests, count, timeout_ns, index, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_test_any(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    index: Out<usize>,
    message: Out<CMessage>,
) -> c_int {
    call("nmad_test_any", || wait::any(session, requests, count, NOT_AT_ALL, index, message))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait_all(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    messages: Out<CMessage>,
    codes: Out<c_int>,
) -> c_int {
    call("nmad_wait_all", || wait::all(session, requests, count, FOREVER, messages, codes))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_wait_all_for(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    timeout_ns: u64,
    messages: Out<CMessage>,
    codes: Out<c_int>,
) -> c_int {
    call("nmad_wait_all_for", || wait::all(session, requests, count, timeout_ns, messages, codes))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_test_all(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    messages: Out<CMessage>,
    codes: Out<c_int>,
) -> c_int {
    call("nmad_test_all", || wait::all(session, requests, count, NOT_AT_ALL, messages, codes))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_cancel(session: SessionPointer, request: u64, accepted: Out<c_int>) -> c_int {
    call("nmad_cancel", || wait::cancel(session, request, accepted))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_progress(session: SessionPointer) -> c_int {
    call("nmad_progress", || loops::progress(session))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_set_progress(session: SessionPointer, progress: Text) -> c_int {
    call("nmad_set_progress", || strategy::set_progress(session, progress))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_fd(session: SessionPointer, fd: Out<c_int>) -> c_int {
    call("nmad_fd", || loops::descriptor(session, fd))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_arm(session: SessionPointer, timeout_ns: Out<u64>) -> c_int {
    call("nmad_arm", || loops::arm(session, timeout_ns))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_set_strategy(session: SessionPointer, rank: u32, name: Text) -> c_int {
    call("nmad_set_strategy", || rails::set_strategy(session, rank, name))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_strategy_name(index: usize) -> *const c_char {
    rails::strategy_name(index)
}

#[unsafe(no_mangle)]
extern "C" fn nmad_strategy_number(session: SessionPointer, name: Text, strategy: Out<u32>) -> c_int {
    call("nmad_strategy_number", || strategy::number(session, name, strategy))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_register_strategy(strategy: In<RawStrategy>) -> c_int {
    call("nmad_register_strategy", || strategy::register(strategy))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_set_feed(session: SessionPointer, feed: Text) -> c_int {
    call("nmad_set_feed", || strategy::set_feed(session, feed))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_rail_count(session: SessionPointer, count: Out<u32>) -> c_int {
    call("nmad_rail_count", || rails::count(session, count))
}

#[unsafe(no_mangle)]
extern "C" fn nmad_rail_info(session: SessionPointer, rail: u32, info: Out<CRailInfo>, size: usize) -> c_int {
    call("nmad_rail_info", || rails::info(session, rail, info, size))
}
