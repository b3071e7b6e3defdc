//! Chooses the hosts of a job: this host, hosts of a testbed, or other machines.

use super::{Launcher, RunArgs, machines};
use crate::reach::is_here;
use crate::remote::allocation::{self, Allocation, Scheduler};
use crate::remote::start::own_program;
use crate::remote::way::{Starting, Way, ssh};
use crate::remote::{Machine, Machines, Share, place, slots};
use crate::{Host, LaunchError, Placement};

/// The available hosts.
pub enum Found {
    /// This host only.
    Here,
    /// Virtual hosts that a prefix command enters.
    Hosts(Vec<Host>),
    /// Machines, and their allocation, if any.
    Machines(Vec<Machine>, Option<Allocation>),
}

/// Finds machines: on the command line, in the testbed (`hosts`), in an allocation, in `HYDRA_HOST_FILE`.
///
/// # Errors
/// [`LaunchError::Job`] for an unreadable list.
pub fn find(args: &RunArgs, hosts: Vec<Host>) -> Result<Found, LaunchError> {
    let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let named = match (&args.hosts, &args.hostfile) {
        (Some(list), _) => Some(machines::in_list(list)),
        (None, Some(path)) => Some(machines::in_file(path)),
        (None, None) => None,
    };
    if let Some(named) = named {
        let allocation = if wants_allocation(args) { allocation::find(&get)? } else { None };
        return Ok(Found::Machines(named.map_err(LaunchError::Job)?, allocation));
    }
    match args.hosts_from.as_deref() {
        Some("none") => return Ok(Found::Here),
        Some(path) => return hosts_in(path).map(Found::Hosts),
        None if !hosts.is_empty() => return Ok(Found::Hosts(hosts)),
        None => {}
    }
    if wants_allocation(args)
        && let Some(allocation) = allocation::find(&get)?
    {
        return Ok(Found::Machines(allocation.machines.clone(), Some(allocation)));
    }
    match get("HYDRA_HOST_FILE") {
        Some(path) => machines::in_file(path.as_ref())
            .map(|named| Found::Machines(named, None))
            .map_err(|why| LaunchError::Job(format!("{why} (HYDRA_HOST_FILE)"))),
        None => Ok(Found::Here),
    }
}

/// Returns whether to ask the scheduler; other launchers do that themselves.
fn wants_allocation(args: &RunArgs) -> bool {
    !matches!(args.launcher, Launcher::Prrte | Launcher::Hydra)
}

impl Found {
    /// Returns the default number of ranks.
    pub fn slots(&self, args: &RunArgs) -> u32 {
        match self {
            Found::Machines(machines, _) => slots(machines, share(args)).max(1),
            Found::Here => share(args).per_host.unwrap_or(1),
            Found::Hosts(hosts) => {
                let all = |each: u32| each.saturating_mul(hosts.len() as u32);
                share(args).per_host.map_or(1, all)
            }
        }
    }

    /// Places `count` ranks.
    ///
    /// # Errors
    /// [`LaunchError::Job`] for machines that cannot be reached by the requested method.
    pub fn place(self, args: &RunArgs, count: u32) -> Result<Placement, LaunchError> {
        let (machines, allocation) = match self {
            Found::Here => return Ok(Placement::Here),
            Found::Hosts(hosts) => {
                let each = share(args).per_host.unwrap_or(1);
                return Ok(Placement::Hosts { hosts, each });
            }
            Found::Machines(machines, allocation) => (machines, allocation),
        };
        let (hosts, nodes) = place(&machines, count, share(args));
        if args.launcher == Launcher::Fork || hosts.iter().all(|host| is_here(host)) {
            return Ok(Placement::Here);
        }
        let program = match &args.prefix {
            Some(folder) => format!("{}/bin/nmad", folder.trim_end_matches('/')),
            None => own_program()?,
        };
        let starting = Starting { way: way(args, allocation.as_ref(), &hosts)?, program };
        Ok(Placement::Machines(Machines { hosts, nodes, starting }))
    }
}

fn share(args: &RunArgs) -> Share {
    Share { per_host: args.ppn.or(args.map_by.per_host), in_turns: args.map_by.in_turns }
}

/// Returns the method of starting agents on these hosts.
fn way(args: &RunArgs, allocation: Option<&Allocation>, hosts: &[String]) -> Result<Way, LaunchError> {
    let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let words = |name: &str, text: &str| {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        words.ok_or_else(|| LaunchError::Job(format!("{name} is {text:?}, which is no command")))
    };
    let extra = ["HYDRA_LAUNCH_EXTRA_ARGS", "HYDRA_LAUNCHER_EXTRA_ARGS"];
    let more = match extra.iter().find_map(|name| Some((name, get(name)?))) {
        Some((name, text)) => words(name, &text)?,
        None => Vec::new(),
    };
    if let Some(text) = &args.launcher_exec {
        let words = words("the command of --launcher-exec (HYDRA_LAUNCHER_EXEC)", text)?;
        let is_ssh = words.len() == 1 && words[0].rsplit('/').next() == Some("ssh");
        return Ok(if is_ssh { ssh(&words[0], &more) } else { Way::Shell([words, more].concat()) });
    }
    let wanted = match args.launcher {
        Launcher::Srun => Some(Scheduler::Slurm),
        Launcher::Flux => Some(Scheduler::Flux),
        Launcher::Pbs => Some(Scheduler::Pbs),
        Launcher::Auto => allocation.map(|allocation| allocation.scheduler),
        Launcher::Ssh | Launcher::Fork | Launcher::Prrte | Launcher::Hydra => None,
    };
    match (wanted, allocation) {
        (None, _) => Ok(ssh("ssh", &more)),
        (Some(wanted), Some(allocation)) if wanted == allocation.scheduler => {
            allocation::way(allocation, hosts)
        }
        (Some(wanted), _) => Err(LaunchError::Job(format!(
            "--launcher asks for {wanted:?}, but this is no allocation of it; leave the option out, or take \
             --launcher ssh"
        ))),
    }
}

fn hosts_in(path: &str) -> Result<Vec<Host>, LaunchError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LaunchError::Job(format!("cannot read the host list {path:?}: {error}")))?;
    match Host::parse_list(&text)? {
        hosts if hosts.is_empty() => Err(LaunchError::Job(format!("the host list {path:?} names no host"))),
        hosts => Ok(hosts),
    }
}
