//! Collectives that combine data: reduce, allreduce, reduce_scatter, scan.

use super::arguments::{
    Data, each, is_in_place, operands, refuse_in_place, refuse_inter, role, root as root_of, told,
};
use super::call::{Call, Ready};
use super::desk::Key;
use super::settings::settings;
use crate::algorithm::allreduce::Allreduce;
use crate::algorithm::board::tiers::Tiers;
use crate::algorithm::board::{Pause, Turn};
use crate::algorithm::check::{Alike, Form, Operation, Root, number};
use crate::algorithm::inter::Role;
use crate::algorithm::operands::Operands;
use crate::algorithm::place::{Buffer, Spot};
use crate::algorithm::pool::{Pool, Sums, Wanted};
use crate::algorithm::reduce::Reduce;
use crate::algorithm::reduce_scatter::ReduceScatter;
use crate::algorithm::scan::Scan;
use crate::error::{Class, Result};
use crate::handle::{Comm, Op, Type};
use crate::memory::{check_buffers, check_places, refuse_same};
use crate::objects::committed;
use newmadeleine::Segments;
use std::ffi::c_void;

/// The two buffers of a reduction.
pub(crate) type Buffers = (*const c_void, *mut c_void);

const SEND: Spot = Spot::start(Buffer::Send);
const RECV: Spot = Spot::start(Buffer::Recv);

/// Shortest vector of a reduce for trials, in bytes. A sender of messages this long usually completes only
/// after its receiver has entered the call, so that ranks count alike also where one refuses its arguments.
const WAITS: u64 = 256 << 10;

/// Where our operands are.
fn operands_at(in_place: bool) -> Spot {
    if in_place { RECV } else { SEND }
}

/// A count, a type and an operator, checked.
struct Reduction {
    data: Data,
    operands: Operands,
    op: Op,
}

impl Reduction {
    fn new(count: i64, datatype: Type, op: Op) -> Result<Reduction> {
        if datatype.is_null() {
            // There is no operator for elements without a type.
            committed(datatype)?;
        }
        let data = Data::new(count, datatype)?;
        Ok(Reduction { data, operands: operands(data, op)?, op })
    }

    /// What all ranks say alike.
    fn alike(&self) -> Alike {
        Alike { operator: told(self.op), ..Alike::of(self.data.amount()) }
    }

    /// Bytes of the vector, if it lies in a row on all ranks alike, and what goes on in the background needs
    /// no function of the program.
    fn len(&self, call: &Call) -> Option<u64> {
        let is_own = call.is_blocking() || !self.operands.operator.is_user();
        (is_own && self.operands.is_plain()).then(|| self.data.len())
    }

    /// The beginnings of the parts of `size` ranks, if the vector has the same part for each.
    fn shares(&self, size: usize) -> Vec<i64> {
        let begin = |rank: usize| self.operands.share(size, rank).start;
        (0..size).map(begin).chain([self.data.count]).collect()
    }

    /// Checks the buffers: the first holds all of our operands, or they lie in place, and the second has room
    /// for `results` elements. Both must not be the same, also where this rank has no results: the others
    /// refuse it, too.
    fn check(&self, (send, recv): Buffers, in_place: bool, results: i64) -> Result<()> {
        let operands = self.data.first();
        if in_place {
            return check_places((send, None), (recv, operands));
        }
        check_places((send, operands), (recv, self.data.datatype.first(results)))?;
        refuse_same((send, operands), (recv, operands))
    }

    /// The memory of our operands, and of a result.
    fn memory(&self, (send, recv): Buffers, in_place: bool) -> Result<(Segments, Segments)> {
        Ok((self.own((send, recv), in_place)?, self.data.memory(recv)?))
    }

    /// The memory of our operands.
    fn own(&self, (send, recv): Buffers, in_place: bool) -> Result<Segments> {
        self.data.memory(if in_place { recv } else { send })
    }

    fn key(&self, call: &Call, root: i32, in_place: bool) -> Key {
        let op = Some(self.operands.operator.op().clone());
        Key { op, ..call.key(root, in_place, [None, Some(self.data)]) }
    }
}

pub(crate) fn reduce(
    form: Form,
    buffers: Buffers,
    (count, datatype, op): (i64, Type, Op),
    root: i32,
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Reduce, form, comm)?;
    let role = call.remote().map(|remote| role(remote, root)).transpose()?;
    if role == Some(Role::Bystander) {
        // The other arguments say nothing here (MPI 5.0, section 6.2.3).
        let alike = Alike { root: Some(Root::Null), ..Alike::default() };
        return call.ready(None, alike, buffers, |_, _, _| Ok(()));
    }
    let reduction = Reduction::new(count, datatype, op)?;
    if let Some(role) = role {
        return inter_reduce(call, role, buffers, reduction, root);
    }
    let rank = root_of(&call, root)?;
    let is_root = call.me() == rank;
    let in_place = is_in_place(buffers.0);
    if !is_root {
        refuse_in_place(buffers.0, "the send buffer of a rank that is not the root")?;
    }
    match is_root {
        true => reduction.check(buffers, in_place, count)?,
        // The receive buffer says nothing.
        false => check_places((buffers.0, reduction.data.first()), (buffers.1, None))?,
    }
    let memory = || match is_root {
        true => reduction.memory(buffers, in_place),
        false => Ok((reduction.data.memory(buffers.0)?, Segments::empty())),
    };
    let combine = || {
        let (own, into) = memory()?;
        let ranks = if is_root { 0..call.size() } else { 0..0 };
        Ok(Turn::combine(own, ranks, (&reduction.operands.operator, 0..count), into))
    };
    let pooled = |pool: &mut Pool, pause: Pause<'_>| {
        let (own, into) = memory()?;
        let sums = Sums { operator: &reduction.operands.operator, bounds: &reduction.shares(call.size()) };
        pool.combine(&own, &sums, (Wanted::AtRoot(rank), &into), pause)
    };
    let grouped = |boards: &mut Tiers, pause: Pause<'_>| {
        let (own, into) = memory()?;
        boards.reduce((rank, &own, &into), (&reduction.operands.operator, count), pause)
    };
    let problem = || Reduce {
        from: operands_at(in_place),
        into: is_root.then_some(RECV),
        operands: reduction.operands.clone(),
        root: rank,
    };
    let len = reduction.len(&call);
    call.measure(&problem, len.filter(|&len| len >= WAITS));
    if let Some(way) = call.on_board(&problem, len, combine)? {
        return Ok(call.done(way));
    }
    let grouped = call.on_boards(&problem, len, grouped)?;
    if let Some(way) = grouped.map_or_else(|| call.in_memory(&problem, len, pooled), |way| Ok(Some(way)))? {
        return Ok(call.done(way));
    }
    let alike = Alike { root: Some(Root::Rank(rank as u32)), ..reduction.alike() };
    let key = reduction.key(&call, root, in_place);
    call.ready(Some(key), alike, buffers, |call, context, builder| {
        builder.operator(&reduction.operands.operator);
        call.solve(&problem(), context, builder);
        Ok(())
    })
}

fn inter_reduce(call: Call, role: Role, buffers: Buffers, reduction: Reduction, root: i32) -> Result<Ready> {
    let operands = if matches!(role, Role::Peer(_)) { reduction.data.first() } else { None };
    let results = if role == Role::Root { reduction.data.first() } else { None };
    check_buffers((buffers.0, operands), (buffers.1, results))?;
    let key = reduction.key(&call, root, false);
    let alike = Alike { root: Some(role.into()), ..reduction.alike() };
    call.ready(Some(key), alike, buffers, |call, context, builder| {
        builder.operator(&reduction.operands.operator);
        if let Some(groups) = call.groups() {
            groups.reduce(role, (SEND, RECV), &reduction.operands, context, builder);
        }
        Ok(())
    })
}

pub(crate) fn allreduce(
    form: Form,
    buffers: Buffers,
    (count, datatype, op): (i64, Type, Op),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::Allreduce, form, comm)?;
    let reduction = Reduction::new(count, datatype, op)?;
    let in_place = check_in_place(&call, buffers)?;
    reduction.check(buffers, in_place, count)?;
    let combine = || {
        let (own, into) = reduction.memory(buffers, in_place)?;
        Ok(Turn::combine_all(own, call.size(), (&reduction.operands.operator, 0..count), into))
    };
    let pooled = |pool: &mut Pool, pause: Pause<'_>| {
        let (own, into) = reduction.memory(buffers, in_place)?;
        let sums = Sums { operator: &reduction.operands.operator, bounds: &reduction.shares(call.size()) };
        pool.combine(&own, &sums, (Wanted::Everywhere, &into), pause)
    };
    let grouped = |boards: &mut Tiers, pause: Pause<'_>| {
        let (own, into) = reduction.memory(buffers, in_place)?;
        boards.allreduce([&own, &into], (&reduction.operands.operator, count), pause)
    };
    let problem =
        || Allreduce { from: operands_at(in_place), into: RECV, operands: reduction.operands.clone() };
    let len = reduction.len(&call);
    call.measure(&problem, len);
    if let Some(way) = call.on_board(&problem, len, combine)? {
        return Ok(call.done(way));
    }
    if let Some(way) = call.on_boards(&problem, len, grouped)? {
        return Ok(call.done(way));
    }
    if let Some(way) = call.in_memory(&problem, len, pooled)? {
        return Ok(call.done(way));
    }
    let key = reduction.key(&call, 0, in_place);
    let alike = reduction.alike();
    call.ready(Some(key), alike, buffers, |call, context, builder| {
        builder.operator(&reduction.operands.operator);
        match call.groups() {
            Some(groups) => groups.allreduce((SEND, RECV), &reduction.operands, context, builder),
            None => call.solve(&problem(), context, builder),
        }
        Ok(())
    })
}

/// Whether the operands are in the receive buffer, where that may be.
fn check_in_place(call: &Call, (send, recv): Buffers) -> Result<bool> {
    refuse_in_place(recv, "the receive buffer")?;
    if call.remote().is_some() {
        refuse_in_place(send, "the send buffer on an intercommunicator")?;
    }
    Ok(is_in_place(send))
}

pub(crate) fn reduce_scatter(
    form: Form,
    buffers: Buffers,
    (counts, datatype, op): (&[i64], Type, Op),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::ReduceScatter, form, comm)?;
    let counts = each(counts, call.size(), "recvcounts")?;
    if let Some(&count) = counts.iter().find(|count| **count < 0) {
        return Err(Class::COUNT.error(format!("a count is {count}: it must not be negative")));
    }
    let ends = counts.iter().scan(0i64, |end, count| {
        *end = end.saturating_add(*count);
        Some(*end)
    });
    let bounds: Box<[i64]> = std::iter::once(0).chain(ends).collect();
    let in_place = check_in_place(&call, buffers)?;
    let reduction = Reduction::new(bounds[call.size()], datatype, op)?;
    scattered(call, None, buffers, reduction, bounds, in_place)
}

pub(crate) fn reduce_scatter_block(
    form: Form,
    buffers: Buffers,
    (count, datatype, op): (i64, Type, Op),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(Operation::ReduceScatterBlock, form, comm)?;
    let size = call.size() as i64;
    Data::new(count, datatype)?;
    let in_place = check_in_place(&call, buffers)?;
    let reduction = Reduction::new(count.saturating_mul(size), datatype, op)?;
    let bounds = (0..=size).map(|rank| rank * count).collect();
    let key = reduction.key(&call, 0, in_place);
    scattered(call, Some(key), buffers, reduction, bounds, in_place)
}

fn scattered(
    call: Call,
    key: Option<Key>,
    buffers: Buffers,
    reduction: Reduction,
    bounds: Box<[i64]>,
    in_place: bool,
) -> Result<Ready> {
    reduction.check(buffers, in_place, bounds[call.me() + 1] - bounds[call.me()])?;
    let combine = || {
        let (own, _) = reduction.memory(buffers, in_place)?;
        let wanted = bounds[call.me()]..bounds[call.me() + 1];
        let into = reduction.data.of_count(wanted.end - wanted.start).memory(buffers.1)?;
        Ok(Turn::combine_all(own, call.size(), (&reduction.operands.operator, wanted), into))
    };
    let pooled = |pool: &mut Pool, pause: Pause<'_>| {
        let (own, _) = reduction.memory(buffers, in_place)?;
        let into = reduction.data.of_count(bounds[call.me() + 1] - bounds[call.me()]);
        let sums = Sums { operator: &reduction.operands.operator, bounds: &bounds };
        pool.combine(&own, &sums, (Wanted::Parts, &into.memory(buffers.1)?), pause)
    };
    let problem = || ReduceScatter {
        from: operands_at(in_place),
        into: RECV,
        operands: reduction.operands.clone(),
        bounds: bounds.clone(),
    };
    let len = reduction.len(&call);
    call.measure(&problem, len);
    if let Some(way) = call.on_board(&problem, len, combine)? {
        return Ok(call.done(way));
    }
    if let Some(way) = call.in_memory(&problem, len, pooled)? {
        return Ok(call.done(way));
    }
    // Where parts begin, which differs if counts do.
    let recvcounts = if settings().check { number(&bounds) } else { None };
    let arguments = [recvcounts, None, None];
    let alike = Alike { arguments, ..reduction.alike() };
    call.ready(key, alike, buffers, |call, context, builder| {
        builder.operator(&reduction.operands.operator);
        match call.groups() {
            Some(groups) => {
                groups.reduce_scatter((SEND, RECV), &reduction.operands, &bounds, context, builder);
            }
            None => call.solve(&problem(), context, builder),
        }
        Ok(())
    })
}

/// `MPI_Scan`, or `MPI_Exscan`.
pub(crate) fn scan(
    (operation, form): (Operation, Form),
    buffers: Buffers,
    (count, datatype, op): (i64, Type, Op),
    comm: Comm,
) -> Result<Ready> {
    let call = Call::new(operation, form, comm)?;
    refuse_inter(&call)?;
    let reduction = Reduction::new(count, datatype, op)?;
    let in_place = check_in_place(&call, buffers)?;
    let is_exclusive = operation == Operation::Exscan;
    let ranks = 0..call.me() + usize::from(!is_exclusive);
    // Where there is nothing to combine, the receive buffer says nothing, unless the operands are there.
    reduction.check(buffers, in_place, if ranks.is_empty() { 0 } else { count })?;
    let combine = || {
        let (own, into) = match ranks.is_empty() {
            true => (reduction.own(buffers, in_place)?, Segments::empty()),
            false => reduction.memory(buffers, in_place)?,
        };
        Ok(Turn::combine(own, ranks.clone(), (&reduction.operands.operator, 0..count), into))
    };
    let problem = || Scan {
        from: operands_at(in_place),
        into: RECV,
        operands: reduction.operands.clone(),
        is_exclusive,
    };
    if let Some(way) = call.on_board(&problem, reduction.len(&call), combine)? {
        return Ok(call.done(way));
    }
    let key = reduction.key(&call, 0, in_place);
    let alike = reduction.alike();
    call.ready(Some(key), alike, buffers, |call, context, builder| {
        builder.operator(&reduction.operands.operator);
        call.solve(&problem(), context, builder);
        Ok(())
    })
}
