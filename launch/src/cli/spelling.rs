//! Spellings of `mpiexec`: long options with a single dash, and options of other launchers.
//!
//! The table of [`super::options`] has the meanings of MPICH's and Open MPI's options.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};

use super::options::{Meaning, directive, mca, meaning, one_dash};
use super::{RunArgs, file};

/// Our options that take the next word as their value and have no other spelling.
const WITH_VALUE: [&str; 3] = ["-n", "-c", "--ranks"];

/// Text of `--version` after the name.
const VERSION: &str = concat!("(NewMadeleine) ", env!("CARGO_PKG_VERSION"));

/// Parses a whole command line (without the program's own name) for a program called `name`.
///
/// # Errors
/// clap's errors, which explain themselves when printed (`error.exit()`); `--help` is one of them.
pub fn parse(name: &'static str, words: impl IntoIterator<Item = OsString>) -> Result<RunArgs, clap::Error> {
    let mut command = RunArgs::augment_args(Command::new(name).version(VERSION));
    let words = rewrite(words).map_err(|error| error.format(&mut command))?;
    let matches = command.try_get_matches_from_mut([name.into()].into_iter().chain(words))?;
    RunArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Converts mpiexec's spellings into ours, up to the program. Programs that use [`RunArgs`] below a
/// subcommand call this on the words behind it.
///
/// # Errors
/// An unknown option, with its whole name, or an option without its value.
pub fn rewrite(words: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, clap::Error> {
    let mut words = words.into_iter().collect::<Vec<_>>().into_iter();
    let mut out = Vec::new();
    let mut from_file = false;
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default().to_owned();
        if text == "--" || !text.starts_with('-') {
            out.push(word);
            out.extend(words);
            break;
        }
        if let Some(words) = directives(&text, &mut words)? {
            out.extend(words);
        } else if let Some(found) = meaning(&text) {
            out.extend(translated(&text, found, &mut words)?);
        } else if let Some((name, value)) = text.split_once('=')
            && let Some(Meaning::Value(ours)) = meaning(name)
        {
            out.push(format!("{ours}{value}").into());
        } else if ["-configfile", "-app"].contains(&one_dash(&text)) {
            if from_file {
                return Err(usage(&format!("a file of programs cannot name another one ({text})")));
            }
            (words, from_file) = (all_programs(&text, words)?, true);
        } else if ["-genv", "-env"].contains(&one_dash(&text)) {
            out.push(assignment(one_dash(&text), text.starts_with("--"), &mut words)?);
        } else if one_dash(&text) == "-mca" {
            out.push(component(&text, &mut words)?);
        } else if one_dash(&text) == "-x" {
            out.extend(exported(words.next()));
        } else if WITH_VALUE.contains(&text.as_str()) {
            out.extend([Some(word), words.next()].into_iter().flatten());
        } else {
            known(&text)?;
            out.push(word);
        }
    }
    Ok(out)
}

/// Translates an option of another launcher.
fn translated(
    option: &str,
    meaning: Meaning,
    words: &mut std::vec::IntoIter<OsString>,
) -> Result<Option<OsString>, clap::Error> {
    Ok(match meaning {
        Meaning::Value(ours) => Some(joined(ours, &value(option, words)?)),
        Meaning::Flag(ours) => Some(ours.into()),
        Meaning::Granted => None,
        Meaning::Ignored(count) => Some(ignored(option, words.by_ref().take(count))),
        Meaning::Remedy(advice) => return Err(usage(&format!("there is no option {option} here: {advice}"))),
    })
}

fn value(option: &str, words: &mut std::vec::IntoIter<OsString>) -> Result<OsString, clap::Error> {
    words.next().ok_or_else(|| usage(&format!("{option} needs a value; see --help")))
}

/// Translates options whose value is a list of words that are options here: `--output tag,timestamp`.
/// `None`: `option` is none of these.
fn directives(
    option: &str,
    words: &mut std::vec::IntoIter<OsString>,
) -> Result<Option<Vec<OsString>>, clap::Error> {
    let (name, in_word) = option.split_once('=').map_or((option, None), |(name, list)| (name, Some(list)));
    // Open MPI 4 has longer forms of --tag-output; all of them contain the rank.
    if one_dash(name) == "-tag-output-fullname" || one_dash(name) == "-tag-output-detailed" {
        return Ok(Some(vec!["--tag-output".into()]));
    }
    if !["-output", "-display", "-rank-by"].contains(&one_dash(name)) {
        return Ok(None);
    }
    let list = match in_word {
        Some(list) => list.to_owned(),
        None => value(name, words)?.to_string_lossy().into_owned(),
    };
    let mut out = Vec::new();
    for word in list.split([',', ':']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        if let Some((_, folder)) = word.split_once('=').filter(|_| lower.starts_with("dir=")) {
            out.push(joined("--output-filename=", folder.as_ref()));
        } else if let Some((_, file)) = word.split_once('=').filter(|_| lower.starts_with("file=")) {
            out.push(format!("--outfile={file}.%r.out").into());
            out.push(format!("--errfile={file}.%r.err").into());
        } else {
            let found = directive(name, &lower);
            let found = found.ok_or_else(|| usage(&format!("{name} {word}: there is no such word here")))?;
            out.extend(translated(&format!("{name} {word}"), found, words)?);
        }
    }
    Ok(Some(out))
}

/// Translates Open MPI's `--mca NAME VALUE`.
fn component(option: &str, words: &mut std::vec::IntoIter<OsString>) -> Result<OsString, clap::Error> {
    let name = value(option, words)?;
    let value = value(option, words)?;
    Ok(match mca(&name.to_string_lossy()) {
        Some(ours) => joined(ours, &value),
        None => ignored(option, [name, value].into_iter()),
    })
}

/// Checks whether an option can be one of clap's: with one dash a letter, or a letter and its number.
fn known(text: &str) -> Result<(), clap::Error> {
    let is_long = text.strip_prefix("--").is_some_and(is_ours);
    let is_count = ["-n", "-c"].iter().any(|name| {
        text.strip_prefix(name).is_some_and(|rest| rest.trim_start_matches('=').parse::<u32>().is_ok())
    });
    if is_long || is_count || text.len() <= 2 {
        return Ok(());
    }
    let name = text.split('=').next().unwrap_or(text);
    Err(usage(&format!(
        "there is no option {name} here; see --help (options of the program follow its name, and those of \
         MPICH and Open MPI that only tune their launchers may stand here)"
    )))
}

/// Returns whether the name of a long option, with or without a value behind it, is in [`RunArgs`].
pub fn is_ours(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let is_of = |arg: &clap::Arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
    };
    ["help", "version"].contains(&name) || RunArgs::augment_args(Command::new("")).get_arguments().any(is_of)
}

/// Joins an option, up to its `=`, and its value.
fn joined(option: &str, value: &OsStr) -> OsString {
    let mut out = OsString::from(option);
    out.push(value);
    out
}

fn ignored(option: &str, values: impl Iterator<Item = OsString>) -> OsString {
    let values = values.map(|value| value.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(option.to_owned()).chain(values).collect();
    format!("--ignored={}", words.join(" ")).into()
}

/// Reads `-configfile FILE`: the words of the file replace all further words.
fn all_programs(
    option: &str,
    mut words: std::vec::IntoIter<OsString>,
) -> Result<std::vec::IntoIter<OsString>, clap::Error> {
    let path = words.next().ok_or_else(|| usage(&format!("{option} needs a file of programs")))?;
    if let Some(word) = words.next() {
        let word = word.display();
        return Err(usage(&format!("{option} names all programs of the job: '{word}' cannot follow it")));
    }
    file::words(&path).map(Vec::into_iter).map_err(|why| usage(&why))
}

/// Reads `-genv NAME VALUE`, or `NAME=VALUE` in one word; `--env` has only the second form, as `--help`
/// says.
fn assignment(
    option: &str,
    has_two_dashes: bool,
    words: &mut std::vec::IntoIter<OsString>,
) -> Result<OsString, clap::Error> {
    let fail = || usage(&format!("{option} needs a name and a value, as in `{option} NAME VALUE`"));
    let name = words.next().ok_or_else(fail)?;
    let mut out = joined(&format!("-{option}="), &name);
    if !name.as_encoded_bytes().contains(&b'=') {
        if has_two_dashes && option == "-env" {
            let name = name.display();
            return Err(usage(&format!(
                "--env {name}: it should be of the form NAME=VALUE; ranks get variables that are set anyway, \
                 and in two words it is `-env NAME VALUE`"
            )));
        }
        let value = words.next().ok_or_else(fail)?;
        if words.as_slice().is_empty() {
            let (name, value) = (name.display(), value.display());
            return Err(usage(&format!(
                "{option} {name} {value}: {value} is taken for the value, and no program follows; in one \
                 word it is `{option} {name}=VALUE`"
            )));
        }
        out.push("=");
        out.push(value);
    }
    Ok(out)
}

/// Translates Open MPI's `-x`: `-x NAME` has no effect, since ranks inherit the variable anyway; `-x
/// NAME=VALUE` sets it.
fn exported(word: Option<OsString>) -> Option<OsString> {
    let word = word.filter(|word| word.as_encoded_bytes().contains(&b'='))?;
    Some(joined("--env=", &word))
}

/// Cuts a command off at the first `:`, and returns the words of each further program.
pub fn programs(command: &mut Vec<OsString>) -> Vec<Vec<OsString>> {
    let mut parts = command.split(|word| word == ":").map(<[OsString]>::to_vec);
    let first = parts.next().unwrap_or_default();
    let more = parts.collect();
    *command = first;
    more
}

fn usage(text: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, text)
}

#[cfg(test)]
#[path = "spelling_tests.rs"]
mod tests;
