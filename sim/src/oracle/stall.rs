//! Nothing stands still for long while one way is whole: requests that are under way end, one after the
//! other.

use super::Objection;
use super::ledger::Ledger;
use crate::network::Network;

/// A core that is so far in the future is somebody else's now.
const STARVED_NS: u64 = 500_000;

/// Watches the ends of requests over time.
#[derive(Debug)]
pub struct StallOracle {
    bound_ns: Option<u64>,
    /// Requests that have been submitted and that have ended, and when that changed last.
    seen: (usize, usize),
    since: u64,
    /// Longest time for which none ended while some were under way.
    pub longest_ns: u64,
}

impl StallOracle {
    /// With the longest time for which none may end; none: nobody looks.
    pub fn new(bound_ns: Option<u64>) -> StallOracle {
        StallOracle { bound_ns, seen: (0, 0), since: 0, longest_ns: 0 }
    }

    /// Looks at the ledger.
    ///
    /// # Errors
    /// Nothing has ended for too long.
    pub fn look(&mut self, now: u64, network: &Network, ledger: &Ledger) -> Result<(), Objection> {
        let Some(bound_ns) = self.bound_ns else { return Ok(()) };
        let open = ledger.open().count();
        let seen = (ledger.entries.len(), ledger.entries.len() - open);
        // Of a process without a core nothing is expected until it has one again, and nobody may look before.
        let back_at = network.doing.iter().map(|doing| doing.local_ns).filter(|at| *at > now + STARVED_NS);
        let back_at = back_at.max();
        if seen != self.seen || open == 0 || back_at.is_some() {
            (self.seen, self.since) = (seen, back_at.unwrap_or(now).max(self.since));
            return Ok(());
        }
        let stands_ns = now.saturating_sub(self.since);
        self.longest_ns = self.longest_ns.max(stands_ns);
        if stands_ns <= bound_ns {
            return Ok(());
        }
        let entry = ledger.open().next().map(ToString::to_string).unwrap_or_default();
        Err(format!("nothing has ended for {} us while a way is whole: {entry}", stands_ns / 1000))
    }
}
