//! The settings of NewMadeleine, each declared once in a [table](ALL).
//!
//! From the table come parsing and checks, errors with the nearest name, `nmad info`, the manual pages, the
//! control variables of MPI's tools interface, and the tables of `docs/settings.md`.

mod misspelt;
mod show;
mod table;

pub use misspelt::{misspelt, misspelt_among};
pub use show::{markdown, roff, text};
pub use table::*;

use crate::size::parse_size;
use std::ffi::OsString;
use std::time::Duration;

/// Prefix of all names.
pub const PREFIX: &str = "NMAD_";

/// A setting: a variable of the environment, which may also be set in other places.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable of the environment.
    pub name: &'static str,
    /// Who reads it, and therefore where else it can be set.
    pub reader: Reader,
    /// The valid values.
    pub values: Values,
    /// What holds if nothing sets it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// When to touch it; empty if the meaning says it.
    pub when: &'static str,
}

/// Who reads a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A session, when it opens: also a key of the configuration file, of `Options::set` and of
    /// `nmad_open_with`.
    Session,
    /// A session at any time: also with calls and with MPI's tools interface while the program runs.
    Running,
    /// MPI, in `MPI_Init`.
    Mpi,
    /// Launchers, and the part of a process that joins its job.
    Launcher,
    /// The wrappers of compilers (`mpicc`).
    Compiler,
    /// Nobody sets it but launchers and testbeds, for the processes that they start.
    Internal,
}

/// The valid values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// A number of bytes, at least `least`, with or without a unit.
    Size {
        /// The least valid number of bytes.
        least: u64,
    },
    /// A number of seconds, which may be a fraction.
    Seconds,
    /// On or off.
    Switch,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Text of this form, which its reader checks.
    Form(&'static str),
}

impl Setting {
    /// Returns the key of the configuration file and of programs; `None` if a session does not read it.
    pub fn key(&self) -> Option<String> {
        let is_of_session = matches!(self.reader, Reader::Session | Reader::Running);
        is_of_session.then(|| self.name[PREFIX.len()..].to_lowercase())
    }

    /// Returns the value in the environment, if there is one that is not empty.
    pub fn value(&self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }

    /// Returns the value in the environment as text, checked; `None` if it is not set.
    ///
    /// # Errors
    /// The message names the setting, the cause, and valid values.
    pub fn text(&self) -> Result<Option<String>, String> {
        let Some(value) = self.value() else { return Ok(None) };
        let value = value.into_string().map_err(|_| format!("{}: it is not UTF-8", self.name))?;
        self.check(&value).map_err(|why| format!("{}: {why}", self.name))?;
        Ok(Some(value))
    }

    /// Returns whether it is on: as the environment says, or by default.
    ///
    /// # Errors
    /// Errors of [`Setting::text`].
    pub fn is_on(&self) -> Result<bool, String> {
        let value = self.text()?;
        Ok(switch(value.as_deref().unwrap_or(self.default)).unwrap_or(false))
    }

    /// Returns the number of seconds in the environment; `None` if it is not set.
    ///
    /// # Errors
    /// Errors of [`Setting::text`], or the value is no number of seconds.
    pub fn duration(&self) -> Result<Option<Duration>, String> {
        self.text()?.map(|value| seconds(&value)).transpose()
    }

    /// Checks a value against [`Setting::values`].
    ///
    /// # Errors
    /// The message names cause and remedy.
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.values {
            Values::Size { .. } => self.size(value).map(drop),
            Values::Seconds => seconds(value).map(drop),
            Values::Switch => {
                switch(value).map(drop).ok_or_else(|| format!("'{value}' is neither on nor off"))
            }
            Values::Words(words) if words.contains(&value) => Ok(()),
            Values::Words(words) => Err(format!("'{value}' is none of {}", words.join(", "))),
            Values::Form(_) => Ok(()),
        }
    }

    /// Parses a number of bytes, which must not be below the least one of this setting.
    ///
    /// # Errors
    /// The message names cause and remedy.
    pub fn size(&self, value: &str) -> Result<u64, String> {
        let bytes = parse_size(value)?;
        match self.values {
            Values::Size { least } if bytes < least => {
                Err(format!("'{value}' is too little: at least {least} B"))
            }
            _ => Ok(bytes),
        }
    }
}

/// Returns the setting of a variable's name.
pub fn named(name: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.name == name).copied()
}

/// Returns the settings of sessions, which have keys.
pub fn of_sessions() -> impl Iterator<Item = &'static Setting> {
    ALL.iter().copied().filter(|setting| setting.key().is_some())
}

/// Returns the keys of all settings of sessions, separated by commas, for messages.
pub fn keys() -> String {
    of_sessions().filter_map(Setting::key).collect::<Vec<_>>().join(", ")
}

/// Returns the setting of a key of the configuration file.
pub fn of_key(key: &str) -> Option<&'static Setting> {
    of_sessions().find(|setting| setting.key().as_deref() == Some(key))
}

/// Parses the words for on and off; `None` for other words.
pub fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Parses a number of seconds, which may be a fraction.
///
/// # Errors
/// The message names cause and remedy.
pub fn seconds(value: &str) -> Result<Duration, String> {
    let seconds = value.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("'{value}' is no number of seconds: write 3, 0.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_says_something_of_each() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for setting in ALL.iter().copied() {
            assert!(setting.name.starts_with(PREFIX) && setting.meaning.len() > 8, "{}", setting.name);
            let has_point = setting.meaning.ends_with('.') || setting.when.ends_with('.');
            assert!(!has_point && !setting.default.is_empty(), "{}", setting.name);
            assert_eq!(named(setting.name), Some(setting));
            assert_eq!(setting.key().and_then(|key| of_key(&key)), setting.key().map(|_| setting));
        }
    }

    #[test]
    fn defaults_are_valid_values() {
        for setting in ALL {
            let is_value = !matches!(setting.values, Values::Form(_)) && !setting.default.contains(' ');
            assert!(!is_value || setting.check(setting.default).is_ok(), "{}", setting.name);
        }
    }

    #[test]
    fn wrong_values_are_told_with_the_right_ones() {
        for (setting, value, words) in [
            (&CREDIT, "1k", "at least 262144 B"),
            (&CHUNK, "x", "64KiB"),
            (&RETURN_WITHIN, "-1", "no number of seconds"),
            (&CROSS_MEMORY, "maybe", "neither on nor off"),
            (&SAMPLE, "never", "none of auto, off, force"),
        ] {
            assert!(setting.check(value).is_err_and(|why| why.contains(words)), "{}", setting.name);
        }
        for (value, is_on) in [("1", true), ("True", true), ("OFF", false), ("no", false)] {
            assert_eq!(switch(value), Some(is_on), "{value}");
        }
    }
}
