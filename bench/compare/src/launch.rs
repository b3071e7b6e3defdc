//! The command line of one job, in each launcher's own words.
//!
//! Everybody gets the same cores: the program itself binds rank r to the r-th core that it may use, unless
//! ranks outnumber cores or the job is about how a library places ranks by itself. Other settings
//! are those that TCP on the rails of a testbed requires, whose hosts share one machine, and those of an
//! expert.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::contestant::{Contestant, Kind, is_slow_rail_in_the_way};
use crate::place::Place;
use crate::sources::Workshop;

/// Variables of a job or testbed that this program itself may run in, and libraries of somebody else.
const FOREIGN: [&str; 7] =
    ["LD_LIBRARY_PATH", "NMAD_TESTBED", "PMI_FD", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "PMIX_NAMESPACE"];

/// Which cores ranks run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// The launcher decides by itself.
    Launcher,
    /// Each rank gets a core of its own, if there are enough.
    Own,
    /// Any: ranks have threads.
    Any,
}

/// A job of one contestant.
pub(crate) struct Launch<'a> {
    pub(crate) who: &'a Contestant,
    pub(crate) place: &'a Place,
    pub(crate) on: Cores,
    /// Cores of this machine.
    pub(crate) cores: usize,
}

impl Launch<'_> {
    /// The command, which ends with the words `words` of the program; in a testbed it has to be started in
    /// host 0.
    pub(crate) fn command(&self, workshop: &Workshop, words: &[OsString]) -> Command {
        let prefix = &self.who.installation.prefix;
        let mut command = Command::new(prefix.join("bin/mpiexec"));
        command.args(match self.place.is_testbed() {
            false => self.here(),
            true => self.on_hosts(&workshop.path("agent")),
        });
        if self.place.is_testbed() {
            command.arg(workshop.path("inside"));
        }
        command.arg(&self.who.program).args(words);
        if self.is_bound() {
            command.arg("--pin");
        }
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
    }

    /// Whether each rank gets a core of its own from us.
    fn is_bound(&self) -> bool {
        let may_be = match self.on {
            Cores::Launcher => self.place.is_testbed(),
            Cores::Own => true,
            Cores::Any => false,
        };
        self.place.ranks as usize <= self.cores && may_be
    }

    fn here(&self) -> Vec<OsString> {
        let ranks = self.place.ranks.to_string();
        match self.who.installation.kind {
            Kind::Nmad | Kind::Mpich => words(["-n", &ranks]),
            Kind::OpenMpi => {
                let mut all = words(["--allow-run-as-root", "--oversubscribe", "-n", &ranks]);
                if self.on != Cores::Launcher {
                    all.extend(words(["--bind-to", "none"]));
                }
                all
            }
        }
    }

    fn on_hosts(&self, agent: &Path) -> Vec<OsString> {
        let place = self.place;
        let ranks = place.ranks.to_string();
        match self.who.installation.kind {
            Kind::Nmad => words(["-n", &ranks]),
            Kind::OpenMpi => {
                let mut all = words(["--allow-run-as-root", "--prefix"]);
                all.push(self.who.installation.prefix.clone().into());
                all.extend(words(["--prtemca", "plm_ssh_agent"]));
                all.push(agent.into());
                all.extend(words(["--host", &addresses(place, ":1"), "-n", &ranks, "--map-by", "node"]));
                all.extend(words(["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]));
                all.extend(words(["--mca", "btl_tcp_if_include", &rails(place)]));
                if self.who.is_expert {
                    for (number, rate) in place.rails.iter().enumerate() {
                        all.extend(words([
                            "--mca",
                            &format!("btl_tcp_bandwidth_r{number}"),
                            &rate.to_string(),
                        ]));
                    }
                }
                all
            }
            Kind::Mpich => {
                let mut all = words(["-launcher", "ssh", "-launcher-exec"]);
                all.push(agent.into());
                all.extend(words([
                    "-iface",
                    "r0",
                    "-hosts",
                    &addresses(place, ""),
                    "-ppn",
                    "1",
                    "-n",
                    &ranks,
                ]));
                let alone = self.who.is_expert && is_slow_rail_in_the_way(place);
                let devices = if alone { "r0".to_string() } else { rails(place) };
                for (name, value) in [
                    ("MPIR_CVAR_NOLOCAL", "1"),
                    ("UCX_TLS", "tcp,self"),
                    ("UCX_NET_DEVICES", &devices),
                    ("UCX_MAX_RNDV_RAILS", "2"),
                ] {
                    all.extend(words(["-genv", name, value]));
                }
                all
            }
        }
    }
}

/// A list of words.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// Of all hosts, on the first rail.
fn addresses(place: &Place, suffix: &str) -> String {
    let address = |host| format!("{}{suffix}", nmad_testbed::address(host, 0));
    (0..place.hosts).map(address).collect::<Vec<_>>().join(",")
}

fn rails(place: &Place) -> String {
    let name = |number| nmad_testbed::rail_name(number as u32);
    (0..place.rails.len()).map(name).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::Installation;
    use crate::place::PLACES;

    fn line(kind: Kind, place: &str, on: Cores, is_expert: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let workshop = Workshop::set_up(folder.path().into()).unwrap();
        let installation =
            Installation { kind, prefix: "/p".into(), version: String::new(), identity: String::new() };
        let who = Contestant { is_expert, ..Contestant::new("x", installation, "/w/compare.x".into()) };
        let place = PLACES.iter().find(|known| known.name == place).unwrap();
        let launch = Launch { who: &who, place, on, cores: 2 };
        let command = launch.command(&workshop, &words(["--cells", "/w/cells"]));
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        words.join(" ").replace(folder.path().to_str().unwrap(), "/w")
    }

    #[test]
    fn ranks_are_bound_if_there_are_cores_and_the_job_is_not_about_that() {
        let here = line(Kind::Nmad, "node2", Cores::Own, false);
        assert_eq!(here, "-n 2 /w/compare.x --cells /w/cells --pin");
        assert!(!line(Kind::Nmad, "node4", Cores::Own, false).contains("--pin"));
        assert!(line(Kind::Mpich, "node2", Cores::Any, false).ends_with("--cells /w/cells"));
        let first = line(Kind::OpenMpi, "node2", Cores::Launcher, false);
        assert!(!first.contains("--pin") && !first.contains("--bind-to"), "{first}");
        assert!(line(Kind::OpenMpi, "node2", Cores::Own, false).contains("--bind-to none"));
    }

    #[test]
    fn on_hosts_everybody_gets_the_same_rails() {
        let ours = line(Kind::Nmad, "hosts2-4+1", Cores::Own, false);
        assert_eq!(ours, "-n 2 /w/inside /w/compare.x --cells /w/cells --pin");
        let open = line(Kind::OpenMpi, "hosts4-4+2.8", Cores::Own, false);
        assert!(open.contains("--host 10.88.0.1:1,10.88.0.2:1,10.88.0.3:1,10.88.0.4:1 -n 4"), "{open}");
        assert!(open.contains("btl_tcp_if_include r0,r1") && !open.contains("bandwidth"), "{open}");
        let expert = line(Kind::OpenMpi, "hosts2-4+2.8", Cores::Own, true);
        assert!(expert.contains("btl_tcp_bandwidth_r0 4000 --mca btl_tcp_bandwidth_r1 2800"), "{expert}");
        let mpich = line(Kind::Mpich, "hosts2-4+1", Cores::Own, false);
        assert!(mpich.contains("-genv UCX_NET_DEVICES r0,r1 "), "{mpich}");
        let expert = line(Kind::Mpich, "hosts2-4+1", Cores::Own, true);
        assert!(expert.contains("-genv UCX_NET_DEVICES r0 "), "{expert}");
    }
}
