//! The head of a job on several hosts: the loop that starts agents and handles their messages.

mod end;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::Machines;
use super::admission::Admission;
use super::channel::silence_of_agents;
use super::feed::Feed;
use super::hosts::{Hosts, State};
use super::jobs::{self, Asker, RemoteJob};
use super::message::{Down, Intro, JobDown, JobUp, Node, Up};
use super::start::{Letter, start_agents};
use super::starter::{Gone, Leaders};
use super::tree;
use crate::local::desk::Desk;
use crate::local::ending::{Order, is_death};
use crate::local::output::Taker;
use crate::local::run::{abort_reason, started_by_rank, unreachable, wait_for};
use crate::local::signals::{Request, Signals};
use crate::local::spawn;
use crate::pmi::server::Phase;
use crate::pmi::spawn::Request as SpawnRequest;
use crate::{ExitReport, Job, LaunchError, Placement, RankEnd, Secret};

/// Time limit for agents to connect, unless `NMAD_LAUNCH_TIMEOUT` changes it.
const COMING: Duration = Duration::from_secs(60);

/// Interval of checks whether this process is in the foreground of its terminal again.
const FOREGROUND_EVERY: Duration = Duration::from_millis(500);

/// Runs a job whose placement is [`Placement::Machines`].
pub fn run(job: Job) -> Result<ExitReport, LaunchError> {
    let Placement::Machines(machines) = job.placement.clone() else {
        return Err(LaunchError::Job("the ranks have no machines".into()));
    };
    let mut head = Head::start(job, &machines)?;
    while head.any_alive() || head.desk.has_output() {
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
    /// The description of the user's job; spawned jobs inherit most of it.
    job: Job,
    /// The job of the user, and those that its ranks have spawned.
    jobs: Vec<RemoteJob>,
    /// Deadline for all agents to connect, and later for agents to report the end of killed ranks.
    deadline: Option<Instant>,
    limit: Duration,
    /// The file for agents that get no input; removed with this value.
    _letter: Option<Letter>,
}

impl Head {
    fn start(job: Job, machines: &Machines) -> Result<Head, LaunchError> {
        let secret = Secret::random()?;
        let signals = Signals::catch()?;
        spawn::raise_limit_of_files();
        let admission = Admission::open(secret, machines.hosts.len() as u32, silence_of_agents(job.ft)?)?;
        let hosts = Hosts::of(machines);
        let users = RemoteJob::new(job.clone(), machines.hosts.len(), None)?;
        let readers = users.hosts().filter(|&node| users.reads_stdin(node)).collect();
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
            jobs: vec![users],
            deadline: Instant::now().checked_add(limit),
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
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.give_up_late();
        }
        let order = self.desk.overdue(now, self.any_alive());
        self.carry_out(order);
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<Ready>, LaunchError> {
        let now = Instant::now();
        let due = [self.desk.due(), self.admission.overdue(now), self.deadline].into_iter().flatten().min();
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
            Request::End(_) if !self.any_alive() => self.desk.give_up(),
            Request::End(signal) if !self.hosts.all(State::Running) => {
                let reason = "interrupted before all agents had connected".to_owned();
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
            self.deadline = None;
            for node in self.hosts.in_state(State::Here) {
                self.hosts.get_mut(node).state = State::Running;
                tree::prepare(&mut self.hosts, node, self.admission.silence(), self.limit);
                self.start_ranks(0, node);
            }
        }
    }

    fn any_alive(&self) -> bool {
        self.jobs.iter().any(RemoteJob::any_alive)
    }

    /// Has a host start its ranks of a job.
    fn start_ranks(&mut self, job: u32, node: u32) {
        let work = self.jobs[job as usize].work(node, self.hosts.name(node));
        self.hosts.send(node, &Down::Job(job, JobDown::Start(Box::new(work))));
    }

    /// Begins the start of the job that a rank asks for; the rank is answered when all hosts have answered.
    fn spawn(&mut self, asker: Asker, request: &SpawnRequest) -> Result<(), LaunchError> {
        if self.desk.is_ending() {
            return Err(LaunchError::NoSpawn("the job is being ended".into()));
        }
        let nodes = jobs::place(request, &self.jobs, &self.hosts)?;
        let job = jobs::asked(request, &self.job, nodes)?;
        let count = self.hosts.iter().count();
        let number = self.jobs.len() as u32;
        self.jobs.push(RemoteJob::new(job, count, Some((asker, request)))?);
        for node in self.jobs[number as usize].hosts().collect::<Vec<_>>() {
            self.start_ranks(number, node);
        }
        Ok(())
    }

    /// Records the answer of a host to the start of a spawned job.
    fn answered(&mut self, node: u32, job: u32, refusal: Option<String>) {
        let Some((asker, started)) = self.jobs[job as usize].answered(node, refusal) else { return };
        if started.is_err() {
            self.tell_job(job, JobDown::End);
        }
        self.answer(asker, started);
    }

    fn answer(&mut self, asker: Asker, started: Result<u32, String>) {
        self.hosts.send(asker.node, &Down::Job(asker.job, JobDown::Spawned(asker.member, started)));
    }

    /// Sends a message to the hosts of a job.
    fn tell_job(&mut self, job: u32, message: JobDown) {
        let message = Down::Job(job, message);
        self.jobs[job as usize].hosts().for_each(|node| self.hosts.send(node, &message));
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
            Up::Note(text) => self.desk.note(&text),
            Up::Bound(text) => self.desk.tell(&text),
            Up::Output(which, bytes) => {
                self.hosts.get_mut(node).owed += bytes.len() as u32;
                self.desk.sinks[usize::from(which.min(1))].push(&bytes);
            }
            Up::InputTaken => self.feed.taken(node),
            Up::Job(job, message) if (job as usize) < self.jobs.len() => self.said_of(job, node, message),
            Up::Abort { rank, code, why } => {
                self.end(code, abort_reason(rank, code, &why), "ending all ranks")
            }
            Up::Below { node, why } if (node as usize) < self.hosts.iter().count() => {
                self.leader_gone(Gone { node: Some(node), why });
            }
            Up::Interrupted(signal) => {
                let order = self.desk.interrupted(signal);
                self.carry_out(order);
            }
            Up::Relay(message) => tree::handle_report(&mut self.hosts, &self.jobs, node, message),
            // An agent that sends a second hello, or names an invalid host or job.
            Up::Hello { .. } | Up::Proof(_) | Up::Below { .. } | Up::Job(..) => {}
        }
    }

    /// Handles a message of a host about one job.
    fn said_of(&mut self, number: u32, node: u32, message: JobUp) {
        let job = &mut self.jobs[number as usize];
        match message {
            JobUp::Started => self.answered(node, number, None),
            JobUp::Failed { code, why } => {
                let reason = format!("on {}: {why}", self.hosts.name(node));
                if number > 0 {
                    return self.answered(node, number, Some(reason));
                }
                job.lose(node);
                self.hosts.lose(node);
                self.end(code, reason, "ending the job");
            }
            JobUp::Waiting(rank) => {
                job.waits(node, rank);
                self.check_fence();
            }
            JobUp::Absent(absent) => {
                job.is_absent(node, absent);
                self.check_fence();
            }
            JobUp::Fence(put) => {
                if job.fence(node, put) {
                    tree::release(&mut self.hosts, &self.jobs, number);
                }
            }
            JobUp::Unreachable { by, rank } => {
                if let Some(node) = job.resolve_unreachable(by, rank) {
                    self.desk.tell(&unreachable(by, rank));
                    self.hosts.send(node, &Down::Job(number, JobDown::EndUnreachable(rank)));
                }
            }
            JobUp::Spawn(member, request) => {
                let asker = Asker { node, job: number, member };
                if let Err(why) = self.spawn(asker, &request) {
                    self.answer(asker, Err(why.to_string()));
                }
            }
            JobUp::Ended { rank, pid, status, phase } => {
                job.ended(node, rank);
                if job.counts() {
                    self.rank_ended(number, node, RankEnd { rank, pid, status }, phase);
                }
            }
        }
    }

    fn rank_ended(&mut self, job: u32, node: u32, end: RankEnd, phase: Phase) {
        if self.job.ft && is_death(&end, phase) {
            self.tell_job(job, JobDown::Died(vec![end.rank]));
        }
        let alive = self.any_alive();
        let started = started_by_rank(job as usize);
        let host = started.as_deref().unwrap_or(self.hosts.name(node));
        let mut order = self.desk.rank_ended(end, phase, Some(host), alive);
        if !alive && order == Order::None {
            order = self.desk.confirm(false);
        }
        self.carry_out(order);
    }

    fn check_fence(&mut self) {
        if !self.desk.is_ending()
            && let Some(why) = self.jobs.iter().find_map(RemoteJob::stuck)
        {
            self.end(1, why, "ending the job");
        }
    }

    fn read_input(&mut self) {
        let Some((piece, readers)) = self.feed.read() else { return };
        let message = Down::from(piece);
        readers.into_iter().for_each(|node| self.hosts.send(node, &message));
    }

    /// Acknowledges output of hosts, if ours has room.
    fn acknowledge_output(&mut self) {
        if self.desk.sinks.iter().all(|sink| sink.has_room()) {
            self.hosts.acknowledge_output();
        }
    }
}
