//! The lowest of the last observations.

use crate::clock::Duration;

/// Observations in half a window. On a busy core, 8 double the chance that all observations of a window were
/// disturbed; 32 take as long to follow a change as a burst of messages lasts.
const HALF: u8 = 16;

/// The lowest of the last 16 to 32 observations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Low {
    /// Lowest observation of the present half of the window.
    this: Duration,
    /// Lowest observation of the half before; zero if there was none.
    before: Duration,
    count: u8,
}

impl Low {
    /// Adds an observation and returns the lowest one of the window.
    #[inline]
    pub(crate) fn note(&mut self, took: Duration) -> Duration {
        // A coarse clock may see no time at all; zero stands for no observation.
        let took = took.max(Duration::from_ns(1));
        if self.count == HALF {
            (self.before, self.this, self.count) = (self.this, took, 0);
        }
        self.this = if self.count == 0 { took } else { self.this.min(took) };
        self.count += 1;
        self.value()
    }

    /// Returns the lowest observation of the window; zero without observations.
    #[inline]
    pub(crate) fn value(&self) -> Duration {
        if self.before == Duration::ZERO { self.this } else { self.this.min(self.before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_adds_nothing_and_a_change_is_followed_within_a_window() {
        let (mut low, ns) = (Low::default(), Duration::from_ns);
        assert_eq!(low.value(), Duration::ZERO);
        for turn in 0..1_000 {
            let noise = if turn % 16 == 5 { 0 } else { 3_000_000 };
            low.note(ns(2_000 + noise));
            assert!(turn < 5 || low.value() == ns(2_000), "{turn}: {low:?}");
        }
        assert_eq!(low.note(ns(1_000)), ns(1_000), "a faster one counts at once");
        let late = (1..100).find(|_| low.note(ns(5_000)) == ns(5_000)).expect("it follows");
        assert!((16..=32).contains(&late), "{late}");
    }
}
