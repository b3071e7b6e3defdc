//! The agent's connections to other agents of the tree: to its children, to which it passes messages on, and
//! to its parent, which passes messages on to it. Any of them may be missing: the agent reports to the head
//! which children are connected, and the head sends directly to all other hosts.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::admission::Admission;
use super::channel::Channel;
use super::join::join;
use super::message::{Down, JobDown, Listen, RelayUp, Up};
use crate::{Secret, host_name};

/// The connection to the agent from which messages come.
enum Parent {
    Missing,
    /// A thread connects, and closes the pipe when it has ended.
    Joining(Receiver<Result<Channel, String>>, std::io::PipeReader),
    Joined(Box<Channel>),
}

/// A source of events.
#[derive(Clone, Copy)]
pub enum Ready {
    Port,
    Stranger(usize),
    Child(usize),
    Parent,
}

/// A connected child.
struct Child {
    node: u32,
    host: String,
    channel: Channel,
}

/// The port for children.
struct Port {
    admission: Admission,
    /// Children that are not connected, with the names of their hosts.
    missing: Vec<(u32, String)>,
    /// Time when the port is closed although children are missing.
    until: Option<Instant>,
    limit: Duration,
}

/// The connections to other agents.
pub struct Relay {
    secret: [u8; 32],
    node: u32,
    /// Open until all children are connected, or until its time limit.
    port: Option<Port>,
    children: Vec<Child>,
    parent: Parent,
}

impl Relay {
    /// Makes the connections of host `node`; none is open at first.
    pub fn new(secret: [u8; 32], node: u32) -> Relay {
        Relay { secret, node, port: None, children: Vec::new(), parent: Parent::Missing }
    }

    /// Opens a port for the children, and reports its addresses to the head. If that fails, the head sends
    /// to the children directly.
    pub fn listen(&mut self, listen: Listen, head: &mut Channel) {
        let Listen { children: missing, silence, limit } = listen;
        // `admit` checks the number of the host.
        let admission = Admission::open(Secret::from_bytes(self.secret), u32::MAX, silence);
        let opened = admission.and_then(|admission| Ok((admission.addresses()?, admission)));
        let Ok((addresses, admission)) = opened else { return };
        self.port = Some(Port { admission, missing, until: Instant::now().checked_add(limit), limit });
        head.send(&Up::Relay(RelayUp::Port(addresses)));
    }

    /// Begins to connect to the agent at these addresses.
    pub fn join(&mut self, addresses: Vec<SocketAddr>) {
        let Ok((reader, writer)) = std::io::pipe() else { return };
        let (sender, result) = channel();
        let (secret, node) = (self.secret, self.node);
        let connect = move || {
            // The receiver is gone only if the agent ends.
            let _ = sender.send(join(&secret, &addresses, node));
            drop(writer);
        };
        // Without a thread the head serves this host.
        if std::thread::Builder::new().spawn(connect).is_ok() {
            self.parent = Parent::Joining(result, reader);
        }
    }

    /// Returns the descriptors to wait for. Higher numbers come first: handling one may change those above
    /// it.
    pub fn interests(&self) -> Vec<(PollFd<'_>, Ready)> {
        let mut all = Vec::new();
        for (number, Child { channel, .. }) in self.children.iter().enumerate().rev() {
            all.push((PollFd::new(channel, channel.wants()), Ready::Child(number)));
        }
        let strangers = self.port.iter().flat_map(|port| port.admission.interests());
        let mut strangers: Vec<_> = strangers.collect();
        strangers.sort_by_key(|(number, ..)| std::cmp::Reverse(*number));
        for (number, fd, flags) in strangers {
            all.push((PollFd::from_borrowed_fd(fd, flags), number.map_or(Ready::Port, Ready::Stranger)));
        }
        match &self.parent {
            Parent::Missing => {}
            Parent::Joining(_, ended) => all.push((PollFd::new(ended, PollFlags::IN), Ready::Parent)),
            Parent::Joined(parent) => all.push((PollFd::new(parent, parent.wants()), Ready::Parent)),
        }
        all
    }

    /// Closes connections that are not authenticated in time, and the port at its time limit; returns the
    /// next deadline.
    pub fn overdue(&mut self, head: &mut Channel) -> Option<Instant> {
        let (port, now) = (self.port.as_mut()?, Instant::now());
        if port.until.is_none_or(|until| now < until) {
            return [port.admission.overdue(now), port.until].into_iter().flatten().min();
        }
        let missing: Vec<&str> = port.missing.iter().map(|(_, host)| &**host).collect();
        head.send(&Up::Note(format!(
            "{} did not connect to {} within {} s (NMAD_LAUNCH_TIMEOUT): mpiexec sends to them directly, \
             which is slower with many hosts; does a firewall between these hosts block TCP?",
            missing.join(", "),
            host_name(),
            port.limit.as_secs_f64(),
        )));
        self.port = None;
        None
    }

    /// Handles an event; returns the messages of the parent.
    pub fn handle(&mut self, ready: Ready, head: &mut Channel) -> Vec<Down> {
        match ready {
            Ready::Port => self.port.iter_mut().for_each(|port| port.admission.accept()),
            Ready::Stranger(number) => self.admit(number, head),
            Ready::Child(number) => {
                let Some(Child { node, channel, .. }) = self.children.get_mut(number) else {
                    return Vec::new();
                };
                channel.write();
                channel.read();
                while channel.take::<Up>().is_some() {}
                if !channel.is_open() {
                    head.send(&Up::Relay(RelayUp::Gone(*node)));
                    self.children.remove(number);
                }
            }
            Ready::Parent => return self.listen_to_parent(),
        }
        Vec::new()
    }

    /// Admits a child that is missing; all other agents are refused.
    fn admit(&mut self, number: usize, head: &mut Channel) {
        let Some(port) = &mut self.port else { return };
        let Some((node, channel)) = port.admission.handle(number) else { return };
        let Some(at) = port.missing.iter().position(|(missing, _)| *missing == node) else {
            return head.send(&Up::Note(format!(
                "the agent of {} has refused a connection from an agent with host number {node}, which is \
                 connected already or is none of those that it passes messages on to",
                host_name()
            )));
        };
        let (_, host) = port.missing.swap_remove(at);
        if port.missing.is_empty() {
            self.port = None;
        }
        self.children.push(Child { node, host, channel });
        head.send(&Up::Relay(RelayUp::Connected(node)));
    }

    fn listen_to_parent(&mut self) -> Vec<Down> {
        if let Parent::Joining(result, _) = &self.parent {
            let joined = result.try_recv().ok().and_then(Result::ok);
            self.parent = joined.map_or(Parent::Missing, |parent| Parent::Joined(Box::new(parent)));
        }
        let Parent::Joined(parent) = &mut self.parent else { return Vec::new() };
        parent.write();
        parent.read();
        let mut messages = Vec::new();
        while let Some(message) = parent.take() {
            // Everything else comes from the head.
            if matches!(message, Down::Job(_, JobDown::Release(_))) {
                messages.push(message);
            }
        }
        if !parent.is_open() {
            self.parent = Parent::Missing;
        }
        messages
    }

    /// Passes a message on to the connected children. One that has not taken the message before is
    /// disconnected, so that a stopped agent costs the memory of one message: the head sends to it directly.
    pub fn pass_on(&mut self, message: &Down, head: &mut Channel) {
        self.children.retain_mut(|Child { node, host, channel }| {
            channel.write();
            if !channel.wants().contains(PollFlags::OUT) {
                channel.send(message);
                return true;
            }
            head.send(&Up::Note(format!(
                "the agent of {host} does not read what {} sends it: is it stopped? mpiexec sends \
                 to it directly",
                host_name()
            )));
            head.send(&Up::Relay(RelayUp::Gone(*node)));
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::message::Release;
    use std::net::{TcpListener, TcpStream};

    const LIMIT: Duration = Duration::from_secs(20);

    /// The head's end and the agent's end of a connection.
    fn head() -> (Channel, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let agent = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (head, _) = listener.accept().expect("it comes");
        (Channel::new(head).expect("a channel"), Channel::new(agent).expect("a channel"))
    }

    /// An agent that does nothing but this.
    struct Agent {
        relay: Relay,
        head: Channel,
        agent: Channel,
    }

    impl Agent {
        fn new(secret: [u8; 32], node: u32) -> Agent {
            let (head, agent) = head();
            Agent { relay: Relay::new(secret, node), head, agent }
        }

        /// Handles events, in their order; returns what the head and this agent have got.
        fn turn(&mut self) -> (Option<Up>, Vec<Down>) {
            let (mut fds, what): (Vec<_>, Vec<_>) = self.relay.interests().into_iter().unzip();
            rustix::event::poll(&mut fds, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000_000 }))
                .expect("poll");
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let ready = what.into_iter().zip(ready).filter(|(_, is_ready)| *is_ready).map(|(what, _)| what);
            let ready: Vec<Ready> = ready.collect();
            let got = ready.into_iter().flat_map(|ready| self.relay.handle(ready, &mut self.agent)).collect();
            self.head.read();
            (self.head.take(), got)
        }

        /// Waits for a message of this agent to the head.
        fn told(&mut self, other: Option<&mut Agent>) -> Up {
            let (limit, mut other) = (Instant::now() + LIMIT, other);
            loop {
                self.relay.overdue(&mut self.agent);
                if let (Some(message), _) = self.turn() {
                    return message;
                }
                other.iter_mut().for_each(|other| _ = other.turn());
                assert!(Instant::now() < limit, "no message");
            }
        }

        /// Opens a port for children with these numbers.
        fn listen(&mut self, children: &[u32], limit: Duration) -> Vec<SocketAddr> {
            let children = children.iter().map(|node| (*node, format!("host{node}"))).collect();
            self.relay.listen(Listen { children, silence: LIMIT, limit }, &mut self.agent);
            let Up::Relay(RelayUp::Port(addresses)) = self.told(None) else { panic!("no port") };
            addresses
        }

        /// Lets another agent connect to this one.
        fn connect(&mut self, child: &mut Agent) {
            let node = child.relay.node;
            let addresses = self.listen(&[node], LIMIT);
            child.relay.join(addresses);
            assert!(matches!(self.told(Some(child)), Up::Relay(RelayUp::Connected(other)) if other == node));
        }
    }

    #[test]
    fn agents_pass_messages_on_and_the_head_is_told_who_is_connected() {
        let secret = Secret::random().expect("a secret").bytes();
        let [mut parent, mut child] = [0, 7].map(|node| Agent::new(secret, node));
        parent.connect(&mut child);
        assert!(parent.relay.port.is_none(), "all have come");
        let silence = rustix::net::sockopt::tcp_user_timeout(&parent.relay.children[0].channel);
        assert_eq!(silence.map(u128::from), Ok(LIMIT.as_millis()), "as the head has said");
        let release = Release { fence: 3, put: vec!["k v\n".into()], is_for_all: true };
        // Only the end of a fence comes from a parent.
        parent.relay.pass_on(&Down::Signal(9), &mut parent.agent);
        parent.relay.pass_on(&Down::Job(0, JobDown::Release(release)), &mut parent.agent);
        let limit = Instant::now() + LIMIT;
        let got = loop {
            if let Some(message) = child.turn().1.pop() {
                break message;
            }
            assert!(Instant::now() < limit, "nothing comes");
        };
        assert!(matches!(got, Down::Job(0, JobDown::Release(release)) if release.fence == 3));
        drop(child);
        assert!(matches!(parent.told(None), Up::Relay(RelayUp::Gone(7))));
    }

    #[test]
    fn an_agent_that_cannot_connect_goes_on_without_a_parent() {
        let [mut parent, mut child] = [1, 2].map(|byte| Agent::new([byte; 32], 5));
        let addresses = parent.listen(&[5], LIMIT);
        // It knows another secret.
        child.relay.join(vec![*addresses.last().expect("one")]);
        let limit = Instant::now() + LIMIT;
        while !matches!(child.relay.parent, Parent::Missing) {
            assert!(parent.turn().0.is_none() && child.turn().1.is_empty());
            assert!(Instant::now() < limit, "it still connects");
        }
        assert!(parent.relay.children.is_empty() && parent.relay.port.is_some());
    }

    #[test]
    fn only_missing_children_are_admitted() {
        let secret = Secret::random().expect("a secret").bytes();
        let [mut parent, mut child, mut again, mut other] = [0, 5, 5, 9].map(|node| Agent::new(secret, node));
        let addresses = parent.listen(&[5, 6], LIMIT);
        child.relay.join(addresses.clone());
        assert!(matches!(parent.told(Some(&mut child)), Up::Relay(RelayUp::Connected(5))));
        for (agent, words) in [(&mut again, "host number 5"), (&mut other, "host number 9")] {
            agent.relay.join(addresses.clone());
            let Up::Note(text) = parent.told(Some(agent)) else { panic!("no message for the user") };
            assert!(text.contains("refused a connection") && text.contains(words), "{text}");
        }
        assert!(parent.relay.children.len() == 1 && parent.relay.port.is_some());
    }

    #[test]
    fn the_port_is_closed_at_its_time_limit() {
        let mut parent = Agent::new([3; 32], 0);
        parent.listen(&[5, 6], Duration::from_millis(10));
        let Up::Note(text) = parent.told(None) else { panic!("no message for the user") };
        assert!(text.contains("host5, host6 did not connect to") && text.contains("0.01 s"), "{text}");
        assert!(parent.relay.port.is_none());
    }

    #[test]
    fn a_stopped_child_costs_the_memory_of_one_message() {
        let secret = Secret::random().expect("a secret").bytes();
        let [mut parent, mut child] = [0, 7].map(|node| Agent::new(secret, node));
        parent.connect(&mut child);
        let release = |fence| Release { fence, put: vec!["k v\n".repeat(1 << 20)], is_for_all: true };
        let mut sent = 0;
        while !parent.relay.children.is_empty() {
            sent += 1;
            assert!(sent < 100, "the child never reads");
            parent.relay.pass_on(&Down::Job(0, JobDown::Release(release(sent))), &mut parent.agent);
        }
        let Up::Note(text) = parent.told(None) else { panic!("no message for the user") };
        assert!(text.contains("the agent of host7 does not read"), "{text}");
        assert!(matches!(parent.told(None), Up::Relay(RelayUp::Gone(7))));
    }
}
