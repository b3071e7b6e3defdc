//! Which of our variables are for ranks on other hosts.

use std::ffi::{OsStr, OsString};

use crate::local::Inherit;
use crate::local::spawn::inherits;

/// What belongs to a host, a login or a terminal: the ranks have that of their own host.
const OF_THIS_HOST: [&str; 22] = [
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
    "NMAD_SECRET",
    "NMAD_STARTED_BY",
    "MPI_LOCALRANKID",
];

/// The same, by how names begin: logins, schedulers (an agent has its own), launchers around us.
const BEGINNINGS: [&str; 10] =
    ["SSH_", "XDG_", "DBUS_", "SLURM", "FLUX_", "PBS_", "PMI_", "PMIX_", "HYDI_", "HYDRA_"];

/// Our variables that ranks on other hosts get.
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
    fn what_belongs_to_a_host_stays_there() {
        for name in ["PATH", "LD_LIBRARY_PATH", "NMAD_RAILS", "OMP_NUM_THREADS", "SSHX"] {
            assert!(travels(name.as_ref()), "{name}");
        }
        for name in ["HOSTNAME", "SSH_CONNECTION", "SLURM_PROCID", "PMI_FD", "_", "NMAD_SECRET"] {
            assert!(!travels(name.as_ref()), "{name}");
        }
    }
}
