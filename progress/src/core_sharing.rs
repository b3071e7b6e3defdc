//! The next action of a thread that waits while nothing happens: poll again, yield its core, or sleep.
//!
//! Measured on two hosts of one machine (namespaces, 2 cores): an answer that a polling thread finds costs
//! 2 to 4 us, one that wakes a sleeping thread 19 to 37 us, half of which the waking thread pays in its
//! system call. So a thread polls for as long as a large message usually takes, then it sleeps. Beside
//! other processes it polls only for as long as a sleep and a wakeup take ([`SPIN_FOREIGN`]). A thread that
//! sleeps saves its time slice: it runs at once when its peer wakes it, and both run together for the rest of
//! the peer's slice (implicit coscheduling, Arpaci-Dusseau 2001). A thread that polls until its slice ends
//! must wait for the slices of all other processes, and its rails with it. It detects such foreign work by
//! the time between two polls of the rails, which is then as long as a time slice.
//!
//! A yield is right only if a rank of this job needs this core in order to answer. Anything else that
//! computes there keeps the core for a time slice, some milliseconds for each message. The launcher knows
//! which ranks may share a core ([`Sharing`]). Where they perhaps do, the thread finds out with yields while
//! it polls: another thread ran during the yield, and then the message was there. Where yields take long,
//! something computes on the core, and the thread sleeps instead.

use nmad_engine::{Duration, Instant};

/// Whether other ranks of this job need the core of a waiting thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// This rank is bound to cores on which no other rank may run.
    Never,
    /// There is a core for each rank, but the system may place two of them on one core for a while.
    Perhaps,
    /// Oversubscribed: there are more ranks than cores, so many for each core, rounded up: at least 2.
    Always(u32),
}

impl Sharing {
    /// Returns how many ranks share a core.
    pub(crate) fn ranks_per_core(self) -> u32 {
        match self {
            Sharing::Never | Sharing::Perhaps => 1,
            Sharing::Always(ranks) => ranks,
        }
    }
}

/// One of the three ways to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Poll again at once.
    Spin,
    /// Yield, then poll again.
    Yield,
    /// Sleep until a descriptor is ready.
    Sleep,
}

/// Time without any event for which a thread polls. With 20 us, both sides slept during every message of
/// 256 KiB on rails of 4 and 2.8 Gbit/s, and two wakeups were 10 to 15 percent of its time.
const SPIN: Duration = Duration::from_us(500);
/// Time to poll while foreign work wants the core. A sleep and a wakeup take as long, so whenever the
/// message comes, the wait costs at most twice the minimum (the ski rental rule).
const SPIN_FOREIGN: Duration = Duration::from_us(50);
/// Time to poll if ranks share the core: a thread that polls keeps its peers from answering.
const SPIN_SHARED: Duration = Duration::from_us(1);
/// Time after polling for which a thread yields if ranks share its core. A thread that waits until others
/// have copied some MiB yields for as long, since a sleep and a wakeup interrupt all cores.
const YIELDS: Duration = Duration::from_ms(2);
/// A yield takes less than this where no other thread wants the core (0.3 us), and more if another one
/// takes it, even if only to answer and to return it (3 us).
const SWITCH: Duration = Duration::from_ns(1_500);
/// If a yield, or the time between two polls of the rails, takes longer than this, another thread has
/// computed until the end of its time slice. A thread that sleeps instead is late by 50 us, a fortieth of
/// this.
const LONG: Duration = Duration::from_ms(2);
/// Two long times among this many times mean foreign work. Ranks that share a core have one in hundreds.
const FEW: u32 = 64;
/// After the second long time the thread does not yield, or polls less, for as long as that one took. The
/// factor doubles with each further long time, up to PART: so long times are at most one part in PART.
const PART: u64 = 64;
/// Time after which a waiting thread yields to ranks of other nodes that need its core, though messages come:
/// a sleep and a wakeup take as long. Otherwise two ranks that feed each other keep both cores for whole time
/// slices (3 ms), and the next rank of a chain does not run. Ranks of one node do not yield so: pairs that
/// run at the same time would lose each other (streams of 64 KiB take twice as long).
const TURN: Duration = Duration::from_us(50);
/// Surplus of waits that ended after a switch over waits of the same length that ended without one. A
/// message that is there at once counts for neither: its sender may have had this core before.
const SURE: u8 = 2;
const MOST: u8 = 4;
/// A thread that shares its core still polls for a microsecond in one of TRIAL waits: ranks that talk to
/// each other and run at the same time on two cores need no switches as long as both poll for each other.
const TRIAL: u8 = 8;
/// Interval of yields while polling: longer than most messages take, and free where no other thread wants
/// the core.
const YIELD_EVERY: Duration = Duration::from_us(20);

/// Detects foreign work on the core by long times among short ones.
#[derive(Debug, Default)]
struct Foreign {
    /// Short times until the last long one is forgotten: a long time sets FEW, a short one subtracts 1.
    long: u32,
    /// End of the time during which foreign work is expected.
    until: Instant,
    /// Length of that time, as a multiple of the last long time.
    pause: u64,
}

impl Foreign {
    /// Records a short time that has ended now; it is ignored while foreign work is expected.
    fn short(&mut self, now: Instant) {
        self.long = self.long.saturating_sub(u32::from(!self.is_there(now)));
    }

    /// Records a long time that has ended now.
    fn long(&mut self, now: Instant, took: Duration) {
        if self.long > 0 {
            self.pause = (2 * self.pause).clamp(1, PART);
            self.until = now + Duration::from_ns(self.pause * took.as_ns());
        } else {
            self.pause /= 2;
        }
        self.long = FEW;
    }

    /// Returns whether foreign work is expected now.
    fn is_there(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// Observations of the latest waits.
#[derive(Debug, Default)]
pub(crate) struct CoreSharing {
    switches: u8,
    /// Whether another thread ran during the last yield, if there was one.
    switched: Option<bool>,
    /// Polling time of this wait.
    spun: Duration,
    waits: u8,
    /// Yields of this wait while it polled.
    yields: u64,
    /// Foreign work, detected by the duration of yields.
    in_yields: Foreign,
    /// Foreign work, detected by the time between two polls of the rails.
    in_looks: Foreign,
    /// Time of the last poll of the rails in this wait.
    looked: Option<Instant>,
    /// When others had the core for the last time.
    gave_way: Instant,
}

impl CoreSharing {
    /// Records that a thread begins to wait. The time before does not count, since it may have computed.
    #[inline]
    pub(crate) fn begins(&mut self) {
        self.looked = None;
    }

    /// Records that a waiting thread polls the rails.
    #[inline]
    fn looks(&mut self, now: Instant) {
        let before = self.looked.replace(now).unwrap_or(now);
        if now.since(before) >= LONG {
            self.in_looks.long(now, now.since(before));
        }
    }

    /// Returns the next action at the time `now`, after `quiet` without any event.
    #[inline]
    pub(crate) fn stage(&mut self, sharing: Sharing, now: Instant, quiet: Duration) -> Stage {
        let stage = self.next(sharing, now, quiet);
        self.yields += u64::from(stage == Stage::Yield);
        self.spun = quiet;
        if stage != Stage::Spin {
            self.looked = None;
        }
        stage
    }

    /// Returns the next action. Records the poll but not the action, for a thread that asks again unless the
    /// action is to poll.
    #[inline]
    pub(crate) fn next(&mut self, sharing: Sharing, now: Instant, quiet: Duration) -> Stage {
        self.looks(now);
        let spin = if self.in_looks.is_there(now) { SPIN_FOREIGN } else { SPIN };
        let is_trial = matches!(sharing, Sharing::Always(_)) && self.waits.is_multiple_of(TRIAL);
        let (spin, yields) = match sharing {
            Sharing::Never => (spin, Duration::ZERO),
            _ if self.switches >= SURE && !is_trial => (Duration::ZERO, YIELDS),
            Sharing::Perhaps => (spin, Duration::ZERO),
            Sharing::Always(_) => (SPIN_SHARED, YIELDS),
        };
        let may_yield = sharing != Sharing::Never && !self.in_yields.is_there(now);
        let is_probe = quiet.as_ns() >= (self.yields + 1) * YIELD_EVERY.as_ns();
        match quiet < spin {
            true if may_yield && is_probe => Stage::Yield,
            true => Stage::Spin,
            false if may_yield && quiet.as_ns() < spin.as_ns() + yields.as_ns() => Stage::Yield,
            false => Stage::Sleep,
        }
    }

    /// Whether a thread that waits and has just seen an event should let ranks of other nodes have its core.
    #[inline]
    pub(crate) fn gives_way(&self, now: Instant) -> bool {
        now.since(self.gave_way) >= TURN && !self.in_yields.is_there(now)
    }

    /// Records that a sleep has ended.
    pub(crate) fn slept(&mut self, now: Instant) {
        self.gave_way = now;
    }

    /// Records that a yield took this long, until `now`.
    pub(crate) fn yielded(&mut self, now: Instant, took: Duration) {
        self.gave_way = now;
        if took < LONG {
            self.in_yields.short(now)
        } else {
            self.in_yields.long(now, took)
        }
        // After a long yield every message is there, wherever its sender ran.
        self.switched = (took < LONG).then_some(took > SWITCH);
    }

    /// Records that an event has ended a wait or a part of it.
    #[inline]
    pub(crate) fn happened(&mut self, now: Instant) {
        self.looks(now);
        self.in_looks.short(now);
        self.waits = self.waits.wrapping_add(1);
        self.yields = 0;
        let is_alone = std::mem::take(&mut self.spun) > SWITCH;
        self.switches = match self.switched.take().or(is_alone.then_some(false)) {
            Some(true) => (self.switches + 1).min(MOST),
            Some(false) => self.switches.saturating_sub(1),
            None => self.switches,
        };
    }
}

#[cfg(test)]
#[path = "core_sharing_tests.rs"]
mod tests;
