//! The log of programs without a logger: lines on standard error.
//!
//! The layers below report to the user with the macros of the crate `log`. A Rust program with a logger
//! gets these records there; for all other programs, such as those that use the C and MPI libraries, they
//! are printed.

use log::{LevelFilter, Log, Metadata, Record};
use nmad_words::tell_user;
use std::sync::OnceLock;

/// The default level.
pub(crate) const DEFAULT: LevelFilter = LevelFilter::Warn;

/// Whether the program's logger is this one; set when a session is opened.
static IS_OURS: OnceLock<bool> = OnceLock::new();

/// Prints records of at least this level, unless the program has a logger.
pub(crate) fn show(level: LevelFilter) {
    if *IS_OURS.get_or_init(|| log::set_logger(&Lines).is_ok()) {
        log::set_max_level(level);
    }
}

/// Returns whether the program has a logger of its own.
pub(crate) fn has_other() -> bool {
    IS_OURS.get() == Some(&false)
}

struct Lines;

impl Log for Lines {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        // Other libraries of the program may log as well, but have not asked us to print it.
        let ours = about.target().starts_with("nmad_") || about.target().starts_with("newmadeleine");
        ours && about.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            tell_user(format_args!("nmad: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Level;

    #[test]
    fn only_our_own_lines_are_shown() {
        show(DEFAULT);
        assert!(!has_other(), "no test has a logger");
        let shown = |target, level| Lines.enabled(&Metadata::builder().target(target).level(level).build());
        assert!(
            shown("nmad_drivers::udp::rail", Level::Warn) && shown("newmadeleine::session", Level::Error)
        );
        assert!(!shown("nmad_drivers::udp::rail", Level::Info) && !shown("hyper", Level::Error));
    }
}
