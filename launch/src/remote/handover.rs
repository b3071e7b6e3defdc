//! Hands a job over to another installed launcher: PRRTE's `prterun`, or MPICH's Hydra.
//!
//! The ranks then use PMIx or PMI-1, as always under these launchers.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::binding::{Level, Target};
use crate::{Job, LaunchError, Placement, Stdin};

/// Another launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// `prterun`
    Prrte,
    /// `mpiexec.hydra`
    Hydra,
}

impl Other {
    /// Returns the command to start.
    pub fn program(self) -> &'static str {
        match self {
            Other::Prrte => "prterun",
            Other::Hydra => "mpiexec.hydra",
        }
    }
}

/// Executes the other launcher; returns only if that fails.
pub fn hand_over(other: Other, job: &Job) -> LaunchError {
    let words = match words(other, job) {
        Ok(words) => words,
        Err(error) => return error,
    };
    let source = Command::new(other.program()).args(words).exec();
    let program = other.program();
    LaunchError::Job(format!(
        "--launcher asks for {program}, which cannot be started: {source}; install it, or take --launcher ssh"
    ))
}

/// Returns the command line for a job.
///
/// # Errors
/// [`LaunchError::Job`] for an option that the launcher does not support.
pub fn words(other: Other, job: &Job) -> Result<Vec<OsString>, LaunchError> {
    let ours = [
        ("--timestamp-output", job.output.timestamp),
        ("--outfile, --errfile or --output-filename", job.output.files.iter().any(Option::is_some)),
        ("--keep-going or --ft", job.keep_going),
    ];
    if let Some((option, _)) = ours.into_iter().find(|(_, is_given)| *is_given) {
        return Err(LaunchError::Job(format!("{} gets no {option} from here", other.program())));
    }
    let mut words: Vec<OsString> = Vec::new();
    let mut say = |parts: &[&str]| words.extend(parts.iter().map(OsString::from));
    if let Placement::Machines(machines) = &job.placement {
        let slots = |node: u32| machines.nodes.iter().filter(|&&own| own == node).count();
        let hosts = (0..).zip(&machines.hosts).map(|(node, host)| format!("{host}:{}", slots(node)));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let in_turns = machines.hosts.len() > 1 && machines.nodes.first() != machines.nodes.get(1);
        match other {
            Other::Prrte => say(&["--host", &hosts]),
            Other::Hydra => say(&["-hosts", &hosts]),
        }
        match (other, in_turns) {
            (Other::Prrte, true) => say(&["--map-by", "node"]),
            (Other::Hydra, true) => say(&["-ppn", "1"]),
            _ => {}
        }
    }
    if let Some(limit) = job.timeout {
        let seconds = limit.as_secs().max(1).to_string();
        match other {
            Other::Prrte => say(&["--timeout", &seconds]),
            Other::Hydra => say(&["-genv", "MPIEXEC_TIMEOUT", &seconds]),
        }
    }
    if job.output.tag {
        match other {
            Other::Prrte => say(&["--output", "tag"]),
            Other::Hydra => say(&["-l"]),
        }
    }
    match (other, job.stdin) {
        (_, Stdin::Rank(0)) => {}
        (Other::Prrte, Stdin::Rank(rank)) => say(&["--stdin", &rank.to_string()]),
        (Other::Hydra, Stdin::Rank(rank)) => say(&["-s", &rank.to_string()]),
        (Other::Prrte, Stdin::All) => say(&["--stdin", "all"]),
        (Other::Prrte, Stdin::None) => say(&["--stdin", "none"]),
        (Other::Hydra, Stdin::All) => say(&["-s", "all"]),
        (Other::Hydra, Stdin::None) => return Err(LaunchError::Job("Hydra cannot do --stdin none".into())),
    }
    match job.binding.to {
        Target::Share => {}
        Target::Nothing => say(&["--bind-to", "none"]),
        Target::Part(level) => say(&["--bind-to", name(level)]),
    }
    programs(other, job, &mut words);
    Ok(words)
}

fn programs(other: Other, job: &Job, words: &mut Vec<OsString>) {
    for (number, program) in job.programs.iter().enumerate() {
        words.extend((number > 0).then(|| ":".into()));
        words.extend(["-n".into(), program.count.to_string().into()]);
        for (name, value) in job.env.iter().chain(&program.env) {
            match other {
                Other::Hydra => words.extend(["-env".into(), name.clone(), value.clone()]),
                Other::Prrte => {
                    let mut pair = name.clone();
                    pair.push("=");
                    pair.push(value);
                    words.extend(["-x".into(), pair]);
                }
            }
        }
        if let Some(folder) = &program.folder {
            let option = if other == Other::Hydra { "-wdir" } else { "--wdir" };
            words.extend([option.into(), folder.into()]);
        }
        words.push(program.program.clone());
        words.extend(program.args.iter().cloned());
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::HwThread => "hwthread",
        Level::Core => "core",
        Level::L3 => "l3cache",
        Level::Numa => "numa",
        Level::Socket => "socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Machines;
    use crate::remote::way::{Starting, ssh};

    fn said(other: Other, job: &Job) -> String {
        let words = words(other, job).expect("it can");
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn both_get_what_they_understand() {
        let mut job = Job::new("./a", ["x"], 3);
        job.env = vec![("K".into(), "v".into())];
        job.output.tag = true;
        job.binding.to = Target::Part(Level::Core);
        let starting = Starting { way: ssh("ssh", &[]), program: "nmad".into() };
        let hosts = vec!["a".into(), "b".into()];
        job.placement = Placement::Machines(Machines { hosts, nodes: vec![0, 1, 0], starting });
        let hydra = "-hosts a:2,b:1 -ppn 1 -l --bind-to core -n 3 -env K v ./a x";
        assert_eq!(said(Other::Hydra, &job), hydra);
        let prrte = "--host a:2,b:1 --map-by node --output tag --bind-to core -n 3 -x K=v ./a x";
        assert_eq!(said(Other::Prrte, &job), prrte);
        job.stdin = Stdin::None;
        assert!(words(Other::Hydra, &job).is_err());
    }
}
