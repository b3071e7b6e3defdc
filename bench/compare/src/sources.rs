//! The measuring program: its sources, and how it is built with an `mpicc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::CompareError;
use crate::job::output;

const SOURCES: [(&str, &str); 9] = [
    ("compare.h", include_str!("../c/compare.h")),
    ("main.c", include_str!("../c/main.c")),
    ("point.c", include_str!("../c/point.c")),
    ("onesided.c", include_str!("../c/onesided.c")),
    ("stream.c", include_str!("../c/stream.c")),
    ("types.c", include_str!("../c/types.c")),
    ("collect.c", include_str!("../c/collect.c")),
    ("overlap.c", include_str!("../c/overlap.c")),
    ("threads.c", include_str!("../c/threads.c")),
];

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
    /// Writes the sources and scripts to `folder`.
    pub(crate) fn set_up(folder: PathBuf) -> Result<Workshop, CompareError> {
        let folder = std::path::absolute(&folder).map_err(CompareError::file("find", &folder))?;
        if folder.to_str().is_none_or(|text| text.contains(char::is_whitespace)) {
            let path = folder.display();
            let what =
                format!("launchers of MPI cannot start programs in {path}, which has a blank: --out DIR");
            return Err(CompareError::Argument(what));
        }
        let sources = folder.join("src");
        fs::create_dir_all(&sources).map_err(CompareError::file("make the folder", &sources))?;
        let workshop = Workshop { folder };
        for (name, text) in SOURCES {
            workshop.write(&format!("src/{name}"), text)?;
        }
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
        fs::write(&path, text).map_err(CompareError::file("write", &path))?;
        Ok(path)
    }

    /// The program, built by the `mpicc` of an MPI; what the compiler said, if it fails.
    pub(crate) fn build(&self, prefix: &Path, name: &str) -> Result<PathBuf, String> {
        let program = self.path(&format!("compare.{name}"));
        let mut compiler = Command::new(prefix.join("bin/mpicc"));
        compiler.args(["-O2", "-std=c11", "-pthread", "-o"]).arg(&program);
        compiler.args(
            SOURCES
                .iter()
                .filter(|(name, _)| name.ends_with(".c"))
                .map(|(name, _)| self.path("src").join(name)),
        );
        compiler.env_remove("LD_LIBRARY_PATH");
        output(&mut compiler, LIMIT).map_err(|why| format!("its mpicc cannot build the program: {why}"))?;
        Ok(program)
    }
}
