//! The configuration file: its path, its content, and errors in it.

use super::Given;
use super::values::setting;
use crate::error::SessionError;
use nmad_words::setting::{CONFIG, Values, keys, of_key};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The variable with the path of the file.
const NAMED: &str = CONFIG.name;

/// Looks up an environment variable.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

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

/// Returns the settings of the file, in its order.
///
/// # Errors
/// The text is no TOML, or it has keys that are no settings, or values that are neither text nor numbers.
pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<Given>, SessionError> {
    let name = path.display();
    let wrong = |why| setting(&name.to_string(), why);
    let table = DeTable::parse(text).map_err(|error| wrong(in_words(&error, text)))?;
    let mut all = Vec::new();
    for (key, value) in table.get_ref() {
        let place = place(text, key.span().start);
        let Some(one) = of_key(key.get_ref()) else {
            return Err(wrong(format!("{place}: unknown key '{}' (there are: {})", key.get_ref(), keys())));
        };
        let is_number = matches!(one.values, Values::Size { .. } | Values::Seconds);
        let value = match value.get_ref() {
            DeValue::String(value) => value.to_string(),
            DeValue::Integer(value) if is_number => value.to_string(),
            DeValue::Float(value) if is_number => value.to_string(),
            _ => return Err(wrong(in_quotes(text, key.span().start).unwrap_or(place))),
        };
        all.push(Given {
            setting: one,
            value,
            is_in_environment: false,
            name: format!("{name}: {}", key.get_ref()),
        });
    }
    Ok(all)
}

/// Returns the number of the line with this byte, in words.
fn place(text: &str, at: usize) -> String {
    format!("line {}", text[..at.min(text.len())].matches('\n').count() + 1)
}

/// Returns cause and remedy of an invalid file: often quotes are missing.
fn in_words(error: &toml::de::Error, text: &str) -> String {
    let at = error.span().map_or(0, |span| span.start);
    in_quotes(text, at).unwrap_or_else(|| format!("{}: {}", place(text, at), error.message()))
}

/// Returns the remedy for a value without quotes in the line with this byte, if that is what is wrong there.
fn in_quotes(text: &str, at: usize) -> Option<String> {
    let place = place(text, at);
    let line = text.lines().nth(text[..at.min(text.len())].matches('\n').count())?;
    let (key, value) = unquoted(line)?;
    Some(format!("{place}: a text needs quotes: {key} = \"{value}\""))
}

/// Returns the key of a line and its value as text, if it is a known key and the value has no quotes.
fn unquoted(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split('#').next().unwrap_or_default().trim());
    let is_text = value.starts_with(['"', '\'']);
    if is_text || value.is_empty() || of_key(key).is_none() {
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
        entries(Path::new("f"), text).expect_err(text).to_string()
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
        assert!(error("log = 'off'\nstrategi = 'x'").contains("line 2: unknown key 'strategi'"));
        assert!(error("[a").contains("line 1: "));
        let values = entries(Path::new("f"), "chunk = 65536\nreturn_within = 0.5").expect("numbers");
        let mut values: Vec<&str> = values.iter().map(|given| &*given.value).collect();
        values.sort_unstable();
        assert_eq!(values, ["0.5", "65536"]);
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
