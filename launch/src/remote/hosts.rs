//! The head's state of each host.

use super::Machines;
use super::channel::Channel;
use super::message::Down;

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
    pub state: State,
    pub channel: Option<Channel>,
    /// Whether another host passes messages on to it.
    pub has_parent: bool,
    /// Bytes of its output that wait for a slow reader of ours.
    pub owed: u32,
}

/// All hosts of the job.
pub struct Hosts {
    list: Vec<Host>,
}

impl Hosts {
    /// Makes the hosts of a job, before anything is started.
    pub fn of(machines: &Machines) -> Hosts {
        let host = |name: &String| Host {
            name: name.clone(),
            state: State::Expected,
            channel: None,
            has_parent: false,
            owed: 0,
        };
        Hosts { list: machines.hosts.iter().map(host).collect() }
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

    /// Returns the state of a host.
    pub fn state(&self, node: u32) -> State {
        self.list[node as usize].state
    }

    /// Returns whether another host passes messages on to this one.
    pub fn has_parent(&self, node: u32) -> bool {
        self.list[node as usize].has_parent
    }

    /// Returns whether each host is in this state or lost.
    pub fn all(&self, state: State) -> bool {
        self.list.iter().all(|host| host.state == state || host.state == State::Lost)
    }

    /// Returns the hosts in this state.
    pub fn in_state(&self, state: State) -> Vec<u32> {
        self.iter().filter(|(_, host)| host.state == state).map(|(node, _)| node).collect()
    }

    /// Returns whether this is the name of a host, with or without its domain.
    pub fn is_called(&self, node: u32, name: &str) -> bool {
        let own = self.name(node);
        own == name || own.split('.').next() == Some(name)
    }

    /// Records the loss of a host.
    pub fn lose(&mut self, node: u32) {
        let host = self.get_mut(node);
        host.channel = None;
        host.state = State::Lost;
    }

    /// Sends a message to a host that runs ranks.
    pub fn send(&mut self, node: u32, message: &Down) {
        let host = self.get_mut(node);
        if let (State::Running, Some(channel)) = (host.state, &mut host.channel) {
            channel.send(message);
        }
    }

    /// Acknowledges the output of all hosts.
    pub fn acknowledge_output(&mut self) {
        for host in self.list.iter_mut().filter(|host| host.owed > 0) {
            if let Some(channel) = &mut host.channel {
                channel.send(&Down::Taken(host.owed));
            }
            host.owed = 0;
        }
    }

    /// Sends a message to all running hosts.
    pub fn tell(&mut self, message: &Down) {
        (0..self.list.len() as u32).for_each(|node| self.send(node, message));
    }
}
