//! Limits log lines about strangers to one a second, however many there are.

use log::Level;

/// Time between two lines, in milliseconds.
const EVERY_MS: u64 = 1000;

/// Pending log lines.
#[derive(Debug, Default)]
pub(super) struct Notices {
    told_ms: Option<u64>,
    /// The most severe pending line; of several, the last.
    waiting: Option<(Level, String)>,
    /// Number of other pending lines.
    more: u64,
}

impl Notices {
    /// Returns whether no line is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_none()
    }

    /// Adds a line.
    pub(super) fn note(&mut self, level: Level, text: String) {
        match &self.waiting {
            // A lower level is more severe.
            Some((worst, _)) if *worst < level => self.more += 1,
            Some(_) => {
                self.more += 1;
                self.waiting = Some((level, text));
            }
            None => self.waiting = Some((level, text)),
        }
    }

    /// The line for the log, if one is pending and none was taken within the last second.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<(Level, String)> {
        if self.told_ms.is_some_and(|at| now_ms < at + EVERY_MS) {
            return None;
        }
        let (level, text) = self.waiting.take()?;
        self.told_ms = Some(now_ms);
        Some(match std::mem::take(&mut self.more) {
            0 => (level, text),
            more => (level, format!("{text} (and {more} more events with processes that have no link)")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line_a_second_with_a_count_and_the_worst_event() {
        let mut notices = Notices::default();
        let mut lines = Vec::new();
        for ms in 0..2500 {
            let level = if ms == 700 { Level::Warn } else { Level::Info };
            notices.note(level, format!("event {ms}"));
            lines.extend(notices.take(ms));
        }
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], (Level::Info, "event 0".into()));
        assert_eq!(lines[1].0, Level::Warn);
        assert!(lines[1].1.starts_with("event 700 (and 999 more"), "{}", lines[1].1);
        assert!(notices.take(2999).is_none() && notices.take(3000).is_some() && notices.is_empty());
    }
}
