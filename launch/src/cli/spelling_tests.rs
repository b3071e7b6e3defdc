//! Tests with command lines of scripts for other launchers.

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
fn words_behind_the_program_are_its_arguments() {
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
    assert_eq!((args.bind_to, args.stdin), (Some(CORE), crate::Stdin::All));
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
    for line in ["-ppn 3 a", "--ppn=3 a", "-perhost 3 a", "-N 3 a", "--npernode 3 a", "-npernode=3 a"] {
        assert_eq!(read(line).unwrap().ppn, Some(3), "{line}");
    }
    assert_eq!(read("--pernode a").unwrap().ppn, Some(1));
    let args = read("-launcher ssh -launcher-exec /x/agent --map-by node:PE=2 --report-bindings a").unwrap();
    assert_eq!((args.launcher, args.launcher_exec.as_deref()), (Launcher::Ssh, Some("/x/agent")));
    assert!(args.map_by.in_turns && args.map_by.width == Some(2) && args.report_bindings);
    assert_eq!(read("-bootstrap slurm a").unwrap().launcher, Launcher::Srun);
}

#[test]
fn options_that_tune_other_launchers_are_collected_for_one_warning() {
    let args = read("--mca btl tcp,self -n 2 -mca a b -rmk slurm -verbose -q -v prog --mca c d").unwrap();
    assert_eq!(args.ignored, ["--mca btl tcp,self", "-mca a b", "-rmk slurm", "-verbose", "-v"]);
    assert_eq!((args.count, args.command.len()), (Some(2), 4));
}

#[test]
fn options_under_another_name_are_understood() {
    for line in ["-iface eth0 a", "--mca btl_tcp_if_include eth0 a", "--rails eth0 a", "-iface=eth0 a"] {
        assert_eq!(read(line).unwrap().rails.as_deref(), Some("eth0"), "{line}");
    }
    let args = read("--mca plm_rsh_agent /x --mca hwloc_base_binding_policy none a").unwrap();
    assert_eq!((args.launcher_exec.as_deref(), args.bind_to), (Some("/x"), Some((Target::Nothing, 1))));
    for line in
        ["--bind-to-core a", "--mca hwloc_base_binding_policy core a", "-bind-to-core -bind-to core a"]
    {
        assert_eq!(read(line).unwrap().bind_to, Some(CORE), "{line}");
    }
    for line in ["-s 1 a", "--stdin 1 a", "-stdin=1 a", "-s rank1 a"] {
        assert_eq!(read(line).unwrap().stdin, crate::Stdin::Rank(1), "{line}");
    }
    for line in ["--display-map a", "--display map,bind a", "-print-rank-map a", "--report-bindings a"] {
        assert!(read(line).unwrap().report_bindings, "{line}");
    }
    for line in ["-envnone a", "--genvnone a"] {
        assert!(read(line).unwrap().genvnone, "{line}");
    }
    assert!(read("-disable-auto-cleanup a").unwrap().ft);
    assert_eq!(read("-bootstrap fork a").unwrap().launcher, Launcher::Fork);
    assert_eq!(read("--rank-by slot --cpus-per-rank 2 a").unwrap().map_by.width, Some(2));
    assert!(read("--bynode a").unwrap().map_by.in_turns);
}

#[test]
fn output_in_all_spellings() {
    for line in ["-l a", "--tag-output a", "--tag-output-detailed a", "--output tag a", "--output=rank a"] {
        assert!(read(line).unwrap().tag_output, "{line}");
    }
    let args = read("--output tag,timestamp,dir=x/y a").unwrap();
    assert!(args.tag_output && args.timestamp_output);
    for line in ["--output dir=x/y a", "--output-filename x/y a", "-output-filename=x/y a"] {
        assert_eq!(read(line).unwrap().output_filename, Some("x/y".into()), "{line}");
    }
    for line in ["-outfile-pattern o%r -errfile-pattern e%r a", "--outfile o%r --errfile=e%r a"] {
        let args = read(line).unwrap();
        assert_eq!((args.outfile, args.errfile), (Some("o%r".into()), Some("e%r".into())), "{line}");
    }
    assert_eq!(read("--output file=o a").unwrap().outfile, Some("o.%r.out".into()));
    assert!(read("--timestamp-output a").unwrap().timestamp_output);
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
    for option in ["-configfile", "--configfile", "--app"] {
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
        ("-rankfile x a", "there is no option -rankfile here: ranks are placed by -hosts"),
        ("--cpu-set 0,1 a", "taskset -c"),
        ("--rank-by node a", "take --map-by node"),
        ("--rank-by color a", "no such word"),
        ("--output pink a", "--output pink: there is no such word"),
        ("--output merge a", "2>&1"),
        ("--output", "needs a value"),
        ("-s 0,2 a", "the number of a rank, all or none"),
        ("--mca btl", "--mca needs a value"),
        ("--outfile x --output-filename y a", "cannot be used with"),
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
        // clap's own tips do not fit here.
        assert!(!error.contains("tip:") && !error.contains("\n\n\n"), "{line}: {error}");
    }
}
