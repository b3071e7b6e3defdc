//! Collectives in memory that the ranks of a node share: when it is chosen and made.

use super::call::Call;
use super::meeting::{Wait, make};
use super::settings::settings;
use super::shared::{Chosen, Means, Place};
use crate::algorithm::alltoall::Alltoall;
use crate::algorithm::board::{Board, Pause};
use crate::algorithm::choice::{FIRST, Problem};
use crate::algorithm::place::{Blocks, Buffer, Spot};
use crate::algorithm::pool::Pool;
use crate::error::Result;
use crate::world::world;
use newmadeleine::Segments;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a part as the choice assumes, since all ranks have to choose alike and none knows all lengths.
const PART: u64 = 64;

impl Call {
    /// Does a collective on the board, if that was chosen for such a problem: `len` are the bytes that a rank
    /// posts, the same on all ranks; none if they do not lie in a row. False: it takes another way.
    #[inline]
    pub(super) fn on_board<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut Board, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        self.in_memory(problem, len, work)
    }

    /// Does a collective with parts of different lengths on the board, if that is chosen for short blocks:
    /// sends the part for each rank that `out` names, and puts what each rank has for this one where `into`
    /// says. False: it takes another way.
    pub(super) fn parts_on_board(
        &self,
        out: impl Fn(usize) -> Result<Segments>,
        into: impl Fn(usize) -> Result<Segments>,
    ) -> Result<bool> {
        let problem = || {
            let recv = Blocks::rows(Spot::start(Buffer::Recv), std::iter::repeat_n(PART, self.team().size()));
            Alltoall { send: None, recv, block: Some(PART) }
        };
        let mut is_done = false;
        let exchange = |board: &mut Board, pause: Pause<'_>| {
            is_done = board.parts(out, into, pause)?;
            Ok(())
        };
        let is_asked = self.on_board(&problem, Some(PART * self.team().size() as u64), exchange)?;
        Ok(is_asked && is_done)
    }

    /// Does a long reduction in the pool, if that was chosen; as [`Call::on_board`].
    pub(super) fn in_pool<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut Pool, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        self.in_memory(problem, len, work)
    }

    #[inline]
    fn in_memory<T: Means, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut T, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        let settings = settings();
        let Some(len) = len.filter(|_| self.is_blocking() && !settings.check && self.remote().is_none())
        else {
            return Ok(false);
        };
        let shared = &self.on.comm.desk().shared;
        let Chosen(chosen) = shared.chosen(P::FAMILY, len);
        let number = match chosen.load(Ordering::Relaxed) {
            0 => self.choose(chosen, &problem()),
            known => known,
        };
        if number & !Chosen::TOLD != Chosen::number(Some(T::MEMORY)) {
            return Ok(false);
        }
        let place = T::place(shared);
        let made = match place.made.get() {
            Some(made) => made.as_ref(),
            None => self.consider(place)?,
        };
        let Some(means) = made else { return Ok(false) };
        if settings.choices.explain && number & Chosen::TOLD == 0 {
            chosen.store(number | Chosen::TOLD, Ordering::Relaxed);
            self.explain(&problem(), &settings.context(), Some(T::MEMORY));
        }
        let mut means = means.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_crowded = self.team().crowd() > settings.cost.cores;
        let mut wait =
            Wait { world: world()?, comm: &self.on.comm, is_crowded, looks: 0, since: None, checked: 0 };
        work(&mut means, &mut || wait.pause()).map(|()| true)
    }

    /// All ranks choose alike.
    #[cold]
    fn choose<P: Problem>(&self, chosen: &AtomicU8, problem: &P) -> u8 {
        let number = Chosen::number(settings().context().direct(problem, self.team()));
        chosen.store(number, Ordering::Relaxed);
        number
    }

    /// Makes it when it is time: all ranks count the same calls.
    #[cold]
    fn consider<'a, T: Means>(&self, place: &'a Place<T>) -> Result<Option<&'a Mutex<T>>> {
        if place.wanted.fetch_add(1, Ordering::Relaxed) + 1 < FIRST {
            return Ok(None);
        }
        let (size, me) = (self.team().size(), self.me());
        let memory = make(&self.on.comm, (T::len(size), 1), me)?;
        let made = memory.map(|memory| Mutex::new(T::new(memory, size, me)));
        Ok(place.made.get_or_init(|| made).as_ref())
    }
}
