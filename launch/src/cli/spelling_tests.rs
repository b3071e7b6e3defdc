//! Command lines as scripts for other launchers have them.

use std::time::Duration;

use super::super::{BindTo, Launcher};
use super::*;
use crate::binding::{Level, Target};

const CORE: BindTo = (Target::Part(Level::Core), 1);

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
            Ok((Some(4), vec!["a".into()])),
            "{line}"
        );
    }
    assert_eq!(read("a").unwrap().count, None);
}

#[test]
fn what_follows_the_program_is_its_own() {
    let args = read("-l prog -np 3 -l --help -genv A B -- x").unwrap();
    assert_eq!(args.command.len(), 10);
    assert!(args.tag_output);
    assert_eq!(args.count, None);
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
    let args = read("--timeout 1.5 --bind core --stdin all --oversubscribe --hosts-from none prog").unwrap();
    assert_eq!(args.timeout, Some(Duration::from_millis(1500)));
    assert_eq!((args.bind_to, args.stdin), (Some(CORE), super::super::StdinChoice::All));
    assert_eq!(args.hosts_from.as_deref(), Some("none"));
}

#[test]
fn machines_in_all_spellings() {
    for line in ["-hosts a:2,b a", "--hosts a:2,b a", "-host a:2,b a", "-H a:2,b a", "--host a:2,b a"] {
        assert_eq!(read(line).unwrap().hosts, Some("a:2,b".into()), "{line}");
    }
    for line in ["-f x a", "-hostfile x a", "--hostfile x a", "-machinefile x a", "--machinefile x a"] {
        assert_eq!(read(line).unwrap().hostfile, Some("x".into()), "{line}");
    }
    for line in ["-ppn 3 a", "--ppn=3 a", "-perhost 3 a", "-N 3 a", "--npernode 3 a"] {
        assert_eq!(read(line).unwrap().ppn, Some(3), "{line}");
    }
    let args = read("-launcher ssh -launcher-exec /x/agent --map-by node:PE=2 --report-bindings a").unwrap();
    assert_eq!((args.launcher, args.launcher_exec.as_deref()), (Launcher::Ssh, Some("/x/agent")));
    assert!(args.map_by.in_turns && args.map_by.width == Some(2) && args.report_bindings);
    assert_eq!(read("-bootstrap slurm a").unwrap().launcher, Launcher::Srun);
}

#[test]
fn what_only_tunes_other_launchers_is_kept_for_one_warning() {
    let args = read("--mca btl tcp,self -n 2 -mca a b -rmk slurm -verbose prog --mca c d").unwrap();
    assert_eq!(args.ignored, ["--mca btl tcp,self", "-mca a b", "-rmk slurm", "-verbose"]);
    assert_eq!((args.count, args.command.len()), (Some(2), 4));
}

#[test]
fn the_version_names_the_project() {
    for line in ["--version", "-version", "-V"] {
        let told = read(line).expect_err("it is an answer");
        assert!(
            told.starts_with("mpiexec (NewMadeleine) ") && told.contains(env!("CARGO_PKG_VERSION")),
            "{told}"
        );
    }
}

#[test]
fn folders_and_cores_in_all_spellings() {
    for line in ["-wdir /x -bind-to core a", "-wd /x --bind-to core a", "--wdir=/x --bind=core a"] {
        let args = read(line).unwrap();
        let found = (args.wdir, args.bind_to, args.command.len());
        assert_eq!(found, (Some("/x".into()), Some(CORE), 1), "{line}");
    }
}

#[test]
fn a_file_of_programs_takes_the_place_of_programs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    std::fs::write(file.path(), "# two\n-n 2 ./serve 'a b' \\\n  c\n\n-np 3 ./work :x\n").unwrap();
    for option in ["-configfile", "--configfile"] {
        let args = read(&format!("-l {option} {path}")).unwrap();
        assert_eq!((args.count, args.tag_output), (Some(2), true));
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
        ("-n 0 a", "number of ranks, 1 to"),
        ("-n abc a", "invalid value 'abc'"),
        ("-n abc a", "number of ranks, 1 to"),
        ("-nabc a", "there is no option -nabc"),
        ("-n", "a value is required"),
        ("-n -3 a", "invalid value '-3'"),
        ("--bogus a", "there is no option --bogus here"),
        ("--bogus=3 a", "there is no option --bogus here"),
        ("-env A a", "no program follows"),
        ("--env A a", "--env A: it should be of the form NAME=VALUE"),
        ("-rankfile x a", "there is no option -rankfile"),
        ("-outfile-pattern x a", "there is no option -outfile-pattern"),
        ("-launcher teleport a", "auto, ssh"),
        ("-bind-to board a", "core, hwthread"),
        ("--map-by ppr:2:socket a", "ppr:N:node"),
        ("-hosts a -f b a", "cannot be used with"),
        ("-genvnone -genvlist A a", "cannot be used with"),
        ("--timeout 0 a", "more than zero"),
        ("--timeout soon a", "number of seconds"),
        ("-ppn x a", "number of ranks"),
        ("-host", "-host needs a value"),
        ("-configfile", "-configfile needs a file"),
        ("-configfile /no/such/file", "cannot read the file of programs /no/such/file"),
        ("-initial-errhandler MPI_ERRORS_RETURN a", "mpi_errors_return"),
        ("-genv A", "-genv NAME VALUE"),
        ("--help", "Examples:"),
    ] {
        let error = read(line).expect_err(line);
        assert!(error.contains(words), "{line}: {error}");
        // What clap advises by itself is for other commands.
        assert!(!error.contains("tip:") && !error.contains("\n\n\n"), "{line}: {error}");
    }
}
