//! `mpicc`, `mpicxx` and `mpifort`: the compiler, with what it takes to find MAD-MPI.
//!
//! Everything is found from the place of this program, so an installation may be moved.

pub(crate) mod modules;

use modules::Modules;
use newmadeleine::setting::{CC, CXX, FC, MPI_ABI};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::output::{USAGE, complain, say_line};

/// Which compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// `mpicc`
    C,
    /// `mpicxx`, `mpic++`
    Cxx,
    /// `mpifort`, `mpif90`, `mpif77`
    Fortran,
}

/// The names of the wrappers with what each does, for the manual.
pub(crate) const NAMES: [(&str, &str); 3] = [
    ("mpicc", "Compile and link a C program with MAD-MPI"),
    ("mpicxx", "Compile and link a C++ program with MAD-MPI"),
    ("mpifort", "Compile and link a Fortran program with MAD-MPI"),
];

/// The help text behind the name of the wrapper.
pub(crate) const HELP: &str = "\
\x20compiles and links programs with MAD-MPI: it calls the compiler with the arguments that it is given
and those that find mpi.h, or mpif.h and the modules mpi and mpi_f08, and the library.

  -show            print the command, do not run it (also -show-compile, -show-link: only these flags)
  -showme:PART     one part, as Open MPI's wrappers tell it: command, compile, link, incdirs, libdirs, libs,
                   version, help
  -abi=standard    for the binary interface of MPI 5, libmpi_abi.so.1 (the default)
  -abi=mpich       for that of MPICH, libmpi.so.12
  -cc=PROGRAM      another compiler (-cxx=PROGRAM for mpicxx, -fc=PROGRAM for mpifort), with arguments of its
                   own if it has some
  --help           this text

Environment: NMAD_MPI_ABI is standard or mpich; NMAD_CC, NMAD_CXX and NMAD_FC are the compilers (cc, c++, and
the first that there is of gfortran, flang, ifx, nvfortran), also with arguments, as in NMAD_CC='gcc -O2'.
A name that has spaces in it is quoted as for a shell.
";

/// A binary interface, as a folder of headers and a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Abi {
    Standard,
    Mpich,
}

/// A program, and arguments that go before all others.
#[derive(Debug, PartialEq, Eq)]
struct Compiler {
    program: OsString,
    arguments: Vec<OsString>,
}

impl Compiler {
    /// As a shell would read it; `said_by` is what the user wrote it in.
    fn parse(text: &OsStr, said_by: &str) -> Result<Compiler, String> {
        let fail = || format!("{said_by} names no compiler, or leaves a quote open: {}", text.display());
        let mut words =
            shlex::bytes::split(text.as_bytes()).ok_or_else(fail)?.into_iter().map(OsString::from_vec);
        Ok(Compiler { program: words.next().ok_or_else(fail)?, arguments: words.collect() })
    }
}

/// The compiler call that the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    language: Language,
    abi: Abi,
    compiler: Compiler,
    show: Show,
    /// Arguments of the compiler.
    rest: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Nothing,
    Command,
    Compile,
    Link,
    Part(Part),
    Help,
}

/// A part of the command that Open MPI's wrappers tell: `-showme:PART`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Command,
    IncludeFolders,
    LibraryFolders,
    Libraries,
    Version,
}

impl Part {
    fn named(option: &str) -> Option<Part> {
        Some(
            match option
                .strip_prefix('-')
                .map(|rest| rest.trim_start_matches('-'))?
                .strip_prefix("showme:")?
            {
                "command" => Part::Command,
                "incdirs" => Part::IncludeFolders,
                "libdirs" => Part::LibraryFolders,
                "libs" => Part::Libraries,
                "version" => Part::Version,
                _ => return None,
            },
        )
    }
}

impl Language {
    /// The language of a program's name.
    pub(crate) fn of(name: &str) -> Option<Language> {
        match name {
            "mpicc" => Some(Language::C),
            "mpicxx" | "mpic++" | "mpiCC" => Some(Language::Cxx),
            "mpifort" | "mpif90" | "mpif77" => Some(Language::Fortran),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
        }
    }

    /// The compiler's variable, its name, and the option that says another.
    fn compiler(self) -> (&'static str, Option<&'static str>, &'static str) {
        match self {
            Language::C => (CC.name, Some(CC.default), "-cc="),
            Language::Cxx => (CXX.name, Some(CXX.default), "-cxx="),
            Language::Fortran => (FC.name, modules::compiler(), "-fc="),
        }
    }
}

/// Runs the compiler.
pub(crate) fn main(language: Language, words: impl Iterator<Item = OsString>) -> ExitCode {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let call = match parse(language, words, var) {
        Ok(call) => call,
        Err(error) => return complain(language.name(), &error, USAGE),
    };
    if call.show == Show::Help {
        say_line(format_args!("{}{HELP}", language.name()));
        return ExitCode::SUCCESS;
    }
    match prefix().and_then(|prefix| call.run(&prefix)) {
        Ok(code) => code,
        Err(error) => complain(language.name(), &error, 1),
    }
}

fn parse(
    language: Language,
    words: impl Iterator<Item = OsString>,
    var: impl Fn(&str) -> Option<OsString>,
) -> Result<Call, String> {
    let (variable, compiler, option) = language.compiler();
    let mut call = Call {
        language,
        abi: var(MPI_ABI.name).map_or(Ok(Abi::Standard), |abi| Abi::parse(&abi.to_string_lossy()))?,
        compiler: match var(variable) {
            Some(text) => Compiler::parse(&text, variable)?,
            None => Compiler { program: compiler.unwrap_or_default().into(), arguments: Vec::new() },
        },
        show: Show::Nothing,
        rest: Vec::new(),
    };
    for word in words {
        match word.to_str().unwrap_or_default() {
            "-show" | "--show" | "-showme" | "--showme" => call.show = Show::Command,
            "-show-compile" | "-compile_info" | "-showme:compile" | "--showme:compile" => {
                call.show = Show::Compile
            }
            "-show-link" | "-link_info" | "-showme:link" | "--showme:link" => call.show = Show::Link,
            "-help" | "--help" | "-h" | "-showme:help" | "--showme:help" => call.show = Show::Help,
            text if text.starts_with("-abi=") => call.abi = Abi::parse(&text[5..])?,
            text if text.starts_with(option) => {
                call.compiler = Compiler::parse(text[option.len()..].as_ref(), option)?
            }
            text => match Part::named(text) {
                Some(part) => call.show = Show::Part(part),
                None => call.rest.push(word),
            },
        }
    }
    if call.rest.is_empty() && call.show == Show::Nothing {
        return Err("there is nothing to compile (--help says how)".into());
    }
    Ok(call)
}

impl Abi {
    fn parse(word: &str) -> Result<Abi, String> {
        match word {
            "standard" => Ok(Abi::Standard),
            "mpich" => Ok(Abi::Mpich),
            _ => Err(format!("there is no binary interface '{word}': it is standard or mpich")),
        }
    }

    /// The word for it.
    fn word(self) -> &'static str {
        match self {
            Abi::Standard => "standard",
            Abi::Mpich => "mpich",
        }
    }

    /// As the table of functions has it.
    fn table(self) -> nmad_mpi_table::Abi {
        match self {
            Abi::Standard => nmad_mpi_table::Abi::Standard,
            Abi::Mpich => nmad_mpi_table::Abi::Mpich,
        }
    }

    fn compile_flags(self, prefix: &Path) -> Vec<OsString> {
        let folder = match self {
            Abi::Standard => "include",
            Abi::Mpich => "include/mpich",
        };
        vec![flag("-I", &prefix.join(folder))]
    }

    fn link_flags(self, prefix: &Path, language: Language) -> Vec<OsString> {
        let folder = prefix.join("lib");
        let (fortran, library) = match self {
            Abi::Standard => ("-lmpifort_abi", "-lmpi_abi"),
            Abi::Mpich => ("-lmpifort", "-lmpi"),
        };
        let mut flags = vec![flag("-L", &folder), flag("-Wl,-rpath,", &folder)];
        flags.extend((language == Language::Fortran).then(|| fortran.into()));
        flags.push(library.into());
        flags
    }
}

impl Modules {
    fn compile_flags(&self) -> impl Iterator<Item = OsString> {
        std::iter::once(flag("-I", &self.folder)).chain(self.arguments.iter().map(OsString::from))
    }

    fn link_flags(&self) -> [OsString; 2] {
        [flag("-L", &self.folder), format!("-l{}", modules::LIBRARY).into()]
    }
}

/// A word as a shell reads it. Build systems read it too, some of which know no quotes: where none are
/// needed there are none.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "+-./:@_,=%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        // No argument of a process has the one letter that it fails for.
        false => shlex::try_quote(word).map_or_else(|_| word.into(), Into::into),
    }
}

fn flag(flag: &str, path: &Path) -> OsString {
    let mut whole = OsString::from(flag);
    whole.push(path);
    whole
}

impl Call {
    fn run(&self, prefix: &Path) -> Result<ExitCode, String> {
        let modules = self.modules(prefix)?;
        let arguments = match self.show {
            Show::Compile => self.compile_flags(prefix, modules.as_ref()),
            Show::Link => self.link_flags(prefix, modules.as_ref()),
            Show::Part(part) => {
                let mut flags = self.compile_flags(prefix, modules.as_ref());
                flags.extend(self.link_flags(prefix, modules.as_ref()));
                say_line(format_args!("{}", self.part(part, &flags)));
                return Ok(ExitCode::SUCCESS);
            }
            _ => self.arguments(prefix, modules.as_ref()),
        };
        if self.show != Show::Nothing {
            say_line(format_args!("{}", self.shown(&arguments)));
            return Ok(ExitCode::SUCCESS);
        }
        let Compiler { program, arguments: first } = &self.compiler;
        let error = Command::new(program).args(first).args(arguments).exec();
        Err(format!("cannot run the compiler {}: {error}", program.display()))
    }

    /// The modules, for a Fortran compiler.
    fn modules(&self, prefix: &Path) -> Result<Option<Modules>, String> {
        if self.language != Language::Fortran {
            return Ok(None);
        }
        if self.compiler.program.is_empty() {
            return Err(modules::no_compiler());
        }
        Modules::of(prefix, self.abi, &self.compiler).map(Some)
    }

    fn compile_flags(&self, prefix: &Path, modules: Option<&Modules>) -> Vec<OsString> {
        let mut flags = self.abi.compile_flags(prefix);
        flags.extend(modules.into_iter().flat_map(Modules::compile_flags));
        flags
    }

    fn link_flags(&self, prefix: &Path, modules: Option<&Modules>) -> Vec<OsString> {
        let mut flags: Vec<OsString> = modules.into_iter().flat_map(Modules::link_flags).collect();
        flags.extend(self.abi.link_flags(prefix, self.language));
        flags
    }

    /// Returns the answer to a question of [`Part`], in the form of Open MPI's wrappers.
    fn part(&self, part: Part, flags: &[OsString]) -> String {
        let Compiler { program, arguments } = &self.compiler;
        let behind = |start: &str| -> Vec<String> {
            let all = flags.iter().map(|flag| flag.to_string_lossy().into_owned());
            all.filter_map(|flag| flag.strip_prefix(start).map(quoted)).collect()
        };
        let words: Vec<String> = match part {
            Part::Command => std::iter::once(program)
                .chain(arguments)
                .map(|word| quoted(&word.to_string_lossy()))
                .collect(),
            Part::Version => {
                vec![format!("{} (NewMadeleine) {}", self.language.name(), env!("CARGO_PKG_VERSION"))]
            }
            Part::IncludeFolders => behind("-I"),
            Part::LibraryFolders => behind("-L"),
            Part::Libraries => behind("-l"),
        };
        words.join(" ")
    }

    /// The words that `-show` shows, for a shell.
    fn shown(&self, arguments: &[OsString]) -> String {
        let Compiler { program, arguments: first } = &self.compiler;
        let command = (self.show == Show::Command).then(|| std::iter::once(program).chain(first));
        let words = command.into_iter().flatten().chain(arguments);
        words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }

    /// All arguments of the compiler; those of the linker only if it is called.
    fn arguments(&self, prefix: &Path, modules: Option<&Modules>) -> Vec<OsString> {
        let mut arguments = self.compile_flags(prefix, modules);
        arguments.extend(self.rest.iter().cloned());
        let stops = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
        let only_asks = |word: &OsString| word.to_string_lossy().starts_with('-') && word != "-";
        let asks = ["--version", "-v", "-dumpmachine", "-dumpversion", "-V"];
        let stopped = self.rest.iter().any(|word| stops.iter().any(|stop| word == stop));
        let no_input = self.rest.iter().all(only_asks)
            && self.rest.iter().any(|word| asks.iter().any(|ask| word == ask));
        if !stopped && !no_input {
            arguments.extend(self.link_flags(prefix, modules));
        }
        arguments
    }
}

/// The folder that `bin` with this program is in.
fn prefix() -> Result<PathBuf, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find the path of this program: {error}"))?;
    let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    if prefix.join("include/mpi.h").is_file() {
        return Ok(prefix.to_path_buf());
    }
    Err(format!(
        "there is no {}: this program is not installed; `nmad install --prefix DIR` makes DIR/bin/mpicc",
        prefix.join("include/mpi.h").display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(language: Language, words: &str, abi: Option<&str>) -> Call {
        let var = |name: &str| abi.filter(|_| name == "NMAD_MPI_ABI").map(OsString::from);
        parse(language, words.split_whitespace().map(OsString::from), var).unwrap()
    }

    fn line(language: Language, words: &str, abi: Option<&str>) -> String {
        let arguments = call(language, words, abi).arguments(Path::new("/p"), None);
        arguments.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_program_is_linked_with_the_library_of_its_interface() {
        let standard = line(Language::C, "a.c -o a", None);
        assert_eq!(standard, "-I/p/include a.c -o a -L/p/lib -Wl,-rpath,/p/lib -lmpi_abi");
        let mpich = line(Language::C, "-abi=mpich a.c", None);
        assert_eq!(mpich, "-I/p/include/mpich a.c -L/p/lib -Wl,-rpath,/p/lib -lmpi");
        assert_eq!(line(Language::C, "a.c", Some("mpich")), mpich.replace("-abi=mpich ", ""));
        assert_eq!(line(Language::C, "-abi=standard a.c -o a", Some("mpich")), standard);
    }

    #[test]
    fn what_is_only_compiled_or_asked_gets_no_libraries() {
        for words in ["-c a.c", "a.c -E", "-S a.c -O2", "--version"] {
            assert!(!line(Language::Cxx, words, None).contains("-l"), "{words}");
        }
        assert!(line(Language::C, "-v a.c", None).contains("-lmpi_abi"));
    }

    #[test]
    fn fortran_gets_its_modules_and_its_library() {
        let call = call(Language::Fortran, "-abi=mpich -fc=gfortran a.f90", None);
        let modules = Modules { folder: "/m".into(), arguments: vec!["-x".into()] };
        let arguments = call.arguments(Path::new("/p"), Some(&modules));
        let line = arguments.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let expected =
            "-I/p/include/mpich -I/m -x a.f90 -L/m -lmadmpi_f08 -L/p/lib -Wl,-rpath,/p/lib -lmpifort -lmpi";
        assert_eq!(line, expected);
    }

    #[test]
    fn without_a_fortran_compiler_the_user_reads_what_to_do() {
        let mut call = call(Language::Fortran, "-fc=no-such-compiler a.f90", None);
        let error = call.run(Path::new("/p")).unwrap_err();
        assert!(error.contains("no-such-compiler") && error.contains("-fc="), "{error}");
        call.compiler.program = OsString::new();
        let error = call.run(Path::new("/p")).unwrap_err();
        assert!(error.contains("gfortran") && error.contains("NMAD_FC"), "{error}");
    }

    #[test]
    fn options_are_taken_out_and_unknown_interfaces_refused() {
        let call = call(Language::Cxx, "-cxx=clang++ -show a.cc", None);
        assert_eq!((call.compiler.program, call.show, call.rest.len()), ("clang++".into(), Show::Command, 1));
        let none = |_: &str| None;
        assert!(parse(Language::C, [].into_iter(), none).is_err());
        assert!(parse(Language::C, ["-abi=openmpi".into()].into_iter(), none).is_err());
    }

    #[test]
    fn parts_are_told_as_build_systems_ask_for_them() {
        for (part, expected) in [
            ("command", "gcc -O2"),
            ("incdirs", "/p/include"),
            ("libdirs", "/p/lib"),
            ("libs", "mpi_abi"),
            ("version", concat!("mpicc (NewMadeleine) ", env!("CARGO_PKG_VERSION"))),
        ] {
            for dashes in ["-", "--"] {
                let words = [OsString::from("-cc=gcc -O2"), format!("{dashes}showme:{part}").into()];
                let call = parse(Language::C, words.into_iter(), |_| None).unwrap();
                let Show::Part(part) = call.show else { panic!("{part} is a part") };
                let mut flags = call.compile_flags(Path::new("/p"), None);
                flags.extend(call.link_flags(Path::new("/p"), None));
                assert_eq!(call.part(part, &flags), expected);
            }
        }
    }

    #[test]
    fn a_compiler_may_have_arguments() {
        let told = |text: &'static str| move |name: &str| (name == "NMAD_CC").then(|| OsString::from(text));
        let words = || [OsString::from("-show"), "he llo.c".into(), "-DX=\"a\"".into()].into_iter();
        let call = parse(Language::C, words(), told("gcc -O2 '/a b/c'")).unwrap();
        assert_eq!(call.compiler.program, "gcc");
        let shown = call.shown(&call.arguments(Path::new("/p q"), None));
        let expected = "gcc -O2 '/a b/c' '-I/p q/include' 'he llo.c' '-DX=\"a\"' '-L/p q/lib' \
                        '-Wl,-rpath,/p q/lib' -lmpi_abi";
        assert_eq!(shown, expected);
        for wrong in ["'gcc", "  "] {
            let error = parse(Language::C, words(), told(wrong)).unwrap_err();
            assert!(error.contains("NMAD_CC"), "{error}");
        }
    }
}
