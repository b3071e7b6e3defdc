//! Collectives along the edges of a topology.

use super::arguments::{Data, Row, mixed_blocks, refuse_in_place, refuse_inter};
use super::call::{Call, Ready};
use super::moves::{Received, Sent};
use super::vectors::{MixedTable, Table};
use crate::algorithm::check::{Alike, Form, Operation};
use crate::algorithm::neighbor::{self, Neighbors};
use crate::algorithm::place::{Blocks, Buffer, Place};
use crate::error::Result;
use crate::handle::Comm;
use crate::memory::check_places;
use std::ffi::c_void;

// Ranks with other neighbours refuse other arguments, so none looks whether buffers are the same.

/// A call on a communicator with a topology.
fn call(operation: Operation, form: Form, comm: Comm) -> Result<Call> {
    let call = Call::new(operation, form, comm)?;
    refuse_inter(&call)?;
    call.on.comm.neighbors()?;
    Ok(call)
}

impl Call {
    fn edges(&self) -> Result<&Neighbors> {
        self.on.comm.neighbors()
    }

    fn edge_counts(&self) -> Result<(usize, usize)> {
        self.edges().map(|edges| (edges.sources.len(), edges.destinations.len()))
    }
}

fn gathered(
    call: Call,
    (sent, send): (*const c_void, Place),
    (received, recv): (*mut c_void, Blocks),
) -> Result<Ready> {
    refuse_in_place(sent, "the send buffer of a neighbourhood collective")?;
    refuse_in_place(received, "the receive buffer")?;
    let (sources, destinations) = call.edge_counts()?;
    let first = if destinations > 0 { send.first() } else { None };
    check_places((sent, first), (received, recv.first(sources)))?;
    call.ready(None, Alike::default(), (sent, received), |call, _, builder| {
        neighbor::allgather(call.edges()?, &send, &recv, builder);
        Ok(())
    })
}

fn exchanged(
    call: Call,
    (sent, send): (*const c_void, Blocks),
    (received, recv): (*mut c_void, Blocks),
) -> Result<Ready> {
    refuse_in_place(sent, "the send buffer of a neighbourhood collective")?;
    refuse_in_place(received, "the receive buffer")?;
    let (sources, destinations) = call.edge_counts()?;
    check_places((sent, send.first(destinations)), (received, recv.first(sources)))?;
    call.ready(None, Alike::default(), (sent, received), |call, _, builder| {
        neighbor::alltoall(call.edges()?, &send, &recv, builder);
        Ok(())
    })
}

pub(crate) fn allgather(form: Form, sent: Sent, received: Received, comm: Comm) -> Result<Ready> {
    let call = call(Operation::NeighborAllgather, form, comm)?;
    let send = Data::new(sent.1, sent.2)?.place(Buffer::Send);
    let recv = Data::new(received.1, received.2)?.blocks(Buffer::Recv);
    gathered(call, (sent.0, send), (received.0, recv))
}

pub(crate) fn allgatherv(
    form: Form,
    sent: Sent,
    (received, table): (*mut c_void, Table<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = call(Operation::NeighborAllgatherv, form, comm)?;
    let send = Data::new(sent.1, sent.2)?.place(Buffer::Send);
    let recv = Row::new(received, call.edge_counts()?.0, table)?.blocks(Buffer::Recv);
    gathered(call, (sent.0, send), (received, recv))
}

pub(crate) fn alltoall(form: Form, sent: Sent, received: Received, comm: Comm) -> Result<Ready> {
    let call = call(Operation::NeighborAlltoall, form, comm)?;
    let send = Data::new(sent.1, sent.2)?.blocks(Buffer::Send);
    let recv = Data::new(received.1, received.2)?.blocks(Buffer::Recv);
    exchanged(call, (sent.0, send), (received.0, recv))
}

pub(crate) fn alltoallv(
    form: Form,
    (sent, out): (*const c_void, Table<'_>),
    (received, table): (*mut c_void, Table<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = call(Operation::NeighborAlltoallv, form, comm)?;
    let (sources, destinations) = call.edge_counts()?;
    let send = Row::new(sent, destinations, out)?.blocks(Buffer::Send);
    let recv = Row::new(received, sources, table)?.blocks(Buffer::Recv);
    exchanged(call, (sent, send), (received, recv))
}

pub(crate) fn alltoallw(
    form: Form,
    (sent, out): (*const c_void, MixedTable<'_>),
    (received, table): (*mut c_void, MixedTable<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = call(Operation::NeighborAlltoallw, form, comm)?;
    let (sources, destinations) = call.edge_counts()?;
    let send = mixed_blocks(Buffer::Send, destinations, out)?;
    let recv = mixed_blocks(Buffer::Recv, sources, table)?;
    exchanged(call, (sent, send), (received, recv))
}
