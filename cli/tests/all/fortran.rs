//! Programs in Fortran, built with the installed `mpifort` in all three forms of MPI for Fortran, run with
//! both binary interfaces. They are those of `mpi/fortran`, and say themselves whether their results are
//! right.

use crate::command::{Ended, nmad, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A prefix with everything in it, if there is a compiler.
fn prefix() -> Option<&'static Path> {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let compiler = Command::new("gfortran").arg("--version").output();
    if !compiler.is_ok_and(|ended| ended.status.success()) {
        eprintln!("skipped: there is no gfortran here");
        return None;
    }
    let install = || {
        let folder = tempfile::tempdir().expect("a folder");
        let ended = nmad(&["install", "--prefix", folder.path().to_str().expect("a path in text")]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.out.contains("were compiled with gfortran"), "{}{}", ended.out, ended.err);
        folder
    };
    Some(FOLDER.get_or_init(install).path())
}

/// Compiles a program; the compiler may be named otherwise in the environment of who runs this.
fn compile(prefix: &Path, abi: &str, source: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi/fortran").join(source);
    let name = source.file_name().expect("a file").to_string_lossy().into_owned();
    let program = prefix.join(format!("{name}-{abi}"));
    let mut command = Command::new(prefix.join("bin/mpifort"));
    command
        .arg(format!("-abi={abi}"))
        .args(["-fc=gfortran", "-O1", "-Wall"])
        .arg("-J")
        .arg(tempdir(prefix, &name, abi));
    let ended = run(command.arg(&source).arg("-o").arg(&program));
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    program
}

/// Where the modules of a program go.
fn tempdir(prefix: &Path, name: &str, abi: &str) -> PathBuf {
    let folder = prefix.join(format!("modules-{name}-{abi}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn job(prefix: &Path, ranks: &str, program: &Path) -> Ended {
    job_of(prefix, &["-n", ranks], program)
}

fn job_of(prefix: &Path, options: &[&str], program: &Path) -> Ended {
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    run(command.args(options).args(["--timeout", "60"]).arg(program).env_remove("LD_LIBRARY_PATH"))
}

/// Each program with both interfaces, on as many ranks; it says this line and no more.
fn each(sources: &[(&str, &str)]) {
    let Some(prefix) = prefix() else { return };
    for abi in ["standard", "mpich"] {
        for (source, said) in sources {
            let ended = job(prefix, "4", &compile(prefix, abi, source));
            assert_eq!(ended.code, Some(0), "{source}, {abi}: {}{}", ended.out, ended.err);
            assert!(ended.out.starts_with(said), "{source}, {abi}: {}{}", ended.out, ended.err);
            assert_eq!(ended.out.lines().count(), 1, "{source}, {abi}: {}", ended.out);
        }
    }
}

#[test]
fn heat_spreads_as_it_must_in_all_forms() {
    each(&[
        ("examples/heat-mpif.f90", "heat with mpif.h: 4 ranks, error "),
        ("examples/heat-mpi.f90", "heat with mpi: 4 ranks, error "),
        ("examples/heat-f08.f90", "heat with mpi_f08: 4 ranks, error "),
    ]);
}

#[test]
fn what_fortran_has_of_its_own_is_as_the_standard_says() {
    each(&[("tests/old.f", "old: 4 ranks"), ("tests/new.f90", "new: 4 ranks")]);
}

#[test]
fn ranks_that_survive_another_one_go_on_in_fortran() {
    let Some(prefix) = prefix() else { return };
    for abi in ["standard", "mpich"] {
        let program = compile(prefix, abi, "tests/survive.f90");
        let ended = job_of(prefix, &["--ft", "-n", "4"], &program);
        assert_eq!(
            (ended.code, &*ended.out),
            (Some(0), "survive: 3 ranks are left\n"),
            "{abi}: {}",
            ended.err
        );
    }
}

#[test]
fn what_is_wrong_ends_a_fortran_program_with_words() {
    let Some(prefix) = prefix() else { return };
    let source = prefix.join("wrong.f90");
    let text = "use mpi_f08\ncall MPI_Init()\ncall MPI_Send(1, 1, MPI_INTEGER, 9, 0, MPI_COMM_WORLD)\nend\n";
    std::fs::write(&source, text).expect("it can be written");
    let program = prefix.join("wrong");
    let mut compiler = Command::new(prefix.join("bin/mpif90"));
    let ended = run(compiler.arg("-fc=gfortran").arg(&source).arg("-o").arg(&program));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let ended = job(prefix, "2", &program);
    assert_ne!(ended.code, Some(0));
    assert!(ended.err.contains("MPI_ERR_RANK: MPI_Send: rank 9"), "{}", ended.err);
}

#[test]
fn every_function_of_the_modules_is_in_the_libraries() {
    let Some(prefix) = prefix() else { return };
    for (library, abi) in [
        ("libmpifort_abi.so.1", nmad_mpi_table::Abi::Standard),
        ("libmpifort.so.12", nmad_mpi_table::Abi::Mpich),
    ] {
        let ended =
            run(Command::new("nm").args(["-D", "--defined-only"]).arg(prefix.join("lib").join(library)));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let there: std::collections::BTreeSet<&str> =
            ended.out.lines().filter_map(|line| line.split_whitespace().last()).collect();
        let modules =
            [nmad_mpi_table::fortran::module::plain(abi), nmad_mpi_table::fortran::module::f08(abi)];
        let mut count = 0;
        for name in modules.iter().flat_map(|text| procedures(text)) {
            assert!(there.contains(&*name), "{library} has no {name}");
            count += 1;
        }
        assert!(count > 2000, "{count} procedures");
    }
}

/// The symbols of the procedures that a module declares, but for types of functions that a program has.
fn procedures(text: &str) -> Vec<String> {
    let mut is_abstract = false;
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        match line {
            "abstract interface" => is_abstract = true,
            "end interface" => is_abstract = false,
            _ => {}
        }
        let words = line.trim_start_matches("pure logical ");
        let name = ["subroutine ", "function "].into_iter().find_map(|word| words.strip_prefix(word));
        if let Some(name) = name.filter(|_| !is_abstract).and_then(|name| name.split('(').next()) {
            all.push(format!("{}_", name.to_lowercase()));
        }
    }
    all
}

#[test]
fn modules_are_made_for_a_compiler_that_comes_later() {
    let Some(prefix) = prefix() else { return };
    // Another program is another compiler, and the user's cache serves where the installation cannot be
    // written to.
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other-fortran");
    std::fs::write(&other, "#!/bin/sh\nexec gfortran \"$@\"\n").expect("it can be written");
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    let mut command = Command::new(prefix.join("bin/mpifort"));
    let ended = run(command.arg("-show").env("NMAD_FC", &other));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let shown = ended
        .out
        .split_whitespace()
        .find_map(|word| word.strip_prefix("-I")?.contains("other-fortran").then_some(word));
    let modules = shown.unwrap_or_else(|| panic!("{}", ended.out)).trim_start_matches("-I");
    assert!(Path::new(modules).join("mpi_f08.mod").is_file(), "{modules}");
    assert!(Path::new(modules).join("libmadmpi_f08.a").is_file(), "{modules}");
    let mut command = Command::new(prefix.join("bin/mpifort"));
    let ended = run(command.arg("-fc=no-such-compiler").arg("a.f90"));
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("no-such-compiler"), "{}", ended.err);
}
