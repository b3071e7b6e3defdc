//! The loop of one host: waits for descriptors and deadlines, calls their handlers, and carries out orders
//! of the end.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Rlimit;

use super::desk::Desk;
use super::ending::{Order, is_death};
use super::guard::Guard;
use super::host::local_ranks;
use super::input::Input;
use super::output::LineStart;
use super::ranks::Ranks;
use super::signals::{Request, Signals};
use super::spawn::{self, Seat};
use super::{ExitReport, JOB_PREFIX, Job, Placement, RankEnd, SPEAKER};
use crate::binding::topology::Topology;
use crate::binding::{self, quota};
use crate::deaths::Unreachable;
use crate::pmi::server::{Event, Server};
use crate::{LaunchError, Secret, mapping, pmi, remote};
use nmad_words::setting::misspelt_among;

/// Interval of checks whether this process is in the foreground of its terminal again.
const FOREGROUND_EVERY: Duration = Duration::from_millis(500);

/// Runs a job until all of its processes have ended.
///
/// A failing rank ends the job; see [`ExitReport::code`]. Signals to this process are forwarded to the
/// ranks meanwhile: SIGINT, SIGTERM, SIGHUP and SIGQUIT (the second of them kills), SIGTSTP and SIGCONT,
/// SIGUSR1 and SIGUSR2. Their handlers stay installed afterwards. Call this from a thread that lives as
/// long as the job; no other code in the process may reap unknown children.
///
/// # Errors
/// An invalid job, a program that cannot be started, an unreachable host, or a lack of system resources.
/// Ranks that were started by then are killed.
pub fn run(job: Job) -> Result<ExitReport, LaunchError> {
    job.check()?;
    misspelt(&job);
    if matches!(job.placement, Placement::Machines(_)) {
        return remote::head::run(job);
    }
    Run::start(job, &[])?.run_to_end()
}

/// Reports unknown variables that the ranks get.
fn misspelt(job: &Job) {
    let given = job.env.iter().chain(job.programs.iter().flat_map(|program| &program.env));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for line in misspelt_among(inherited.chain(given.map(|(name, _)| name.clone()))) {
        nmad_words::tell_user(format_args!("{SPEAKER}: {line}"));
    }
}

/// Returns a unique name for a job.
pub(crate) fn job_name() -> Result<String, LaunchError> {
    // Part of another random secret makes the name unique and reveals nothing about the job's secret.
    Ok(format!("{JOB_PREFIX}{}-{}", std::process::id(), &Secret::random()?.to_hex()[..16]))
}

/// A source of events.
#[derive(Clone, Copy)]
enum Ready {
    Signals,
    Talk(Who),
    /// A rank's standard output (0) or error (1).
    Output(Who, usize),
    StdinRead,
    StdinWrite,
    Sink(usize),
}

/// A job that runs.
pub struct Run {
    // Dropped first, which kills the ranks if an error ends the loop.
    groups: Vec<Group>,
    /// The description of the job; spawned jobs inherit most of it.
    job: Job,
    files: Option<Rlimit>,
    signals: Signals,
    input: Input,
    desk: Desk,
}

/// The ranks of the job, or of a spawned job.
struct Group {
    ranks: Ranks,
    server: Server,
    unreachable: Unreachable,
}

/// The number of a rank's group, and its number in the group.
type Who = (usize, u32);

impl Run {
    /// Starts the ranks; `preset` is the initial content of their key-value space.
    pub fn start(job: Job, preset: &[(String, String)]) -> Result<Run, LaunchError> {
        let desk = Desk::open(&job)?;
        // This precedes the first rank, so that no end of a rank is missed.
        let signals = Signals::catch()?;
        let files = spawn::raise_limit_of_files();
        let input = Input::new(None, Vec::new());
        let mut run = Run { groups: Vec::new(), job, files, signals, input, desk };
        let job = run.job.clone();
        let pipes = run.start_group(&job, preset)?;
        run.input = Input::new(rustix::stdio::stdin().try_clone_to_owned().ok(), pipes);
        Ok(run)
    }

    /// Runs until all of the job's processes have ended.
    pub fn run_to_end(mut self) -> Result<ExitReport, LaunchError> {
        while self.any_alive() || self.desk.has_output() {
            self.turn()?;
        }
        Ok(self.desk.report())
    }

    /// Starts the ranks of a job; returns the standard inputs of those that read ours.
    fn start_group(&mut self, job: &Job, preset: &[(String, String)]) -> Result<Vec<OwnedFd>, LaunchError> {
        let (secret, nodes) = (Secret::random()?, job.placement.nodes(job.count()));
        let counts: Vec<u32> = job.programs.iter().map(|program| program.count).collect();
        let mut server = Server::new(&job_name()?, &counts, &mapping::write(&nodes));
        preset.iter().for_each(|(key, value)| server.preset(key, value));
        let mut ranks = Ranks::new(Guard::start(job.count())?);
        let mut pipes = Vec::new();
        for seat in self.seats(job, &nodes)? {
            let start = LineStart::of(&job.output, seat.group, seat.rank);
            pipes.extend(ranks.start(&seat, &secret, self.files, &start)?);
        }
        self.groups.push(Group { ranks, server, unreachable: Unreachable::default() });
        Ok(pipes)
    }

    /// Starts the job of a spawn request.
    fn start_more(&mut self, request: &pmi::spawn::Request) -> Result<u32, LaunchError> {
        if self.desk.is_ending() {
            return Err(LaunchError::NoSpawn("the job is being ended".into()));
        }
        let job = Job::asked(request, &self.job)?;
        self.start_group(&job, &request.preput)?;
        Ok(job.count())
    }

    fn any_alive(&self) -> bool {
        self.groups.iter().any(|group| group.ranks.any_alive())
    }

    fn signal(&self, signal: i32) {
        self.groups.iter().for_each(|group| group.ranks.signal(signal));
    }

    /// Returns the parameters of all ranks; virtual hosts share the processors of this machine.
    fn seats<'a>(&mut self, job: &'a Job, nodes: &[u32]) -> Result<Vec<Seat<'a>>, LaunchError> {
        let topology = Topology::of_this_process()?;
        let (binding, refused) = binding::permitted(job.binding);
        if let Some(line) = refused {
            self.desk.tell(&line);
        }
        let cores = binding::plan(&binding, job.count(), &topology, quota::processors());
        let places = local_ranks(nodes).into_iter().zip(job.programs_of_ranks());
        let mut seats = Vec::new();
        for (rank, ((local, locals), program)) in (0..).zip(places) {
            let own = &cores[rank as usize];
            let host = job.placement.host_name(rank).map_or_else(crate::host_name, str::to_owned);
            if job.report_bindings {
                self.desk.tell(&binding::report(rank, &host, own.as_ref(), &topology));
            }
            seats.push(Seat {
                rank,
                place: rank,
                size: job.count(),
                local,
                locals,
                program: &job.programs[program as usize],
                prefix: job.placement.prefix(rank),
                inherit: &job.inherit,
                env: &job.env,
                reads_stdin: job.reads_stdin(rank),
                piped: job.output.is_in_lines(),
                output: &job.output,
                host,
                group: self.groups.len() as u32,
                cores: own.as_ref().and_then(|own| binding::mask(own)),
                ft: job.ft,
            });
        }
        Ok(seats)
    }

    fn turn(&mut self) -> Result<(), LaunchError> {
        for ready in self.wait()? {
            self.handle(ready);
        }
        let order = self.desk.overdue(Instant::now(), self.any_alive());
        self.carry_out(order);
        Ok(())
    }

    /// Waits until something is ready or due.
    fn wait(&self) -> Result<Vec<Ready>, LaunchError> {
        let (mut fds, what) = self.interests();
        let mut timeout = self.desk.due().map(|due| due.saturating_duration_since(Instant::now()));
        if self.input.is_in_background() {
            timeout = Some(timeout.unwrap_or(Duration::MAX).min(FOREGROUND_EVERY));
        }
        wait_for(&mut fds, timeout)?;
        let ready = fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty());
        Ok(ready.map(|(_, what)| what).collect())
    }

    /// Returns all descriptors to wait for, each with its source.
    fn interests(&self) -> (Vec<PollFd<'_>>, Vec<Ready>) {
        let mut all = vec![(PollFd::new(&self.signals, PollFlags::IN), Ready::Signals)];
        let ranks = self.groups.iter().enumerate();
        let ranks =
            ranks.flat_map(|(group, each)| each.ranks.iter().map(move |(own, rank)| ((group, own), rank)));
        for (who, rank) in ranks {
            if let Some(talk) = &rank.talk {
                all.push((PollFd::new(talk, talk.wants()), Ready::Talk(who)));
            }
            for (which, source) in rank.outputs.iter().enumerate() {
                if let Some(source) = source.as_ref().filter(|_| self.desk.sinks[which].has_room()) {
                    all.push((PollFd::new(source, PollFlags::IN), Ready::Output(who, which)));
                }
            }
        }
        let readers = self.input.wants_write();
        all.extend(readers.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::OUT), Ready::StdinWrite)));
        let stdin = self.input.wants_read();
        all.extend(stdin.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::IN), Ready::StdinRead)));
        for (which, sink) in self.desk.sinks.iter().enumerate().filter(|(_, sink)| !sink.is_empty()) {
            all.push((PollFd::new(sink, PollFlags::OUT), Ready::Sink(which)));
        }
        all.into_iter().unzip()
    }

    fn handle(&mut self, ready: Ready) {
        match ready {
            Ready::Signals => {
                for request in self.signals.take() {
                    self.signalled(request);
                }
            }
            Ready::Talk(who) => self.listen(who),
            Ready::Output(who, which) => self.pump(who, which),
            Ready::StdinRead => self.input.read(),
            Ready::StdinWrite => self.input.write(),
            Ready::Sink(which) => self.desk.write(which),
        }
    }

    fn signalled(&mut self, request: Request) {
        match request {
            Request::Reap => self.reap(),
            // Only output is left, and the user does not want to wait for its reader.
            Request::End(_) if !self.any_alive() => self.desk.give_up(),
            Request::End(signal) => {
                let order = self.desk.interrupted(signal);
                self.carry_out(order);
            }
            Request::Stop => {
                self.signal(libc::SIGTSTP);
                Signals::stop_ourselves();
            }
            Request::Forward(signal) => self.signal(signal),
        }
    }

    fn reap(&mut self) {
        for group in 0..self.groups.len() {
            for end in self.groups[group].ranks.reap() {
                self.ended(group, end);
            }
        }
        if !self.any_alive() {
            let order = self.desk.confirm(false);
            self.carry_out(order);
        }
    }

    /// Handles the end of a rank's process: first its last messages and output, then its end.
    fn ended(&mut self, group: usize, end: RankEnd) {
        self.listen((group, end.rank));
        let Group { ranks, server, .. } = &mut self.groups[group];
        let rank = ranks.get_mut(end.rank);
        rank.talk = None;
        for (source, sink) in rank.outputs.iter_mut().zip(&mut self.desk.sinks) {
            if let Some(source) = source.take() {
                source.drain(sink);
            }
        }
        server.gone(end.rank);
        let phase = server.phase(end.rank);
        if self.job.ft && is_death(&end, phase) {
            self.groups[group].ranks.tell_death(end.rank);
        }
        let alive = self.any_alive();
        let started = started_by_rank(group);
        let host = started.as_deref().or_else(|| self.job.placement.host_name(end.rank));
        let order = self.desk.rank_ended(end, phase, host, alive);
        self.carry_out(order);
        self.check_fence();
    }

    fn listen(&mut self, (group, rank): Who) {
        let Group { ranks, server, .. } = &mut self.groups[group];
        let Some(talk) = &mut ranks.get_mut(rank).talk else { return };
        let mut events = Vec::new();
        talk.write();
        let open = talk.read(rank, server, &mut events);
        for event in events {
            self.said(group, event);
        }
        if !open {
            self.groups[group].ranks.get_mut(rank).talk = None;
        }
        self.check_fence();
    }

    fn said(&mut self, group: usize, event: Event) {
        match event {
            Event::Reply(rank, line) => {
                if let Some(talk) = &mut self.groups[group].ranks.get_mut(rank).talk {
                    talk.say(&line);
                }
            }
            Event::Abort { rank, code, why } => {
                // A rank that aborts because another rank died is not the reason.
                self.reap();
                self.end(code, abort_reason(rank, code, &why), "ending all ranks");
            }
            Event::Unreachable { by, rank } => {
                let Group { ranks, unreachable: ended, .. } = &mut self.groups[group];
                if self.job.ft && ended.ends(by, rank) && ranks.kill(rank) {
                    self.desk.tell(&unreachable(by, rank));
                }
            }
            Event::Spawn(rank, request) => {
                let started = self.start_more(&request).map_err(|why| why.to_string());
                self.said(group, Server::spawned(rank, started.as_ref().copied().map_err(|why| &**why)));
            }
            Event::Note(text) => self.desk.note(&text),
            // This job has no ranks on other hosts.
            Event::Fence(_) => {}
        }
    }

    fn check_fence(&mut self) {
        if !self.desk.is_ending()
            && let Some(why) = self.groups.iter().find_map(|group| group.server.stuck())
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
            self.signal(signal);
        }
    }

    fn pump(&mut self, (group, rank): Who, which: usize) {
        let sink = &mut self.desk.sinks[which];
        let source = &mut self.groups[group].ranks.get_mut(rank).outputs[which];
        // If the reader is gone, the ranks' pipe is closed: they get SIGPIPE, like without a launcher.
        let open = source.as_mut().is_some_and(|source| source.pump(sink) && !sink.is_closed());
        if !open {
            *source = None;
        }
    }
}

/// Waits until one of `fds` is ready, or for `timeout`.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<(), LaunchError> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(LaunchError::system("the launcher cannot wait (poll)")(error)),
    }
}

/// Returns the words for a job that a rank has spawned; `None` for the job of the user.
pub(crate) fn started_by_rank(job: usize) -> Option<String> {
    (job > 0).then(|| format!("job {job} of those that were started by ranks"))
}

/// Returns the line about a rank that is ended because another one cannot reach it.
pub(crate) fn unreachable(by: u32, rank: u32) -> String {
    format!(
        "rank {by} cannot reach rank {rank} (are their networks up?): rank {rank} is ended; the others go on"
    )
}

/// Returns the reason of an end that a rank asked for.
pub(crate) fn abort_reason(rank: u32, code: i32, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("rank {rank} asked to end the job with code {code}{why}")
}
