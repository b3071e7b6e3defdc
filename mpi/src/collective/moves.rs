//! Collectives that move blocks of one size: barrier, bcast, gather, scatter, allgather, alltoall.

use super::arguments::{Data, is_in_place, refuse_in_place, role, root as root_of};
use super::call::{Call, Ready};
use super::desk::Key;
use crate::algorithm::allgather::Allgather;
use crate::algorithm::alltoall::Alltoall;
use crate::algorithm::barrier::Barrier;
use crate::algorithm::bcast::Bcast;
use crate::algorithm::board::tiers::Tiers;
use crate::algorithm::board::{Pause, Turn};
use crate::algorithm::check::{Alike, Amount, Form, Operation, Root};
use crate::algorithm::gather::Gather;
use crate::algorithm::inter::{Groups, Role};
use crate::algorithm::place::Buffer;
use crate::algorithm::scatter::Scatter;
use crate::error::Result;
use crate::handle::{Comm, Type};
use crate::memory::{check_buffers, refuse_same};
use newmadeleine::Segments;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

impl Call {
    /// The two groups of an intercommunicator.
    pub(super) fn groups(&self) -> Option<Groups<'_>> {
        self.remote().map(|remote| Groups { local: self.team(), remote })
    }

    pub(super) fn key(&self, root: i32, in_place: bool, data: [Option<Data>; 2]) -> Key {
        let data = data.map(|data| data.and_then(Data::kept));
        Key { operation: self.operation(), in_place, root, data, op: None, pick: self.pick.get() }
    }
}

pub(crate) fn barrier(form: Form, comm: Comm) -> Result<Ready> {
    let call = Call::new(Operation::Barrier, form, comm)?;
    if let Some(way) = call.on_board(&|| Barrier, Some(0), || Ok(Turn::barrier(call.size())))? {
        return Ok(call.done(way));
    }
    if let Some(way) = call.on_boards(&|| Barrier, Some(0), |boards, pause| boards.barrier(pause))? {
        return Ok(call.done(way));
    }
    let key = call.key(0, false, [None, None]);
    call.ready(Some(key), Alike::default(), (null(), null_mut()), |call, context, builder| {
        match call.groups() {
            Some(groups) => groups.barrier(builder),
            None => call.solve(&Barrier, context, builder),
        }
        Ok(())
    })
}

pub(crate) fn bcast(
    form: Form,
    (buffer, count, datatype): (*mut c_void, i64, Type),
    root: i32,
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Bcast, form, comm)?;
    refuse_in_place(buffer, "the buffer")?;
    let data = Data::new(count, datatype)?;
    let role = call.remote().map(|remote| role(remote, root)).transpose()?;
    let rank = if role.is_none() { root_of(&call, root)? } else { 0 };
    let is_bystander = role == Some(Role::Bystander);
    check_buffers((null(), None), (buffer, if is_bystander { None } else { data.first() }))?;
    let spread = || {
        let memory = data.memory(buffer)?;
        Ok(match call.me() == rank {
            true => Turn::spread(rank, Some(memory), (0, Segments::empty())),
            false => Turn::spread(rank, None, (0, memory)),
        })
    };
    let problem = || Bcast { data: data.place(Buffer::Recv), root: rank };
    if let Some(way) = call.on_board(&problem, Some(data.len()), spread)? {
        return Ok(call.done(way));
    }
    let spread = |boards: &mut Tiers, pause: Pause<'_>| boards.bcast(rank, &data.memory(buffer)?, pause);
    if let Some(way) = call.on_boards(&problem, Some(data.len()), spread)? {
        return Ok(call.done(way));
    }
    let amount = if is_bystander { Amount::default() } else { data.amount() };
    let alike = Alike { root: Some(role.map_or(Root::Rank(rank as u32), Root::from)), ..Alike::of(amount) };
    let key = call.key(root, false, [None, Some(data)]);
    call.ready(Some(key), alike, (null(), buffer), |call, context, builder| {
        match (call.groups(), role) {
            (Some(groups), Some(role)) => groups.bcast(role, &problem().data, context, builder),
            _ => call.solve(&problem(), context, builder),
        }
        Ok(())
    })
}

/// The send side of a call: address, count, type.
pub(crate) type Sent = (*const c_void, i64, Type);
/// The receive side.
pub(crate) type Received = (*mut c_void, i64, Type);

/// The two sides, where each counts; their buffers are checked.
#[inline]
fn sides(sent: (bool, Sent), received: (bool, Received)) -> Result<(Option<Data>, Option<Data>)> {
    let (counts, received) = received;
    if counts {
        return both(sent, received).map(|(send, recv)| (send, Some(recv)));
    }
    let send = side(sent)?;
    check_buffers((sent.1.0, send.and_then(Data::first)), (received.0, None))?;
    Ok((send, None))
}

/// The two sides, where the receive side always counts.
#[inline]
fn both(sent: (bool, Sent), (into, count, datatype): Received) -> Result<(Option<Data>, Data)> {
    let (send, recv) = (side(sent)?, Data::new(count, datatype)?);
    check_buffers((sent.1.0, send.and_then(Data::first)), (into, recv.first()))?;
    Ok((send, recv))
}

/// The amounts to check of a block that all ranks have alike.
fn block_of(data: Option<Data>) -> Alike {
    Alike::of(data.map(Data::amount).unwrap_or_default())
}

/// The amounts to check where every rank sends and receives blocks.
fn crossing(call: &Call, send: Option<Data>, recv: Data) -> Alike {
    match (call.remote(), send) {
        (Some(_), Some(send)) => Alike { sent: send.amount(), received: recv.amount(), ..Alike::default() },
        _ => Alike::of(recv.amount()),
    }
}

#[inline]
fn side((counts, (_, count, datatype)): (bool, Sent)) -> Result<Option<Data>> {
    counts.then(|| Data::new(count, datatype)).transpose()
}

pub(crate) fn gather(form: Form, sent: Sent, received: Received, root: i32, comm: Comm) -> Result<Ready> {
    let call = Call::new(Operation::Gather, form, comm)?;
    if let Some(remote) = call.remote() {
        return inter_gather(call, role(remote, root)?, sent, received, root);
    }
    let rank = root_of(&call, root)?;
    let is_root = call.me() == rank;
    let in_place = is_in_place(sent.0);
    if !is_root {
        refuse_in_place(sent.0, "the send buffer of a rank that is not the root")?;
    }
    let (send, recv) = sides((!in_place, sent), (is_root, received))?;
    if let (Some(send), Some(recv)) = (send, recv) {
        refuse_same((sent.0, send.first()), recv.used(received.0, rank))?;
    }
    let block = recv.or(send).map_or(0, Data::len);
    let collect = || {
        let own = match (send, recv) {
            (Some(send), _) => send.memory(sent.0)?,
            (None, recv) => recv.map_or(Ok(Segments::empty()), |recv| recv.block(received.0, rank))?,
        };
        let into = recv.map(|recv| recv.blocks_of(call.size()).memory(received.0)).transpose()?;
        Ok(Turn::collect(call.size(), own, block, into))
    };
    let problem = || Gather {
        send: send.map(|send| send.place(Buffer::Send)),
        recv: recv.map(|recv| recv.blocks(Buffer::Recv)),
        block: Some(block),
        root: rank,
        left: None,
    };
    if let Some(way) = call.on_board(&problem, Some(block), collect)? {
        return Ok(call.done(way));
    }
    let alike = Alike { root: Some(Root::Rank(rank as u32)), ..block_of(recv.or(send)) };
    let key = call.key(root, in_place, [send, recv]);
    call.ready(Some(key), alike, (sent.0, received.0), |call, context, builder| {
        call.solve(&problem(), context, builder);
        Ok(())
    })
}

fn inter_gather(call: Call, role: Role, sent: Sent, received: Received, root: i32) -> Result<Ready> {
    let (send, recv) = sides((matches!(role, Role::Peer(_)), sent), (role == Role::Root, received))?;
    let key = call.key(root, false, [send, recv]);
    let alike = Alike { root: Some(role.into()), ..block_of(send.or(recv)) };
    call.ready(Some(key), alike, (sent.0, received.0), |call, _, builder| {
        let (send, recv) = (send.map(|s| s.place(Buffer::Send)), recv.map(|r| r.blocks(Buffer::Recv)));
        if let Some(groups) = call.groups() {
            groups.gather(role, send.as_ref(), recv.as_ref(), builder);
        }
        Ok(())
    })
}

pub(crate) fn scatter(form: Form, sent: Sent, received: Received, root: i32, comm: Comm) -> Result<Ready> {
    let call = Call::new(Operation::Scatter, form, comm)?;
    if let Some(remote) = call.remote() {
        return inter_scatter(call, role(remote, root)?, sent, received, root);
    }
    let rank = root_of(&call, root)?;
    let is_root = call.me() == rank;
    let in_place = is_in_place(received.0);
    if !is_root {
        refuse_in_place(received.0, "the receive buffer of a rank that is not the root")?;
    }
    let (send, recv) = sides((is_root, sent), (!in_place, received))?;
    if let (Some(send), Some(recv)) = (send, recv) {
        refuse_same(send.used(sent.0, rank), (received.0, recv.first()))?;
    }
    let block = send.or(recv).map_or(0, Data::len);
    let spread = || {
        let all = send.map(|send| send.blocks_of(call.size()).memory(sent.0)).transpose()?;
        let own = recv.map_or(Ok(Segments::empty()), |recv| recv.memory(received.0))?;
        Ok(Turn::spread(rank, all, (call.me() * block as usize, own)))
    };
    let problem = || Scatter {
        send: send.map(|send| send.blocks(Buffer::Send)),
        recv: recv.map(|recv| recv.place(Buffer::Recv)),
        block: Some(block),
        root: rank,
    };
    if let Some(way) = call.on_board(&problem, Some(block.saturating_mul(call.size() as u64)), spread)? {
        return Ok(call.done(way));
    }
    let alike = Alike { root: Some(Root::Rank(rank as u32)), ..block_of(send.or(recv)) };
    let key = call.key(root, in_place, [send, recv]);
    call.ready(Some(key), alike, (sent.0, received.0), |call, context, builder| {
        call.solve(&problem(), context, builder);
        Ok(())
    })
}

fn inter_scatter(call: Call, role: Role, sent: Sent, received: Received, root: i32) -> Result<Ready> {
    let (send, recv) = sides((role == Role::Root, sent), (matches!(role, Role::Peer(_)), received))?;
    let key = call.key(root, false, [send, recv]);
    let alike = Alike { root: Some(role.into()), ..block_of(send.or(recv)) };
    call.ready(Some(key), alike, (sent.0, received.0), |call, _, builder| {
        let (send, recv) = (send.map(|s| s.blocks(Buffer::Send)), recv.map(|r| r.place(Buffer::Recv)));
        if let Some(groups) = call.groups() {
            groups.scatter(role, send.as_ref(), recv.as_ref(), builder);
        }
        Ok(())
    })
}

pub(crate) fn allgather(form: Form, sent: Sent, received: Received, comm: Comm) -> Result<Ready> {
    let call = Call::new(Operation::Allgather, form, comm)?;
    let in_place = is_in_place(sent.0);
    if call.remote().is_some() {
        refuse_in_place(sent.0, "the send buffer on an intercommunicator")?;
    }
    refuse_in_place(received.0, "the receive buffer")?;
    let (send, recv) = both((!in_place, sent), received)?;
    if call.remote().is_none() {
        refuse_same((sent.0, send.and_then(Data::first)), recv.used(received.0, call.me()))?;
    }
    let exchange = || {
        let own = send.map_or_else(|| recv.block(received.0, call.me()), |send| send.memory(sent.0))?;
        let into = recv.blocks_of(call.size()).memory(received.0)?;
        Ok(Turn::exchange(call.size(), own, 0, recv.len(), into))
    };
    let problem =
        || Allgather { send: send.map(|send| send.place(Buffer::Send)), recv: recv.blocks(Buffer::Recv) };
    call.measure(&problem, Some(recv.len()));
    if let Some(way) = call.on_board(&problem, Some(recv.len()), exchange)? {
        return Ok(call.done(way));
    }
    let alike = crossing(&call, send, recv);
    let key = call.key(0, in_place, [send, Some(recv)]);
    call.ready(Some(key), alike, (sent.0, received.0), |call, context, builder| {
        match (call.groups(), problem()) {
            (Some(groups), Allgather { send: Some(send), recv }) => groups.allgather(&send, &recv, builder),
            (_, problem) => call.solve(&problem, context, builder),
        }
        Ok(())
    })
}

pub(crate) fn alltoall(form: Form, sent: Sent, received: Received, comm: Comm) -> Result<Ready> {
    let call = Call::new(Operation::Alltoall, form, comm)?;
    let in_place = is_in_place(sent.0);
    if call.remote().is_some() {
        refuse_in_place(sent.0, "the send buffer on an intercommunicator")?;
    }
    refuse_in_place(received.0, "the receive buffer")?;
    let (send, recv) = both((!in_place, sent), received)?;
    let exchange = || {
        let size = call.size();
        let own = send.map_or((recv, received.0.cast_const()), |send| (send, sent.0));
        let own = own.0.blocks_of(size).memory(own.1)?;
        let from = call.me() * recv.len() as usize;
        Ok(Turn::exchange(size, own, from, recv.len(), recv.blocks_of(size).memory(received.0)?))
    };
    let problem = || Alltoall {
        send: send.map(|send| send.blocks(Buffer::Send)),
        recv: recv.blocks(Buffer::Recv),
        block: Some(recv.len()),
    };
    let len = Some(recv.len().saturating_mul(call.size() as u64));
    call.measure(&problem, len);
    if let Some(way) = call.on_board(&problem, len, exchange)? {
        return Ok(call.done(way));
    }
    let alike = crossing(&call, send, recv);
    let key = call.key(0, in_place, [send, Some(recv)]);
    call.ready(Some(key), alike, (sent.0, received.0), |call, context, builder| {
        match (call.groups(), problem()) {
            (Some(groups), Alltoall { send: Some(send), recv, .. }) => groups.alltoall(&send, &recv, builder),
            (_, problem) => call.solve(&problem, context, builder),
        }
        Ok(())
    })
}
