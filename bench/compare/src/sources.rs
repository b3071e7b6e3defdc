//! The measuring programs: their sources, and how they are built with an `mpicc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::CompareError;
use crate::job::output;

/// A program that is compiled with each library's `mpicc`.
pub(crate) struct Program {
    name: &'static str,
    /// Besides [`COMMON`].
    sources: &'static [(&'static str, &'static str)],
    /// Of the compiler, before the sources.
    flags: &'static [&'static str],
    /// After them.
    libraries: &'static [&'static str],
}

/// What all programs have.
const COMMON: [(&str, &str); 2] =
    [("common.h", include_str!("../c/common.h")), ("common.c", include_str!("../c/common.c"))];

/// What `nmad bench compare` runs.
pub(crate) const COMPARE: Program = Program {
    name: "compare",
    sources: &[
        ("compare.h", include_str!("../c/compare.h")),
        ("main.c", include_str!("../c/main.c")),
        ("facts.c", include_str!("../c/facts.c")),
        ("point.c", include_str!("../c/point.c")),
        ("onesided.c", include_str!("../c/onesided.c")),
        ("stream.c", include_str!("../c/stream.c")),
        ("types.c", include_str!("../c/types.c")),
        ("collect.c", include_str!("../c/collect.c")),
        ("overlap.c", include_str!("../c/overlap.c")),
        ("parts.c", include_str!("../c/parts.c")),
        ("threads.c", include_str!("../c/threads.c")),
    ],
    flags: &["-O2", "-std=c11", "-pthread"],
    libraries: &[],
};

/// What `nmad bench imbalance` runs.
pub(crate) const IMBALANCE: Program = Program {
    name: "imbalance",
    sources: &[
        ("imbalance.h", include_str!("../c/imbalance/imbalance.h")),
        ("brick.h", include_str!("../c/imbalance/brick.h")),
        ("main.c", include_str!("../c/imbalance/main.c")),
        ("phase.c", include_str!("../c/imbalance/phase.c")),
        ("toy.c", include_str!("../c/imbalance/toy.c")),
        ("brick.c", include_str!("../c/imbalance/brick.c")),
        ("solve.c", include_str!("../c/imbalance/solve.c")),
    ],
    flags: &["-O2", "-std=c11", "-pthread", "-fopenmp"],
    libraries: &["-lm"],
};

/// The program of `nmad bench io`.
pub(crate) const IO: Program = Program {
    name: "io",
    sources: &[
        ("io.h", include_str!("../c/io/io.h")),
        ("main.c", include_str!("../c/io/main.c")),
        ("records.c", include_str!("../c/io/records.c")),
    ],
    flags: &["-O2", "-std=c11"],
    libraries: &[],
};

impl Program {
    fn files(&self) -> impl Iterator<Item = &(&'static str, &'static str)> {
        COMMON.iter().chain(self.sources)
    }
}

const LIMIT: Duration = Duration::from_secs(120);

/// What Open MPI and Hydra call instead of ssh: `AGENT [OPTION...] HOST COMMAND...` runs the command in
/// that host of the testbed that this runs in.
const AGENT: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
case $host in 10.88.0.*) host=host$((${host##*.} - 1)) ;; esac
exec $(echo "$NMAD_TESTBED" | tr ';' '\n' | sed -n "s/^$host=//p") sh -c "$*"
"#;

/// Runs a program with the host's own rails in `/sys`, where UCX looks for them; as it is, if that is not
/// possible.
const INSIDE: &str = r#"#!/bin/sh
if command -v unshare >/dev/null && unshare --mount true 2>/dev/null; then
  exec unshare --mount sh -c 'mount -t sysfs none /sys 2>/dev/null; exec "$@"' sh "$@"
fi
exec "$@"
"#;

/// A folder with what jobs need.
pub(crate) struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    /// Writes the scripts to `folder`.
    pub(crate) fn set_up(folder: PathBuf) -> Result<Workshop, CompareError> {
        let folder = std::path::absolute(&folder).map_err(CompareError::file("find", &folder))?;
        if folder.to_str().is_none_or(|text| text.contains(char::is_whitespace)) {
            let path = folder.display();
            let what =
                format!("launchers of MPI cannot start programs in {path}, which has a blank: --out DIR");
            return Err(CompareError::Argument(what));
        }
        fs::create_dir_all(&folder).map_err(CompareError::file("make the folder", &folder))?;
        let workshop = Workshop { folder };
        for (name, text) in [("agent", AGENT), ("inside", INSIDE)] {
            workshop.write(name, text)?;
            let (path, mode) = (workshop.path(name), std::os::unix::fs::PermissionsExt::from_mode(0o755));
            fs::set_permissions(&path, mode).map_err(CompareError::file("write", path))?;
        }
        Ok(workshop)
    }

    /// A file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes one of them.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, CompareError> {
        let path = self.path(name);
        nmad_words::file::write(&path, text).map_err(CompareError::file("write", &path))?;
        Ok(path)
    }

    /// Writes the sources of a program.
    pub(crate) fn unpack(&self, program: &Program) -> Result<(), CompareError> {
        let sources = self.sources(program);
        fs::create_dir_all(&sources).map_err(CompareError::file("make the folder", &sources))?;
        for (name, text) in program.files() {
            let path = sources.join(name);
            nmad_words::file::write(&path, text).map_err(CompareError::file("write", &path))?;
        }
        Ok(())
    }

    fn sources(&self, program: &Program) -> PathBuf {
        self.path("src").join(program.name)
    }

    /// A program whose sources were written, built by the `mpicc` of an MPI; what the compiler said, if it
    /// fails.
    pub(crate) fn build(&self, program: &Program, prefix: &Path, name: &str) -> Result<PathBuf, String> {
        let built = self.path(&format!("{}.{name}", program.name));
        let sources = self.sources(program);
        let mut compiler = Command::new(prefix.join("bin/mpicc"));
        compiler.args(program.flags).arg("-o").arg(&built);
        let names = program.files().map(|(name, _)| name).filter(|name| name.ends_with(".c"));
        compiler.args(names.map(|name| sources.join(name))).args(program.libraries);
        compiler.env_remove("LD_LIBRARY_PATH");
        output(&mut compiler, LIMIT).map_err(|why| format!("its mpicc cannot build the program: {why}"))?;
        Ok(built)
    }
}
