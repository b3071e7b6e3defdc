//! The head's state of each host, and the fence of all hosts.

use super::Machines;
use super::channel::Channel;
use super::message::Down;
use crate::pmi::server::Absent;

/// State of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its agent was started.
    Expected,
    /// Its agent is connected.
    Here,
    /// Its agent runs the ranks.
    Running,
    /// The host is gone or was given up.
    Lost,
}

/// One host of the job.
pub struct Host {
    /// The user's name of the host.
    pub name: String,
    /// Its ranks, in the agent's order.
    pub ranks: Vec<u32>,
    pub state: State,
    pub channel: Option<Channel>,
    /// Bytes of its output that wait for a slow reader of ours.
    pub owed: u32,
    alive: u32,
    waiting: Option<u32>,
    absent: Option<Absent>,
    fenced: bool,
}

/// All hosts of the job.
pub struct Hosts {
    list: Vec<Host>,
    /// Values that ranks put since the last fence, of the hosts that are in this one.
    put: Vec<(String, String)>,
}

impl Hosts {
    /// Makes the hosts of a job, before anything is started.
    pub fn of(machines: &Machines) -> Hosts {
        let host = |(number, name): (u32, &String)| {
            let own = (0..).zip(&machines.nodes).filter(|&(_, &node)| node == number);
            let ranks: Vec<u32> = own.map(|(rank, _)| rank).collect();
            Host {
                name: name.clone(),
                alive: ranks.len() as u32,
                ranks,
                state: State::Expected,
                channel: None,
                owed: 0,
                waiting: None,
                absent: None,
                fenced: false,
            }
        };
        Hosts { list: (0..).zip(&machines.hosts).map(host).collect(), put: Vec::new() }
    }

    /// Returns the hosts with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Host)> {
        (0..).zip(&self.list)
    }

    /// Returns the mutable hosts with their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Host)> {
        (0..).zip(&mut self.list)
    }

    /// Returns a host.
    pub fn get_mut(&mut self, node: u32) -> &mut Host {
        &mut self.list[node as usize]
    }

    /// Returns the name of a host.
    pub fn name(&self, node: u32) -> &str {
        &self.list[node as usize].name
    }

    /// Returns whether a rank lives or is to be started.
    pub fn any_alive(&self) -> bool {
        self.list.iter().any(|host| host.alive > 0)
    }

    /// Returns whether each host is in this state or lost.
    pub fn all(&self, state: State) -> bool {
        self.list.iter().all(|host| host.state == state || host.state == State::Lost)
    }

    /// Returns the hosts in this state.
    pub fn in_state(&self, state: State) -> Vec<u32> {
        self.iter().filter(|(_, host)| host.state == state).map(|(node, _)| node).collect()
    }

    /// Records the end of a rank of this host.
    pub fn ended(&mut self, node: u32) {
        let host = self.get_mut(node);
        host.alive = host.alive.saturating_sub(1);
    }

    /// Records the loss of a host and its ranks.
    pub fn lose(&mut self, node: u32) {
        let host = self.get_mut(node);
        host.alive = 0;
        host.channel = None;
        host.state = State::Lost;
    }

    /// Records that a rank of this host waits in the fence.
    pub fn waits(&mut self, node: u32, rank: u32) {
        self.get_mut(node).waiting = Some(rank);
    }

    /// Records that a rank of this host will not join any further fence.
    pub fn is_absent(&mut self, node: u32, absent: Absent) {
        self.get_mut(node).absent = Some(absent);
    }

    /// Records that all ranks of a host are in the fence. Returns the release message if all hosts are.
    pub fn fence(&mut self, node: u32, put: Vec<(String, String)>) -> Option<Down> {
        self.put.extend(put);
        self.get_mut(node).fenced = true;
        if !self.list.iter().all(|host| host.fenced) {
            return None;
        }
        for host in &mut self.list {
            (host.fenced, host.waiting) = (false, None);
        }
        Some(Down::Release(std::mem::take(&mut self.put)))
    }

    /// Returns the reason why the fence can never complete, if so.
    pub fn stuck(&self) -> Option<String> {
        let waiting = self.list.iter().find_map(|host| host.waiting)?;
        Some(self.list.iter().find_map(|host| host.absent)?.keeps(waiting))
    }

    /// Sends a message to all running hosts.
    pub fn tell(&mut self, message: &Down) {
        for host in self.list.iter_mut().filter(|host| host.state == State::Running) {
            if let Some(channel) = &mut host.channel {
                channel.send(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::way::{Starting, ssh};

    fn hosts() -> Hosts {
        let starting = Starting { way: ssh("ssh", &[]), program: "nmad".into() };
        let hosts = vec!["a".into(), "b".into()];
        Hosts::of(&Machines { hosts, nodes: vec![0, 1, 0], starting })
    }

    #[test]
    fn a_fence_opens_when_all_hosts_are_in_it() {
        let mut hosts = hosts();
        assert_eq!(hosts.get_mut(0).ranks, [0, 2]);
        hosts.waits(0, 2);
        assert!(hosts.fence(0, vec![("x".into(), "1".into())]).is_none());
        assert_eq!(hosts.stuck(), None);
        let Some(Down::Release(put)) = hosts.fence(1, Vec::new()) else { panic!("all are in it") };
        assert_eq!(put, [("x".to_string(), "1".to_string())]);
        hosts.is_absent(1, Absent { rank: 1, gone: true });
        assert_eq!(hosts.stuck(), None, "nobody waits in the next one");
        hosts.waits(0, 0);
        let why = hosts.stuck().expect("it is");
        assert!(why.contains("rank 0 waits in a fence that rank 1 will never join"), "{why}");
    }

    #[test]
    fn a_lost_host_has_no_ranks_left() {
        let mut hosts = hosts();
        hosts.lose(0);
        assert!(hosts.any_alive() && !hosts.all(State::Here));
        hosts.ended(1);
        assert!(!hosts.any_alive());
        assert_eq!(hosts.in_state(State::Expected), [1]);
    }
}
