//! Detects dead peers: a peer is probed after a short silence, and its link ends after too many unanswered
//! probes.
//!
//! No message reports a host that lost power, a cable that was pulled at the other side, or a firewall that
//! begins to drop datagrams. A process that computes still answers, by its progress thread. Probes are
//! counted, not time: a process that was itself stopped, or had no core, has sent no probes meanwhile, and
//! takes no peer for dead.
//!
//! An error that the system reports about a peer may be forged: an ICMP message has no tag. So it does not
//! end the link by itself. The peer is probed at once, and an error that repeats for several unanswered
//! probes is believed.

use rustix::io::Errno;
use std::time::Duration;

/// Silence after which a peer is probed, in milliseconds. If the process has ended, the kernel answers at
/// once.
const SILENT_MS: u64 = 500;
/// Time between two probes, and between two checks of a link, in milliseconds.
pub const ASK_MS: u64 = 250;
/// Consecutive unanswered probes with an error, before the error is believed.
const REFUSALS: u64 = 3;

/// The probes of one peer.
#[derive(Debug)]
pub struct Silence {
    /// Number of probes that may stay unanswered.
    most: u64,
    heard_ms: u64,
    asked: u64,
    asked_ms: u64,
    /// The error that the system has reported since the last probe.
    reported: Option<Errno>,
    refused: u64,
}

/// The next step for a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing: a datagram has arrived lately, or a probe is pending.
    Nothing,
    /// Send a probe.
    Ask,
    /// Too many probes are unanswered: end the link.
    Over,
    /// Probes are unanswered, and the system reports this error: end the link.
    Refused(Errno),
}

impl Silence {
    /// Starts the detection; a peer that is silent for `bound` is dead.
    pub fn new(bound: Duration, now_ms: u64) -> Self {
        let most = (bound.as_millis() as u64).saturating_sub(SILENT_MS).div_ceil(ASK_MS).max(1);
        Silence { most, heard_ms: now_ms, asked: 0, asked_ms: 0, reported: None, refused: 0 }
    }

    /// Records an error of the system about the peer.
    pub fn refused(&mut self, e: Errno) {
        self.reported = Some(e);
    }

    /// Decides the next step; `has_arrived`: a datagram has arrived since the last call.
    pub fn judge(&mut self, has_arrived: bool, now_ms: u64) -> Duty {
        if has_arrived {
            (self.heard_ms, self.asked, self.refused) = (now_ms, 0, 0);
        }
        // A timer with period `ASK_MS` may expire a little early by this clock.
        let asked_lately = self.asked > 0 && now_ms < self.asked_ms + ASK_MS * 9 / 10;
        let quiet = self.reported.is_some() || now_ms >= self.heard_ms + SILENT_MS;
        if asked_lately || !quiet {
            return Duty::Nothing;
        }
        if let Some(e) = self.reported.take().filter(|_| self.asked > 0) {
            self.refused += 1;
            if self.refused >= REFUSALS {
                return Duty::Refused(e);
            }
        }
        if self.asked >= self.most {
            return Duty::Over;
        }
        (self.asked, self.asked_ms) = (self.asked + 1, now_ms);
        Duty::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of probes until the link ended, and when that was.
    fn silent_from(now_ms: u64, every_ms: u64) -> (u64, u64) {
        let (mut silence, mut asked) = (Silence::new(Duration::from_secs(6), now_ms), 0);
        for now_ms in (now_ms..now_ms + 10_000_000).step_by(every_ms as usize) {
            match silence.judge(false, now_ms) {
                Duty::Nothing => {}
                Duty::Ask => asked += 1,
                Duty::Over => return (asked, now_ms),
                Duty::Refused(e) => panic!("nothing was refused: {e}"),
            }
        }
        panic!("silence is endless")
    }

    #[test]
    fn silence_ends_at_its_bound_however_often_it_is_looked_at() {
        for every_ms in [1, 25, 249, 250] {
            let (asked, at) = silent_from(1_000, every_ms);
            assert_eq!(asked, 22);
            assert!((6_000..=8_000).contains(&at), "over at {at} ms, looked at every {every_ms} ms");
        }
    }

    #[test]
    fn a_stopped_process_probes_before_it_judges() {
        let (asked, at) = silent_from(0, 60_000);
        assert!(asked == 22 && at >= 22 * 60_000);
    }

    #[test]
    fn an_answer_ends_the_silence() {
        let mut silence = Silence::new(Duration::from_secs(6), 0);
        for now_ms in (0..100_000).step_by(250) {
            assert_ne!(silence.judge(now_ms % 5_000 == 0, now_ms), Duty::Over);
        }
    }

    /// Returns when the link ends if the system reports at each check that no process listens at the peer's
    /// port.
    fn refused_at(answers: impl Fn(u64) -> bool) -> Option<u64> {
        let mut silence = Silence::new(Duration::from_secs(6), 0);
        (0..100_000).step_by(250).find(|&now_ms| {
            silence.refused(Errno::CONNREFUSED);
            silence.judge(answers(now_ms), now_ms) == Duty::Refused(Errno::CONNREFUSED)
        })
    }

    #[test]
    fn errors_are_believed_only_while_probes_are_unanswered() {
        assert_eq!(refused_at(|_| false), Some(750));
        assert_eq!(refused_at(|now_ms| now_ms < 10_000), Some(10_500));
        assert_eq!(refused_at(|now_ms| now_ms % 750 == 0), None);
    }

    #[test]
    fn a_single_error_ends_no_link() {
        let mut silence = Silence::new(Duration::from_secs(6), 0);
        silence.refused(Errno::CONNREFUSED);
        let duties: Vec<_> = (250..=1_500).step_by(250).map(|now_ms| silence.judge(false, now_ms)).collect();
        assert_eq!(duties[0], Duty::Ask, "asked at once");
        assert!(duties[1..].iter().all(|duty| matches!(duty, Duty::Ask | Duty::Nothing)), "{duties:?}");
    }
}
