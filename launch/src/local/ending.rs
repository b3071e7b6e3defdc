//! Decides whether the job ends, the reason, and the exit code; the loop carries out the decisions.

use std::time::{Duration, Instant};

use super::{RankEnd, RankStatus};
use crate::pmi::server::Phase;

/// Exit code of a job that ran out of time, as of `timeout(1)`.
pub const CODE_TIMEOUT: i32 = 124;

/// Waiting time before a rank that exits without finalizing counts as the reason. It may exit because
/// another rank died, whose end the system reports a little later than peers see their links close.
const PATIENCE: Duration = Duration::from_millis(100);

/// Stage of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The user asked the ranks to end (^C); they have no deadline until the first one ends.
    Interrupted,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    Killed,
}

/// Action of the loop on the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    None,
    /// Forward this signal.
    Send(i32),
    /// SIGTERM, and SIGKILL after a while.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl Order {
    /// Returns the signals of this action, in order.
    pub fn signals(self) -> Vec<i32> {
        match self {
            Order::None => Vec::new(),
            Order::Send(signal) => vec![signal],
            // A stopped rank would handle it only after SIGCONT.
            Order::Terminate => vec![libc::SIGTERM, libc::SIGCONT],
            Order::Kill => vec![libc::SIGKILL],
        }
    }
}

/// State of the end of one job.
#[derive(Debug)]
pub struct Ending {
    stage: Stage,
    grace: Duration,
    /// The other ranks continue when one fails.
    keep_going: bool,
    /// The job survives deaths, which then do not determine its exit code unless no rank has ended
    /// otherwise.
    ft: bool,
    survived: bool,
    death: Option<i32>,
    code: Option<i32>,
    reason: Option<String>,
    /// The time, code and reason of a suspected end, unless another rank turns out to have died before.
    suspect: Option<(Instant, i32, String)>,
}

impl Ending {
    /// Makes the state of a running job; `grace` is the time from SIGTERM to SIGKILL.
    pub fn new(grace: Duration) -> Ending {
        let stage = Stage::Running;
        Ending {
            stage,
            grace,
            keep_going: false,
            ft: false,
            survived: false,
            death: None,
            code: None,
            reason: None,
            suspect: None,
        }
    }

    /// Sets whether the other ranks continue when one fails.
    pub fn keep_going(self, keep_going: bool) -> Ending {
        Ending { keep_going, ..self }
    }

    /// Records the loss of a host with ranks: a death without a code of its own.
    pub fn host_lost(&mut self) {
        self.death.get_or_insert(1);
    }

    /// Sets whether the job survives deaths of ranks.
    pub fn ft(self, ft: bool) -> Ending {
        Ending { ft, ..self }
    }

    /// Returns the exit code so far, 0 to 255.
    pub fn code(&self) -> i32 {
        let death = self.death.filter(|_| !self.survived);
        self.code.or(death).unwrap_or(0)
    }

    /// Returns the reason of the end, if the job is ending.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the time of the next call of [`Ending::overdue`].
    pub fn deadline(&self) -> Option<Instant> {
        match (self.stage, &self.suspect) {
            (_, Some((until, ..))) => Some(*until),
            (Stage::Asked(kill_at), None) => Some(kill_at),
            _ => None,
        }
    }

    /// Handles expired deadlines: kills ranks after the grace time, or confirms a suspected reason.
    pub fn overdue(&mut self, now: Instant) -> Order {
        if self.suspect.as_ref().is_some_and(|(until, ..)| *until <= now) {
            return self.confirm(now);
        }
        match self.stage {
            Stage::Asked(kill_at) if kill_at <= now => self.kill(),
            _ => Order::None,
        }
    }

    /// Confirms the suspected reason, since no other rank has died.
    pub fn confirm(&mut self, now: Instant) -> Order {
        match self.suspect.take() {
            Some((_, code, reason)) => self.because(code, reason, now),
            None => Order::None,
        }
    }

    /// Ends the job: `reason` is reported, and the ranks have to end. The first reason counts.
    pub fn because(&mut self, code: i32, reason: String, now: Instant) -> Order {
        self.first(code);
        if self.reason.is_some() {
            return Order::None;
        }
        self.reason = Some(reason);
        match self.stage {
            Stage::Running | Stage::Interrupted => {
                self.stage = Stage::Asked(now + self.grace);
                Order::Terminate
            }
            Stage::Asked(_) | Stage::Killed => Order::None,
        }
    }

    /// Handles the user's signal: forwards the first one, kills at the second.
    pub fn interrupted(&mut self, signal: i32) -> Order {
        match self.stage {
            Stage::Running => {
                self.stage = Stage::Interrupted;
                Order::Send(signal)
            }
            Stage::Interrupted | Stage::Asked(_) => {
                self.first(128 + signal);
                self.kill()
            }
            Stage::Killed => Order::None,
        }
    }

    /// Records the end of a rank on this host; `phase` is its PMI state.
    pub fn rank_ended(&mut self, end: &RankEnd, phase: Phase, host: Option<&str>, now: Instant) -> Order {
        let code = match (end.status, phase) {
            (RankStatus::Exited(0), Phase::Joined) => 1,
            (status, _) => status.code(),
        };
        if self.ft && self.stage == Stage::Running && is_death(end, phase) {
            self.death.get_or_insert(code & 0xff);
            return Order::None;
        }
        self.survived = true;
        if code == 0 {
            return Order::None;
        }
        if self.keep_going && self.stage == Stage::Running {
            self.first(code);
            return Order::None;
        }
        if matches!((self.stage, end.status, phase), (Stage::Running, RankStatus::Exited(_), Phase::Joined)) {
            self.suspect.get_or_insert_with(|| (now + PATIENCE, code, describe(end, phase, host)));
            return Order::None;
        }
        if matches!(end.status, RankStatus::Killed { .. }) {
            self.suspect = None;
        }
        self.first(code);
        match (self.stage, end.status) {
            // After finalizing, a nonzero exit code is a result and does not end the other ranks.
            (Stage::Running, RankStatus::Exited(_)) if phase == Phase::Finalized => Order::None,
            (Stage::Running, _) => self.because(code, describe(end, phase, host), now),
            // All ranks got the same signal: the others get the grace time, and no reason is reported.
            (Stage::Interrupted, _) => {
                self.stage = Stage::Asked(now + self.grace);
                Order::None
            }
            (Stage::Asked(_) | Stage::Killed, _) => Order::None,
        }
    }

    fn kill(&mut self) -> Order {
        self.stage = Stage::Killed;
        Order::Kill
    }

    /// Sets the exit code if it is the first. A parent sees eight bits. Abort with code 0 counts as success
    /// (Fortran's STOP uses it).
    fn first(&mut self, code: i32) {
        self.code.get_or_insert(code & 0xff);
    }
}

/// Returns whether this end is a death to the other ranks: the process was killed, or ended without
/// finalizing.
pub fn is_death(end: &RankEnd, phase: Phase) -> bool {
    phase == Phase::Joined || (phase == Phase::Silent && end.status.code() != 0)
}

pub(super) fn describe(end: &RankEnd, phase: Phase, host: Option<&str>) -> String {
    let host = host.map_or(String::new(), |host| format!(" on {host}"));
    let hint = match (end.status, phase) {
        (RankStatus::Exited(0), Phase::Joined) => {
            " without calling MPI_Finalize (in C nmad_close, in Rust Session::close)"
        }
        (RankStatus::Exited(_), Phase::Joined) => " without calling MPI_Finalize",
        // Exit code of the system's loader and shells; a missing program is reported before.
        (RankStatus::Exited(127), Phase::Silent) => {
            " (a library or command is missing, as told above: does LD_LIBRARY_PATH lead to it on that host?)"
        }
        _ => "",
    };
    format!("rank {} (pid {}{host}) {}{hint}", end.rank, end.pid, end.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ending: &mut Ending, status: RankStatus, phase: Phase) -> Order {
        let end = RankEnd { rank: 2, pid: 123, status };
        ending.rank_ended(&end, phase, None, Instant::now())
    }

    #[test]
    fn a_killed_rank_ends_the_job_and_the_first_code_counts() {
        let mut ending = Ending::new(Duration::from_secs(1));
        let killed = RankStatus::Killed { signal: libc::SIGSEGV, core: false };
        assert_eq!(ended(&mut ending, killed, Phase::Joined), Order::Terminate);
        assert_eq!(ending.reason(), Some("rank 2 (pid 123) was killed by SIGSEGV"));
        let terminated = RankStatus::Killed { signal: libc::SIGTERM, core: false };
        assert_eq!(ended(&mut ending, terminated, Phase::Joined), Order::None);
        assert_eq!(ending.code(), 139);
        assert_eq!(ending.overdue(Instant::now()), Order::None);
        assert_eq!(ending.overdue(Instant::now() + Duration::from_secs(2)), Order::Kill);
    }

    #[test]
    fn exit_codes_after_finalizing_do_not_end_the_job() {
        for (status, phase, order, code) in [
            (0, Phase::Silent, Order::None, 0),
            (0, Phase::Finalized, Order::None, 0),
            (3, Phase::Silent, Order::Terminate, 3),
            (3, Phase::Finalized, Order::None, 3),
        ] {
            let mut ending = Ending::new(Duration::ZERO);
            assert_eq!(ended(&mut ending, RankStatus::Exited(status), phase), order, "{status} {phase:?}");
            assert_eq!(ending.code(), code, "{status} {phase:?}");
        }
    }

    #[test]
    fn an_exit_without_finalizing_is_the_reason_unless_another_rank_was_killed() {
        let killed = RankStatus::Killed { signal: libc::SIGKILL, core: false };
        for (status, alone) in [(0, 1), (3, 3)] {
            for (other, code) in [(None, alone), (Some(RankStatus::Exited(9)), alone), (Some(killed), 137)] {
                let mut ending = Ending::new(Duration::from_secs(1));
                assert_eq!(ended(&mut ending, RankStatus::Exited(status), Phase::Joined), Order::None);
                let until = ending.deadline().expect("it will not wait long");
                let order = match other {
                    Some(killed @ RankStatus::Killed { .. }) => ended(&mut ending, killed, Phase::Joined),
                    Some(exited) => {
                        assert_eq!(ended(&mut ending, exited, Phase::Joined), Order::None);
                        ending.overdue(until)
                    }
                    None => ending.overdue(until),
                };
                assert_eq!((order, ending.code()), (Order::Terminate, code), "{status} {other:?}");
                let reason = ending.reason().expect("there is one");
                assert_eq!(reason.contains("SIGKILL"), code == 137, "{reason}");
                assert_eq!(ending.overdue(until + Duration::from_secs(2)), Order::Kill);
            }
        }
    }

    #[test]
    fn deaths_that_a_job_survives_do_not_count_unless_no_rank_is_left() {
        let killed = RankStatus::Killed { signal: libc::SIGKILL, core: false };
        for (last, code) in [((RankStatus::Exited(0), Phase::Finalized), 0), ((killed, Phase::Joined), 137)] {
            let mut ending = Ending::new(Duration::ZERO).keep_going(true).ft(true);
            assert_eq!(ended(&mut ending, killed, Phase::Joined), Order::None);
            assert_eq!(ended(&mut ending, last.0, last.1), Order::None);
            assert_eq!((ending.code(), ending.reason()), (code, None));
        }
        let mut ending = Ending::new(Duration::ZERO).keep_going(true).ft(true);
        assert_eq!(ended(&mut ending, RankStatus::Exited(0), Phase::Joined), Order::None);
        assert_eq!(ended(&mut ending, RankStatus::Exited(3), Phase::Finalized), Order::None);
        assert_eq!(ending.code(), 3);
    }

    #[test]
    fn the_second_interrupt_kills() {
        let mut ending = Ending::new(Duration::from_secs(9));
        assert_eq!(ending.interrupted(libc::SIGINT), Order::Send(libc::SIGINT));
        assert_eq!(ending.deadline(), None);
        assert_eq!(ending.interrupted(libc::SIGINT), Order::Kill);
        assert_eq!(ending.code(), 130);
        assert_eq!(ending.interrupted(libc::SIGINT), Order::None);
    }

    #[test]
    fn the_code_of_an_abort_is_that_of_the_job_zero_included() {
        for (code, expected) in [(0, 0), (3, 3), (256, 0), (-1, 255)] {
            let mut ending = Ending::new(Duration::ZERO);
            assert_eq!(ending.because(code, "x".into(), Instant::now()), Order::Terminate);
            let terminated = RankStatus::Killed { signal: libc::SIGTERM, core: false };
            assert_eq!(ended(&mut ending, terminated, Phase::Joined), Order::None);
            assert_eq!(ending.code(), expected);
        }
    }
}
