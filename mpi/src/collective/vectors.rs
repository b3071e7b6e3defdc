//! Collectives that move blocks of different sizes: gatherv, scatterv, allgatherv, alltoallv, alltoallw.

use super::arguments::{Data, Row, is_in_place, mixed_blocks, refuse_in_place, role, root as root_of};
use super::call::{Call, Ready};
use super::direct::{PART, Parted};
use super::moves::{Received, Sent};
use crate::algorithm::allgather::Allgather;
use crate::algorithm::alltoall::Alltoall;
use crate::algorithm::board::{Board, Ranks, Turn};
use crate::algorithm::check::{Alike, Amount, Form, Operation, Root};
use crate::algorithm::gather::Gather;
use crate::algorithm::inter::Role;
use crate::algorithm::place::{Blocks, Buffer, Spot};
use crate::algorithm::scatter::Scatter;
use crate::error::Result;
use crate::handle::{Comm, Type};
use crate::memory::{Used, check_buffers, check_places, refuse_same};
use newmadeleine::Segments;
use std::ffi::c_void;

/// Counts, displacements in extents, type.
pub(crate) type Table<'a> = (&'a [i64], &'a [i64], Type);
/// Counts, displacements in bytes, types.
pub(crate) type MixedTable<'a> = (&'a [i64], &'a [i64], &'a [Type]);

/// The ranks of a collective with a root, and whether we are the root or one of the others.
struct Part {
    role: Option<Role>,
    rank: usize,
    is_root: bool,
    is_other: bool,
}

fn part(call: &Call, root: i32) -> Result<Part> {
    match call.remote() {
        Some(remote) => {
            let role = role(remote, root)?;
            let (is_root, is_other) = (role == Role::Root, matches!(role, Role::Peer(_)));
            Ok(Part { role: Some(role), rank: 0, is_root, is_other })
        }
        None => {
            let rank = root_of(call, root)?;
            let is_root = call.me() == rank;
            Ok(Part { role: None, rank, is_root, is_other: !is_root })
        }
    }
}

impl Part {
    /// Whether our own block counts: that of every rank of one group, but those in place; that of the group
    /// across from the root.
    fn has_block(&self, in_place: bool) -> bool {
        self.is_other || (self.role.is_none() && !in_place)
    }

    /// The memory of the block of a rank at the root, whose own is in place unless it `has_block`.
    fn block_of(&self, rank: usize, row: Option<Row<'_>>, has_block: bool) -> Result<Segments> {
        let row = row.filter(|_| has_block || rank != self.rank);
        row.map_or(Ok(Segments::empty()), |row| row.memory(rank))
    }

    fn alike(&self) -> Alike {
        let root = self.role.map_or(Root::Rank(self.rank as u32), Root::from);
        Alike { root: Some(root), ..Alike::default() }
    }
}

/// The memory of our own block, unless it is in its place already.
fn own_block(block: Option<Data>, buffer: *const c_void) -> Result<Segments> {
    block.map_or(Ok(Segments::empty()), |block| block.memory(buffer))
}

pub(crate) fn gatherv(
    form: Form,
    sent: Sent,
    (received, table): (*mut c_void, Table<'_>),
    root: i32,
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Gatherv, form, comm)?;
    let part = part(&call, root)?;
    if part.is_other {
        refuse_in_place(sent.0, "the send buffer of a rank that is not the root")?;
    }
    let has_block = part.has_block(is_in_place(sent.0));
    let block = has_block.then(|| Data::new(sent.1, sent.2)).transpose()?;
    let row = part.is_root.then(|| Row::new(received, call.peers(), table)).transpose()?;
    let own = (sent.0, block.and_then(Data::first));
    check_buffers(own, row.map_or((received, None), |row| row.all()))?;
    if let (Some(row), None) = (row, part.role) {
        refuse_same(own, row.used(part.rank))?;
    }
    let short = || Gather { send: None, recv: None, block: Some(PART), root: part.rank, left: None };
    let collect = |board: &mut Board| {
        let into = part.is_root.then_some(|rank| part.block_of(rank, row, has_block));
        board.collect_parts(own_block(block, sent.0)?, into)
    };
    let (root, buffers) = (part.rank, (sent.0, received));
    let messages = || {
        let send = block.map(|data| data.place(Buffer::Send));
        let recv = row.map(|row| row.blocks(Buffer::Recv));
        move |left: Option<Ranks>| Gather { send, recv, block: None, root, left }
    };
    let left = match call.collect_on_board(&short, collect, || call.later(buffers, messages()))? {
        Parted::Here(way) => return Ok(call.done(way)),
        Parted::Left(left) => left,
    };
    call.ready(None, part.alike(), buffers, |call, context, builder| {
        let problem = messages()(left);
        match (call.groups(), part.role) {
            (Some(groups), Some(role)) => {
                groups.gather(role, problem.send.as_ref(), problem.recv.as_ref(), builder);
            }
            _ => call.solve(&problem, context, builder),
        }
        Ok(())
    })
}

pub(crate) fn scatterv(
    form: Form,
    (sent, table): (*const c_void, Table<'_>),
    received: Received,
    root: i32,
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Scatterv, form, comm)?;
    let part = part(&call, root)?;
    if part.is_other {
        refuse_in_place(received.0, "the receive buffer of a rank that is not the root")?;
    }
    let has_block = part.has_block(is_in_place(received.0));
    let row = part.is_root.then(|| Row::new(sent, call.peers(), table)).transpose()?;
    let block = has_block.then(|| Data::new(received.1, received.2)).transpose()?;
    let own = (received.0.cast_const(), block.and_then(Data::first));
    check_buffers(row.map_or((sent, None), |row| row.all()), own)?;
    if let (Some(row), None) = (row, part.role) {
        refuse_same(row.used(part.rank), own)?;
    }
    let short = || Scatter { send: None, recv: None, block: Some(PART), root: part.rank };
    let (root, buffers) = (part.rank, (sent, received.0));
    let spread = |board: &mut Board| {
        let out = |rank| part.block_of(rank, row, has_block);
        board.parts(root..root + 1, out, |_| own_block(block, received.0))
    };
    let messages = || {
        let send = row.map(|row| row.blocks(Buffer::Send));
        let recv = block.map(|data| data.place(Buffer::Recv));
        move |_: Option<Ranks>| Scatter { send, recv, block: None, root }
    };
    if let Parted::Here(way) = call.parts_on_board(&short, spread, || call.later(buffers, messages()))? {
        return Ok(call.done(way));
    }
    call.ready(None, part.alike(), buffers, |call, context, builder| {
        let problem = messages()(None);
        match (call.groups(), part.role) {
            (Some(groups), Some(role)) => {
                groups.scatter(role, problem.send.as_ref(), problem.recv.as_ref(), builder);
            }
            _ => call.solve(&problem, context, builder),
        }
        Ok(())
    })
}

pub(crate) fn allgatherv(
    form: Form,
    sent: Sent,
    (received, table): (*mut c_void, Table<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Allgatherv, form, comm)?;
    let in_place = is_in_place(sent.0);
    if call.remote().is_some() {
        refuse_in_place(sent.0, "the send buffer on an intercommunicator")?;
    }
    refuse_in_place(received, "the receive buffer")?;
    let row = Row::new(received, call.peers(), table)?;
    let own = (!in_place).then(|| Data::new(sent.1, sent.2)).transpose()?;
    let from = (sent.0, own.and_then(Data::first));
    check_buffers(from, row.all())?;
    if call.remote().is_none() {
        refuse_same(from, row.used(call.me()))?;
    }
    let exchange = || {
        let own = own.map_or_else(|| row.memory(call.me()), |own| own.memory(sent.0))?;
        let into = (0..call.size()).map(|rank| row.memory(rank)).collect::<Result<_>>()?;
        Ok(Turn::exchange_rows(own, into))
    };
    let blocks = || (own.map(|data| data.place(Buffer::Send)), row.blocks(Buffer::Recv));
    let problem = || {
        let (send, recv) = blocks();
        Allgather { send, recv }
    };
    if let Some(way) = call.on_board(&problem, Some(row.longest()), exchange)? {
        return Ok(call.done(way));
    }
    let (send, recv) = blocks();
    let len = call.remote().is_none().then(|| recv.total(0..call.peers()));
    let alike = Alike::of(Amount { len, signature: None });
    call.ready(None, alike, (sent.0, received), |call, context, builder| match (call.groups(), &send) {
        (Some(groups), Some(send)) => {
            groups.allgather(send, &recv, builder);
            Ok(())
        }
        _ => {
            call.solve(&Allgather { send, recv }, context, builder);
            Ok(())
        }
    })
}

pub(crate) fn alltoallv(
    form: Form,
    (sent, out): (*const c_void, Table<'_>),
    (received, table): (*mut c_void, Table<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Alltoallv, form, comm)?;
    let send = (!is_in_place(sent)).then(|| Row::new(sent, call.peers(), out)).transpose()?;
    let recv = Row::new(received, call.peers(), table)?;
    check_exchange(&call, (send.map_or((sent, None), |row| row.all()), recv.all()), out == table)?;
    let (size, buffers) = (call.size(), (sent, received));
    let short = || {
        let recv = Blocks::rows(Spot::start(Buffer::Recv), std::iter::repeat_n(PART, size));
        Alltoall { send: None, recv, block: Some(PART) }
    };
    let blocks = || (send.map(|row| row.blocks(Buffer::Send)), recv.blocks(Buffer::Recv));
    let messages = || {
        let (send, recv) = blocks();
        move |_: Option<Ranks>| Alltoall { send, recv, block: None }
    };
    if let Some(send) = send {
        let parts =
            |board: &mut Board| board.parts(0..size, |rank| send.memory(rank), |rank| recv.memory(rank));
        if let Parted::Here(way) = call.parts_on_board(&short, parts, || call.later(buffers, messages()))? {
            return Ok(call.done(way));
        }
    }
    let (send, recv) = blocks();
    exchange(call, (sent, send), (received, recv))
}

pub(crate) fn alltoallw(
    form: Form,
    (sent, out): (*const c_void, MixedTable<'_>),
    (received, table): (*mut c_void, MixedTable<'_>),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Alltoallw, form, comm)?;
    let send = match is_in_place(sent) {
        true => None,
        false => Some(mixed_blocks(Buffer::Send, call.peers(), out)?),
    };
    let recv = mixed_blocks(Buffer::Recv, call.peers(), table)?;
    let first = |blocks: &Blocks| blocks.first(call.peers());
    let places = ((sent, send.as_ref().and_then(first)), (received.cast_const(), first(&recv)));
    check_exchange(&call, places, out == table)?;
    exchange(call, (sent, send), (received, recv))
}

/// Checks the buffers, and the offsets at which data begins in them. With tables that differ, the ranks have
/// not the same blocks at the same places: then none looks whether the buffers are the same.
fn check_exchange(call: &Call, (from, into): (Used, Used), is_one_table: bool) -> Result<()> {
    if call.remote().is_some() {
        refuse_in_place(from.0, "the send buffer on an intercommunicator")?;
    }
    refuse_in_place(into.0, "the receive buffer")?;
    if is_one_table { check_buffers(from, into) } else { check_places(from, into) }
}

fn exchange(
    call: Call,
    (sent, send): (*const c_void, Option<Blocks>),
    (received, recv): (*mut c_void, Blocks),
) -> Result<Ready> {
    call.ready(None, Alike::default(), (sent, received), |call, context, builder| {
        match (call.groups(), &send) {
            (Some(groups), Some(send)) => {
                groups.alltoall(send, &recv, builder);
                Ok(())
            }
            _ => {
                call.solve(&Alltoall { send, recv, block: None }, context, builder);
                Ok(())
            }
        }
    })
}
