//! Checks settings before a job starts: the launcher reports a wrong one once, instead of each rank, also for
//! a program that does not use the library.

use newmadeleine::engine::Registry;
use newmadeleine::{Options, SessionError};
use nmad_launch::Host;
use nmad_launch::cli::RunArgs;

/// Where the ranks will run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On this machine, in this folder: files and interfaces can be looked at.
    Here,
    /// Where other interfaces and files may be.
    Elsewhere,
}

/// Whether ranks that get the variables `set` besides our own can keep their settings.
///
/// # Errors
/// The first that they cannot.
pub(crate) fn before_job(set: &[(String, String)], place: Place) -> Result<(), SessionError> {
    let options = Options::load_with(set)?;
    match place {
        Place::Here => options.problems().into_iter().next().map_or(Ok(()), Err),
        Place::Elsewhere => options.check(),
    }
}

/// The same for `nmad run` with these options, on these hosts of a testbed.
///
/// # Errors
/// As [`before_job`].
pub(crate) fn before_run(args: &RunArgs, hosts: &[Host]) -> Result<(), SessionError> {
    // Those of one program win over those of all.
    let set: Vec<_> = args.settings().into_iter().chain(args.env.iter().cloned()).collect();
    let is_on_hosts = match args.hosts_from.as_deref() {
        None => !hosts.is_empty(),
        Some(source) => source != "none",
    };
    let on_machines = args.hosts.is_some() || args.hostfile.is_some();
    let is_here = !is_on_hosts && !on_machines && args.wdir.is_none();
    before_job(&set, if is_here { Place::Here } else { Place::Elsewhere })
}

/// Returns the strategies of the library and those of plug-ins among these names.
///
/// # Errors
/// One of the names is unknown, or its plug-in cannot be loaded.
pub(crate) fn strategies(names: &[String]) -> Result<Registry, String> {
    let registry = Options::default().registry(names)?;
    for name in names {
        registry.make(name).map_err(|error| error.to_string())?;
    }
    Ok(registry)
}
