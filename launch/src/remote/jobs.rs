//! The head's state of one job: the user's, or a spawned one. It records the hosts of the ranks, their fence,
//! and the start of a spawned job.

use super::environment;
use super::hosts::{Hosts, State};
use super::message::{Command, Place, Release, Work, pairs_out};
use crate::deaths::Unreachable;
use crate::local::run::job_name;
use crate::local::{Inherit, Placement};
use crate::pmi::server::Absent;
use crate::pmi::spawn::Request;
use crate::{Job, LaunchError, Secret, mapping};

/// A rank that waits for the answer to a spawn request.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    /// Its host.
    pub node: u32,
    /// The number of its job.
    pub job: u32,
    /// Its number among the ranks of its job on its host.
    pub member: u32,
}

/// The start of a spawned job.
enum Start {
    /// Its ranks run, or it is the job of the user.
    Done,
    /// Some hosts have not answered; with the first refusal so far.
    Open(Asker, Option<String>),
    /// A host refused or was lost; the head ends the ranks of the other hosts.
    Refused,
}

/// The ranks of a job on one host.
#[derive(Default)]
struct Part {
    /// Its ranks, in the agent's order.
    ranks: Vec<u32>,
    /// Those that live or are to be started.
    alive: Vec<u32>,
    has_answered: bool,
    waiting: Option<u32>,
    absent: Option<Absent>,
    fenced: bool,
}

/// A job on several hosts.
pub struct RemoteJob {
    job: Job,
    name: String,
    secret: Secret,
    nodes: Vec<u32>,
    /// The map of its nodes and the number of each rank's program, which every host gets.
    mapping: String,
    programs: Vec<u32>,
    /// Initial values in its key-value space.
    preset: Vec<(String, String)>,
    /// By host.
    parts: Vec<Part>,
    /// Values that ranks put since the last fence, from the hosts that have entered the current one.
    put: Vec<String>,
    /// The end of the last fence.
    release: Option<Release>,
    unreachable: Unreachable,
    start: Start,
}

impl RemoteJob {
    /// Makes the job of the user, or one that `request` asks for.
    pub fn new(job: Job, hosts: usize, request: Option<(Asker, &Request)>) -> Result<RemoteJob, LaunchError> {
        let nodes = job.placement.nodes(job.count());
        let mut parts: Vec<Part> = (0..hosts).map(|_| Part::default()).collect();
        for (rank, &node) in (0..).zip(&nodes) {
            let part = &mut parts[node as usize];
            part.ranks.push(rank);
            part.alive.push(rank);
        }
        Ok(RemoteJob {
            name: job_name()?,
            secret: Secret::random()?,
            preset: request.map(|(_, request)| request.preput.clone()).unwrap_or_default(),
            start: request.map_or(Start::Done, |(asker, _)| Start::Open(asker, None)),
            put: Vec::new(),
            release: None,
            unreachable: Unreachable::default(),
            mapping: mapping::write(&nodes),
            programs: job.programs_of_ranks().collect(),
            job,
            nodes,
            parts,
        })
    }

    /// Returns the hosts with ranks of this job.
    pub fn hosts(&self) -> impl Iterator<Item = u32> + use<'_> {
        (0..).zip(&self.parts).filter(|(_, part)| !part.ranks.is_empty()).map(|(node, _)| node)
    }

    /// Returns the number of ranks of this job on a host, and of those that live.
    pub fn load(&self, node: u32) -> (u32, u32) {
        let part = &self.parts[node as usize];
        (part.ranks.len() as u32, part.alive.len() as u32)
    }

    /// Returns whether a rank of this host reads the launcher's standard input.
    pub fn reads_stdin(&self, node: u32) -> bool {
        self.parts[node as usize].ranks.iter().any(|&rank| self.job.reads_stdin(rank))
    }

    /// Returns whether a rank lives or is to be started.
    pub fn any_alive(&self) -> bool {
        self.parts.iter().any(|part| !part.alive.is_empty())
    }

    /// Returns the work of the host `node`, whose name is `host`.
    pub fn work(&self, node: u32, host: &str) -> Work {
        let place = |&rank: &u32| Place {
            rank,
            program: self.programs[rank as usize],
            reads_stdin: self.job.reads_stdin(rank),
        };
        let folder = std::env::current_dir().unwrap_or_default();
        let mut env = environment::travelling(&self.job.inherit);
        env.extend(self.job.env.iter().cloned());
        Work {
            job: self.name.clone(),
            secret: self.secret.bytes(),
            size: self.job.count(),
            mapping: self.mapping.clone(),
            preset: self.preset.clone(),
            host: host.to_owned(),
            programs: self.job.programs.iter().map(|program| Command::of(program, &folder)).collect(),
            seats: self.parts[node as usize].ranks.iter().map(place).collect(),
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

    /// Records that a host has started its ranks of a spawned job, or why it has not. When all hosts have
    /// answered, returns the rank to answer, and the number of ranks or the refusal.
    pub fn answered(&mut self, node: u32, refusal: Option<String>) -> Option<(Asker, Result<u32, String>)> {
        let Start::Open(asker, first) = &mut self.start else { return None };
        let (asker, part) = (*asker, &mut self.parts[node as usize]);
        part.has_answered = true;
        if refusal.is_some() {
            part.alive.clear();
        }
        *first = first.take().or(refusal);
        if self.parts.iter().any(|part| !part.ranks.is_empty() && !part.has_answered) {
            return None;
        }
        let refusal = first.take();
        self.start = if refusal.is_some() { Start::Refused } else { Start::Done };
        Some((asker, refusal.map_or(Ok(self.job.count()), Err)))
    }

    /// Returns whether ends of its ranks and its fence concern the user: not once a host has refused.
    pub fn counts(&self) -> bool {
        match &self.start {
            Start::Done => true,
            Start::Open(_, refusal) => refusal.is_none(),
            Start::Refused => false,
        }
    }

    /// Records the end of a rank on a host.
    pub fn ended(&mut self, node: u32, rank: u32) {
        let part = &mut self.parts[node as usize];
        part.alive.retain(|alive| *alive != rank);
        part.waiting = part.waiting.filter(|waiting| *waiting != rank);
    }

    /// Records the loss of a host; returns the ranks that lived there.
    pub fn lose(&mut self, node: u32) -> Vec<u32> {
        let part = &mut self.parts[node as usize];
        part.waiting = None;
        part.absent = part.ranks.first().map(|&rank| Absent { rank, gone: true });
        std::mem::take(&mut part.alive)
    }

    /// Records that a rank of this host waits in the fence.
    pub fn waits(&mut self, node: u32, rank: u32) {
        self.parts[node as usize].waiting = Some(rank);
    }

    /// Records that a rank of this host will not join any further fence.
    pub fn is_absent(&mut self, node: u32, absent: Absent) {
        self.parts[node as usize].absent = Some(absent);
    }

    /// Records that all ranks of a host are in the fence. Returns whether all hosts are, which ends it.
    pub fn fence(&mut self, node: u32, put: String) -> bool {
        if !put.is_empty() {
            self.put.push(put);
        }
        self.parts[node as usize].fenced = true;
        if !self.parts.iter().all(|part| part.fenced || part.ranks.is_empty()) {
            return false;
        }
        for part in &mut self.parts {
            (part.fenced, part.waiting) = (false, None);
        }
        let fence = self.release.as_ref().map_or(1, |last| last.fence + 1);
        // A job of all hosts: the user's. A spawned one may have few.
        let is_for_all = self.parts.iter().all(|part| !part.ranks.is_empty());
        self.release = Some(Release { fence, put: std::mem::take(&mut self.put), is_for_all });
        true
    }

    /// Returns the end of the last fence, if one has ended.
    pub fn release(&self) -> Option<&Release> {
        self.release.as_ref()
    }

    /// Returns the reason why the fence can never complete, if so.
    pub fn stuck(&self) -> Option<String> {
        if !self.counts() {
            return None;
        }
        let waiting = self.parts.iter().find_map(|part| part.waiting)?;
        Some(self.parts.iter().find_map(|part| part.absent)?.keeps(waiting))
    }

    /// Records that rank `by` cannot reach `rank`; returns the host of `rank` if `rank` must be killed.
    pub fn resolve_unreachable(&mut self, by: u32, rank: u32) -> Option<u32> {
        let is_ended = self.job.ft && self.unreachable.ends(by, rank);
        self.nodes.get(rank as usize).copied().filter(|_| is_ended)
    }
}

/// Chooses a host for each rank of a spawn request: a host that the request names (info key `host`, names
/// separated by commas), otherwise any host that runs, and of these the one with the most free places. A
/// host has as many places as it got ranks of the job of the user.
///
/// # Errors
/// [`LaunchError::NoSpawn`]: no host is left, or the job has no host of that name.
pub fn place(request: &Request, jobs: &[RemoteJob], hosts: &Hosts) -> Result<Vec<u32>, LaunchError> {
    let mut free: Vec<(u32, i64)> = hosts
        .in_state(State::Running)
        .into_iter()
        .map(|node| {
            let places = jobs.first().map_or(0, |job| job.load(node).0);
            let used: u32 = jobs.iter().map(|job| job.load(node).1).sum();
            (node, i64::from(places) - i64::from(used))
        })
        .collect();
    let mut nodes = Vec::new();
    for wanted in &request.programs {
        let names = wanted.hosts();
        let is_named = |node: u32| names.is_empty() || names.iter().any(|name| hosts.is_called(node, name));
        for _ in 0..wanted.count {
            let named = free.iter_mut().filter(|(node, _)| is_named(*node));
            let Some((node, places)) = named.max_by_key(|(node, places)| (*places, u32::MAX - node)) else {
                return Err(LaunchError::NoSpawn(match names.join(", ") {
                    names if names.is_empty() => "no host of the job is left".into(),
                    names => format!("none of these hosts belongs to the job and runs: {names}"),
                }));
            };
            *places -= 1;
            nodes.push(*node);
        }
    }
    Ok(nodes)
}

/// Makes the job of a spawn request, with hosts for its ranks.
///
/// # Errors
/// The request cannot be fulfilled.
pub fn asked(request: &Request, base: &Job, nodes: Vec<u32>) -> Result<Job, LaunchError> {
    let mut base = base.clone();
    if let Placement::Machines(machines) = &mut base.placement {
        machines.nodes = nodes;
    }
    Job::asked(request, &base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmi::spawn::Wanted;
    use crate::remote::Machines;
    use crate::remote::way::{Starting, ssh};

    fn machines() -> Machines {
        let starting = Starting { way: ssh("ssh", &[]), program: "nmad".into() };
        Machines { hosts: vec!["a.example.org".into(), "b".into()], nodes: vec![0, 1, 0], starting }
    }

    fn job() -> RemoteJob {
        let placement = Placement::Machines(machines());
        RemoteJob::new(Job { placement, ..Job::new("true", [""; 0], 3) }, 2, None).expect("a job")
    }

    fn running() -> Hosts {
        let mut hosts = Hosts::of(&machines());
        hosts.iter_mut().for_each(|(_, host)| host.state = State::Running);
        hosts
    }

    fn request(count: u32, host: Option<&str>) -> Request {
        let info = host.map(|host| ("host".into(), host.into())).into_iter().collect();
        Request {
            programs: vec![Wanted { program: "x".into(), count, info, ..Wanted::default() }],
            ..Request::default()
        }
    }

    #[test]
    fn a_fence_opens_when_all_hosts_are_in_it() {
        let mut job = job();
        job.waits(0, 2);
        assert!(!job.fence(0, "x 1\n".into()));
        assert_eq!(job.stuck(), None);
        assert!(job.fence(1, String::new()));
        let release = job.release().expect("all are in it");
        assert_eq!((release.fence, &release.put[..]), (1, &["x 1\n".to_string()][..]));
        job.is_absent(1, Absent { rank: 1, gone: true });
        assert_eq!(job.stuck(), None, "no rank waits in the next one");
        job.waits(0, 0);
        let why = job.stuck().expect("it is");
        assert!(why.contains("rank 0 waits in a fence that rank 1 will never join"), "{why}");
    }

    #[test]
    fn a_lost_host_has_no_ranks_left_and_joins_no_fence() {
        let mut job = job();
        job.ended(0, 2);
        assert_eq!(job.lose(0), [0]);
        job.waits(1, 1);
        assert!(job.stuck().is_some() && job.any_alive());
        job.ended(1, 1);
        assert!(!job.any_alive());
    }

    #[test]
    fn spawned_ranks_get_the_places_of_dead_ranks_or_the_named_host() {
        let (mut jobs, mut hosts) = (vec![job()], running());
        jobs[0].ended(1, 1);
        let placed =
            |jobs: &[RemoteJob], hosts: &Hosts, count, host| place(&request(count, host), jobs, hosts);
        assert_eq!(placed(&jobs, &hosts, 1, None).expect("room"), [1]);
        assert_eq!(placed(&jobs, &hosts, 3, None).expect("room"), [1, 0, 1]);
        assert_eq!(placed(&jobs, &hosts, 2, Some("a")).expect("room"), [0, 0]);
        let why = placed(&jobs, &hosts, 1, Some("c")).expect_err("no such host").to_string();
        assert!(why.contains("none of these hosts belongs to the job and runs: c"), "{why}");
        hosts.lose(0);
        assert_eq!(placed(&jobs, &hosts, 2, None).expect("room"), [1, 1]);
        hosts.lose(1);
        assert!(placed(&jobs, &hosts, 1, None).is_err());
    }

    #[test]
    fn a_spawned_job_that_one_host_refuses_is_refused_when_all_have_answered() {
        let asker = Asker { node: 0, job: 0, member: 1 };
        let placement = Placement::Machines(machines());
        let job = || Job { placement: placement.clone(), ..Job::new("true", [""; 0], 3) };
        let request = request(3, None);
        let mut refused = RemoteJob::new(job(), 2, Some((asker, &request))).expect("a job");
        assert!(refused.answered(1, Some("no".into())).is_none() && !refused.counts());
        let (to, answer) = refused.answered(0, None).expect("all have answered");
        assert_eq!((to.member, answer), (1, Err("no".into())));
        assert!(refused.any_alive() && !refused.counts());
        let mut started = RemoteJob::new(job(), 2, Some((asker, &request))).expect("a job");
        assert!(started.answered(1, None).is_none());
        assert_eq!(started.answered(0, None).expect("all have answered").1, Ok(3));
        assert!(started.counts());
    }
}
