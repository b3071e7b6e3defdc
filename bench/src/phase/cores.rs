//! Ranks that share a core.
//!
//! A rank computes, copies and looks at its rails on its core only. One that waits yields the core to whoever
//! is ready there. One that computes keeps it until it waits, or until the system looks whether it has used
//! its slice while another one is ready: at each tick, and when something arrives for a rank of that core,
//! since that wakes a thread there.

use super::outcome::Turns;
use super::predict::{Event, Mode, Model};
use super::turns::{Core, Work};

impl Model<'_> {
    /// Whether a rank has its core now.
    pub(super) fn has_core(&self, rank: usize) -> bool {
        self.ranks[rank].core.is_none_or(|core| self.cores[core].running == Some(rank))
    }

    /// Assigns a rank to a core. Returns whether the rank has it now.
    pub(super) fn set_core(&mut self, now: u64, rank: usize, core: usize) -> bool {
        if self.ranks[rank].core == Some(core) {
            return self.has_core(rank);
        }
        self.release_core(now, rank);
        if self.cores.len() <= core {
            self.cores.resize(core + 1, Core::default());
        }
        self.ranks[rank].core = Some(core);
        self.request_core(now, rank)
    }

    /// Queues a rank that is ready for its core. Returns whether it has it now; otherwise [`Event::Turn`]
    /// follows.
    pub(super) fn request_core(&mut self, now: u64, rank: usize) -> bool {
        let Some(core) = self.ranks[rank].core else { return true };
        let of = &mut self.cores[core];
        match of.running {
            Some(running) if running == rank => return true,
            None => {
                (of.running, of.since) = (Some(rank), now);
                return true;
            }
            Some(_) if of.ready.contains(&rank) => return false,
            Some(_) => of.ready.push_back(rank),
        }
        self.schedule_tick(now, core);
        false
    }

    /// Something wakes a thread on the core of a rank: the system looks whether the turn there is over.
    pub(super) fn on_wakeup(&mut self, now: u64, rank: usize) {
        if let Some(core) = self.ranks[rank].core {
            self.check_turn(now, core);
        }
    }

    /// The system looks at the next tick.
    fn schedule_tick(&mut self, now: u64, core: usize) {
        let Turns { tick_ns, first_ns, .. } = self.setting.turns;
        let first_ns = first_ns % tick_ns;
        let next = first_ns + (now + tick_ns).saturating_sub(first_ns) / tick_ns * tick_ns;
        let looks_ns = &mut self.cores[core].looks_ns;
        if *looks_ns <= now {
            *looks_ns = next;
            self.at(next, Event::Tick(core));
        }
    }

    /// A rank needs its core no longer.
    pub(super) fn release_core(&mut self, now: u64, rank: usize) {
        let Some(core) = self.ranks[rank].core else { return };
        self.cores[core].ready.retain(|&ready| ready != rank);
        if self.cores[core].running == Some(rank) {
            self.end_turn(now, core);
        }
    }

    /// Ends the turn of the rank that has a core.
    fn end_turn(&mut self, now: u64, core: usize) {
        let of = &mut self.cores[core];
        let Some(rank) = of.running.take() else { return };
        let took_ns = now - of.since;
        let used_ns = &mut self.ranks[rank].slice.used_ns;
        *used_ns += took_ns;
        if *used_ns >= self.setting.turns.slice_ns {
            *used_ns = 0;
        }
        self.run_next(now, core);
    }

    /// The next rank that is ready gets the core.
    fn run_next(&mut self, now: u64, core: usize) {
        let Some(rank) = self.cores[core].ready.pop_front() else { return };
        (self.cores[core].running, self.cores[core].since) = (Some(rank), now);
        self.ranks[rank].slice.is_given = true;
        self.at(now, Event::Turn(rank));
    }

    /// A rank that waits has its core: it yields it when it has copied what it has.
    pub(super) fn yield_core(&mut self, now: u64, rank: usize) {
        let has_looked = !self.ranks[rank].slice.is_given;
        if self.ranks[rank].core.is_none() || !self.has_core(rank) || !has_looked {
            return;
        }
        match self.hosts.core_until(rank) {
            until if until > now => self.at(until, Event::Rests(rank)),
            _ => self.release_core(now, rank),
        }
    }

    /// A rank has got its core.
    pub(super) fn on_core_granted(&mut self, now: u64, rank: usize) {
        self.ranks[rank].slice.is_given = false;
        if !self.has_core(rank) {
            return;
        }
        match self.ranks[rank].mode {
            Mode::Computing | Mode::Busy => self.resume(now, rank),
            Mode::Calling => {
                self.hosts.core_is_free_at(rank, now);
                self.answer(now, rank);
                self.consider(now, rank);
            }
            Mode::Done => self.release_core(now, rank),
        }
    }

    /// The system looks at a tick whether a turn is over.
    pub(super) fn on_tick(&mut self, now: u64, core: usize) {
        self.check_turn(now, core);
        if !self.cores[core].ready.is_empty() {
            self.schedule_tick(now, core);
        }
    }

    fn check_turn(&mut self, now: u64, core: usize) {
        let Core { running: Some(rank), since, ready, .. } = &self.cores[core] else { return };
        let rank = *rank;
        let used_ns = self.ranks[rank].slice.used_ns + now - since;
        let is_over = used_ns >= self.setting.turns.slice_ns;
        if is_over && !ready.is_empty() && self.ranks[rank].mode.is_away() {
            self.pause(now, rank);
            self.cores[core].ready.push_back(rank);
            self.end_turn(now, core);
        }
    }

    /// A rank begins work of `ns` nanoseconds, for which it needs its core.
    pub(super) fn work(&mut self, now: u64, rank: usize, ns: u64) {
        self.ranks[rank].work.left_ns = ns;
        if self.request_core(now, rank) {
            self.resume(now, rank);
        }
    }

    fn resume(&mut self, now: u64, rank: usize) {
        let work = &mut self.ranks[rank].work;
        (work.since, work.turn) = (Some(now), work.turn + 1);
        let goes = Event::Goes(rank, work.turn);
        let until = now + work.left_ns;
        self.at(until, goes);
    }

    fn pause(&mut self, now: u64, rank: usize) {
        let work = &mut self.ranks[rank].work;
        if let Some(since) = work.since.take() {
            work.left_ns = work.left_ns.saturating_sub(now - since);
            work.turn += 1;
        }
    }

    /// Ends the work of a rank if an end that was scheduled in this turn still counts. Returns whether it
    /// does.
    pub(super) fn is_done(&mut self, rank: usize, turn: u64) -> bool {
        let work = &mut self.ranks[rank].work;
        let is_it = work.turn == turn && work.since.is_some();
        if is_it {
            *work = Work { turn: work.turn + 1, ..Work::default() };
        }
        is_it
    }
}
