//! The machines of a scheduler's allocation: Slurm, Flux and PBS describe them in different ways.
//!
//! They are read from the environment and, for Flux, from its command. The command that starts agents
//! follows from the scheduler too: `srun`, `flux exec`, `pbs_tmrsh`.

use std::process::Command;

use super::Machine;
use super::way::Way;
use crate::LaunchError;
use crate::bootstrap::Lookup;

/// Most hosts; more are due to an error in a list.
const HOSTS_MAX: usize = 1 << 20;

/// A scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Slurm: `srun`.
    Slurm,
    /// Flux: `flux`.
    Flux,
    /// PBS: `pbs_tmrsh`.
    Pbs,
}

/// An allocation of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The machines, in the scheduler's order.
    pub machines: Vec<Machine>,
}

/// Returns the allocation in which this process runs, if any.
///
/// # Errors
/// [`LaunchError::Job`] for an allocation without a readable list of machines.
pub fn find(get: Lookup<'_>) -> Result<Option<Allocation>, LaunchError> {
    if get("SLURM_JOB_ID").is_some()
        && let Some(list) = get("SLURM_JOB_NODELIST").or_else(|| get("SLURM_NODELIST"))
    {
        return slurm(get, &list).map(Some);
    }
    if get("FLUX_URI").is_some() {
        return flux().map(Some);
    }
    match (get("PBS_JOBID"), get("PBS_NODEFILE")) {
        (Some(_), Some(path)) => pbs(&path).map(Some),
        _ => Ok(None),
    }
}

/// Returns the way to start agents on these hosts in an allocation.
///
/// # Errors
/// [`LaunchError::Job`] for hosts outside the allocation.
pub fn way(allocation: &Allocation, hosts: &[String]) -> Result<Way, LaunchError> {
    let place = |host: &String| allocation.machines.iter().position(|machine| machine.name == *host);
    let places: Option<Vec<usize>> = hosts.iter().map(place).collect();
    let Some(mut places) = places else {
        let all: Vec<&str> = allocation.machines.iter().map(|machine| machine.name.as_str()).collect();
        return Err(LaunchError::Job(format!(
            "one of the hosts {} is not in the allocation, which has {}; name those, or take --launcher ssh",
            hosts.join(","),
            all.join(",")
        )));
    };
    let count = hosts.len();
    Ok(match allocation.scheduler {
        Scheduler::Slurm => Way::Step {
            command: [
                "srun".into(),
                format!("--nodes={count}"),
                format!("--ntasks={count}"),
                "--ntasks-per-node=1".into(),
                format!("--nodelist={}", hosts.join(",")),
                "--overlap".into(),
                "--mpi=none".into(),
                "--cpu-bind=none".into(),
                "--kill-on-bad-exit=0".into(),
            ]
            .to_vec(),
            variable: "SLURMD_NODENAME".into(),
        },
        Scheduler::Flux => {
            places.sort_unstable();
            let ranks: Vec<String> = places.iter().map(usize::to_string).collect();
            let command = vec!["flux".into(), "exec".into(), format!("--rank={}", ranks.join(","))];
            Way::Step { command, variable: String::new() }
        }
        Scheduler::Pbs => Way::Tasks(vec!["pbs_tmrsh".into()]),
    })
}

fn slurm(get: Lookup<'_>, list: &str) -> Result<Allocation, LaunchError> {
    let wrong =
        |what: &str, text: &str| LaunchError::Job(format!("{what} is {text:?}, which makes no sense"));
    let names = names(list).ok_or_else(|| wrong("SLURM_JOB_NODELIST", list))?;
    // Slots are tasks if the user has asked for tasks, otherwise processors.
    let variable = match get("SLURM_NTASKS") {
        Some(_) => "SLURM_TASKS_PER_NODE",
        None => "SLURM_JOB_CPUS_PER_NODE",
    };
    let per_task = match variable {
        "SLURM_JOB_CPUS_PER_NODE" => {
            get("SLURM_CPUS_PER_TASK").and_then(|text| text.parse().ok()).unwrap_or(1)
        }
        _ => 1,
    };
    let text = get(variable).unwrap_or_default();
    let counts = counts(&text).filter(|counts| counts.len() >= names.len() || counts.is_empty());
    let counts = counts.ok_or_else(|| wrong(variable, &text))?;
    let slots = counts.into_iter().map(|count| (count / per_task).max(1)).chain(std::iter::repeat(1));
    let machines = names.into_iter().zip(slots).map(|(name, slots)| Machine { name, slots }).collect();
    Ok(Allocation { scheduler: Scheduler::Slurm, machines })
}

/// Parses `2(x3),1` as 2, 2, 2, 1.
fn counts(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (count, times) = match part.split_once("(x") {
            Some((count, rest)) => (count, rest.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        if all.len() + times > HOSTS_MAX {
            return None;
        }
        all.extend(std::iter::repeat_n(count.parse::<u32>().ok()?, times));
    }
    Some(all)
}

/// Expands `a[01-03,7]b[0-1],c` to names, in this order.
fn names(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                all.extend(expanded(&list[start..at])?);
                start = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) || all.len() > HOSTS_MAX {
            return None;
        }
    }
    (depth == 0 && !all.is_empty() && all.iter().all(|name| !name.is_empty())).then_some(all)
}

/// Expands one part of a list.
fn expanded(part: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = part.split_once('[') else { return Some(vec![part.to_owned()]) };
    let (inside, after) = rest.split_once(']')?;
    let ends = expanded(after)?;
    let mut all = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if to.checked_sub(from)? >= HOSTS_MAX {
            return None;
        }
        let width = first.len();
        for number in from..=to {
            all.extend(ends.iter().map(|end| format!("{before}{number:0width$}{end}")));
        }
    }
    Some(all)
}

fn flux() -> Result<Allocation, LaunchError> {
    let asked = |args: &[&str]| -> Option<String> {
        let output =
            Command::new("flux").args(args).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let list = asked(&["hostlist", "--expand", "--delimiter=,", "instance"]).ok_or_else(|| {
        LaunchError::Job(
            "FLUX_URI is set, but `flux hostlist instance` does not tell the hosts of this instance; \
             name them with -hosts, and take --launcher ssh"
                .into(),
        )
    })?;
    let names: Vec<&str> = list.trim().split(',').filter(|name| !name.is_empty()).collect();
    let cores = asked(&["resource", "list", "--states=all", "-no", "{ncores}"]);
    let cores: u32 = cores.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let slots = (cores / names.len().max(1) as u32).max(1);
    let machines = names.into_iter().map(|name| Machine { name: name.to_owned(), slots }).collect();
    Ok(Allocation { scheduler: Scheduler::Flux, machines })
}

/// Reads the node file, which has a line for each slot.
fn pbs(path: &str) -> Result<Allocation, LaunchError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LaunchError::Job(format!("cannot read PBS_NODEFILE, {path}: {error}")))?;
    let mut machines: Vec<Machine> = Vec::new();
    for name in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match machines.iter_mut().find(|machine| machine.name == name) {
            Some(machine) => machine.slots += 1,
            None => machines.push(Machine { name: name.to_owned(), slots: 1 }),
        }
    }
    match machines.is_empty() {
        true => Err(LaunchError::Job(format!("PBS_NODEFILE, {path}, names no host"))),
        false => Ok(Allocation { scheduler: Scheduler::Pbs, machines }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<Allocation>, String> {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        find(&get).map_err(|error| error.to_string())
    }

    fn told(allocation: &Allocation) -> String {
        let machine = |machine: &Machine| format!("{}:{}", machine.name, machine.slots);
        allocation.machines.iter().map(machine).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_of_slurm_are_expanded() {
        for (list, expected) in [
            ("a", "a"),
            ("n[1-3]", "n1 n2 n3"),
            ("n[08-10,12],x", "n08 n09 n10 n12 x"),
            ("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1"),
            ("n[1-2].example.org", "n1.example.org n2.example.org"),
        ] {
            assert_eq!(names(list).map(|names| names.join(" ")).as_deref(), Some(expected), "{list}");
        }
        for list in ["", "a,,b", "n[1-", "n1]", "n[3-1]", "n[x]", "n[[1]]", "n[0-99999999999]"] {
            assert_eq!(names(list), None, "{list}");
        }
    }

    #[test]
    fn an_allocation_of_slurm_has_its_tasks_or_processors() {
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-3]")];
        let with = |more: &[(&str, &str)]| told(&found(&[&job[..], more].concat()).unwrap().expect("one"));
        let tasks = [("SLURM_NTASKS", "5"), ("SLURM_TASKS_PER_NODE", "2(x2),1")];
        assert_eq!(with(&tasks), "n1:2 n2:2 n3:1");
        assert_eq!(
            with(&[("SLURM_JOB_CPUS_PER_NODE", "8(x3)"), ("SLURM_CPUS_PER_TASK", "2")]),
            "n1:4 n2:4 n3:4"
        );
        assert_eq!(with(&[]), "n1:1 n2:1 n3:1");
        let wrong = [&job[..], &[("SLURM_JOB_CPUS_PER_NODE", "8(x2)")]].concat();
        assert!(found(&wrong).expect_err("three hosts").contains("SLURM_JOB_CPUS_PER_NODE"));
        assert_eq!(found(&[("SLURM_JOB_ID", "7")]), Ok(None));
    }

    #[test]
    fn an_allocation_of_pbs_has_a_line_for_each_slot() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "n1\nn2\nn1\n").expect("it is written");
        let path = file.path().to_str().expect("text");
        let allocation = found(&[("PBS_JOBID", "1.x"), ("PBS_NODEFILE", path)]).unwrap().expect("one");
        assert_eq!((allocation.scheduler, told(&allocation)), (Scheduler::Pbs, "n1:2 n2:1".into()));
        std::fs::write(file.path(), "\n").expect("it is written");
        assert!(found(&[("PBS_JOBID", "1.x"), ("PBS_NODEFILE", path)]).is_err());
    }

    #[test]
    fn hosts_are_reached_as_the_scheduler_wants() {
        let machines = ["n1", "n2", "n3"].map(|name| Machine { name: name.into(), slots: 1 }).to_vec();
        let of = |scheduler| Allocation { scheduler, machines: machines.clone() };
        let hosts = ["n3", "n1"].map(str::to_owned);
        let Way::Step { command, variable } = way(&of(Scheduler::Slurm), &hosts).unwrap() else {
            panic!("srun")
        };
        assert!(command.contains(&"--nodelist=n3,n1".into()) && command.contains(&"--ntasks=2".into()));
        assert_eq!(variable, "SLURMD_NODENAME");
        let Way::Step { command, .. } = way(&of(Scheduler::Flux), &hosts).unwrap() else { panic!("flux") };
        assert_eq!(command, ["flux", "exec", "--rank=0,2"]);
        assert!(matches!(way(&of(Scheduler::Pbs), &hosts), Ok(Way::Tasks(_))));
        let error = way(&of(Scheduler::Slurm), &["x".into()]).unwrap_err().to_string();
        assert!(error.contains("not in the allocation, which has n1,n2,n3"), "{error}");
    }
}
