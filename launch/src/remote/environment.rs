//! Selects the environment variables for ranks on other hosts.

use std::ffi::{OsStr, OsString};

use crate::local::Inherit;
use crate::local::spawn::inherits;

/// Variables of a host, a login or a terminal, which ranks have from their own host.
const OF_THIS_HOST: [&str; 23] = [
    "DISPLAY",
    "HOME",
    "HOST",
    "HOSTNAME",
    "LOGNAME",
    "MAIL",
    "OLDPWD",
    "PWD",
    "SHELL",
    "SHLVL",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "USER",
    "WINDOWID",
    "XAUTHORITY",
    "_",
    "NMAD_LOCAL_RANK",
    "NMAD_LOCAL_SIZE",
    "NMAD_MPI_SWITCH",
    "NMAD_SECRET",
    "NMAD_STARTED_BY",
    "MPI_LOCALRANKID",
];

/// Prefixes of such variables: logins, schedulers (an agent has its own), outer launchers.
const BEGINNINGS: [&str; 10] =
    ["SSH_", "XDG_", "DBUS_", "SLURM", "FLUX_", "PBS_", "PMI_", "PMIX_", "HYDI_", "HYDRA_"];

/// Returns our variables for ranks on other hosts.
pub fn travelling(what: &Inherit) -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| inherits(what, name) && travels(name)).collect()
}

fn travels(name: &OsStr) -> bool {
    let stays = OF_THIS_HOST.iter().any(|one| *one == name)
        || BEGINNINGS.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()));
    !stays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_host_are_not_sent() {
        for name in ["PATH", "LD_LIBRARY_PATH", "NMAD_RAILS", "OMP_NUM_THREADS", "SSHX"] {
            assert!(travels(name.as_ref()), "{name}");
        }
        for name in
            ["HOSTNAME", "SSH_CONNECTION", "SLURM_PROCID", "PMI_FD", "_", "NMAD_SECRET", "NMAD_MPI_SWITCH"]
        {
            assert!(!travels(name.as_ref()), "{name}");
        }
    }
}
