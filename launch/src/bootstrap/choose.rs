//! Detects the launcher of this process from the environment alone.

use crate::LaunchError;
use nmad_words::setting::{SINGLETON, switch};

/// Method of joining the job.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// Use PMI-1 on a descriptor.
    Pmi1 {
        /// Its number.
        fd: i32,
        /// Our rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
    },
    /// Use PMI-1 over TCP.
    PmiPort {
        /// `HOST:PORT` of the launcher.
        address: String,
        /// The launcher's identifier of this process.
        id: u32,
    },
    /// Use the PMIx library.
    Pmix {
        /// Our rank.
        rank: u32,
        /// The job's name.
        job: String,
    },
    /// No launcher: a job of one process.
    Singleton,
}

/// Looks up an environment variable; empty counts as not set.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Chooses the method; see [`super::bootstrap()`].
pub fn choose(get: Lookup<'_>) -> Result<Way, LaunchError> {
    if get("PMI_FD").is_some() {
        return pmi1(get);
    }
    if let Some(address) = get("PMI_PORT") {
        let id = number(get, "PMI_ID")?.ok_or(LaunchError::Environment {
            name: "PMI_ID",
            found: "not set".into(),
            why: "the launcher set PMI_PORT, and this belongs to it".into(),
        })?;
        return Ok(Way::PmiPort { address, id });
    }
    // The user set this, so it comes before errors.
    if get(SINGLETON.name).is_some_and(|value| switch(&value) != Some(false)) {
        return Ok(Way::Singleton);
    }
    if let Some(rank) = number(get, "PMIX_RANK")? {
        let job = get("PMIX_NAMESPACE").ok_or(LaunchError::Environment {
            name: "PMIX_NAMESPACE",
            found: "not set".into(),
            why: "the launcher set PMIX_RANK, and this belongs to it".into(),
        })?;
        return Ok(Way::Pmix { rank, job });
    }
    // The step counts rather than the job: a batch script is one task in a job of many.
    let count = match number(get, "SLURM_STEP_NUM_TASKS")? {
        Some(count) => count,
        None => number(get, "SLURM_NTASKS")?.unwrap_or(1),
    };
    match get("SLURM_PROCID") {
        Some(task) if count > 1 => Err(LaunchError::SlurmWithoutPmi { task, count }),
        _ => Ok(Way::Singleton),
    }
}

fn pmi1(get: Lookup<'_>) -> Result<Way, LaunchError> {
    let need = |name: &'static str| {
        number(get, name)?.ok_or(LaunchError::Environment {
            name,
            found: "not set".into(),
            why: "the launcher set PMI_FD, and this belongs to it".into(),
        })
    };
    let (fd, rank, size) = (need("PMI_FD")?, need("PMI_RANK")?, need("PMI_SIZE")?);
    let wrong = |name, found: u32, why: &str| LaunchError::Environment {
        name,
        found: found.to_string(),
        why: why.into(),
    };
    if rank >= size {
        return Err(wrong("PMI_RANK", rank, &format!("it should be below PMI_SIZE, which is {size}")));
    }
    let fd = i32::try_from(fd).map_err(|_| wrong("PMI_FD", fd, "it is not a descriptor"))?;
    Ok(Way::Pmi1 { fd, rank, size })
}

/// Reads a variable that contains a number, if it is set.
pub fn number(get: Lookup<'_>, name: &'static str) -> Result<Option<u32>, LaunchError> {
    let Some(text) = get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(LaunchError::Environment {
            name,
            found: format!("{text:?}"),
            why: "it should be a number, zero or more".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Result<Way, String> {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        choose(&get).map_err(|error| error.to_string())
    }

    #[test]
    fn pmi_comes_first() {
        let all = [("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMIX_RANK", "0")];
        assert_eq!(chosen(&all), Ok(Way::Pmi1 { fd: 7, rank: 1, size: 2 }));
        assert_eq!(chosen(&[]), Ok(Way::Singleton));
        assert_eq!(chosen(&[("SLURM_NTASKS", "4")]), Ok(Way::Singleton), "the shell of salloc");
    }

    #[test]
    fn a_port_needs_a_number() {
        let both = [("PMI_PORT", "a:7"), ("PMI_ID", "3")];
        assert_eq!(chosen(&both), Ok(Way::PmiPort { address: "a:7".into(), id: 3 }));
        assert!(chosen(&both[..1]).unwrap_err().contains("PMI_ID is not set"));
        assert!(chosen(&[both[0], ("PMI_ID", "x")]).unwrap_err().contains("PMI_ID is \"x\""));
    }

    #[test]
    fn bad_pmi_variables_name_themselves() {
        for (variables, words) in [
            (vec![("PMI_FD", "7")], "PMI_RANK is not set"),
            (vec![("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD is \"x\""),
            (vec![("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")], "PMI_RANK is 2"),
            (vec![("PMI_FD", "4294967295"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD is 4294967295"),
        ] {
            let error = chosen(&variables).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn pmix_needs_a_rank_and_a_job() {
        let both = [("PMIX_RANK", "3"), ("PMIX_NAMESPACE", "prterun-17@1")];
        assert_eq!(chosen(&both), Ok(Way::Pmix { rank: 3, job: "prterun-17@1".into() }));
        let error = chosen(&both[..1]).unwrap_err();
        assert!(error.contains("PMIX_NAMESPACE is not set"), "{error}");
        assert!(chosen(&[("PMIX_RANK", "x"), both[1]]).unwrap_err().contains("PMIX_RANK is \"x\""));
        let alone = [("PMIX_RANK", "3"), ("NMAD_SINGLETON", "1")];
        assert_eq!(chosen(&alone), Ok(Way::Singleton));
    }

    #[test]
    fn launchers_without_pmi_say_how_to_start() {
        let slurm = [("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")];
        let error = chosen(&slurm).unwrap_err();
        assert!(error.contains("task 2 of 4") && error.contains("srun --mpi=pmi2"), "{error}");
        let alone = [("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4"), ("NMAD_SINGLETON", "1")];
        assert_eq!(chosen(&alone), Ok(Way::Singleton));
        let step = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_STEP_NUM_TASKS", "1")];
        assert_eq!(chosen(&step), Ok(Way::Singleton));
    }
}
