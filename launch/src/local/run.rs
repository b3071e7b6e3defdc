//! The loop: wait until something is ready, let its owner handle it, carry out what the end asks for.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::ending::{CODE_TIMEOUT, Ending, Order};
use super::guard::Guard;
use super::input::Input;
use super::output::Sink;
use super::ranks::Ranks;
use super::signals::{Request, Signals};
use super::{ExitReport, JOB_PREFIX, Job, RankEnd, SPEAKER, spawn};
use crate::pmi::server::{Event, Server};
use crate::variables::misspelt_among;
use crate::{LaunchError, Secret};

/// How often to look whether our terminal has us in the foreground again.
const FOREGROUND_EVERY: Duration = Duration::from_millis(500);

/// A rank that sends nonsense gets its answers, but the user is told only so many times.
const NOTES_MAX: u32 = 10;

/// Runs a job and returns when none of its processes is left.
///
/// Ranks that fail end the job; see [`ExitReport::code`]. Signals to this process go to the ranks
/// meanwhile: SIGINT, SIGTERM, SIGHUP and SIGQUIT (the second of them kills), SIGTSTP and SIGCONT, SIGUSR1
/// and SIGUSR2. Their handlers stay afterwards. Call it from a thread that lives as long as the job, and
/// let nobody else in the process reap unknown children.
///
/// # Errors
/// A job that makes no sense, a program that cannot be started, or a system out of resources. Ranks
/// that were started by then are killed.
pub fn run(job: Job) -> Result<ExitReport, LaunchError> {
    let mut run = Run::start(job)?;
    while run.ranks.any_alive() || run.sinks.iter().any(|sink| !sink.is_empty()) {
        run.turn()?;
    }
    let reason = run.ending.reason().map(str::to_owned);
    Ok(ExitReport { code: run.ending.code(), ranks: run.ends, reason })
}

/// Tells of variables that the ranks get and nobody reads.
fn misspelt(job: &Job) {
    let given = job.env.iter().chain(job.programs.iter().flat_map(|program| &program.env));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for line in misspelt_among(inherited.chain(given.map(|(name, _)| name.clone()))) {
        nmad_words::tell_user(format_args!("{SPEAKER}: {line}"));
    }
}

/// What can be ready.
#[derive(Clone, Copy)]
enum Ready {
    Signals,
    Talk(u32),
    /// A rank's standard output (0) or error (1).
    Output(u32, usize),
    StdinRead,
    StdinWrite,
    Sink(usize),
}

struct Run {
    // Dropped first, and with it the ranks are killed, should an error end the loop.
    ranks: Ranks,
    job: Job,
    deadline: Option<Instant>,
    signals: Signals,
    server: Server,
    input: Input,
    /// Standard output and error.
    sinks: [Sink; 2],
    ending: Ending,
    ends: Vec<RankEnd>,
    notes: u32,
}

impl Run {
    fn start(job: Job) -> Result<Run, LaunchError> {
        job.check()?;
        misspelt(&job);
        let secret = Secret::random()?;
        // A part of another secret makes the name unique without telling anything about this one.
        let name = format!("{JOB_PREFIX}{}-{}", std::process::id(), &Secret::random()?.to_hex()[..16]);
        let counts: Vec<u32> = job.programs.iter().map(|program| program.count).collect();
        let server = Server::new(&name, &counts, &job.placement.mapping(job.count()));
        let sinks = sinks().map_err(LaunchError::system("cannot write to standard output"))?;
        // Before the first rank, so that no end of one is missed.
        let signals = Signals::catch()?;
        let mut ranks = Ranks::new(Guard::start(job.count())?);
        let mut pipes = Vec::new();
        for rank in 0..job.count() {
            let mut started = spawn::spawn(&job, &secret, rank)?;
            pipes.extend(started.stdin.take());
            ranks.add(started);
        }
        let input = Input::new(rustix::stdio::stdin().try_clone_to_owned().ok(), pipes);
        let deadline = job.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let ending = Ending::new(job.grace);
        Ok(Run { ranks, job, deadline, signals, server, input, sinks, ending, ends: Vec::new(), notes: 0 })
    }

    fn turn(&mut self) -> Result<(), LaunchError> {
        for ready in self.wait()? {
            self.handle(ready);
        }
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= now) && self.ranks.any_alive() {
            self.deadline = None;
            let limit = self.job.timeout.unwrap_or_default().as_secs_f64();
            self.end(CODE_TIMEOUT, format!("the time limit of {limit} s is over"), "ending all ranks");
        }
        let known = self.ending.reason().is_some();
        let order = self.ending.overdue(now);
        self.decided(known, order);
        Ok(())
    }

    /// Waits until something is ready or due.
    fn wait(&self) -> Result<Vec<Ready>, LaunchError> {
        let (mut fds, what) = self.interests();
        let due = [self.deadline, self.ending.deadline()].into_iter().flatten().min();
        let mut timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        if self.input.is_in_background() {
            timeout = Some(timeout.unwrap_or(Duration::MAX).min(FOREGROUND_EVERY));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(LaunchError::system("the launcher cannot wait (poll)")(error)),
        }
        let ready = fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty());
        Ok(ready.map(|(_, what)| what).collect())
    }

    /// Every descriptor that matters now, and what it is.
    fn interests(&self) -> (Vec<PollFd<'_>>, Vec<Ready>) {
        let mut all = vec![(PollFd::new(&self.signals, PollFlags::IN), Ready::Signals)];
        for (number, rank) in self.ranks.iter() {
            if let Some(talk) = &rank.talk {
                all.push((PollFd::new(talk, talk.wants()), Ready::Talk(number)));
            }
            for (which, source) in rank.outputs.iter().enumerate() {
                if let Some(source) = source.as_ref().filter(|_| self.sinks[which].has_room()) {
                    all.push((PollFd::new(source, PollFlags::IN), Ready::Output(number, which)));
                }
            }
        }
        let readers = self.input.wants_write();
        all.extend(readers.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::OUT), Ready::StdinWrite)));
        let stdin = self.input.wants_read();
        all.extend(stdin.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::IN), Ready::StdinRead)));
        for (which, sink) in self.sinks.iter().enumerate().filter(|(_, sink)| !sink.is_empty()) {
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
            Ready::Talk(rank) => self.listen(rank),
            Ready::Output(rank, which) => self.pump(rank, which),
            Ready::StdinRead => self.input.read(),
            Ready::StdinWrite => self.input.write(),
            Ready::Sink(which) => {
                let written = self.sinks[which].write();
                if which == 0 {
                    nmad_words::said(written);
                }
            }
        }
    }

    fn signalled(&mut self, request: Request) {
        match request {
            Request::Reap => self.reap(),
            // Only our output is left, and the user does not want to wait for its reader.
            Request::End(_) if !self.ranks.any_alive() => self.sinks.iter_mut().for_each(Sink::give_up),
            Request::End(signal) => {
                let order = self.ending.interrupted(signal);
                self.carry_out(order);
            }
            Request::Stop => {
                self.ranks.signal(libc::SIGTSTP);
                Signals::stop_ourselves();
            }
            Request::Forward(signal) => self.ranks.signal(signal),
        }
    }

    fn reap(&mut self) {
        for end in self.ranks.reap() {
            self.ended(end);
        }
        if !self.ranks.any_alive() {
            self.confirm();
        }
    }

    /// A rank's process is gone: what it said last counts, then its end.
    fn ended(&mut self, end: RankEnd) {
        self.listen(end.rank);
        let rank = self.ranks.get_mut(end.rank);
        rank.talk = None;
        for (source, sink) in rank.outputs.iter_mut().zip(&mut self.sinks) {
            if let Some(source) = source.take() {
                source.drain(sink);
            }
        }
        self.server.gone(end.rank);
        self.ends.push(end);
        let phase = self.server.phase(end.rank);
        let known = self.ending.reason().is_some();
        let order = self.ending.rank_ended(&end, phase, &self.job.placement, Instant::now());
        self.decided(known, order);
        self.check_fence();
    }

    /// Whoever exited before its goodbye is the reason, if anybody is suspected to be.
    fn confirm(&mut self) {
        let known = self.ending.reason().is_some();
        let order = self.ending.confirm(Instant::now());
        self.decided(known, order);
    }

    /// Tells the reason, if none was known before, and carries out the order.
    fn decided(&mut self, known: bool, order: Order) {
        if let Some(reason) = self.ending.reason().filter(|_| !known) {
            let then = if self.ranks.any_alive() { "; ending the other ranks" } else { "" };
            let line = format!("{reason}{then}");
            self.tell(&line);
        }
        self.carry_out(order);
    }

    fn listen(&mut self, rank: u32) {
        let Some(talk) = &mut self.ranks.get_mut(rank).talk else { return };
        let mut events = Vec::new();
        talk.write();
        let open = talk.read(rank, &mut self.server, &mut events);
        for event in events {
            self.said(event);
        }
        if !open {
            self.ranks.get_mut(rank).talk = None;
        }
        self.check_fence();
    }

    fn said(&mut self, event: Event) {
        match event {
            Event::Reply(rank, line) => {
                if let Some(talk) = &mut self.ranks.get_mut(rank).talk {
                    talk.say(&line);
                }
            }
            Event::Abort { rank, code, why } => {
                // Whoever ends the job because another rank has died is not the reason.
                self.reap();
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                let reason = format!("rank {rank} asked to end the job with code {code}{why}");
                self.end(code, reason, "ending all ranks");
            }
            Event::Note(text) => {
                self.notes += 1;
                match self.notes {
                    ..NOTES_MAX => self.tell(&text),
                    NOTES_MAX => self.tell(&format!("{text} (further such lines are not reported)")),
                    _ => {}
                }
            }
        }
    }

    fn check_fence(&mut self) {
        if self.ending.reason().is_none()
            && let Some(why) = self.server.stuck()
        {
            self.end(1, why, "ending the job");
        }
    }

    /// Ends the job for a reason that is told, unless it is being ended for another.
    fn end(&mut self, code: i32, reason: String, then: &str) {
        self.confirm();
        if self.ending.reason().is_none() {
            self.tell(&format!("{reason}; {then}"));
        }
        let order = self.ending.because(code, reason, Instant::now());
        self.carry_out(order);
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::None => {}
            Order::Send(signal) => self.ranks.signal(signal),
            Order::Terminate => {
                self.ranks.signal(libc::SIGTERM);
                // A stopped rank would not notice before it goes on.
                self.ranks.signal(libc::SIGCONT);
            }
            Order::Kill => self.ranks.signal(libc::SIGKILL),
        }
    }

    fn pump(&mut self, rank: u32, which: usize) {
        let sink = &mut self.sinks[which];
        let source = &mut self.ranks.get_mut(rank).outputs[which];
        // A reader that left is passed on to the ranks: they get SIGPIPE, as without us.
        let open = source.as_mut().is_some_and(|source| source.pump(sink) && !sink.is_closed());
        if !open {
            *source = None;
        }
    }

    fn tell(&mut self, text: &str) {
        self.sinks[1].push(format!("{SPEAKER}: {text}\n").as_bytes());
    }
}

fn sinks() -> io::Result<[Sink; 2]> {
    let out = rustix::stdio::stdout().as_fd().try_clone_to_owned()?;
    let err = rustix::stdio::stderr().as_fd().try_clone_to_owned()?;
    Ok([Sink::new(out), Sink::new(err)])
}
