//! Hosts that a prefix command enters, and the placement of ranks on them.

use crate::LaunchError;
use crate::reach::is_here;
use crate::remote::Machines;

/// A virtual host on this machine with a network of its own, such as a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name in messages.
    pub name: String,
    /// The command that runs what follows it inside the host, e.g. `nsenter --net=/proc/123/ns/net`.
    /// It must pass on its descriptors and its exit code; empty runs the program as it is.
    pub prefix: Vec<String>,
}

impl Host {
    /// The variable that lists the hosts of the testbed in which a program runs.
    pub const VARIABLE: &str = nmad_words::setting::TESTBED.name;

    /// Returns the hosts that `NMAD_TESTBED` lists; none if it is not set.
    ///
    /// # Errors
    /// Errors of [`Host::parse_list`].
    pub fn from_env() -> Result<Vec<Host>, LaunchError> {
        match std::env::var(Host::VARIABLE) {
            Ok(text) => Host::parse_list(&text),
            Err(std::env::VarError::NotPresent) => Ok(Vec::new()),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(LaunchError::Job(format!("{} is not text", Host::VARIABLE)))
            }
        }
    }

    /// Parses `NAME=ARG ARG ...;NAME=ARG ...`; newlines separate entries like `;`.
    ///
    /// Arguments are separated by blanks without quoting, so neither they nor names can contain a blank or
    /// a `;`. The first `=` ends the name. Empty entries are skipped; each name must be unique.
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

/// Placement of the ranks of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placement {
    /// All ranks run on this host.
    #[default]
    Here,
    /// Ranks run in virtual hosts: the first ranks on the first host, the next ones on the second, and so
    /// on, then on the first host again.
    Hosts {
        /// The hosts.
        hosts: Vec<Host>,
        /// Number of ranks on each host before the next one; at least 1.
        each: u32,
    },
    /// Ranks run on other machines, where agents start them.
    Machines(Machines),
}

impl Placement {
    /// Returns the name of a rank's host; `None` for this host.
    pub fn host_name(&self, rank: u32) -> Option<&str> {
        match self {
            Placement::Here => None,
            Placement::Hosts { hosts, each } => Some(&hosts.get(host_of(rank, hosts, *each))?.name),
            Placement::Machines(machines) => machines.host_of(rank),
        }
    }

    /// Returns the prefix command of a rank's host.
    pub fn prefix(&self, rank: u32) -> &[String] {
        match self {
            Placement::Hosts { hosts, each } if !hosts.is_empty() => {
                &hosts[host_of(rank, hosts, *each)].prefix
            }
            _ => &[],
        }
    }

    /// Returns the placement on the hosts with these names only; `None` if there are none. Other machines are
    /// chosen when their agents are known.
    pub(crate) fn only(&self, names: &[&str]) -> Option<Placement> {
        match self {
            Placement::Here => names.iter().any(|name| is_here(name)).then_some(Placement::Here),
            Placement::Hosts { hosts, each } => {
                let named = |host: &&Host| names.contains(&host.name.as_str());
                let hosts: Vec<Host> = hosts.iter().filter(named).cloned().collect();
                (!hosts.is_empty()).then_some(Placement::Hosts { hosts, each: *each })
            }
            Placement::Machines(_) => Some(self.clone()),
        }
    }

    /// Returns the number of the host of each of `count` ranks.
    pub fn nodes(&self, count: u32) -> Vec<u32> {
        match self {
            Placement::Here => vec![0; count as usize],
            Placement::Hosts { hosts, each } => {
                (0..count).map(|rank| host_of(rank, hosts, *each) as u32).collect()
            }
            Placement::Machines(machines) => machines.nodes.clone(),
        }
    }
}

/// Returns the index of a rank's host, with `each` ranks on each before the next one.
fn host_of(rank: u32, hosts: &[Host], each: u32) -> usize {
    (rank / each.max(1)) as usize % hosts.len().max(1)
}

/// Returns each rank's number on its host, and the number of ranks there.
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
