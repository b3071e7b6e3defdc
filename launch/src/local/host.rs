//! Hosts: places that a prefix command leads into, and which rank runs in which.

use crate::LaunchError;
use crate::remote::Machines;

/// A place on this machine with a network of its own, such as a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// For people: messages name it.
    pub name: String,
    /// The command that runs what follows it inside the host, e.g. `nsenter --net=/proc/123/ns/net`.
    /// It must pass on its descriptors and its exit code; empty runs the program as it is.
    pub prefix: Vec<String>,
}

impl Host {
    /// The variable that names the hosts of the testbed a program runs in.
    pub const VARIABLE: &str = "NMAD_TESTBED";

    /// The hosts that `NMAD_TESTBED` names; none if it is not set.
    ///
    /// # Errors
    /// As [`Host::parse_list`].
    pub fn from_env() -> Result<Vec<Host>, LaunchError> {
        match std::env::var(Host::VARIABLE) {
            Ok(text) => Host::parse_list(&text),
            Err(std::env::VarError::NotPresent) => Ok(Vec::new()),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(LaunchError::Job(format!("{} is not text", Host::VARIABLE)))
            }
        }
    }

    /// Reads `NAME=ARG ARG ...;NAME=ARG ...`, where newlines do as well as `;`.
    ///
    /// Arguments are separated by blanks and there is no quoting, so neither they nor names can hold a
    /// blank or a `;`. The first `=` ends the name. Empty entries are skipped; a name may be there once.
    ///
    /// # Errors
    /// [`LaunchError::Job`] for an entry without a name or without `=`, or a name used twice.
    pub fn parse_list(text: &str) -> Result<Vec<Host>, LaunchError> {
        let mut hosts: Vec<Host> = Vec::new();
        for entry in text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty()) {
            let fail = |why: &str| {
                let example = "host0=nsenter --net=/proc/123/ns/net;host1=...";
                Err(LaunchError::Job(format!("the host list has {entry:?}, {why}; expected {example:?}")))
            };
            let Some((name, prefix)) = entry.split_once('=') else { return fail("which has no `=`") };
            let name = name.trim();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return fail("whose name is empty or has a blank in it");
            }
            if hosts.iter().any(|host| host.name == name) {
                return fail("a host that was named before");
            }
            let prefix = prefix.split_ascii_whitespace().map(str::to_owned).collect();
            hosts.push(Host { name: name.to_owned(), prefix });
        }
        Ok(hosts)
    }
}

/// Where the ranks of a job run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placement {
    /// On this host, all of them.
    #[default]
    Here,
    /// On hosts that a command leads into, in turns: the first ranks on the first host, the next ones on the
    /// second, and so on, then the first host again.
    Hosts {
        /// They.
        hosts: Vec<Host>,
        /// This number of ranks on each before the next one gets some; at least 1.
        each: u32,
    },
    /// On other machines, where agents start them.
    Machines(Machines),
}

impl Placement {
    /// The name of a rank's host; `None` is this one.
    pub fn host_name(&self, rank: u32) -> Option<&str> {
        match self {
            Placement::Here => None,
            Placement::Hosts { hosts, .. } => Some(&hosts.get(self.host_of(rank))?.name),
            Placement::Machines(machines) => machines.host_of(rank),
        }
    }

    /// The command that runs what follows it where a rank is to be.
    pub fn prefix(&self, rank: u32) -> &[String] {
        match self {
            Placement::Hosts { hosts, .. } if !hosts.is_empty() => &hosts[self.host_of(rank)].prefix,
            _ => &[],
        }
    }

    /// The number of the host of each of `count` ranks.
    pub fn nodes(&self, count: u32) -> Vec<u32> {
        match self {
            Placement::Here => vec![0; count as usize],
            Placement::Hosts { .. } => (0..count).map(|rank| self.host_of(rank) as u32).collect(),
            Placement::Machines(machines) => machines.nodes.clone(),
        }
    }

    /// Which of the hosts, in turns, a rank is on.
    fn host_of(&self, rank: u32) -> usize {
        match self {
            Placement::Hosts { hosts, each } => (rank / (*each).max(1)) as usize % hosts.len().max(1),
            Placement::Here | Placement::Machines(_) => 0,
        }
    }
}

/// The number of each rank among those on its host, and how many those are.
pub(crate) fn local_ranks(nodes: &[u32]) -> Vec<(u32, u32)> {
    let hosts = nodes.iter().max().map_or(0, |&last| last as usize + 1);
    let mut counts = vec![0; hosts];
    let numbers: Vec<u32> = nodes.iter().map(|&node| next(&mut counts[node as usize])).collect();
    nodes.iter().zip(numbers).map(|(&node, number)| (number, counts[node as usize])).collect()
}

fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_list_of_a_testbed() {
        let hosts = Host::parse_list("a=nsenter --net=/x --uts=/y;\n b= ;").unwrap();
        assert_eq!(hosts.len(), 2);
        assert_eq!((hosts[0].name.as_str(), hosts[0].prefix.len()), ("a", 3));
        assert_eq!(hosts[0].prefix[1], "--net=/x");
        assert!(hosts[1].prefix.is_empty());
        assert_eq!(Host::parse_list(" ; ").unwrap(), []);
    }

    #[test]
    fn says_what_is_wrong_with_a_list() {
        for (text, words) in [("a", "no `=`"), ("=x", "name is empty"), ("a=x;a=y", "named before")] {
            let error = Host::parse_list(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn places_round_robin() {
        let hosts = Placement::Hosts { hosts: Host::parse_list("a=;b=").unwrap(), each: 1 };
        let names: Vec<&str> = (0..5).map(|rank| hosts.host_name(rank).unwrap()).collect();
        assert_eq!(names, ["a", "b", "a", "b", "a"]);
        let nodes = hosts.nodes(5);
        assert_eq!(nodes, [0, 1, 0, 1, 0]);
        assert_eq!(local_ranks(&nodes), [(0, 3), (0, 2), (1, 3), (1, 2), (2, 3)]);
        assert_eq!(local_ranks(&Placement::Here.nodes(2)), [(0, 2), (1, 2)]);
        assert_eq!(local_ranks(&hosts.nodes(1)), [(0, 1)]);
        assert_eq!(local_ranks(&[]), []);
        let two_each = Placement::Hosts { hosts: Host::parse_list("a=;b=").unwrap(), each: 2 };
        assert_eq!(two_each.nodes(5), [0, 0, 1, 1, 0]);
    }
}
