//! What origins do: put, get, accumulate and their like, each by the way in which the memory of its target is
//! accessed. Most accesses to memory of this node are done before ([`super::piece`]).

use super::combine::Combination;
use super::direct::Direct;
use super::outgoing::{Ports, Requested};
use super::{Flavor, Peer, Way, Window, lock, share};
use crate::constant::PROC_NULL;
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::handle::{Op, Request, Type, Win};
use crate::message;
use crate::objects::{committed, dense_len, predefined_operator};
use crate::op::Predefined;
use crate::request::State;
use crate::status::Status;
use crate::task;
use crate::world::{World, world};
use newmadeleine::{Segments, across};
use nmad_rma::{Asking, Operation, Place};
use std::ffi::c_void;
use std::sync::Arc;

/// A buffer at the origin: address, count, type.
pub(crate) type Buffer = (*const c_void, i64, Type);
/// Memory at the target: rank, displacement, count, type.
pub(crate) type Target = (i32, i64, i64, Type);

/// An access whose arguments are right.
struct Access<'a> {
    peer: &'a Peer,
    place: Place,
    window: &'a Window,
    rank: i32,
    operation: Option<&'a Arc<Operation>>,
}

/// The place of `count` elements from byte `start` on.
///
/// # Errors
/// They begin before the window does, or do not fit into 64 bits.
#[inline]
pub(super) fn place(start: i64, count: i64, datatype: &Datatype) -> Result<Place> {
    if let Some(run) = datatype.run(count) {
        return Ok(Place::One(begin(start, run.offset)?, run.len as u64));
    }
    datatype.bytes(count)?;
    let (mut runs, mut wrong) = (Vec::new(), None);
    datatype.for_each_run(count, |run| match begin(start, run.offset) {
        Ok(offset) => runs.push((offset, run.len as u64)),
        Err(error) => wrong = wrong.take().or(Some(error)),
    });
    wrong.map_or(Ok(Place::Many(runs)), Err)
}

fn begin(start: i64, offset: i64) -> Result<u64> {
    let at = start.checked_add(offset).and_then(|at| u64::try_from(at).ok());
    at.ok_or_else(|| {
        let at = i128::from(start) + i128::from(offset);
        Class::RMA_RANGE.error(format!("the data would begin at byte {at}, which no window has"))
    })
}

impl Window {
    /// Checks what all accesses have in common. None: to no process.
    fn access<'a>(
        &'a self,
        (rank, disp, count, datatype): Target,
        operation: Option<&'a Arc<Operation>>,
    ) -> Result<Option<Access<'a>>> {
        let Some(peer) = self.target(rank)? else { return Ok(None) };
        self.check_access(rank)?;
        let start = disp.checked_mul(peer.unit).ok_or_else(|| self.far_out(rank, disp))?;
        let place = match dense_len(datatype, count) {
            Some(len) if start >= 0 => Place::One(start as u64, len as u64),
            _ => place(start, count, committed(datatype)?).map_err(|why| self.about(rank, &why))?,
        };
        if self.flavor != Flavor::Dynamic
            && let Some(run) = place.beyond(peer.size)
        {
            return Err(self.beyond(rank, peer, run));
        }
        Ok(Some(Access { peer, place, window: self, rank, operation }))
    }

    #[cold]
    fn far_out(&self, rank: i32, disp: i64) -> Error {
        let text = format_args!("rank {rank} as the target: no window has the displacement {disp}");
        self.error(Class::DISP, text)
    }

    #[cold]
    fn about(&self, rank: i32, why: &Error) -> Error {
        self.error(why.class(), format_args!("rank {rank} as the target: {}", why.text()))
    }

    #[cold]
    fn beyond(&self, rank: i32, peer: &Peer, (offset, len): (u64, u64)) -> Error {
        self.error(
            Class::RMA_RANGE,
            format_args!(
                "rank {rank} as the target: {len} B from byte {offset} on, but it has {} B \
                 (displacements are in units of {} B)",
                peer.size, peer.unit
            ),
        )
    }

    #[cold]
    fn other_elements(&self, rank: i32, basic: Basic) -> Error {
        let name = basic.name();
        self.error(
            Class::TYPE,
            format_args!(
                "rank {rank} as the target: the elements are {name} there, and others at the origin"
            ),
        )
    }

    #[cold]
    fn not_swapped(&self) -> Error {
        let text = format_args!("MPI_Compare_and_swap is for integers, logicals and bytes only");
        self.error(Class::TYPE, text)
    }

    #[cold]
    fn unlike(&self, rank: i32, origin: u64, target: u64) -> Error {
        let text = format_args!("rank {rank} as the target: {target} B there, but {origin} B at the origin");
        self.error(Class::TYPE, text)
    }
}

impl Access<'_> {
    /// The place, if this process sees it.
    ///
    /// # Errors
    /// Of a dynamic window only what is attached can be accessed.
    fn direct(&self) -> Result<Option<Direct<'_>>> {
        let Way::Direct(base) = self.peer.way else { return Ok(None) };
        if self.window.flavor == Flavor::Dynamic {
            self.check_attached()?;
        }
        Ok(Some(Direct { window: self.window, peer: self.peer, base, place: &self.place }))
    }

    fn check_attached(&self) -> Result<()> {
        let Some((start, len)) = lock(&self.window.attached).missing(&self.place) else { return Ok(()) };
        let text = format_args!("the {len} B at address {start:#x} are not attached to the window");
        Err(self.window.error(Class::RMA_RANGE, text))
    }

    /// The memory of a buffer, which has to be as long as the place.
    fn buffer(&self, (start, count, datatype): Buffer) -> Result<Segments> {
        let data = message::segments(start, count, datatype)?;
        let (origin, target) = (data.len(), self.place.len());
        if origin == target { Ok(data) } else { Err(self.window.unlike(self.rank, origin, target)) }
    }

    /// Asks the target.
    fn ask(&self, ask: impl FnOnce(Asking<'_, Ports<'_>>)) -> Result<()> {
        let world = world()?;
        self.window.tidy(world, self.rank)?;
        self.window.ask(world, self.rank, self.operation, ask);
        Ok(())
    }

    /// The memory in the target's process, for a copy from process to process.
    fn remote(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.place.runs().map(|(offset, len)| (self.peer.base.wrapping_add(offset), len))
    }

    /// Puts by a copy from process to process, or asks the target.
    fn put(&self, data: &Segments) -> Result<()> {
        if let Way::Copy(process) = self.peer.way
            && across::write(process, data, self.remote()).is_ok()
        {
            return Ok(());
        }
        self.ask(|rank| rank.put(self.place.clone(), data))
    }

    /// Gets by a copy from process to process, or asks the target.
    fn get(&self, into: &Segments) -> Result<()> {
        if let Way::Copy(process) = self.peer.way
            && across::read(process, into, self.remote()).is_ok()
        {
            return Ok(());
        }
        self.ask(|rank| rank.get(self.place.clone(), into))
    }

    /// Asks the target to combine; `into` gets what was there before.
    fn combine(&self, combination: Combination, data: &Segments, into: Option<&Segments>) -> Result<()> {
        let data = combination.reads().then_some(data);
        self.ask(|rank| rank.combine(combination.element(), &self.place, data, into))
    }

    fn swap(&self, basic: Basic, (new, compare): (&Segments, &Segments), into: &Segments) -> Result<()> {
        let mut both = Vec::new();
        compare.append_to(&mut both);
        new.append_to(&mut both);
        let element = Combination { op: Predefined::Replace, basic }.element();
        self.ask(|rank| rank.swap(element, self.place.clone(), &both, into))
    }
}

/// `MPI_Put`, of an operation that may have a request.
fn put_as(window: &Window, origin: Buffer, target: Target, operation: Option<&Arc<Operation>>) -> Result<()> {
    let Some(access) = window.access(target, operation)? else { return Ok(()) };
    let data = access.buffer(origin)?;
    match access.direct()? {
        Some(direct) => direct.put(&data),
        None => access.put(&data)?,
    }
    Ok(())
}

fn get_as(window: &Window, origin: Buffer, target: Target, operation: Option<&Arc<Operation>>) -> Result<()> {
    let Some(access) = window.access(target, operation)? else { return Ok(()) };
    let into = access.buffer(origin)?;
    match access.direct()? {
        Some(direct) => direct.get(&into),
        None => access.get(&into)?,
    }
    Ok(())
}

/// The only predefined type that data of an accumulate are made of.
#[inline]
fn element(window: &Window, handle: Type) -> Result<Basic> {
    match Basic::from_code(handle.0) {
        Some(basic) => Ok(basic),
        None => element_of(window, committed(handle)?),
    }
}

#[inline(never)]
fn element_of(window: &Window, target: &Datatype) -> Result<Basic> {
    target.only_basic().or_else(|| target.f90_basic()).ok_or_else(|| {
        let text = format_args!("the elements of an accumulate have to be of one predefined type");
        window.error(Class::TYPE, text)
    })
}

fn accumulate_as(
    window: &Window,
    (origin, result): (Buffer, Option<Buffer>),
    target: Target,
    op: Op,
    operation: Option<&Arc<Operation>>,
) -> Result<()> {
    let op = predefined_operator(op)?;
    let Some(access) = window.access(target, operation)? else { return Ok(()) };
    if access.place.is_empty() {
        // Whatever is to be done with no element.
        return Ok(());
    }
    let basic = element(window, target.3)?;
    let combination = Combination::new(op, basic).map_err(|why| window.about(target.0, &why))?;
    let data = match combination.reads() {
        true => {
            // The same handle has been checked as the target's.
            if origin.2 != target.3 && origin.1 > 0 && element(window, origin.2)? != basic {
                return Err(window.other_elements(target.0, basic));
            }
            access.buffer(origin)?
        }
        false => Segments::empty(),
    };
    let into = match result {
        Some(result) => Some(access.buffer(result)?),
        None => None,
    };
    match access.direct()? {
        Some(direct) => direct.combine(combination, &data, into.as_ref()),
        None => access.combine(combination, &data, into.as_ref()),
    }
}

/// `MPI_Put`
#[cold]
#[inline(never)]
pub(crate) fn put(origin: Buffer, target: Target, win: Win) -> Result<()> {
    put_as(super::lookup(win)?, origin, target, None)
}

/// `MPI_Get`
#[cold]
#[inline(never)]
pub(crate) fn get(origin: Buffer, target: Target, win: Win) -> Result<()> {
    get_as(super::lookup(win)?, origin, target, None)
}

/// `MPI_Accumulate`
#[cold]
#[inline(never)]
pub(crate) fn accumulate(origin: Buffer, target: Target, op: Op, win: Win) -> Result<()> {
    accumulate_as(super::lookup(win)?, (origin, None), target, op, None)
}

/// `MPI_Get_accumulate`
#[cold]
#[inline(never)]
pub(crate) fn get_accumulate(origin: Buffer, result: Buffer, target: Target, op: Op, win: Win) -> Result<()> {
    accumulate_as(super::lookup(win)?, (origin, Some(result)), target, op, None)
}

/// `MPI_Compare_and_swap`
pub(crate) fn compare_and_swap(
    (origin, compare, result): (*const c_void, *const c_void, *mut c_void),
    target: Target,
    win: Win,
) -> Result<()> {
    let (window, datatype) = (super::lookup(win)?, target.3);
    let Some(access) = window.access(target, None)? else { return Ok(()) };
    let Some(basic) = Basic::from_code(datatype.0).filter(is_swapped) else {
        return Err(window.not_swapped());
    };
    let [new, compare, into] =
        [origin, compare, result.cast_const()].map(|buffer| access.buffer((buffer, 1, datatype)));
    let (new, compare, into) = (new?, compare?, into?);
    match access.direct()? {
        Some(direct) => direct.swap((&new, &compare), &into),
        None => access.swap(basic, (&new, &compare), &into)?,
    }
    Ok(())
}

/// Whether elements of a type can be swapped.
#[inline(always)]
pub(super) fn is_swapped(basic: &Basic) -> bool {
    Predefined::Band.allows(*basic) || Predefined::Land.allows(*basic)
}

/// A request for an operation.
fn requested(
    (rank, win): (i32, Win),
    begin: impl FnOnce(&Window, Option<&Arc<Operation>>) -> Result<()>,
) -> Result<Request> {
    let (world, window): (&World, _) = (world()?, share(win)?);
    if rank == PROC_NULL {
        begin(&window, None)?;
        return Ok(State::ended(Status::EMPTY).into_request());
    }
    let operation = Arc::new(Operation::default());
    begin(&window, Some(&operation))?;
    if operation.is_over() {
        return Ok(State::ended(Status::EMPTY).into_request());
    }
    let on = window.on.clone();
    let work = Requested { window, rank, operation };
    Ok(State::Task(task::start(world, Box::new(work)), on).into_request())
}

/// `MPI_Rput`
pub(crate) fn rput(origin: Buffer, target: Target, win: Win) -> Result<Request> {
    requested((target.0, win), |window, operation| put_as(window, origin, target, operation))
}

/// `MPI_Rget`
pub(crate) fn rget(origin: Buffer, target: Target, win: Win) -> Result<Request> {
    requested((target.0, win), |window, operation| get_as(window, origin, target, operation))
}

/// `MPI_Raccumulate`, and with a result `MPI_Rget_accumulate`
pub(crate) fn raccumulate(
    origin: Buffer,
    result: Option<Buffer>,
    target: Target,
    op: Op,
    win: Win,
) -> Result<Request> {
    requested((target.0, win), |window, operation| {
        accumulate_as(window, (origin, result), target, op, operation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_before_the_window_is_refused() {
        let int = Datatype::predefined(Basic::Int);
        assert_eq!(place(-4, 1, int).unwrap_err().class(), Class::RMA_RANGE);
        assert_eq!(place(4, 2, int), Ok(Place::One(4, 8)));
    }
}
