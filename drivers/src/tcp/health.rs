//! Detects a peer that is unreachable although its connection reports no error.
//!
//! An interface that went down resets no connection. On an idle link keepalive detects this; while data is
//! unacknowledged, the kernel retries for a quarter of an hour, and keepalive is suspended.
//! TCP_USER_TIMEOUT would bound that, but it also ends links to a peer that computes for long with a full
//! receive window. So this module asks the kernel periodically whether its retransmissions are unanswered
//! (TCP_INFO).

use super::sys::{self, TcpInfo};
use rustix::fd::BorrowedFd;

/// Period of the check in milliseconds.
pub const PERIOD_MS: u64 = 250;
/// Age of the last acknowledgement, in milliseconds, from which unanswered retransmissions count as a
/// failure.
const SILENT_MS: u32 = 1000;
/// Time in milliseconds for which every check must find a failure before the peer counts as dead.
const UNANSWERED_MS: u64 = 2500;

/// The results of earlier checks.
#[derive(Debug, Default)]
pub struct Health {
    unanswered_since: Option<u64>,
    checked_at: u64,
}

/// The state of a link with unacknowledged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything sent has been acknowledged: no further check until more is sent.
    Quiet,
    /// Data is unacknowledged, and the peer still answers.
    Busy,
    /// The peer has not answered for this number of milliseconds.
    Dead(u32),
}

impl Health {
    /// Asks the kernel if a period has passed; none: not yet.
    pub fn check(&mut self, fd: BorrowedFd<'_>, now_ms: u64) -> Option<Verdict> {
        if now_ms < self.checked_at + PERIOD_MS {
            return None;
        }
        self.checked_at = now_ms;
        sys::tcp_info(fd).ok().map(|info| self.judge(info, now_ms))
    }

    fn judge(&mut self, info: TcpInfo, now_ms: u64) -> Verdict {
        if info.unanswered == 0 || info.silent_ms < SILENT_MS {
            self.unanswered_since = None;
            return if info.unacknowledged == 0 { Verdict::Quiet } else { Verdict::Busy };
        }
        // A window probe that was just sent also counts as unanswered for one round trip, so one failure is
        // not enough.
        let since = *self.unanswered_since.get_or_insert(now_ms);
        if now_ms >= since + UNANSWERED_MS { Verdict::Dead(info.silent_ms) } else { Verdict::Busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(unacknowledged: u32, unanswered: u32, silent_ms: u32) -> TcpInfo {
        TcpInfo { unacknowledged, unanswered, silent_ms }
    }

    #[test]
    fn a_peer_that_answers_probes_of_a_full_window_lives() {
        let mut health = Health::default();
        for n in 0..1000 {
            let probe_under_way = u32::from(n % 4 == 0);
            let verdict = health.judge(info(0, probe_under_way, 5000), n * PERIOD_MS);
            assert_ne!(verdict, Verdict::Dead(5000), "at question {n}");
        }
    }

    #[test]
    fn retrying_in_vain_ends_the_link_within_the_bound() {
        let mut health = Health::default();
        let dead = (0..).find(|n| {
            let now = n * PERIOD_MS;
            matches!(health.judge(info(3, u32::from(*n > 0), now as u32), now), Verdict::Dead(_))
        });
        let after_ms = dead.unwrap_or(0) * PERIOD_MS;
        assert!((3000..5000).contains(&after_ms), "found after {after_ms} ms");
    }
}
