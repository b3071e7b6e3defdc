//! The configuration file: its path, its content, and errors in it.

use super::Options;
use super::values::setting;
use crate::error::SessionError;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable with the path of the file.
const NAMED: &str = "NMAD_CONFIG";

/// Looks up an environment variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    strategy: Option<String>,
    rails: Option<String>,
    driver: Option<String>,
    throttle: Option<String>,
    feed: Option<String>,
    eager_max: Option<Number>,
    in_place_min: Option<Number>,
    credit: Option<Number>,
    chunk: Option<Number>,
    congestion: Option<String>,
    return_within: Option<Number>,
    cross_memory: Option<String>,
    progress: Option<String>,
    sample: Option<String>,
    profile: Option<String>,
    explain: Option<String>,
    stats: Option<String>,
    trace: Option<String>,
    log: Option<String>,
}

/// A number, with a unit or as a plain number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Fraction(f64),
    Text(String),
}

impl Number {
    fn text(self) -> String {
        match self {
            Number::Whole(number) => number.to_string(),
            Number::Fraction(number) => number.to_string(),
            Number::Text(text) => text,
        }
    }
}

/// Returns the path of the file: the value of the variable, or the user's file, which need not exist.
pub(super) fn path(variable: Variable<'_>) -> Option<PathBuf> {
    if let Some(path) = variable(NAMED) {
        return Some(PathBuf::from(path));
    }
    let base = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    base.map(|base| base.join("nmad/config.toml"))
}

/// Returns the path and the text of the file; `None` if the user has none.
///
/// # Errors
/// The file exists or was named but cannot be read.
pub(super) fn find(variable: Variable<'_>) -> Result<Option<(PathBuf, String)>, SessionError> {
    let Some(path) = path(variable) else { return Ok(None) };
    let is_named = variable(NAMED).is_some();
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if is_named => Err(setting(NAMED, format!("cannot read {}: {error}", path.display()))),
        // No such file or folder: the user has none.
        Err(error) if is_nothing(&error) => Ok(None),
        Err(error) => Err(setting(&path.display().to_string(), format!("it cannot be read: {error}"))),
    }
}

fn is_nothing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

impl Options {
    /// Applies the settings of the file.
    pub(super) fn read_file(&mut self, path: &Path, text: &str) -> Result<(), SessionError> {
        let name = path.display();
        let wrong = |error: toml::de::Error| setting(&name.to_string(), in_words(&error, text));
        let file: File = toml::from_str(text).map_err(wrong)?;
        let number = |value: Option<Number>| value.map(Number::text);
        let entries = [
            ("strategy", file.strategy),
            ("rails", file.rails),
            ("driver", file.driver),
            ("throttle", file.throttle),
            ("feed", file.feed),
            ("eager_max", number(file.eager_max)),
            ("in_place_min", number(file.in_place_min)),
            ("credit", number(file.credit)),
            ("chunk", number(file.chunk)),
            ("congestion", file.congestion),
            ("return_within", number(file.return_within)),
            ("cross_memory", file.cross_memory),
            ("progress", file.progress),
            ("sample", file.sample),
            ("profile", file.profile),
            ("explain", file.explain),
            ("stats", file.stats),
            ("trace", file.trace),
            ("log", file.log),
        ];
        for (key, value) in entries {
            if let Some(value) = value {
                self.apply(&format!("{name}: {key}"), key, &value)?;
            }
        }
        Ok(())
    }
}

/// Returns cause and remedy of an invalid file: often quotes are missing.
fn in_words(error: &toml::de::Error, text: &str) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let number = text[..at].matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    let why = match unquoted(line) {
        Some((key, value)) => format!("a text needs quotes: {key} = \"{value}\""),
        None => error.message().to_string(),
    };
    format!("line {}: {why}", number + 1)
}

/// Returns the key of a line and its value as text, if it is a known key and the value has no quotes.
fn unquoted(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split('#').next().unwrap_or_default().trim());
    let is_text = value.starts_with(['"', '\'']);
    if is_text || value.is_empty() || !Options::KEYS.contains(&key) {
        return None;
    }
    // A list must be one text, and a switch a word.
    let value = value.trim_matches(['[', ']']).replace(['"', '\'', ' '], "");
    let value = match value.as_str() {
        "true" => "on".into(),
        "false" => "off".into(),
        _ => value,
    };
    Some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Options::default().read_file(Path::new("f"), text).expect_err(text).to_string()
    }

    #[test]
    fn a_text_without_quotes_is_shown_with_them() {
        for (text, right) in [
            ("strategy = fifo", "line 1: a text needs quotes: strategy = \"fifo\""),
            ("log = 'off'\nchunk = 64KiB # small", "line 2: a text needs quotes: chunk = \"64KiB\""),
            ("cross_memory = true", "cross_memory = \"on\""),
            ("throttle = ['4gbit', '1gbit']", "throttle = \"4gbit,1gbit\""),
            ("rails = 7", "rails = \"7\""),
            ("profile = /a/b", "profile = \"/a/b\""),
        ] {
            let found = error(text);
            assert!(found.contains(right) && found.starts_with("f: line"), "{found}");
        }
    }

    #[test]
    fn other_errors_keep_their_words_and_get_their_line() {
        assert!(error("log = 'off'\nstrategi = 'x'").contains("line 2: unknown field `strategi`"));
        assert!(error("[a").contains("line 1: "));
        assert!(error("chunk = 'x'").starts_with("f: chunk: 'x' is not a number of bytes"));
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let none = |_: &str| None;
        assert!(find(&none).expect("nobody names one").is_none());
        let named = |name: &str| (name == NAMED).then(|| "/no/such".into());
        assert!(find(&named).expect_err("it is not there").to_string().contains("NMAD_CONFIG: cannot read"));
        let home = |name: &str| (name == "HOME").then(|| "/dev/null".into());
        assert!(find(&home).expect("a user without a folder").is_none());
    }
}
