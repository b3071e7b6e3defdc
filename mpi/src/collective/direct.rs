//! Collectives in memory that the ranks of a node share: when it is chosen and made.

use super::agreement::greatest;
use super::call::Call;
use super::meeting::{SLEEPERS, Wait, make, sleepers, wake};
use super::posted::{Rest, Way};
use super::settings::settings;
use super::shared::{Chosen, Means, Place};
use super::trial::Attempt;
use crate::algorithm::board::tiers::Tiers;
use crate::algorithm::board::{Board, Flag, Pause, RANKS_MAX, Ranks, Turn};
use crate::algorithm::check::Form;
use crate::algorithm::choice::{Context, FIRST, Memory, Problem};
use crate::algorithm::cost::Cost;
use crate::algorithm::line;
use crate::error::Result;
use crate::task;
use crate::world::world;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What the board does of a collective with parts of different lengths.
pub(super) enum Parted {
    /// All of it, or it begins with that.
    Here(Way),
    /// The parts of these ranks are left to messages, as [`Board::run`] says; none: those of all.
    Left(Option<Ranks>),
}

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
            Form::Nonblocking => {
                Ok(self.begin_on_board(problem, len, |_| turn())?.map(|ended| match ended.get() {
                    Some(Ok(_)) => Way::Ended,
                    _ => Way::Later(ended, None),
                }))
            }
            _ => {
                self.in_memory(problem, len, |board: &mut Board, pause| board.run(&turn()?, pause).map(drop))
            }
        }
    }

    /// The board is not made for that: all ranks would have to wait for each other.
    fn begin_on_board<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        turn: impl FnOnce(&mut Board) -> Result<Turn<'t>>,
    ) -> Result<Option<Flag>> {
        let Some(place) = self.place::<Board, P>(problem, len) else { return Ok(None) };
        let takes_it = self.on.comm.desk().shared.nonblocking.count();
        let Some(Some(board)) = place.made.get().filter(|_| takes_it) else { return Ok(None) };
        let mut board = locked(board);
        let turn = turn(&mut board)?;
        let ended = board.start(turn);
        let ranks = sleepers(board.memory()).take();
        if ranks != 0 {
            world()?.node().submit(|engine| wake(engine, self.on.comm, ranks));
        }
        Ok(Some(ended))
    }

    /// Does a collective with parts of different lengths on the board, or begins it there, if that is chosen
    /// for short blocks: each of some ranks has a part for each rank, as [`Board::parts`] says. `rest`: the
    /// messages to begin with if parts turn out to be too long later.
    pub(super) fn parts_on_board<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        turn: impl FnOnce(&mut Board) -> Result<Turn<'t>>,
        rest: impl FnOnce() -> Rest,
    ) -> Result<Parted> {
        let len = PART * self.team().size() as u64;
        match self.form() {
            Form::Nonblocking => self.begin_parts(problem, len, turn, rest),
            _ => self.parted(problem, len, |board, pause| board.ask_parts(turn, pause)),
        }
    }

    /// The same of a part of each rank for the root, as [`Board::collect_parts`] says.
    pub(super) fn collect_on_board<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        turn: impl FnOnce(&mut Board) -> Result<Turn<'t>>,
        rest: impl FnOnce() -> Rest,
    ) -> Result<Parted> {
        match self.form() {
            Form::Nonblocking => self.begin_parts(problem, PART, turn, rest),
            _ => {
                let collect = |board: &mut Board, pause: Pause<'_>| {
                    let turn = turn(board)?;
                    board.run_parts(turn, pause)
                };
                let parted = self.parted(problem, PART, collect);
                if !matches!(parted, Ok(Parted::Left(_))) {
                    // Other ranks may count an operation with messages.
                    self.on.comm.next_operation();
                }
                parted
            }
        }
    }

    fn parted<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: u64,
        work: impl FnOnce(&mut Board, Pause<'_>) -> Result<Ranks>,
    ) -> Result<Parted> {
        let mut left = Ranks::NONE;
        let exchange = |board: &mut Board, pause: Pause<'_>| {
            left = work(board, pause)?;
            Ok(())
        };
        Ok(match self.in_memory(problem, Some(len), exchange)? {
            Some(way) if left.is_empty() => Parted::Here(way),
            Some(_) => Parted::Left(Some(left)),
            None => Parted::Left(None),
        })
    }

    fn begin_parts<'t, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: u64,
        turn: impl FnOnce(&mut Board) -> Result<Turn<'t>>,
        rest: impl FnOnce() -> Rest,
    ) -> Result<Parted> {
        let Some(ended) = self.begin_on_board(problem, Some(len), turn)? else {
            return Ok(Parted::Left(None));
        };
        Ok(match ended.get() {
            Some(Ok(left)) if left.is_empty() => {
                // As above.
                self.on.comm.next_in_background();
                Parted::Here(Way::Ended)
            }
            Some(Ok(left)) => Parted::Left(Some(*left)),
            _ => Parted::Here(Way::Later(ended, Some(rest()))),
        })
    }

    /// Does a blocking collective of many ranks on the boards of groups, if that was chosen; as
    /// [`Call::on_board`].
    pub(super) fn on_boards<P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut Tiers, Pause<'_>) -> Result<()>,
    ) -> Result<Option<Way>> {
        if self.size() <= RANKS_MAX { Ok(None) } else { self.in_memory(problem, len, work) }
    }

    /// Does a blocking collective by a method in memory, if that was chosen; as [`Call::on_board`].
    #[inline]
    pub(super) fn in_memory<T: Means, P: Problem>(
        &self,
        problem: &impl Fn() -> P,
        len: Option<u64>,
        work: impl FnOnce(&mut T, Pause<'_>) -> Result<()>,
    ) -> Result<Option<Way>> {
        let len = len.filter(|_| self.is_blocking());
        let Some(place) = self.place::<T, P>(problem, len) else { return Ok(None) };
        let made = match place.made.get() {
            Some(made) => made.as_ref(),
            None => {
                if self.attempt.get().is_some() {
                    place.wanted.fetch_max(FIRST - 1, Ordering::Relaxed);
                }
                self.consider(place)?
            }
        };
        let Some(means) = made else {
            self.attempt.set(self.attempt.get().map(Attempt::in_vain));
            return Ok(None);
        };
        let mut wait = Wait::new(world()?, self.on.comm, self.is_crowded());
        let mut means = locked(means);
        let ended = work(&mut means, &mut |memory, has_changed| wait.pause(memory, has_changed));
        wait.end(means.memory());
        drop(means);
        if task::any() {
            // Other threads may sleep that could not look at the board.
            world()?.node().rouse();
        }
        ended.map(|()| Some(Way::Ended))
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
        if let Some(pick) = self.pick.get() {
            return (pick.memory::<P>() == Some(T::MEMORY)).then(|| T::place(shared));
        }
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
        let number = Chosen::number(self.direct(problem));
        chosen.store(number, Ordering::Relaxed);
        number
    }

    /// The memory that is chosen, with the way of a line as it is in this job. The schedules that it is
    /// compared with are chosen without that, as nonblocking calls choose them, which are not ordered.
    #[cold]
    fn direct<P: Problem>(&self, problem: &P) -> Option<Memory> {
        let settings = settings();
        match self.on.comm.desk().shared.line_ns.get() {
            Some(&line_ns) => {
                let cost = Cost { line_ns, ..settings.cost.clone() };
                Context { cost: &cost, ..settings.context() }.direct(problem, self.team())
            }
            None => settings.context().direct(problem, self.team()),
        }
    }

    /// Makes it when it is time: all ranks count the same calls.
    #[cold]
    fn consider<'a, T: Means>(&self, place: &'a Place<T>) -> Result<Option<&'a Mutex<T>>> {
        if place.wanted.fetch_add(1, Ordering::Relaxed) + 1 < FIRST {
            return Ok(None);
        }
        let (size, me) = (self.team().size(), self.me());
        let memory = make(self.on.comm, (T::len(size) + line::len(size) + SLEEPERS, 1), me)?;
        let shared = &self.on.comm.desk().shared;
        let line_ns = match &memory {
            Some(memory) if !self.is_crowded() => line::measure(memory, T::len(size), size, me),
            _ => 0.0,
        };
        let mut figures = [line_ns, shared.nonblocking.called() as f64];
        greatest(self.on.comm, &mut figures)?;
        let [line_ns, called] = figures;
        shared.learn(line_ns);
        if T::MEMORY == Memory::Board {
            shared.nonblocking.begin(called as u64);
        }
        let made = memory.map(|memory| Mutex::new(T::new(memory, size, me)));
        Ok(place.made.get_or_init(|| made).as_ref())
    }
}

fn locked<T>(means: &Mutex<T>) -> MutexGuard<'_, T> {
    means.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
