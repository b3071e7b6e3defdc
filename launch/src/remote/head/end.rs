//! The end of a job on several hosts: its orders to them, lost hosts, and those that are given up.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::Head;
use crate::local::ending::Order;
use crate::local::run::wait_for;
use crate::remote::hosts::State;
use crate::remote::message::{Down, JobDown};
use crate::remote::starter::Gone;
use crate::remote::tree;
use crate::{ExitReport, LaunchError};

/// Time limit for the commands that started agents to end after them.
const LEAVING: Duration = Duration::from_secs(2);

/// Time limit for agents to report the end of killed ranks. The system needs some seconds to free the memory
/// of large processes.
const DYING: Duration = Duration::from_secs(10);

impl Head {
    /// Handles the end of a command that started an agent; the host is lost, unless it already was.
    pub(super) fn leader_gone(&mut self, gone: Gone) {
        let nodes = match gone.node {
            Some(node) => vec![node],
            None => self.hosts.iter().map(|(node, _)| node).collect(),
        };
        for node in nodes.into_iter().filter(|_| self.any_alive()).collect::<Vec<_>>() {
            if self.hosts.get_mut(node).state != State::Lost {
                self.lose(node, &gone.why);
            }
        }
    }

    /// Handles the loss of a host, which ends the job without `--ft`.
    pub(super) fn lose(&mut self, node: u32, why: &str) {
        let started = self.hosts.get_mut(node).state == State::Running;
        self.hosts.lose(node);
        tree::serve_children(&mut self.hosts, &self.jobs, node);
        self.leaders.give_up(node);
        self.feed.gone(node);
        let host = self.hosts.name(node);
        let lost = format!("lost host {host}: {why}");
        let died: Vec<Vec<u32>> = self.jobs.iter_mut().map(|job| job.lose(node)).collect();
        if started && self.job.ft {
            let alive = self.any_alive();
            self.desk.host_lost(&lost, alive);
            for (job, died) in (0..).zip(died).filter(|(_, died)| !died.is_empty()) {
                self.tell_job(job, JobDown::Died(died));
                self.answered(node, job, Some(lost.clone()));
            }
            return self.check_fence();
        }
        let reason = match started {
            true => lost,
            false => format!("cannot start ranks on {host}: {why}"),
        };
        self.end(1, reason, "ending the job");
    }

    pub(super) fn end(&mut self, code: i32, reason: String, then: &str) {
        let order = self.desk.end(code, reason, then);
        self.carry_out(order);
    }

    pub(super) fn carry_out(&mut self, order: Order) {
        for signal in order.signals() {
            self.hosts.tell(&Down::Signal(signal));
        }
        if order == Order::None {
            return;
        }
        // Hosts without started ranks are given up.
        for state in [State::Expected, State::Here] {
            self.hosts.in_state(state).into_iter().for_each(|node| self.give_up(node));
        }
        if order == Order::Kill {
            self.deadline = Instant::now().checked_add(DYING);
        }
    }

    fn give_up(&mut self, node: u32) {
        self.jobs.iter_mut().for_each(|job| _ = job.lose(node));
        self.hosts.lose(node);
        self.leaders.give_up(node);
    }

    /// Gives up hosts at the deadline: those that did not connect, and those whose agent did not report the
    /// end of killed ranks, since the job would not end while that agent is stopped.
    pub(super) fn give_up_late(&mut self) {
        self.deadline = None;
        let limit = self.limit.as_secs();
        for node in self.hosts.in_state(State::Expected) {
            self.lose(node, &format!("its agent did not connect within {limit} s (NMAD_LAUNCH_TIMEOUT)"));
        }
        for node in self.hosts.in_state(State::Running) {
            if self.jobs.iter().any(|job| job.load(node).1 > 0) {
                self.give_up(node);
                let host = self.hosts.name(node);
                self.desk.tell(&format!(
                    "the agent of {host} did not report the end of its ranks within {} s after SIGKILL: is \
                     it stopped? ranks may still run there",
                    DYING.as_secs()
                ));
            }
        }
    }

    /// Ends the agents, and waits for the commands that started them.
    pub(super) fn leave(mut self) -> Result<ExitReport, LaunchError> {
        self.hosts.tell(&Down::Bye);
        let end = Instant::now() + LEAVING;
        self.leaders.reap();
        while self.leaders.any_alive() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            let channels = self.hosts.iter().filter_map(|(_, host)| host.channel.as_ref());
            // Connections with an unsent goodbye.
            let late = channels.filter(|one| one.is_open() && one.wants().contains(PollFlags::OUT));
            fds.extend(late.map(|channel| PollFd::new(channel, PollFlags::OUT)));
            wait_for(&mut fds, Some(left))?;
            self.signals.take();
            self.leaders.reap();
            self.hosts.iter_mut().filter_map(|(_, host)| host.channel.as_mut()).for_each(|one| one.write());
        }
        Ok(self.desk.report())
    }
}
