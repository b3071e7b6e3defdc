//! The MPIs that take turns: installations in a prefix, and the settings that they run with.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::job::output;
use crate::place::Place;

/// Which command line its launcher understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nmad,
    OpenMpi,
    /// MPICH and others with Hydra.
    Mpich,
}

/// An installed MPI.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) kind: Kind,
    pub(crate) prefix: PathBuf,
    /// Name and number of its version.
    pub(crate) version: String,
    /// Changes whenever figures measured before are those of something else.
    pub(crate) identity: String,
}

/// What a report and a file of figures say about a contestant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// What tables call it.
    pub name: String,
    /// Name and number of its version.
    pub version: String,
    /// Changes with the library.
    pub identity: String,
}

/// An MPI with settings: what takes a turn.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    /// What tables call it: the name of the installation, and `expert` behind it.
    pub(crate) name: String,
    pub(crate) installation: Installation,
    pub(crate) program: PathBuf,
    pub(crate) is_expert: bool,
}

const LIMIT: Duration = Duration::from_secs(20);

impl Installation {
    /// The installation in `prefix`; the reason, if it cannot be used.
    pub(crate) fn find(prefix: &Path) -> Result<Installation, String> {
        let (compiler, launcher) = (prefix.join("bin/mpicc"), prefix.join("bin/mpiexec"));
        if !compiler.is_file() || !launcher.is_file() {
            return Err(format!("there is no {} or no mpiexec beside it", compiler.display()));
        }
        let nmad = prefix.join("bin/nmad");
        if nmad.is_file() {
            let version = output(Command::new(nmad).arg("--version"), LIMIT)?.trim().to_string();
            let library = prefix.join("lib/libmpi_abi.so.1");
            let bytes = fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
            let identity = format!("{version} {:016x}", checksum(&bytes));
            return Ok(Installation { kind: Kind::Nmad, prefix: prefix.into(), version, identity });
        }
        let text = output(Command::new(&launcher).arg("--version").env_remove("LD_LIBRARY_PATH"), LIMIT)?;
        let (kind, version) = recognise(&text).ok_or_else(|| {
            format!("{} is neither that of Open MPI, MPICH nor NewMadeleine", launcher.display())
        })?;
        Ok(Installation { kind, prefix: prefix.into(), identity: version.clone(), version })
    }
}

/// The kind and version by the words of `mpiexec --version`.
fn recognise(text: &str) -> Option<(Kind, String)> {
    let first = text.lines().next().unwrap_or_default().trim();
    if ["Open MPI", "OpenRTE", "prterun", "PRRTE"].iter().any(|name| text.contains(name)) {
        return Some((
            Kind::OpenMpi,
            first.replace("mpirun (Open MPI)", "Open MPI").replace("mpiexec (Open MPI)", "Open MPI"),
        ));
    }
    let number = text.lines().find_map(|line| line.trim().strip_prefix("Version:"));
    if text.contains("HYDRA") {
        return Some((Kind::Mpich, format!("MPICH {}", number.unwrap_or_default().trim())));
    }
    text.contains("Intel(R) MPI").then(|| (Kind::Mpich, first.to_string()))
}

/// FNV-1a: the same on every machine and in every version of this program.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Contestant {
    pub(crate) fn new(name: &str, installation: Installation, program: PathBuf) -> Contestant {
        Contestant { name: name.into(), installation, program, is_expert: false }
    }

    /// The contestant and, where an expert would set something at this place, the same with these settings.
    pub(crate) fn at(&self, place: &Place) -> Vec<Contestant> {
        let mut both = vec![self.clone()];
        if self.installation.kind.has_expert(place) {
            let name = format!("{} expert", self.name);
            both.push(Contestant { name, is_expert: true, ..self.clone() });
        }
        both
    }

    pub(crate) fn described(&self) -> Described {
        let Installation { version, identity, .. } = self.installation.clone();
        Described { name: self.name.clone(), version, identity }
    }
}

impl Kind {
    /// Whether there is something to set by hand: only what is known to help.
    fn has_expert(self, place: &Place) -> bool {
        match self {
            Kind::Nmad => false,
            Kind::OpenMpi => place.has_rails(),
            Kind::Mpich => is_slow_rail_in_the_way(place),
        }
    }
}

/// Where one rail has less than half of another, UCX does better without it: it stripes by halves.
pub(crate) fn is_slow_rail_in_the_way(place: &Place) -> bool {
    matches!(place.rails, [fast, slow] if slow * 2 < *fast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::PLACES;

    #[test]
    fn launchers_are_known_by_their_words() {
        let open = recognise("mpirun (Open MPI) 5.0.8\n\nReport bugs to ...").unwrap();
        assert_eq!(open, (Kind::OpenMpi, "Open MPI 5.0.8".into()));
        let hydra = recognise("HYDRA build details:\n    Version:    5.0.2\n    CC: gcc").unwrap();
        assert_eq!(hydra, (Kind::Mpich, "MPICH 5.0.2".into()));
        assert_eq!(recognise("some other launcher"), None);
    }

    #[test]
    fn a_prefix_without_an_mpi_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let error = Installation::find(folder.path()).unwrap_err();
        assert!(error.contains("bin/mpicc"), "{error}");
    }

    #[test]
    fn experts_set_what_is_known_to_help() {
        let experts = |kind: Kind| {
            let names = PLACES.iter().filter(|place| kind.has_expert(place)).map(|place| place.name);
            names.collect::<Vec<_>>()
        };
        assert_eq!(experts(Kind::Nmad), [""; 0]);
        assert_eq!(experts(Kind::OpenMpi).len(), 4);
        assert_eq!(experts(Kind::Mpich), ["hosts2-4+1", "hosts4-4+1"]);
    }

    #[test]
    fn checksums_are_the_published_ones() {
        assert_eq!(checksum(b""), 0xcbf29ce484222325);
        assert_eq!(checksum(b"foobar"), 0x85944171f73967e8);
    }
}
