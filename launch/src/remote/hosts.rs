//! What the head knows of each host, and the fence that all of them share.

use super::Machines;
use super::channel::Channel;
use super::message::Down;
use crate::pmi::server::Absent;

/// How far a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its agent was started.
    Expected,
    /// Its agent has come in.
    Here,
    /// Its agent knows what to run.
    Running,
    /// It is gone, or was given up.
    Lost,
}

/// One host of the job.
pub struct Host {
    /// As the user called it.
    pub name: String,
    /// Its ranks, in the order in which its agent has them.
    pub ranks: Vec<u32>,
    pub state: State,
    pub channel: Option<Channel>,
    /// Output that it sent and that waits for a slow reader of ours.
    pub owed: u32,
    alive: u32,
    waiting: Option<u32>,
    absent: Option<Absent>,
    fenced: bool,
}

/// All of them.
pub struct Hosts {
    list: Vec<Host>,
    /// What ranks put since the last fence, of the hosts that are in this one.
    put: Vec<(String, String)>,
}

impl Hosts {
    /// Those of a job, before anything was started.
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

    /// With their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Host)> {
        (0..).zip(&self.list)
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Host)> {
        (0..).zip(&mut self.list)
    }

    /// One of them.
    pub fn get_mut(&mut self, node: u32) -> &mut Host {
        &mut self.list[node as usize]
    }

    /// Its name.
    pub fn name(&self, node: u32) -> &str {
        &self.list[node as usize].name
    }

    /// Whether a rank lives, or is to.
    pub fn any_alive(&self) -> bool {
        self.list.iter().any(|host| host.alive > 0)
    }

    /// Whether each host is at least so far, or gone.
    pub fn all(&self, state: State) -> bool {
        self.list.iter().all(|host| host.state == state || host.state == State::Lost)
    }

    /// The hosts in one state.
    pub fn in_state(&self, state: State) -> Vec<u32> {
        self.iter().filter(|(_, host)| host.state == state).map(|(node, _)| node).collect()
    }

    /// A rank of this host is gone.
    pub fn ended(&mut self, node: u32) {
        let host = self.get_mut(node);
        host.alive = host.alive.saturating_sub(1);
    }

    /// A host is gone, and its ranks with it.
    pub fn lose(&mut self, node: u32) {
        let host = self.get_mut(node);
        host.alive = 0;
        host.channel = None;
        host.state = State::Lost;
    }

    /// A rank of this host waits in the fence.
    pub fn waits(&mut self, node: u32, rank: u32) {
        self.get_mut(node).waiting = Some(rank);
    }

    /// A rank of this host will join no fence.
    pub fn is_absent(&mut self, node: u32, absent: Absent) {
        self.get_mut(node).absent = Some(absent);
    }

    /// All ranks of a host are in the fence. If all hosts are: what to tell them.
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

    /// Why the fence can never be complete, if so.
    pub fn stuck(&self) -> Option<String> {
        let waiting = self.list.iter().find_map(|host| host.waiting)?;
        Some(self.list.iter().find_map(|host| host.absent)?.keeps(waiting))
    }

    /// Tells all hosts that run.
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
