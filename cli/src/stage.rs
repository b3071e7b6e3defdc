//! Where two ranks of this program run when it was started without a job: two hosts of a testbed built for
//! them, or this host where namespaces are forbidden.

use nmad_launch::Host;
use nmad_testbed::{Rate, Spec, Testbed};
use std::ffi::OsString;
use std::process::ExitCode;

use crate::driver::DriverArgs;
use crate::output::{Failure, complain, tell_user};
use crate::settings::{self, Place};

/// Stands in for "no limit" in a list of rates of which others are limited.
const NO_LIMIT: &str = "1000gbit";

/// A place for two ranks.
pub(crate) struct Stage {
    ground: Ground,
    rails: Vec<Rate>,
    /// Interfaces are asked for: ranks of one host do not take their shared memory instead.
    over_interfaces: bool,
}

enum Ground {
    /// Built for this run, gone with it.
    Built(Testbed),
    /// The testbed that we are in already.
    Given(Vec<Host>),
    /// This host.
    Here,
}

/// Whether this process was started as a rank of a job.
pub(crate) fn is_in_job() -> bool {
    ["PMI_FD", "PMI_PORT", "PMIX_RANK", "SLURM_PROCID"].iter().any(|name| std::env::var_os(name).is_some())
}

impl Stage {
    /// The testbed that this program runs in, if it runs in one.
    pub(crate) fn given() -> Option<Stage> {
        let hosts = Host::from_env().ok().filter(|hosts| hosts.len() > 1)?;
        Some(Stage { ground: Ground::Given(hosts), rails: Vec::new(), over_interfaces: false })
    }

    /// Both ranks on this host.
    pub(crate) fn here(rails: &[Rate]) -> Stage {
        Stage { ground: Ground::Here, rails: rails.to_vec(), over_interfaces: false }
    }

    /// Two hosts joined by `rails`; this host, and why, where that is not possible.
    pub(crate) fn build(rails: &[Rate]) -> Stage {
        match Testbed::build(&Spec::new(2, rails.to_vec())) {
            Ok(testbed) => {
                Stage { ground: Ground::Built(testbed), rails: rails.to_vec(), over_interfaces: false }
            }
            Err(error) => {
                tell_user(format_args!("nmad: {error}; both ranks run on this host instead"));
                Stage::here(rails)
            }
        }
    }

    /// The same place, by these drivers if any are named.
    pub(crate) fn over(self, driver: &DriverArgs) -> Stage {
        Stage { over_interfaces: driver.are_named(), ..self }
    }

    /// The same place, by interfaces in any case.
    pub(crate) fn over_interfaces(self) -> Stage {
        Stage { over_interfaces: true, ..self }
    }

    /// Runs this very program there as two ranks, each on a core of its own, with the words `words`.
    pub(crate) fn run(&self, words: &[OsString], more: &[(String, String)]) -> ExitCode {
        self.launch(&["-n", "2", "--bind", "core"], words, more)
    }

    /// The same with `count` ranks, on any cores.
    pub(crate) fn run_ranks(&self, count: u32, words: &[OsString], more: &[(String, String)]) -> ExitCode {
        self.launch(&["-n", &count.to_string(), "--bind-to", "none"], words, more)
    }

    fn launch(&self, how: &[&str], words: &[OsString], more: &[(String, String)]) -> ExitCode {
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => {
                return complain("run", &format!("cannot find the path of this program: {error}"), 1);
            }
        };
        let set: Vec<(String, String)> = self.environment().iter().chain(more).cloned().collect();
        if let Err(error) = settings::before_job(&set, Place::Elsewhere) {
            return Failure::from(error).complain("run");
        }
        let mut line: Vec<OsString> = how.iter().map(OsString::from).collect();
        for (name, value) in &set {
            line.push("--env".into());
            line.push(format!("{name}={value}").into());
        }
        line.push("--".into());
        line.push(program.into());
        line.extend(words.iter().cloned());
        match nmad_launch::cli::parse("nmad run", line) {
            Ok(args) => nmad_launch::cli::main(args, self.hosts()),
            Err(error) => complain("run", &error, 1),
        }
    }

    fn hosts(&self) -> Vec<Host> {
        match &self.ground {
            Ground::Built(testbed) => {
                let host =
                    |host: &nmad_testbed::Host| Host { name: host.name().into(), prefix: host.prefix() };
                testbed.hosts().iter().map(host).collect()
            }
            Ground::Given(hosts) => hosts.clone(),
            Ground::Here => Vec::new(),
        }
    }

    /// The variables that tell the ranks about the rails; none where the defaults are right.
    fn environment(&self) -> Vec<(String, String)> {
        let is_limited = self.rails.iter().any(|rate| *rate != Rate::Unlimited);
        let is_here = matches!(self.ground, Ground::Here);
        if !is_limited && self.rails.len() < 2 && !(is_here && self.over_interfaces) {
            return Vec::new();
        }
        let rail = |(number, rate): (usize, &Rate)| {
            let name = if is_here { "lo".to_string() } else { nmad_testbed::rail_name(number as u32) };
            match rate {
                Rate::Unlimited => name,
                limited => format!("{name}={limited}"),
            }
        };
        let rails: Vec<String> = self.rails.iter().enumerate().map(rail).collect();
        let mut told = vec![("NMAD_RAILS".to_string(), rails.join(","))];
        if is_here && is_limited {
            let rate = |rate: &Rate| match rate {
                Rate::Unlimited => NO_LIMIT.to_string(),
                limited => limited.to_string(),
            };
            let rates: Vec<String> = self.rails.iter().map(rate).collect();
            told.push(("NMAD_THROTTLE".to_string(), rates.join(",")));
        }
        told
    }

    /// The variable by which ranks that change rails find the testbed that was built for them.
    pub(crate) fn testbed(&self) -> Vec<(String, String)> {
        match &self.ground {
            Ground::Built(testbed) => vec![(nmad_testbed::ENVIRONMENT.into(), testbed.environment())],
            Ground::Given(_) | Ground::Here => Vec::new(),
        }
    }

    /// The kind of stage, in a few words.
    pub(crate) fn name(&self) -> &'static str {
        match self.ground {
            Ground::Built(_) => "two hosts of a testbed",
            Ground::Given(_) => "two hosts of the testbed this runs in",
            Ground::Here => "two processes of one host",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_told_the_rates_of_their_rails() {
        let rails = ["4gbit", "max"].map(|text| text.parse().unwrap());
        let told = Stage::here(&rails).environment();
        let expected = [("NMAD_RAILS", "lo=4gbit,lo"), ("NMAD_THROTTLE", "4gbit,1000gbit")];
        assert_eq!(told, expected.map(|(name, value)| (name.to_string(), value.to_string())));
        let here = Stage::here(&[Rate::Unlimited]);
        assert_eq!(here.environment(), []);
        let over_interfaces = here.over_interfaces();
        assert_eq!(over_interfaces.environment(), [("NMAD_RAILS".to_string(), "lo".to_string())]);
    }
}
