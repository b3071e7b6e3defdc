//! The agent's connections to other agents: to those it passes messages on to, and to the one that it gets
//! them from. All of them can be missing, since the head serves hosts that are not connected; it is told
//! which are.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::admission::Admission;
use super::channel::{Channel, silence_of_agents};
use super::join::join;
use super::message::{Down, JobDown, RelayUp, Up};
use crate::Secret;

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

/// The connections to other agents.
pub struct Relay {
    secret: [u8; 32],
    node: u32,
    /// Open until all children are connected.
    port: Option<Admission>,
    /// Children that are not connected.
    missing: u32,
    /// Connected children with their hosts.
    children: Vec<(u32, Channel)>,
    parent: Parent,
}

impl Relay {
    /// Makes the connections of a host, of which there are none.
    pub fn new(secret: [u8; 32], node: u32) -> Relay {
        Relay { secret, node, port: None, missing: 0, children: Vec::new(), parent: Parent::Missing }
    }

    /// Opens a port for this number of agents, and tells the head its addresses. Without a port the head
    /// serves them.
    pub fn listen(&mut self, count: u32, head: &mut Channel) {
        // The head checks which host an agent belongs to.
        let open = |silence| Admission::open(Secret::from_bytes(self.secret), u32::MAX, silence);
        let port = silence_of_agents(false).and_then(open);
        let Ok((addresses, port)) = port.and_then(|port| Ok((port.addresses()?, port))) else { return };
        (self.port, self.missing) = (Some(port), count);
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
        for (number, (_, child)) in self.children.iter().enumerate().rev() {
            all.push((PollFd::new(child, child.wants()), Ready::Child(number)));
        }
        let strangers = self.port.iter().flat_map(Admission::interests);
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

    /// Closes connections that are not authenticated in time; returns the next deadline.
    pub fn overdue(&mut self) -> Option<Instant> {
        self.port.as_mut()?.overdue(Instant::now())
    }

    /// Handles an event; returns the messages of the parent.
    pub fn handle(&mut self, ready: Ready, head: &mut Channel) -> Vec<Down> {
        match ready {
            Ready::Port => self.port.iter_mut().for_each(Admission::accept),
            Ready::Stranger(number) => self.admit(number, head),
            Ready::Child(number) => {
                let Some((node, child)) = self.children.get_mut(number) else { return Vec::new() };
                child.write();
                child.read();
                while child.take::<Up>().is_some() {}
                if !child.is_open() {
                    head.send(&Up::Relay(RelayUp::Gone(*node)));
                    self.children.remove(number);
                }
            }
            Ready::Parent => return self.listen_to_parent(),
        }
        Vec::new()
    }

    fn admit(&mut self, number: usize, head: &mut Channel) {
        let Some((node, child)) = self.port.as_mut().and_then(|port| port.handle(number)) else { return };
        self.children.push((node, child));
        head.send(&Up::Relay(RelayUp::Connected(node)));
        self.missing = self.missing.saturating_sub(1);
        if self.missing == 0 {
            self.port = None;
        }
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

    /// Passes a message on to the connected agents.
    pub fn pass_on(&mut self, message: &Down) {
        self.children.iter_mut().for_each(|(_, child)| child.send(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::message::Release;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

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

        /// Waits for something that this agent tells the head.
        fn told(&mut self, other: Option<&mut Agent>) -> RelayUp {
            let (limit, mut other) = (Instant::now() + LIMIT, other);
            loop {
                if let (Some(Up::Relay(message)), _) = self.turn() {
                    return message;
                }
                other.iter_mut().for_each(|other| _ = other.turn());
                assert!(Instant::now() < limit, "nothing is told");
            }
        }
    }

    #[test]
    fn agents_pass_messages_on_and_the_head_is_told_who_is_connected() {
        let secret = Secret::random().expect("a secret").bytes();
        let [mut parent, mut child] = [0, 7].map(|node| Agent::new(secret, node));
        parent.relay.listen(1, &mut parent.agent);
        let RelayUp::Port(addresses) = parent.told(None) else { panic!("it has a port") };
        child.relay.join(addresses);
        assert!(matches!(parent.told(Some(&mut child)), RelayUp::Connected(7)));
        assert!(parent.relay.port.is_none(), "all have come");
        let release = Release { fence: 3, put: vec!["k v\n".into()], is_for_all: true };
        // Only the end of a fence comes from a parent.
        parent.relay.pass_on(&Down::Signal(9));
        parent.relay.pass_on(&Down::Job(0, JobDown::Release(release)));
        let limit = Instant::now() + LIMIT;
        let got = loop {
            if let Some(message) = child.turn().1.pop() {
                break message;
            }
            assert!(Instant::now() < limit, "nothing comes");
        };
        assert!(matches!(got, Down::Job(0, JobDown::Release(release)) if release.fence == 3));
        drop(child);
        assert!(matches!(parent.told(None), RelayUp::Gone(7)));
    }

    #[test]
    fn an_agent_that_cannot_connect_goes_on_without_a_parent() {
        let [mut parent, mut child] = [1, 2].map(|byte| Agent::new([byte; 32], 5));
        parent.relay.listen(1, &mut parent.agent);
        let RelayUp::Port(addresses) = parent.told(None) else { panic!("it has a port") };
        // It knows another secret.
        child.relay.join(vec![*addresses.last().expect("one")]);
        let limit = Instant::now() + LIMIT;
        while !matches!(child.relay.parent, Parent::Missing) {
            assert!(parent.turn().0.is_none() && child.turn().1.is_empty());
            assert!(Instant::now() < limit, "it still connects");
        }
        assert!(parent.relay.children.is_empty() && parent.relay.port.is_some());
    }
}
