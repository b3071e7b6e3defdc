//! `mpiexec` spellings: long options with a single dash, and those of other launchers.
//!
//! There is no standard beyond `-n`; the options rewritten here are those of MPICH and Open MPI.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};

use super::{RunArgs, file};

/// Options of ours that take the next word as their value and are not spelled otherwise.
const WITH_VALUE: [&str; 5] = ["-n", "-c", "--ranks", "--timeout", "--stdin"];

/// Options with a value, in all of their spellings, and what they are here. One dash or two: both are around.
const SPELLED: [(&str, &str); 28] = [
    ("-np", "--ranks"),
    ("--n", "--ranks"),
    ("-hosts", "--hosts"),
    ("-host", "--hosts"),
    ("-H", "--hosts"),
    ("-hostfile", "--hostfile"),
    ("-machinefile", "--hostfile"),
    ("-f", "--hostfile"),
    ("-ppn", "--ppn"),
    ("-perhost", "--ppn"),
    ("-npernode", "--ppn"),
    ("-N", "--ppn"),
    ("-map-by", "--map-by"),
    ("-bind-to", "--bind-to"),
    ("-bind", "--bind-to"),
    ("-launcher", "--launcher"),
    ("-bootstrap", "--launcher"),
    ("-launcher-exec", "--launcher-exec"),
    ("-bootstrap-exec", "--launcher-exec"),
    ("-prefix", "--prefix"),
    ("-wdir", "--wdir"),
    ("-wd", "--wdir"),
    ("-genvlist", "--genvlist"),
    ("-initial-errhandler", "--initial-errhandler"),
    ("-hosts-from", "--hosts-from"),
    ("-driver", "--driver"),
    ("-timeout", "--timeout"),
    ("-s", "--stdin"),
];

/// Options without a value, and what they are here.
const FLAGS: [(&str, &str); 9] = [
    ("-l", "--tag-output"),
    ("-prepend-rank", "--tag-output"),
    ("-tag-output", "--tag-output"),
    ("-genvnone", "--genvnone"),
    ("-oversubscribe", "--oversubscribe"),
    ("-report-bindings", "--report-bindings"),
    ("-version", "--version"),
    ("-V", "--version"),
    ("-help", "--help"),
];

/// Options that ask for what is so anyway: ranks get all of our environment, and root needs no permission of
/// ours.
const GRANTED: [&str; 3] = ["-genvall", "-envall", "-allow-run-as-root"];

/// Options of MPICH's and Open MPI's launchers that tune these launchers and mean nothing here, with the
/// number of their values. Ignoring them is told once. What would change where or how ranks run is not among
/// them.
const FOREIGN: [(&str, usize); 20] = [
    ("-mca", 2),
    ("-gmca", 2),
    ("-prtemca", 2),
    ("-pmixmca", 2),
    ("-gpmixmca", 2),
    ("-display", 1),
    ("-personality", 1),
    ("-rmk", 1),
    ("-iface", 1),
    ("-demux", 1),
    ("-topolib", 1),
    ("-usize", 1),
    ("-pmi-port", 0),
    ("-verbose", 0),
    ("-v", 0),
    ("-print-all-exitcodes", 0),
    ("-print-rank-map", 0),
    ("-disable-hostname-propagation", 0),
    ("-enable-hostname-propagation", 0),
    ("-q", 0),
];

/// What `--version` prints after the name.
const VERSION: &str = concat!("(NewMadeleine) ", env!("CARGO_PKG_VERSION"));

/// Reads a whole command line (without the program's own name) for a program called `name`.
///
/// # Errors
/// clap's errors, which explain themselves when printed (`error.exit()`); `--help` is one of them.
pub fn parse(name: &'static str, words: impl IntoIterator<Item = OsString>) -> Result<RunArgs, clap::Error> {
    let mut command = RunArgs::augment_args(Command::new(name).version(VERSION));
    let words = rewrite(words).map_err(|error| error.format(&mut command))?;
    let matches = command.try_get_matches_from_mut([name.into()].into_iter().chain(words))?;
    RunArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Turns mpiexec's spellings into ours, up to the program; for whoever mounts [`RunArgs`] below a
/// command of its own, on what follows that command's name.
///
/// # Errors
/// An option that there is not, named as a whole, or that lacks its value.
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
        // Both `-genv` and `--genv` are around; `--n` would be read as the beginning of something.
        let single = text.strip_prefix('-').filter(|rest| rest.starts_with('-') && rest.len() > 2);
        let single = single.unwrap_or(&text);
        if let Some((_, ours)) = SPELLED.iter().find(|(name, _)| [single, &text].contains(name)) {
            let value = words.next().ok_or_else(|| usage(&format!("{text} needs a value; see --help")))?;
            out.push(joined(ours, &value));
        } else if let Some((_, ours)) = FLAGS.iter().find(|(name, _)| *name == single) {
            out.push((*ours).into());
        } else if let Some((_, count)) = FOREIGN.iter().find(|(name, _)| *name == single) {
            out.push(ignored(&text, words.by_ref().take(*count)));
        } else if single == "-configfile" {
            if from_file {
                return Err(usage("a file of programs cannot name another one (-configfile)"));
            }
            (words, from_file) = (all_programs(&text, words)?, true);
        } else if single == "-genv" || single == "-env" {
            out.push(assignment(single, text.starts_with("--"), &mut words)?);
        } else if single == "-x" {
            out.extend(exported(words.next()));
        } else if WITH_VALUE.contains(&text.as_str()) {
            out.extend([Some(word), words.next()].into_iter().flatten());
        } else if !GRANTED.contains(&single) {
            known(&text)?;
            out.push(word);
        }
    }
    Ok(out)
}

/// Whether an option can be one of clap's: with one dash a letter, or a letter and its number.
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

/// Whether the name of a long option, with or without a value behind it, is one of [`RunArgs`].
fn is_ours(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let is_of = |arg: &clap::Arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
    };
    ["help", "version"].contains(&name) || RunArgs::augment_args(Command::new("")).get_arguments().any(is_of)
}

/// An option and its value in one word.
fn joined(option: &str, value: &OsStr) -> OsString {
    let mut out = OsString::from(option);
    out.push("=");
    out.push(value);
    out
}

fn ignored(option: &str, values: impl Iterator<Item = OsString>) -> OsString {
    let values = values.map(|value| value.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(option.to_owned()).chain(values).collect();
    format!("--ignored={}", words.join(" ")).into()
}

/// `-configfile FILE`: what the file says takes the place of everything that could follow.
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

/// `-genv NAME VALUE`, or `NAME=VALUE` in one word; `--env` has the second form only, as `--help` says.
fn assignment(
    option: &str,
    has_two_dashes: bool,
    words: &mut std::vec::IntoIter<OsString>,
) -> Result<OsString, clap::Error> {
    let fail = || usage(&format!("{option} needs a name and a value, as in `{option} NAME VALUE`"));
    let mut out = OsString::from(format!("-{option}="));
    let name = words.next().ok_or_else(fail)?;
    out.push(&name);
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

/// Open MPI's `-x NAME` exports what ranks have anyway; `-x NAME=VALUE` sets it.
fn exported(word: Option<OsString>) -> Option<OsString> {
    let word = word.filter(|word| word.as_encoded_bytes().contains(&b'='))?;
    let mut out = OsString::from("--env=");
    out.push(word);
    Some(out)
}

/// Cuts a command off at the first `:`, and gives back the words of each program that follows.
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
