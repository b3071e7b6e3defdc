//! Hosts: places that a prefix command leads into, and which rank runs in which.

use crate::{LaunchError, mapping};

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
    /// Round robin: rank 0 on the first host, rank 1 on the second, and so on, then the first again.
    Hosts(Vec<Host>),
}

impl Placement {
    /// The host of a rank; `None` is this one.
    pub fn host(&self, rank: u32) -> Option<&Host> {
        match self {
            Placement::Here => None,
            Placement::Hosts(hosts) => hosts.get(rank as usize % hosts.len().max(1)),
        }
    }

    /// A rank's number among those on its host, and how many those are, in a job of `count`.
    pub fn local(&self, rank: u32, count: u32) -> (u32, u32) {
        let hosts = self.hosts();
        let place = rank % hosts;
        (rank / hosts, count / hosts + u32::from(place < count % hosts))
    }

    /// The map that the launcher gives to `count` ranks.
    pub fn mapping(&self, count: u32) -> String {
        match self {
            Placement::Here => mapping::one_node(count),
            Placement::Hosts(_) => mapping::round_robin(count, self.hosts()),
        }
    }

    fn hosts(&self) -> u32 {
        match self {
            Placement::Here => 1,
            Placement::Hosts(hosts) => hosts.len().max(1) as u32,
        }
    }
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
        let hosts = Placement::Hosts(Host::parse_list("a=;b=").unwrap());
        let names: Vec<&str> = (0..5).map(|rank| hosts.host(rank).unwrap().name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a", "b", "a"]);
        let local: Vec<_> = (0..5).map(|rank| hosts.local(rank, 5)).collect();
        assert_eq!(local, [(0, 3), (0, 2), (1, 3), (1, 2), (2, 3)]);
        assert_eq!(mapping::parse(&hosts.mapping(5), 5).unwrap(), [0, 1, 0, 1, 0]);
        assert_eq!(Placement::Here.local(2, 5), (2, 5));
        assert_eq!(hosts.local(0, 1), (0, 1));
    }
}
