//! The operations of origins: put, get, accumulate and their like, each as the plan of the access says
//! ([`super::plan`]).

use super::combine::Combination;
use super::direct::Direct;
use super::outgoing::{Ports, Requested};
use super::plan::{Far, Kind, Plan};
use super::word::{WORD, is_word};
use super::{Buffer, Target, Window, share};
use crate::constant::PROC_NULL;
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::handle::{Op, Request, Type, Win};
use crate::lost::Checks;
use crate::memory::is_nowhere;
use crate::message;
use crate::objects::{committed, predefined_operator};
use crate::op::Predefined;
use crate::request::State;
use crate::status::Status;
use crate::task;
use crate::world::{World, world};
use newmadeleine::Segments;
use newmadeleine::across::Process;
use newmadeleine::engine::Act;
use newmadeleine::joint::{self, Direction, There};
use nmad_rma::{Asking, Operation, Place};
use std::ffi::c_void;
use std::io;
use std::sync::Arc;

/// The request that an operation may have.
pub(crate) type Asked<'a> = Option<&'a Arc<Operation>>;

/// `MPI_Put`
///
/// # Errors
/// An argument is wrong, or there is no access epoch.
#[inline(always)]
pub(crate) fn put(window: &Window, origin: Buffer, target: Target, asked: Asked<'_>) -> Result<()> {
    let plan = window.plan(target, Kind::Put)?;
    if let Plan::Row(row) = &plan
        && row.put(target, origin).is_some()
    {
        return Ok(());
    }
    move_by(window, (plan, Kind::Put), (origin, target.0), asked)
}

/// `MPI_Get`
///
/// # Errors
/// As [`put`].
#[inline(always)]
pub(crate) fn get(window: &Window, origin: Buffer, target: Target, asked: Asked<'_>) -> Result<()> {
    let plan = window.plan(target, Kind::Get)?;
    if let Plan::Row(row) = &plan
        && row.get(target, origin).is_some()
    {
        return Ok(());
    }
    move_by(window, (plan, Kind::Get), (origin, target.0), asked)
}

/// A put or a get, whichever `kind` is, of a buffer to or from a rank.
#[cold]
#[inline(never)]
fn move_by(
    window: &Window,
    (plan, kind): (Plan<'_>, Kind),
    (buffer, rank): (Buffer, i32),
    asked: Asked<'_>,
) -> Result<()> {
    let data = |place: &Place| window.buffer(rank, buffer, place.len());
    let seen = |direct: Direct<'_>| {
        let data = data(&direct.place)?;
        if kind == Kind::Put {
            direct.put(&data)
        } else {
            direct.get(&data)
        }
        Ok(())
    };
    match plan {
        Plan::Nowhere => Ok(()),
        Plan::Row(row) => seen(row.direct()),
        Plan::Pieces(direct) => seen(direct),
        Plan::Copy(far, process) => {
            let data = data(&far.place)?;
            far.copy(kind, process, &data).or_else(|_| far.ask_to_move(kind, &data, asked))
        }
        Plan::Reach(far) => far.reach(kind, &data(&far.place)?, asked),
        Plan::Ask(far) => far.ask_to_move(kind, &data(&far.place)?, asked),
    }
}

/// `MPI_Accumulate`, and with a result `MPI_Get_accumulate` and `MPI_Fetch_and_op`.
///
/// # Errors
/// As [`put`], or the operator does not allow the type.
#[inline(always)]
pub(crate) fn accumulate(
    window: &Window,
    buffers: (Buffer, Option<Buffer>),
    target: Target,
    op: Op,
    asked: Asked<'_>,
) -> Result<()> {
    let plan = window.plan(target, Kind::Combine)?;
    if let Plan::Row(row) = &plan
        && row.combine(buffers, target, op).is_some()
    {
        return Ok(());
    }
    accumulate_by(window, plan, buffers, target, op, asked)
}

#[cold]
#[inline(never)]
fn accumulate_by(
    window: &Window,
    plan: Plan<'_>,
    (origin, result): (Buffer, Option<Buffer>),
    target: Target,
    op: Op,
    asked: Asked<'_>,
) -> Result<()> {
    let op = predefined_operator(op)?;
    let len = plan.len();
    if len == 0 {
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
            window.buffer(target.0, origin, len)?
        }
        false => Segments::empty(),
    };
    let into = match result {
        Some(result) => Some(window.buffer(target.0, result, len)?),
        None => None,
    };
    match plan {
        Plan::Nowhere => Ok(()),
        Plan::Row(row) => row.direct().combine(combination, &data, into.as_ref()),
        Plan::Pieces(direct) => direct.combine(combination, &data, into.as_ref()),
        Plan::Reach(far) if far.reach_word(combination, &data, into.as_ref(), asked)? => Ok(()),
        Plan::Copy(far, _) | Plan::Reach(far) | Plan::Ask(far) => {
            let data = combination.reads().then_some(&data);
            far.ask(asked, |rank| rank.combine(combination.element(), &far.place, data, into.as_ref()))
        }
    }
}

/// `MPI_Compare_and_swap`
///
/// # Errors
/// As [`put`], or the type is no integer, logical or byte.
pub(crate) fn compare_and_swap(
    window: &Window,
    (origin, compare, result): (*const c_void, *const c_void, *mut c_void),
    target: Target,
) -> Result<()> {
    let (rank, datatype) = (target.0, target.3);
    let plan = window.plan(target, Kind::Combine)?;
    if let Plan::Nowhere = plan {
        return Ok(());
    }
    let Some(basic) = Basic::from_code(datatype.0).filter(is_swapped) else {
        return Err(window.not_swapped());
    };
    if let Plan::Row(row) = plan
        && ![origin, compare, result.cast_const()].into_iter().any(is_nowhere)
    {
        row.swap((origin, compare), result);
        return Ok(());
    }
    let len = plan.len();
    let [new, compare, into] =
        [origin, compare, result.cast_const()].map(|buffer| window.buffer(rank, (buffer, 1, datatype), len));
    let (new, compare, into) = (new?, compare?, into?);
    match plan {
        Plan::Reach(far) if far.reach_to_swap(basic, (&compare, &new), &into)? => Ok(()),
        Plan::Copy(far, _) | Plan::Reach(far) | Plan::Ask(far) => {
            let mut both = Vec::new();
            compare.append_to(&mut both);
            new.append_to(&mut both);
            let element = Combination { op: Predefined::Replace, basic }.element();
            far.ask(None, |rank| rank.swap(element, far.place.clone(), &both, &into))
        }
        // One element of these types has no gaps, and a buffer that is nowhere was refused.
        Plan::Nowhere | Plan::Row(_) | Plan::Pieces(_) => Ok(()),
    }
}

/// Whether elements of a type can be swapped.
#[inline(always)]
fn is_swapped(basic: &Basic) -> bool {
    Predefined::Band.allows(*basic) || Predefined::Land.allows(*basic)
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

impl Plan<'_> {
    /// Bytes at the target.
    fn len(&self) -> u64 {
        match self {
            Plan::Nowhere => 0,
            Plan::Row(row) => row.len as u64,
            Plan::Pieces(direct) => direct.place.len(),
            Plan::Copy(far, _) | Plan::Reach(far) | Plan::Ask(far) => far.place.len(),
        }
    }
}

impl Far<'_> {
    /// Asks the target.
    fn ask(&self, asked: Asked<'_>, ask: impl FnOnce(Asking<'_, Ports<'_>>)) -> Result<()> {
        let world = world()?;
        self.window.prepare(world, self)?;
        self.window.ask(world, self.rank, asked, ask);
        Ok(())
    }

    /// Asks the target for a put or a get.
    fn ask_to_move(&self, kind: Kind, data: &Segments, asked: Asked<'_>) -> Result<()> {
        let place = self.place.clone();
        match kind {
            Kind::Put => self.ask(asked, |rank| rank.put(place, data)),
            _ => self.ask(asked, |rank| rank.get(place, data)),
        }
    }

    /// Has the network do a put or a get, if a rail is open that can. One with a request is asked for with
    /// frames, whose ends a request knows.
    fn reach(&self, kind: Kind, data: &Segments, asked: Asked<'_>) -> Result<()> {
        let act = if kind == Kind::Put { Act::Put } else { Act::Get };
        if asked.is_none() && self.window.reach(world()?, self, act, Some(data))? {
            return Ok(());
        }
        self.ask_to_move(kind, data, asked)
    }

    /// Has the network combine a word; false: it cannot, or no rail is open that can.
    fn reach_word(
        &self,
        combination: Combination,
        data: &Segments,
        into: Option<&Segments>,
        asked: Asked<'_>,
    ) -> Result<bool> {
        let act = combination.act(word_of(data)).filter(|_| asked.is_none() && self.place.len() == WORD);
        act.map_or(Ok(false), |act| self.window.reach(world()?, self, act, into))
    }

    /// The same for a swap.
    fn reach_to_swap(
        &self,
        basic: Basic,
        (compare, new): (&Segments, &Segments),
        into: &Segments,
    ) -> Result<bool> {
        let (true, Some(compare), Some(new)) = (is_word(basic), word_of(compare), word_of(new)) else {
            return Ok(false);
        };
        self.window.reach(world()?, self, Act::Swap(compare, new), Some(into))
    }

    /// Copies data of a put or a get from process to process. A target that looks meanwhile does a part of
    /// it.
    fn copy(&self, kind: Kind, process: &Process, data: &Segments) -> io::Result<()> {
        let direction = if kind == Kind::Put { Direction::Put } else { Direction::Get };
        let locks = self.window.locks(self.peer);
        if let (&Place::One(place, _), Some(locks)) = (&self.place, locks) {
            let there = There { process, address: self.peer.base.wrapping_add(place), place };
            return locks.joint().copy(direction, self.window.rank() as u64, data, there);
        }
        joint::copy_alone(direction, process, data, self.memory())
    }

    /// The memory in the target's process, for a copy from process to process.
    fn memory(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.place.runs().map(|(offset, len)| (self.peer.base.wrapping_add(offset), len))
    }
}

impl Window {
    /// The memory of a buffer at the origin, which has to be as long as the place at the target.
    fn buffer(&self, rank: i32, (start, count, datatype): Buffer, target: u64) -> Result<Segments> {
        let data = message::segments(start, count, datatype)?;
        if data.len() == target { Ok(data) } else { Err(self.unlike(rank, data.len(), target)) }
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

/// The word that memory of that length holds.
fn word_of(memory: &Segments) -> Option<u64> {
    let mut bytes = Vec::new();
    memory.append_to(&mut bytes);
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// A request for an operation.
fn requested(
    (rank, win): (i32, Win),
    begin: impl FnOnce(&Window, Asked<'_>) -> Result<()>,
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
    let work = Requested { window, rank, operation, checks: Checks::default() };
    Ok(State::Task(task::start(world, Box::new(work)), on).into_request())
}

/// `MPI_Rput`
pub(crate) fn rput(origin: Buffer, target: Target, win: Win) -> Result<Request> {
    requested((target.0, win), |window, asked| put(window, origin, target, asked))
}

/// `MPI_Rget`
pub(crate) fn rget(origin: Buffer, target: Target, win: Win) -> Result<Request> {
    requested((target.0, win), |window, asked| get(window, origin, target, asked))
}

/// `MPI_Raccumulate`, and with a result `MPI_Rget_accumulate`
pub(crate) fn raccumulate(
    origin: Buffer,
    result: Option<Buffer>,
    target: Target,
    op: Op,
    win: Win,
) -> Result<Request> {
    requested((target.0, win), |window, asked| accumulate(window, (origin, result), target, op, asked))
}
