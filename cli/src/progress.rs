//! How far a command is: a bar where standard error is a terminal, elsewhere a line now and then.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::output::tell_user;

/// From one line to the next: short enough to see that a command of minutes is alive, long enough that one of
/// an hour does not fill its log.
const EVERY: Duration = Duration::from_secs(15);

/// The progress of a command, as its user sees it.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// None: a terminal shows the bar, or nothing is to be shown.
    lines: Option<Lines>,
}

/// Lines on standard error.
struct Lines {
    /// The command's name, with which each line begins.
    command: String,
    last: Instant,
}

impl Progress {
    /// Shows nothing.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), lines: None }
    }

    /// Shows a bar of `steps` steps in the form of `template`, a template of indicatif.
    pub(crate) fn new(command: &str, template: &str, steps: u64) -> Progress {
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // The bar draws on a terminal only.
        let lines = (!std::io::stderr().is_terminal()).then(|| Lines::new(command, Instant::now()));
        Progress { bar, lines }
    }

    /// Draws the bar anew now and then, also while it stands still.
    pub(crate) fn steadily(self) -> Progress {
        self.bar.enable_steady_tick(Duration::from_millis(500));
        self
    }

    /// Sets the number of steps that are done; `text` names the last or the next step.
    pub(crate) fn at(&mut self, steps: u64, text: &str) {
        self.bar.set_position(steps);
        self.step(text);
    }

    /// Shows `text`, which names the last or the next step.
    pub(crate) fn step(&mut self, text: &str) {
        self.bar.set_message(text.to_string());
        self.bar.tick();
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.line(text, Instant::now())) {
            tell_user(line);
        }
    }

    /// Writes a line without the bar in between.
    pub(crate) fn tell(&self, text: &str) {
        self.bar.suspend(|| tell_user(text));
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Lines {
    fn new(command: &str, now: Instant) -> Lines {
        Lines { command: command.into(), last: now }
    }

    /// The line to write now; none: the last one was not long ago.
    fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        let is_due = now.duration_since(self.last) >= EVERY;
        is_due.then(|| {
            self.last = now;
            format!("nmad {}: {text}", self.command)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_now_and_then() {
        let start = Instant::now();
        let mut lines = Lines::new("bench compare", start);
        let mut at = |seconds: u64| lines.line("8 B done", start + Duration::from_secs(seconds));
        assert_eq!(at(1), None);
        assert_eq!(at(16).as_deref(), Some("nmad bench compare: 8 B done"));
        assert_eq!(at(20), None);
        assert!(at(31).is_some());
    }
}
