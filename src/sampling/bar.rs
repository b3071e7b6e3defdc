//! A progress bar on the terminal during measurements; empty without the feature `progress-bar`, which
//! programs choose.

#[cfg(feature = "progress-bar")]
pub(super) use shown::Bar;

#[cfg(feature = "progress-bar")]
mod shown {
    use indicatif::{ProgressBar, ProgressStyle};

    /// Steps of the bar.
    const STEPS: u64 = 100;

    /// A bar, drawn only on a terminal.
    pub(crate) struct Bar(ProgressBar);

    impl Bar {
        /// Makes a bar that is not drawn.
        pub(crate) fn hidden() -> Bar {
            Bar(ProgressBar::hidden())
        }

        pub(crate) fn of(what: &str) -> Bar {
            let style = ProgressStyle::with_template("nmad: measuring {msg} [{bar:30}]");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(STEPS).with_style(style);
            bar.set_message(what.to_string());
            Bar(bar)
        }

        pub(crate) fn advance(&self, part: f64) {
            self.0.set_position((part * STEPS as f64) as u64);
        }

        pub(crate) fn clear(&self) {
            self.0.finish_and_clear();
        }

        /// Prints a message with the bar hidden.
        pub(crate) fn suspend(&self, say: impl FnOnce()) {
            self.0.suspend(say);
        }
    }
}

/// A bar that is not drawn.
#[cfg(not(feature = "progress-bar"))]
pub(super) struct Bar;

#[cfg(not(feature = "progress-bar"))]
impl Bar {
    pub(super) fn hidden() -> Bar {
        Bar
    }

    pub(super) fn of(_: &str) -> Bar {
        Bar
    }

    pub(super) fn advance(&self, _: f64) {}

    pub(super) fn clear(&self) {}

    pub(super) fn suspend(&self, say: impl FnOnce()) {
        say();
    }
}
