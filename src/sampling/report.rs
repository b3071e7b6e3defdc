//! Messages to the user: that a measurement runs, its progress, and warnings. The results of a measurement,
//! its failure and disturbances go to the log at level info: the user need not do anything about them.

use super::bar::Bar;
use crate::lines;
use nmad_launch::local::stamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Messages of a measurement, printed if this rank reports for its host.
pub(super) struct Report {
    speaks: bool,
    /// Whether to list the measurements at the end; a user who asked for them sees them anyway.
    explains: bool,
    /// Whether the user knows that profiles cannot be stored.
    said: bool,
    measured: Vec<String>,
    /// The warnings about disturbed measurements.
    doubts: Vec<String>,
    since: Option<Instant>,
    bar: Bar,
}

impl Report {
    pub(super) fn new(speaks: bool, explains: bool) -> Report {
        let bar = Bar::hidden();
        let (measured, doubts) = (Vec::new(), Vec::new());
        Report { speaks, explains, said: false, measured, doubts, since: None, bar }
    }

    /// Prints a warning about a problem that the user can correct.
    pub(super) fn say(&self, text: &str) {
        self.log(log::Level::Warn, text);
    }

    /// Prints a line on standard error, or in the program's log if it has one.
    fn log(&self, level: log::Level, text: &str) {
        if self.speaks || lines::has_other() {
            self.bar.suspend(|| log::log!(level, "{text}"));
        }
    }

    /// Reports a message only once.
    pub(super) fn once(&mut self, text: &str) {
        if !std::mem::replace(&mut self.said, true) {
            self.say(text);
        }
    }

    /// Begins a measurement, with a bar that is only drawn on a terminal.
    pub(super) fn begin(&mut self, what: &str) {
        self.since.get_or_insert_with(Instant::now);
        self.measured.push(what.into());
        self.bar = Bar::of(what);
    }

    pub(super) fn progress(&self, part: f64) {
        self.bar.advance(part);
    }

    /// Reports a failed measurement, on the rank that notices it. Profiles are then learnt from messages.
    pub(super) fn failed(&mut self, text: &str) {
        self.bar.clear();
        self.measured.pop();
        self.speaks = true;
        self.log(log::Level::Info, text);
    }

    /// Records a disturbed measurement, whose profile is provisional.
    pub(super) fn doubtful(&mut self, text: String) {
        self.doubts.push(text);
    }

    /// Ends all measurements.
    pub(super) fn end(&mut self) {
        self.bar.clear();
        let Some(since) = self.since.filter(|_| !self.measured.is_empty()) else { return };
        // Only a rank that has measured gets here.
        self.speaks = true;
        if self.explains {
            let (what, seconds) = (self.measured.join(", "), since.elapsed().as_secs_f64());
            let is_over = !self.said && self.doubts.is_empty();
            let once = if is_over { ", once for this hardware" } else { "" };
            self.log(log::Level::Info, &format!("measured {what} in {seconds:.1} s{once} (see nmad info)"));
        }
        self.doubts.iter().for_each(|doubt| self.log(log::Level::Info, doubt));
    }
}

/// Returns the present time like `2026-03-01 12:00 UTC`.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    utc(seconds)
}

fn utc(seconds: u64) -> String {
    let text = stamp::text(Duration::from_secs(seconds));
    let (date, minute) = (&text[..10], &text[11..16]);
    format!("{date} {minute} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_formatted_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_772_366_400, "2026-03-01 12:00 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
