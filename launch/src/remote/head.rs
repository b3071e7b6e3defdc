//! The head of a job on several hosts: the loop that starts agents, handles their messages, and ends the
//! job.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::admission::Admission;
use super::feed::{Feed, Piece};
use super::hosts::{Hosts, State};
use super::message::{Command, Down, Intro, Node, Place, Up, Work, pairs_out};
use super::start::{Letter, start_agents};
use super::starter::{Gone, Leaders};
use super::{Machines, environment};
use crate::deaths::Unreachable;
use crate::local::desk::Desk;
use crate::local::ending::{Order, is_death};
use crate::local::output::Taker;
use crate::local::run::{abort_reason, job_name, unreachable, wait_for};
use crate::local::signals::{Request, Signals};
use crate::local::{Inherit, spawn};
use crate::{ExitReport, Job, LaunchError, Placement, RankEnd, Secret, mapping};

/// Time limit for agents to connect, unless `NMAD_LAUNCH_TIMEOUT` changes it.
const COMING: Duration = Duration::from_secs(60);

/// Time limit for the commands that started agents to end after them.
const LEAVING: Duration = Duration::from_secs(2);

/// Interval of checks whether this process is in the foreground of its terminal again.
const FOREGROUND_EVERY: Duration = Duration::from_millis(500);

/// Runs a job whose placement is [`Placement::Machines`].
pub fn run(job: Job) -> Result<ExitReport, LaunchError> {
    let Placement::Machines(machines) = job.placement.clone() else {
        return Err(LaunchError::Job("the ranks have no machines".into()));
    };
    let mut head = Head::start(job, &machines)?;
    while head.hosts.any_alive() || head.desk.has_output() {
        head.turn()?;
    }
    head.leave()
}

/// A source of events.
#[derive(Clone, Copy)]
enum Ready {
    Signals,
    Port,
    Stranger(usize),
    Host(u32),
    Leader(usize),
    Input,
    Sink(usize),
}

struct Head {
    // Dropped first: the agents and their ranks end with the commands that started them, if an error ends
    // the loop.
    leaders: Leaders,
    hosts: Hosts,
    admission: Admission,
    signals: Signals,
    feed: Feed,
    desk: Desk,
    job: Job,
    name: String,
    nodes: Vec<u32>,
    unreachable: Unreachable,
    /// Deadline for all agents to connect.
    coming: Option<Instant>,
    limit: Duration,
    /// The file for agents that get no input; removed with this value.
    _letter: Option<Letter>,
}

impl Head {
    fn start(job: Job, machines: &Machines) -> Result<Head, LaunchError> {
        let secret = Secret::random()?;
        let signals = Signals::catch()?;
        spawn::raise_limit_of_files();
        let admission = Admission::open(secret, machines.hosts.len() as u32)?;
        let hosts = Hosts::of(machines);
        let reads = |ranks: &[u32]| ranks.iter().any(|&rank| job.reads_stdin(rank));
        let readers = hosts.iter().filter(|(_, host)| reads(&host.ranks)).map(|(node, _)| node).collect();
        let intro = Intro {
            secret: secret.bytes(),
            addresses: admission.addresses()?,
            node: Node::Number(0),
            below: Vec::new(),
            starting: machines.starting.clone(),
            input_stays: true,
        };
        let mut leaders = Leaders::default();
        let letter = start_agents(&mut leaders, machines, intro)?;
        let limit = crate::bootstrap::limit()?.unwrap_or(COMING);
        Ok(Head {
            leaders,
            hosts,
            admission,
            signals,
            feed: Feed::new(rustix::stdio::stdin().try_clone_to_owned().ok(), readers),
            desk: Desk::open(&job)?,
            job,
            name: job_name()?,
            nodes: machines.nodes.clone(),
            unreachable: Unreachable::default(),
            coming: Instant::now().checked_add(limit),
            limit,
            _letter: letter,
        })
    }

    fn turn(&mut self) -> Result<(), LaunchError> {
        for ready in self.wait()? {
            self.handle(ready);
        }
        self.acknowledge_output();
        let now = Instant::now();
        if self.coming.is_some_and(|coming| coming <= now) {
            self.coming = None;
            let limit = self.limit.as_secs();
            for node in self.hosts.in_state(State::Expected) {
                self.lose(node, &format!("its agent has not come within {limit} s (NMAD_LAUNCH_TIMEOUT)"));
            }
        }
        let order = self.desk.overdue(now, self.hosts.any_alive());
        self.carry_out(order);
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<Ready>, LaunchError> {
        let now = Instant::now();
        let due = [self.desk.due(), self.admission.overdue(now), self.coming].into_iter().flatten().min();
        let mut timeout = due.map(|due| due.saturating_duration_since(now));
        if self.feed.is_in_background() {
            timeout = Some(timeout.unwrap_or(Duration::MAX).min(FOREGROUND_EVERY));
        }
        let (mut fds, what): (Vec<_>, Vec<_>) = self.interests().into_iter().unzip();
        wait_for(&mut fds, timeout)?;
        let ready = fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty());
        // Unauthenticated connections come last, in descending order: each removal changes the higher
        // numbers.
        let mut ready: Vec<Ready> = ready.map(|(_, what)| what).collect();
        ready.sort_by_key(|ready| match ready {
            Ready::Stranger(number) => usize::MAX - number,
            _ => 0,
        });
        Ok(ready)
    }

    fn interests(&self) -> Vec<(PollFd<'_>, Ready)> {
        let poll = |fd, flags| PollFd::from_borrowed_fd(fd, flags);
        let mut all = vec![(PollFd::new(&self.signals, PollFlags::IN), Ready::Signals)];
        for (number, fd, flags) in self.admission.interests() {
            all.push((poll(fd, flags), number.map_or(Ready::Port, Ready::Stranger)));
        }
        for (node, host) in self.hosts.iter() {
            let channel = host.channel.as_ref();
            all.extend(channel.map(|channel| (PollFd::new(channel, channel.wants()), Ready::Host(node))));
        }
        let leaders = self.leaders.outputs();
        all.extend(leaders.map(|(number, fd)| (poll(fd, PollFlags::IN), Ready::Leader(number))));
        let input: Option<BorrowedFd<'_>> = self.feed.wants_read().filter(|_| self.hosts.all(State::Running));
        all.extend(input.map(|fd| (poll(fd, PollFlags::IN), Ready::Input)));
        for (which, sink) in self.desk.sinks.iter().enumerate().filter(|(_, sink)| !sink.is_empty()) {
            all.push((PollFd::new(sink, PollFlags::OUT), Ready::Sink(which)));
        }
        all
    }

    fn handle(&mut self, ready: Ready) {
        match ready {
            Ready::Signals => {
                for request in self.signals.take() {
                    self.signalled(request);
                }
            }
            Ready::Port => self.admission.accept(),
            Ready::Stranger(number) => {
                if let Some((node, channel)) = self.admission.handle(number) {
                    self.came(node, channel);
                    // Bytes behind the proof were read with it, and no descriptor reports them.
                    self.listen(node);
                }
            }
            Ready::Host(node) => self.listen(node),
            Ready::Leader(number) => {
                for line in self.leaders.listen(number) {
                    self.desk.tell(&line);
                }
            }
            Ready::Input => self.read_input(),
            Ready::Sink(which) => {
                self.desk.write(which);
                if self.desk.sinks[which].is_closed() {
                    self.hosts.tell(&Down::Deaf(which as u8));
                }
            }
        }
    }

    fn signalled(&mut self, request: Request) {
        match request {
            Request::Reap => {
                for gone in self.leaders.reap() {
                    self.leader_gone(gone);
                }
            }
            Request::End(_) if !self.hosts.any_alive() => self.desk.give_up(),
            Request::End(signal) if !self.hosts.all(State::Running) => {
                let reason = "the user ended the job before all hosts were there".to_owned();
                let order = self.desk.end(128 + signal, reason, "nothing was started");
                self.carry_out(order);
            }
            Request::End(signal) => {
                let order = self.desk.interrupted(signal);
                self.carry_out(order);
            }
            Request::Stop => {
                self.hosts.tell(&Down::Signal(libc::SIGTSTP));
                Signals::stop_ourselves();
            }
            Request::Forward(signal) => self.hosts.tell(&Down::Signal(signal)),
        }
    }

    /// Admits an agent. When all agents are connected, starts the ranks.
    fn came(&mut self, node: u32, channel: super::channel::Channel) {
        let host = self.hosts.get_mut(node);
        if host.state != State::Expected {
            // The host was given up, or this is a second agent of it.
            return;
        }
        (host.state, host.channel) = (State::Here, Some(channel));
        self.leaders.came(node);
        if self.hosts.all(State::Here) {
            self.coming = None;
            for node in self.hosts.in_state(State::Here) {
                let work = Down::Start(Box::new(self.work(node)));
                let host = self.hosts.get_mut(node);
                host.state = State::Running;
                if let Some(channel) = &mut host.channel {
                    channel.send(&work);
                }
            }
        }
    }

    /// Returns the work of a host.
    fn work(&mut self, node: u32) -> Work {
        let programs: Vec<u32> = self.job.programs_of_ranks().collect();
        let host = self.hosts.get_mut(node);
        let place = |&rank: &u32| Place {
            rank,
            program: programs[rank as usize],
            reads_stdin: self.job.reads_stdin(rank),
        };
        let folder = std::env::current_dir().unwrap_or_default();
        let mut env = environment::travelling(&self.job.inherit);
        env.extend(self.job.env.iter().cloned());
        Work {
            job: self.name.clone(),
            size: self.job.count(),
            mapping: mapping::write(&self.nodes),
            host: host.name.clone(),
            programs: self.job.programs.iter().map(|program| Command::of(program, &folder)).collect(),
            seats: host.ranks.iter().map(place).collect(),
            env: pairs_out(&env),
            inherit: match &self.job.inherit {
                Inherit::All => None,
                Inherit::Only(names) => {
                    Some(names.iter().map(|name| name.as_encoded_bytes().to_vec()).collect())
                }
            },
            output: self.job.output.clone(),
            binding: self.job.binding,
            report_bindings: self.job.report_bindings,
            ft: self.job.ft,
        }
    }

    fn listen(&mut self, node: u32) {
        let Some(channel) = &mut self.hosts.get_mut(node).channel else { return };
        channel.write();
        channel.read();
        while let Some(message) = self.hosts.get_mut(node).channel.as_mut().and_then(|c| c.take::<Up>()) {
            self.said(node, message);
        }
        if self.hosts.get_mut(node).channel.as_ref().is_some_and(|channel| !channel.is_open()) {
            // The command that started the agent may know the reason.
            let gone = self.leaders.reap();
            let why = gone.iter().find(|gone| gone.node == Some(node)).map(|gone| gone.why.clone());
            let why = why.unwrap_or_else(|| "the host or its agent is gone, or the network to it".into());
            self.lose(node, &why);
            gone.into_iter().filter(|gone| gone.node != Some(node)).for_each(|gone| self.leader_gone(gone));
        }
    }

    fn said(&mut self, node: u32, message: Up) {
        match message {
            Up::Failed { code, why } => {
                let reason = format!("on {}: {why}", self.hosts.name(node));
                self.hosts.lose(node);
                self.end(code, reason, "ending the job");
            }
            Up::Note(text) => self.desk.note(&text),
            Up::Bound(text) => self.desk.tell(&text),
            Up::Output(which, bytes) => {
                self.hosts.get_mut(node).owed += bytes.len() as u32;
                self.desk.sinks[usize::from(which.min(1))].push(&bytes);
            }
            Up::InputTaken => self.feed.taken(node),
            Up::Waiting(rank) => {
                self.hosts.waits(node, rank);
                self.check_fence();
            }
            Up::Absent(absent) => {
                self.hosts.is_absent(node, absent);
                self.check_fence();
            }
            Up::Fence(put) => {
                if let Some(release) = self.hosts.fence(node, put) {
                    self.hosts.tell(&release);
                }
            }
            Up::Abort { rank, code, why } => {
                self.end(code, abort_reason(rank, code, &why), "ending all ranks")
            }
            Up::Unreachable { by, rank } => self.end_unreachable(by, rank),
            Up::Ended { rank, pid, status, phase } => {
                self.hosts.ended(node);
                let alive = self.hosts.any_alive();
                let end = RankEnd { rank, pid, status };
                if self.job.ft && is_death(&end, phase) {
                    self.hosts.tell(&Down::Died(vec![rank]));
                }
                let mut order = self.desk.rank_ended(end, phase, Some(self.hosts.name(node)), alive);
                if !alive && order == Order::None {
                    order = self.desk.confirm(false);
                }
                self.carry_out(order);
            }
            Up::Below { node, why } if (node as usize) < self.hosts.iter().count() => {
                self.leader_gone(Gone { node: Some(node), why });
            }
            Up::Interrupted(signal) => {
                let order = self.desk.interrupted(signal);
                self.carry_out(order);
            }
            // An agent that sends a second hello, or names an invalid host.
            Up::Hello { .. } | Up::Proof(_) | Up::Below { .. } => {}
        }
    }

    /// Has `rank` killed, which rank `by` cannot reach.
    fn end_unreachable(&mut self, by: u32, rank: u32) {
        let is_ended = self.job.ft && self.unreachable.ends(by, rank);
        let Some(&node) = self.nodes.get(rank as usize).filter(|_| is_ended) else { return };
        self.desk.tell(&unreachable(by, rank));
        if let Some(channel) = &mut self.hosts.get_mut(node).channel {
            channel.send(&Down::EndUnreachable(rank));
        }
    }

    /// Handles the end of a command that started an agent; the host is lost, unless it already was.
    fn leader_gone(&mut self, gone: Gone) {
        let nodes = match gone.node {
            Some(node) => vec![node],
            None => self.hosts.iter().map(|(node, _)| node).collect(),
        };
        for node in nodes.into_iter().filter(|_| self.hosts.any_alive()).collect::<Vec<_>>() {
            if self.hosts.get_mut(node).state != State::Lost {
                self.lose(node, &gone.why);
            }
        }
    }

    /// Handles the loss of a host, which ends the job.
    fn lose(&mut self, node: u32, why: &str) {
        let started = self.hosts.get_mut(node).state == State::Running;
        self.hosts.lose(node);
        self.leaders.give_up(node);
        self.feed.gone(node);
        let host = self.hosts.name(node);
        if started && self.job.ft {
            self.desk.tell(&format!("lost host {host}: {why}; the ranks of other hosts go on"));
            let died = self.hosts.get_mut(node).ranks.clone();
            return self.hosts.tell(&Down::Died(died));
        }
        let reason = match started {
            true => format!("lost host {host}: {why}"),
            false => format!("cannot start ranks on {host}: {why}"),
        };
        self.end(1, reason, "ending the job");
    }

    fn check_fence(&mut self) {
        if !self.desk.is_ending()
            && let Some(why) = self.hosts.stuck()
        {
            self.end(1, why, "ending the job");
        }
    }

    fn end(&mut self, code: i32, reason: String, then: &str) {
        let order = self.desk.end(code, reason, then);
        self.carry_out(order);
    }

    fn carry_out(&mut self, order: Order) {
        for signal in order.signals() {
            self.hosts.tell(&Down::Signal(signal));
        }
        if order != Order::None {
            // Hosts without started ranks are given up.
            for state in [State::Expected, State::Here] {
                for node in self.hosts.in_state(state) {
                    self.hosts.lose(node);
                    self.leaders.give_up(node);
                }
            }
        }
    }

    fn read_input(&mut self) {
        let Some((piece, readers)) = self.feed.read() else { return };
        let message = match piece {
            Piece::Bytes(bytes) => Down::Input(bytes),
            Piece::End => Down::InputEnd,
        };
        for node in readers {
            if let Some(channel) = &mut self.hosts.get_mut(node).channel {
                channel.send(&message);
            }
        }
    }

    /// Acknowledges output of hosts, if ours has room.
    fn acknowledge_output(&mut self) {
        if !self.desk.sinks.iter().all(|sink| sink.has_room()) {
            return;
        }
        for (_, host) in self.hosts.iter_mut().filter(|(_, host)| host.owed > 0) {
            if let Some(channel) = &mut host.channel {
                channel.send(&Down::Taken(host.owed));
            }
            host.owed = 0;
        }
    }

    /// Ends the agents, and waits for the commands that started them.
    fn leave(mut self) -> Result<ExitReport, LaunchError> {
        self.hosts.tell(&Down::Bye);
        let end = Instant::now() + LEAVING;
        self.leaders.reap();
        while self.leaders.any_alive() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            let channels = self.hosts.iter().filter_map(|(_, host)| host.channel.as_ref());
            // Connections with an unsent goodbye.
            let late =
                channels.filter(|channel| channel.is_open() && channel.wants().contains(PollFlags::OUT));
            fds.extend(late.map(|channel| PollFd::new(channel, PollFlags::OUT)));
            wait_for(&mut fds, Some(left))?;
            self.signals.take();
            self.leaders.reap();
            self.hosts.iter_mut().filter_map(|(_, host)| host.channel.as_mut()).for_each(|one| one.write());
        }
        Ok(self.desk.report())
    }
}
