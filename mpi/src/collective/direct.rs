//! Collectives in memory that the ranks of a node share: when it is chosen and made.

use super::agreement::greatest;
use super::call::Call;
use super::meeting::{Wait, make};
use super::posted::Way;
use super::settings::settings;
use super::shared::{Chosen, Means, Place};
use crate::algorithm::board::{Board, Pause, Turn};
use crate::algorithm::check::Form;
use crate::algorithm::choice::{FIRST, Memory, Problem};
use crate::algorithm::pool::Pool;
use crate::error::Result;
use crate::world::world;
use newmadeleine::Segments;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of a part as the choice assumes, since all ranks have to choose alike and none knows all lengths.
pub(super) const PART: u64 = 64;

impl Call {
    /// Does a collective on the board, or begins it there, if that was chosen for such a problem: `len` are
    /// the bytes that a rank posts, the same on all ranks; none if they do not lie in a row. None: it takes
    /// another way.
    #[inline]
    pub(super) fn on_board<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        turn: impl FnOnce() -> Result<Turn<'t>>,
    ) -> Result<Option<Way>> {
        match self.form() {
            Form::Nonblocking => self.begin_on_board(problem, len, turn),
            _ => self.in_memory(problem, len, |board: &mut Board, pause| board.run(&turn()?, pause)),
        }
    }

    /// The board is not made for that: all ranks would have to wait for each other. A post wakes nobody, so
    /// who waits for one sleeps for [`crate::task::NAP`] at most.
    fn begin_on_board<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        turn: impl FnOnce() -> Result<Turn<'t>>,
    ) -> Result<Option<Way>> {
        let Some(place) = self.place::<Board, P>(problem, len) else { return Ok(None) };
        let takes_it = self.on.comm.desk().shared.nonblocking.count();
        let Some(Some(board)) = place.made.get().filter(|_| takes_it) else { return Ok(None) };
        let ended = locked(board).start(turn()?);
        Ok(Some(if ended.load(Ordering::Acquire) { Way::Ended } else { Way::Later(ended) }))
    }

    /// Does a collective with parts of different lengths on the board, if that is chosen for short blocks:
    /// each of `senders` sends the part for each rank that `out` names, and what each of them has for this
    /// one goes where `into` says. False: it takes another way.
    pub(super) fn parts_on_board<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        senders: Range<usize>,
        out: impl Fn(usize) -> Result<Segments>,
        into: impl Fn(usize) -> Result<Segments>,
    ) -> Result<bool> {
        let mut is_done = false;
        let exchange = |board: &mut Board, pause: Pause<'_>| {
            is_done = board.parts(senders, out, into, pause)?;
            Ok(())
        };
        self.in_memory(problem, Some(PART * self.team().size() as u64), exchange)?;
        Ok(is_done)
    }

    /// Gathers a part of each rank on the board, if that is chosen for short blocks: our `own`, and at the
    /// root those of all, which go where `into` says. None: it takes another way; otherwise the ranks whose
    /// parts are left to messages, see [`Board::collect_parts`].
    pub(super) fn collect_on_board<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        own: impl FnOnce() -> Result<Segments>,
        into: Option<impl Fn(usize) -> Result<Segments>>,
    ) -> Result<Option<Vec<usize>>> {
        let mut left = Vec::new();
        let collect = |board: &mut Board, pause: Pause<'_>| {
            left = board.collect_parts(&own()?, into, pause)?;
            Ok(())
        };
        let way = self.in_memory(problem, Some(PART), collect);
        if left.is_empty() && !matches!(way, Ok(None)) {
            // Other ranks may count an operation with messages.
            self.on.comm.next_operation();
        }
        Ok(way?.map(|_| left))
    }

    /// Does a long reduction in the pool, if that was chosen; as [`Call::on_board`].
    pub(super) fn in_pool<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut Pool, Pause<'_>) -> Result<()>,
    ) -> Result<Option<Way>> {
        self.in_memory(problem, len, work)
    }

    /// Does a blocking collective by a method in memory.
    #[inline]
    fn in_memory<T: Means, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut T, Pause<'_>) -> Result<()>,
    ) -> Result<Option<Way>> {
        let len = len.filter(|_| self.is_blocking());
        let Some(place) = self.place::<T, P>(problem, len) else { return Ok(None) };
        let made = match place.made.get() {
            Some(made) => made.as_ref(),
            None => self.consider(place)?,
        };
        let Some(means) = made else { return Ok(None) };
        let is_crowded = self.is_crowded();
        let mut wait =
            Wait { world: world()?, comm: &self.on.comm, is_crowded, looks: 0, since: None, checked: 0 };
        work(&mut locked(means), &mut || wait.pause()).map(|()| Some(Way::Ended))
    }

    /// Others need our core to get on.
    fn is_crowded(&self) -> bool {
        self.team().crowd() > settings().cost.cores
    }

    /// Where the communicator has this method, if it is chosen for such a problem.
    #[inline]
    fn place<T: Means, P: Problem>(&self, problem: &impl Fn() -> P, len: Option<u64>) -> Option<&Place<T>> {
        let settings = settings();
        let len = len.filter(|_| !settings.check && self.remote().is_none())?;
        let shared = &self.on.comm.desk().shared;
        let Chosen(chosen) = shared.chosen(P::FAMILY, len);
        let number = match chosen.load(Ordering::Relaxed) {
            0 => self.choose(chosen, &problem()),
            known => known,
        };
        if number & !Chosen::TOLD != Chosen::number(Some(T::MEMORY)) {
            return None;
        }
        let place = T::place(shared);
        if settings.choices.explain && number & Chosen::TOLD == 0 && place.made.get().is_some() {
            chosen.store(number | Chosen::TOLD, Ordering::Relaxed);
            self.explain(&problem(), &settings.context(), Some(T::MEMORY));
        }
        Some(place)
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
        if T::MEMORY == Memory::Board {
            let nonblocking = &self.on.comm.desk().shared.nonblocking;
            let mut called = [nonblocking.called() as f64];
            greatest(&self.on.comm, &mut called)?;
            nonblocking.begin(called[0] as u64);
        }
        let made = memory.map(|memory| Mutex::new(T::new(memory, size, me)));
        Ok(place.made.get_or_init(|| made).as_ref())
    }
}

fn locked<T>(means: &Mutex<T>) -> MutexGuard<'_, T> {
    means.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
