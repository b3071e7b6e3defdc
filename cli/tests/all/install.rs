//! An installation works: programs are built against it with pkg-config and CMake and run under it.

use crate::command::{Ended, nmad, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A prefix with everything in it, moved after it was installed, since it may be.
pub(crate) fn prefix() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let install = || {
        let folder = tempfile::tempdir().expect("a folder");
        let ended = nmad(&["install", "--prefix", text(&folder.path().join("first"))]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        for line in [
            "bin/mpiexec",
            "lib/libnmad.so",
            "lib/pkgconfig/mpi.pc",
            "include/nmad.h",
            "share/doc/nmad/examples/hello.c",
            "share/man/man1/nmad-run.1",
            "share/bash-completion/completions/mpiexec",
            "share/zsh/site-functions/_nmad",
            "share/fish/vendor_completions.d/nmad.fish",
        ] {
            assert!(ended.out.contains(&format!("\n  {line}\n")), "{}", ended.out);
        }
        fs::rename(folder.path().join("first"), folder.path().join("moved")).expect("it can be moved");
        folder
    };
    static MOVED: OnceLock<PathBuf> = OnceLock::new();
    MOVED.get_or_init(|| FOLDER.get_or_init(install).path().join("moved"))
}

/// A program of this name, compiled with the installed mpicc, in a folder for its files.
pub(crate) fn compiled(name: &str, sources: &[PathBuf]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(name);
    let mut command = Command::new(prefix().join("bin/mpicc"));
    let ended = run(command.args(["-Wall", "-Werror", "-O1"]).args(sources).arg("-o").arg(&program));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    (folder, program)
}

/// A source of this project.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in text")
}

/// Whether this tool is there; if not, says that the test is skipped.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|ended| ended.status.success());
    if !found {
        eprintln!("skipped: there is no {tool} here");
    }
    found
}

/// Runs a program under the installed launcher.
fn job(ranks: &str, program: &Path) -> Ended {
    let mut command = Command::new(prefix().join("bin/mpiexec"));
    run(command.args(["-n", ranks, "--timeout", "60"]).arg(program).env_remove("LD_LIBRARY_PATH"))
}

fn says_hello(program: &Path) {
    let ended = job("2", program);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.out, "rank 1 says hello over every rail\n2 ranks\n");
}

#[test]
fn a_program_is_built_with_pkg_config() {
    if !has("pkg-config") {
        return;
    }
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "nmad"]).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let flags = run(&mut flags);
    assert_eq!(flags.code, Some(0), "{}", flags.err);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("hello");
    let mut compiler = Command::new("cc");
    compiler.arg(prefix().join("share/doc/nmad/examples/hello.c")).args(flags.out.split_whitespace());
    let compiled = run(compiler.arg("-o").arg(&program));
    assert_eq!(compiled.code, Some(0), "{}", compiled.err);
    says_hello(&program);
}

/// Each interface of MPI by its own file; what runs is the library that the file names.
#[test]
fn programs_of_mpi_are_built_with_pkg_config() {
    if !has("pkg-config") {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../mpi/front/examples/ring.c");
    let folder = tempfile::tempdir().expect("a folder");
    for (package, library) in [("mpi", "libmpi_abi.so.1"), ("mpich", "libmpi.so.12")] {
        let mut flags = Command::new("pkg-config");
        flags.args(["--cflags", "--libs", package]).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
        let flags = run(&mut flags);
        assert_eq!(flags.code, Some(0), "{}", flags.err);
        let program = folder.path().join(package);
        let mut compiler = Command::new("cc");
        compiler.arg(source).args(flags.out.split_whitespace()).arg("-o").arg(&program);
        let compiled = run(&mut compiler);
        assert_eq!(compiled.code, Some(0), "{}", compiled.err);
        let bytes = fs::read(&program).expect("it is there");
        let names = |wanted: &str| bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes());
        assert!(names(library), "{package} does not load {library}");
        let ended = job("2", &program);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
}

/// What only debuggers read is in the files that cargo leaves (those of the standard library at least), and
/// is taken away unless the user wants it.
#[test]
fn what_only_debuggers_read_is_left_out() {
    if !has("strip") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ended = nmad(&["install", "--keep-debug", "--prefix", text(folder.path())]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let len = |prefix: &Path, path: &str| fs::metadata(prefix.join(path)).expect(path).len();
    for path in ["bin/nmad", "lib/libnmad.so", "lib/libmpi.so.12", "lib/libmpi_abi.so.1"] {
        let (kept, stripped) = (len(folder.path(), path), len(prefix(), path));
        assert!(stripped < kept, "{path}: {stripped} of {kept} bytes");
    }
    let ended = run(Command::new(folder.path().join("bin/nmad")).arg("--version"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

/// A shell takes the completions, and offers subcommands and options.
#[test]
fn bash_completes_words() {
    if !has("bash") {
        return;
    }
    let completions = prefix().join("share/bash-completion/completions");
    for (program, word, offered) in [("nmad", "te", "testbed"), ("mpiexec", "--time", "--timeout")] {
        let script = format!(
            "source {file}; COMP_WORDS=({program} {word}); COMP_CWORD=1; \
             $(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {program} {word} {program}; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file = completions.join(program).display()
        );
        let ended = run(Command::new("bash").args(["--norc", "-c", &script]));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(
            ended.out.lines().any(|line| line == offered),
            "{program} {word}: {}{}",
            ended.out,
            ended.err
        );
    }
}

#[test]
fn the_examples_are_built_with_cmake() {
    if !has("cmake") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(prefix().join("share/doc/nmad/examples")).arg("-B").arg(folder.path());
    let ended = run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let ended = run(Command::new("cmake").arg("--build").arg(folder.path()));
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    says_hello(&folder.path().join("hello"));
    let ended = job("3", &folder.path().join("service"));
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 2), "{}", ended.err);
}

#[test]
fn an_installed_command_installs_itself_and_everything_is_removed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let destdir = text(folder.path());
    let installed = prefix().join("bin/nmad");
    let mut command = Command::new(&installed);
    for name in ["CARGO", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
        command.env_remove(name);
    }
    let ended = run(command.args(["install", "--prefix", "/opt/nmad", "--destdir", destdir]));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let library = folder.path().join("opt/nmad/lib/libnmad.so");
    assert_eq!(fs::read(&library).expect("it is there"), fs::read(prefix().join("lib/libnmad.so")).unwrap());
    let ours = folder.path().join("opt/nmad/share/users-own.txt");
    fs::write(&ours, "mine").expect("it can be written");
    let mut command = Command::new(&installed);
    let ended = run(command.args(["uninstall", "--prefix", "/opt/nmad"]).env("DESTDIR", destdir));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let left: Vec<_> = fs::read_dir(folder.path().join("opt/nmad")).expect("the prefix stays").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(ours.is_file());
}

#[test]
fn an_installation_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("new/prefix");
    // A folder where a file belongs; nothing that others have put there is overwritten by it.
    fs::create_dir_all(prefix.join("include/nmad.h")).expect("a folder");
    let ended = nmad(&["install", "--prefix", text(&prefix), "--force"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("include/nmad.h") && !ended.err.contains("may write"), "{}", ended.err);
    let left: Vec<_> =
        fs::read_dir(&prefix).expect("it was there").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["include"]);
}

#[test]
fn an_upgrade_that_fails_leaves_the_older_installation_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("share/nmad/manifest.txt");
    let (kept, gone) = (folder.path().join("include/nmad.h"), folder.path().join("bin/of-an-older-version"));
    for (path, text) in [(&kept, "old"), (&gone, "old"), (&list, "bin/of-an-older-version\ninclude/nmad.h\n")]
    {
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("it can be written");
    }
    let before = fs::read_to_string(&list).expect("it is there");
    // A folder where one of the last files belongs.
    let obstacle = folder.path().join("share/nmad/obstacle");
    let last = folder.path().join("share/doc/nmad/LICENSE-MIT");
    fs::create_dir_all(&last).expect("a folder");
    let words = ["install", "--prefix", text(folder.path())];
    let ended = nmad(&[&words[..], &["--force"]].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert_eq!(fs::read_to_string(&list).expect("it is there"), before);
    assert_eq!(fs::read_to_string(&kept).expect("it is there"), "old");
    let left: Vec<_> = fs::read_dir(folder.path().join("bin")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // Out of the way, the new version takes over, and what only the old one had is gone.
    fs::rename(&last, &obstacle).expect("it can be moved");
    let ended = nmad(&[&words[..], &["--force"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(!gone.exists() && fs::read_to_string(&kept).expect("it is there") != "old");
    assert!(!fs::read_to_string(&list).expect("it is there").contains("older"));
    let ended = nmad(&["uninstall", "--prefix", text(folder.path())]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    fs::remove_dir(&obstacle).expect("it is empty");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the prefix stays").flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() == "share"), "{left:?}");
}

#[test]
fn what_others_have_installed_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("bin")).expect("a folder");
    let other = folder.path().join("bin/mpiexec");
    fs::write(&other, "of another MPI").expect("it can be written");
    let words = ["install", "--prefix", text(folder.path())];
    let ended = nmad(&words);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("bin/mpiexec") && ended.err.contains("--force"), "{}", ended.err);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is there");
    for _ in 0..2 {
        let ended = nmad(&[&words[..], &["--force"]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    let ended = nmad(&words);
    assert_eq!(ended.code, Some(0), "over one's own files: {}", ended.err);
}

#[test]
fn refusals_say_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it can be written");
    let ended = nmad(&["install", "--prefix", text(&file)]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("cannot make the folder") && ended.err.contains("--prefix"), "{}", ended.err);
    let ended = nmad(&["uninstall", "--prefix", text(folder.path())]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("nothing was installed"), "{}", ended.err);
    // A program that has lost its library.
    let lonely = folder.path().join("nmad");
    copy(&prefix().join("bin/nmad"), &lonely);
    let mut command = Command::new(&lonely);
    command.env_remove("CARGO").args(["install", "--prefix", text(&folder.path().join("new"))]);
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("cargo build --release"), "{}", ended.err);
}

/// Copies a program that is then started. Another process does the writing: a file that this one held open
/// for writing might be inherited, for a moment, by what a test beside this one starts, and is refused as
/// "text file busy" (execve(2)) for as long.
fn copy(from: &Path, to: &Path) {
    let ended = run(Command::new("cp").arg(from).arg(to));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn without_links_every_name_is_a_file_that_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = nmad(&["install", "--no-links", "--prefix", text(folder.path())]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let launcher = folder.path().join("bin/mpiexec");
    assert!(launcher.symlink_metadata().expect("it is there").is_file());
    assert_eq!(launcher.metadata().expect("it is there").permissions().mode() & 0o777, 0o755);
    let ended = run(Command::new(&launcher).args(["-n", "2", "sh", "-c", "exit $((3 + PMI_SIZE))"]));
    assert_eq!(ended.code, Some(5), "{}", ended.err);
    let program = folder.path().join("hello");
    let mut compiler = Command::new("cc");
    compiler.arg(folder.path().join("share/doc/nmad/examples/hello.c"));
    compiler.arg("-I").arg(folder.path().join("include")).arg("-L").arg(folder.path().join("lib"));
    compiler.arg("-lnmad").arg(format!("-Wl,-rpath,{}/lib", folder.path().display()));
    let ended = run(compiler.arg("-o").arg(&program));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    says_hello(&program);
}
