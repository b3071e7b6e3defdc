//! `mpiexec` spellings: long options with a single dash, and those of other launchers.
//!
//! There is no standard beyond `-n`; what is rewritten here is what scripts for MPICH and Open MPI say.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};

use super::{RunArgs, file, machines};

/// Options of ours that take the next word as their value.
const WITH_VALUE: [&str; 7] = ["-n", "-c", "--ranks", "--timeout", "--bind", "--stdin", "--hosts-from"];

/// Options that choose machines, in the spellings of MPICH and Open MPI.
const HOSTS: [&str; 3] = ["-hosts", "-host", "-H"];
/// Options that name files of machines.
const HOST_FILES: [&str; 3] = ["-f", "-hostfile", "-machinefile"];

/// What they come to where all machines are this one.
const STAY: &str = "--hosts-from=none";

/// Options that share ranks out among machines.
const SHARES: [&str; 5] = ["-ppn", "-perhost", "-N", "-map-by", "-npernode"];

/// Reads a whole command line (without the program's own name) for a program called `name`.
///
/// # Errors
/// clap's errors, which explain themselves when printed (`error.exit()`); `--help` is one of them.
pub fn parse(name: &'static str, words: impl IntoIterator<Item = OsString>) -> Result<RunArgs, clap::Error> {
    let mut command = RunArgs::augment_args(Command::new(name).version(env!("CARGO_PKG_VERSION")));
    let words = rewrite(words).map_err(|error| error.format(&mut command))?;
    let matches = command.try_get_matches_from_mut([name.into()].into_iter().chain(words))?;
    RunArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Turns mpiexec's spellings into ours, up to the program; for whoever mounts [`RunArgs`] below a
/// command of its own, on what follows that command's name.
///
/// # Errors
/// An option that asks for something this launcher does not do; the error says what to do instead.
pub fn rewrite(words: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, clap::Error> {
    let mut words = words.into_iter().collect::<Vec<_>>().into_iter();
    let mut out = Vec::new();
    let mut from_file = false;
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        // Both `-genv` and `--genv` are around.
        let single =
            text.strip_prefix('-').filter(|rest| rest.starts_with('-') && rest.len() > 2).unwrap_or(text);
        match single {
            _ if text == "--" || !text.starts_with('-') => {
                out.push(word);
                out.extend(words);
                break;
            }
            "-np" | "--n" => out.extend([Some("-n".into()), words.next()].into_iter().flatten()),
            "-genv" | "-env" => out.push(assignment(single, &mut words)?),
            "-x" => out.extend(exported(words.next())),
            "-l" | "-prepend-rank" | "-tag-output" => out.push("--tag-output".into()),
            "-wdir" | "-wd" => out.extend([Some("--wdir".into()), words.next()].into_iter().flatten()),
            "-initial-errhandler" => {
                out.extend([Some("--initial-errhandler".into()), words.next()].into_iter().flatten())
            }
            "-configfile" if from_file => {
                return Err(usage("a file of programs cannot name another one (-configfile)"));
            }
            "-configfile" => (words, from_file) = (all_programs(text, words)?, true),
            "-bind-to" => out.extend([Some("--bind".into()), words.next()].into_iter().flatten()),
            "-oversubscribe" => out.push("--oversubscribe".into()),
            // Ranks get all of our environment, and root needs no permission of ours.
            "-genvall" | "-envall" | "-allow-run-as-root" => {}
            hosts if HOSTS.contains(&hosts) => {
                let list = words.next().ok_or_else(|| usage(&format!("{text} needs a list of hosts")))?;
                stay(text, machines::foreign_in_list(&list), &mut out)?;
            }
            files if HOST_FILES.contains(&files) => {
                let file = words.next().ok_or_else(|| usage(&format!("{text} needs a file of hosts")))?;
                let foreign = machines::foreign_in_file(&file).map_err(|why| usage(&why))?;
                stay(text, foreign, &mut out)?;
            }
            shares if SHARES.contains(&shares) => {
                return Err(elsewhere(text, "shares ranks out among machines"));
            }
            _ if WITH_VALUE.contains(&text) => out.extend([Some(word), words.next()].into_iter().flatten()),
            _ => out.push(word),
        }
    }
    Ok(out)
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

/// `-genv NAME VALUE`, or `NAME=VALUE` in one word.
fn assignment(option: &str, words: &mut impl Iterator<Item = OsString>) -> Result<OsString, clap::Error> {
    let fail = || usage(&format!("{option} needs a name and a value, as in `{option} NAME VALUE`"));
    let mut out = OsString::from(format!("-{option}="));
    let name = words.next().ok_or_else(fail)?;
    out.push(&name);
    if !name.as_encoded_bytes().contains(&b'=') {
        out.push("=");
        out.push(words.next().ok_or_else(fail)?);
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

/// Stays on this machine, if no other is named.
fn stay(option: &str, foreign: Option<String>, out: &mut Vec<OsString>) -> Result<(), clap::Error> {
    if let Some(host) = foreign {
        return Err(elsewhere(option, &format!("names {host}, which is not this machine")));
    }
    if !out.iter().any(|word| word == STAY) {
        out.push(STAY.into());
    }
    Ok(())
}

fn elsewhere(option: &str, what: &str) -> clap::Error {
    usage(&format!(
        "{option} {what}, but this launcher starts ranks on this machine only; for several \
         machines start the same program with mpich's `mpiexec {option} ...` or with `srun --mpi=pmi2`, and \
         for the hosts of a testbed use --hosts-from"
    ))
}

fn usage(text: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(line: &str) -> Result<RunArgs, String> {
        parse("mpiexec", line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn all_spellings_of_the_count() {
        for line in
            ["-n 4 a", "--n 4 a", "-np 4 a", "--np 4 a", "-c 4 a", "-n4 a", "--ranks=4 a", "--ranks 4 -- a"]
        {
            assert_eq!(
                read(line).map(|args| (args.count, args.command)),
                Ok((4, vec!["a".into()])),
                "{line}"
            );
        }
        assert_eq!(read("a").unwrap().count, 1);
    }

    #[test]
    fn what_follows_the_program_is_its_own() {
        let args = read("-l prog -np 3 -l --help -genv A B -- x").unwrap();
        assert_eq!(args.command.len(), 10);
        assert!(args.tag_output);
        assert_eq!(args.count, 1);
    }

    #[test]
    fn variables_in_all_spellings() {
        let args = read("-genv A 1 -env B=2 --env C=3=4 -x D=5 -x E -genvall prog").unwrap();
        let shown = |pairs: &[(String, String)]| {
            pairs.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>()
        };
        assert_eq!(shown(&args.env), ["B:2", "C:3=4", "D:5"]);
        assert_eq!(shown(&args.genv), ["A:1"]);
    }

    #[test]
    fn the_other_options() {
        let args =
            read("--timeout 1.5 --bind core --stdin all --oversubscribe --hosts-from none prog").unwrap();
        assert_eq!(args.timeout, Some(Duration::from_millis(1500)));
        assert_eq!((args.bind, args.stdin), (super::super::Bind::Core, super::super::StdinChoice::All));
        assert_eq!(args.hosts_from.as_deref(), Some("none"));
    }

    #[test]
    fn hosts_that_are_this_machine_are_no_others() {
        for line in
            ["-host localhost a", "--host localhost:4 a", "-hosts localhost,127.0.0.1 a", "-H localhost a"]
        {
            let args = read(line).unwrap();
            assert_eq!((args.hosts_from.as_deref(), args.command.len()), (Some("none"), 1), "{line}");
        }
    }

    #[test]
    fn folders_and_cores_in_all_spellings() {
        for line in ["-wdir /x -bind-to core a", "-wd /x --bind-to core a", "--wdir=/x --bind=core a"] {
            let args = read(line).unwrap();
            let found = (args.wdir, args.bind, args.command.len());
            assert_eq!(found, (Some("/x".into()), super::super::Bind::Core, 1), "{line}");
        }
    }

    #[test]
    fn a_file_of_programs_takes_the_place_of_programs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        std::fs::write(file.path(), "# two\n-n 2 ./serve 'a b' \\\n  c\n\n-np 3 ./work :x\n").unwrap();
        for option in ["-configfile", "--configfile"] {
            let args = read(&format!("-l {option} {path}")).unwrap();
            assert_eq!((args.count, args.tag_output), (2, true));
            assert_eq!(args.command, ["./serve", "a b", "c", ":", "-np", "3", "./work", ":x"]);
        }
        assert!(read(&format!("-configfile {path} a")).unwrap_err().contains("'a' cannot follow it"));
        std::fs::write(file.path(), format!("-configfile {path}")).unwrap();
        assert!(read(&format!("-configfile {path}")).unwrap_err().contains("cannot name another"));
    }

    #[test]
    fn error_handlers_in_all_spellings() {
        for option in ["-initial-errhandler", "--initial-errhandler"] {
            let args = read(&format!("{option} mpi_errors_return a")).unwrap();
            assert_eq!(args.initial_errhandler.as_deref(), Some("mpi_errors_return"));
        }
    }

    #[test]
    fn wrong_lines_explain_themselves() {
        for (line, words) in [
            ("", "PROG"),
            ("-n 0 a", "0 is not in 1..="),
            ("-n x a", "invalid value 'x'"),
            ("-n", "a value is required"),
            ("--bogus a", "unexpected argument '--bogus'"),
            ("--env A a", "NAME=VALUE"),
            ("--timeout 0 a", "more than zero"),
            ("--timeout soon a", "number of seconds"),
            ("-hosts localhost,x.example a", "names x.example, which is not this machine"),
            ("-hostfile /no/such/file a", "cannot read the host list /no/such/file"),
            ("-ppn 2 a", "several machines"),
            ("-host", "-host needs a list"),
            ("-configfile", "-configfile needs a file"),
            ("-configfile /no/such/file", "cannot read the file of programs /no/such/file"),
            ("-initial-errhandler MPI_ERRORS_RETURN a", "mpi_errors_return"),
            ("-genv A", "-genv NAME VALUE"),
            ("--help", "Examples:"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
