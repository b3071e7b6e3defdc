//! The ranks of one host in its agent. Members are numbered from 0 here; messages to the head have ranks.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::event::{PollFd, PollFlags};

use super::channel::Channel;
use super::message::{Command, Place, Up, Work, pairs_in};
use crate::binding::topology::Topology;
use crate::binding::{self, quota};
use crate::local::guard::Guard;
use crate::local::input::Input;
use crate::local::job::check_folder;
use crate::local::output::LineStart;
use crate::local::ranks::Ranks;
use crate::local::spawn::{self, Seat};
use crate::local::{Inherit, Program};
use crate::pmi::server::{Absent, Event, Server};
use crate::{LaunchError, RankEnd, Secret};

/// Most unacknowledged output to the head, except the rest of ended ranks. It fits into the buffers of a
/// connection, so that a stopped head does not look like a dead one.
const WINDOW: usize = 64 * 1024;

/// A source of events.
#[derive(Clone, Copy)]
pub enum Ready {
    Talk(u32),
    /// A rank's standard output (0) or error (1).
    Output(u32, usize),
    Input,
}

/// The ranks of this host.
pub struct Crew {
    ranks: Ranks,
    places: Vec<Place>,
    server: Server,
    input: Input,
    /// Whether the head waits for the acknowledgement of a piece of input.
    owes_input: bool,
    unacknowledged: usize,
    reported_waiting: Option<u32>,
    reported_absent: Option<Absent>,
}

impl Crew {
    /// Starts the ranks.
    ///
    /// # Errors
    /// A program or folder that is not here, or a system out of resources.
    pub fn start(work: Work, secret: &Secret, head: &mut Channel) -> Result<Crew, LaunchError> {
        let Work { seats: places, host, .. } = work;
        let programs: Vec<Program> = work.programs.into_iter().map(Command::program).collect();
        let inherit = match work.inherit {
            None => Inherit::All,
            Some(names) => Inherit::Only(names.into_iter().map(OsString::from_vec).collect()),
        };
        let (env, locals) = (pairs_in(work.env), places.len() as u32);
        let topology = Topology::of_this_process()?;
        let (binding, refused) = binding::permitted(work.binding);
        if let Some(line) = refused {
            head.send(&Up::Bound(format!("{host}: {line}")));
        }
        let cores = binding::plan(&binding, locals, &topology, quota::processors());
        let files = spawn::raise_limit_of_files();
        let mut ranks = Ranks::new(Guard::start(locals)?);
        let mut pipes = Vec::new();
        for ((local, place), own) in (0..).zip(&places).zip(&cores) {
            let Some(program) = programs.get(place.program as usize) else {
                return Err(LaunchError::Job(format!("rank {} has no program", place.rank)));
            };
            check_folder(program.folder.as_deref())?;
            if work.report_bindings {
                head.send(&Up::Bound(binding::report(place.rank, &host, own.as_ref(), &topology)));
            }
            let seat = Seat {
                rank: place.rank,
                place: local,
                size: work.size,
                local,
                locals,
                program,
                prefix: &[],
                inherit: &inherit,
                env: &env,
                reads_stdin: place.reads_stdin,
                piped: true,
                output: &work.output,
                host: host.clone(),
                group: 0,
                cores: own.as_ref().and_then(|own| binding::mask(own)),
                ft: work.ft,
            };
            let tag = if work.output.tag { format!("[{}] ", place.rank) } else { String::new() };
            let start = LineStart { tag, timestamp: work.output.timestamp };
            pipes.extend(ranks.start(&seat, secret, files, &start)?);
        }
        let members = places.iter().map(|place| (place.rank, place.program));
        let server = Server::part(&work.job, members, work.size, &work.mapping);
        Ok(Crew {
            ranks,
            places,
            server,
            input: Input::new(None, pipes),
            owes_input: false,
            unacknowledged: 0,
            reported_waiting: None,
            reported_absent: None,
        })
    }

    /// Returns all descriptors to wait for, each with its source.
    pub fn interests(&self) -> Vec<(PollFd<'_>, Ready)> {
        let mut all = Vec::new();
        for (member, rank) in self.ranks.iter() {
            let talk = rank.talk.as_ref();
            all.extend(talk.map(|talk| (PollFd::new(talk, talk.wants()), Ready::Talk(member))));
            for (which, source) in rank.outputs.iter().enumerate().filter(|_| self.unacknowledged < WINDOW) {
                let source = source.as_ref();
                all.extend(source.map(|one| (PollFd::new(one, PollFlags::IN), Ready::Output(member, which))));
            }
        }
        let readers = self.input.wants_write();
        all.extend(readers.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::OUT), Ready::Input)));
        all
    }

    /// Handles an event.
    pub fn handle(&mut self, ready: Ready, head: &mut Channel) {
        match ready {
            Ready::Talk(member) => self.listen(member, head),
            Ready::Output(member, which) => self.pump(member, which, head),
            Ready::Input => {
                self.input.write();
                self.acknowledge_input(head);
            }
        }
    }

    /// Reaps ended ranks, and reports their last messages and their end to the head.
    pub fn reap(&mut self, head: &mut Channel) {
        for end in self.ranks.reap() {
            self.ended(end, head);
        }
    }

    /// Forwards a signal.
    pub fn signal(&mut self, signal: i32) {
        self.ranks.signal(signal);
    }

    /// Releases the fence, since all hosts are in it.
    pub fn release(&mut self, put: Vec<(String, String)>) {
        self.reported_waiting = None;
        for event in self.server.release(put) {
            self.reply(event);
        }
    }

    /// Gives a piece of input to the ranks that read it.
    pub fn feed(&mut self, bytes: Vec<u8>, head: &mut Channel) {
        self.input.feed(bytes);
        self.owes_input = true;
        self.acknowledge_input(head);
    }

    /// Ends a rank here that another one cannot reach.
    pub fn end_unreachable(&mut self, rank: u32) {
        if let Some(member) = self.places.iter().position(|place| place.rank == rank) {
            self.ranks.kill(member as u32);
        }
    }

    /// Tells the ranks here that others of the job have died.
    pub fn tell_deaths(&self, died: &[u32]) {
        died.iter().for_each(|rank| self.ranks.tell_death(*rank));
    }

    /// Ends the input.
    pub fn end_input(&mut self) {
        self.input.close();
    }

    /// Records that the head has taken output.
    pub fn taken(&mut self, count: u32) {
        self.unacknowledged = self.unacknowledged.saturating_sub(count as usize);
    }

    /// Closes this output stream, since its reader is gone: ranks that write to it get SIGPIPE, like
    /// without a launcher.
    pub fn close_output(&mut self, which: u8) {
        for member in 0..self.places.len() as u32 {
            if let Some(output) = self.ranks.get_mut(member).outputs.get_mut(usize::from(which)) {
                *output = None;
            }
        }
    }

    fn acknowledge_input(&mut self, head: &mut Channel) {
        if self.owes_input && self.input.is_idle() {
            self.owes_input = false;
            head.send(&Up::InputTaken);
        }
    }

    fn ended(&mut self, end: RankEnd, head: &mut Channel) {
        let (member, rank) = (end.rank, self.places[end.rank as usize].rank);
        self.listen(member, head);
        self.ranks.get_mut(member).talk = None;
        for which in 0..2 {
            let mut bytes = Vec::new();
            if let Some(source) = self.ranks.get_mut(member).outputs[which].take() {
                source.drain(&mut bytes);
            }
            self.put_out(which, bytes, head);
        }
        self.server.gone(member);
        let phase = self.server.phase(member);
        head.send(&Up::Ended { rank, pid: end.pid, status: end.status, phase });
        self.report_fence(head);
    }

    fn listen(&mut self, member: u32, head: &mut Channel) {
        let Some(talk) = &mut self.ranks.get_mut(member).talk else { return };
        let mut events = Vec::new();
        talk.write();
        if !talk.read(member, &mut self.server, &mut events) {
            self.ranks.get_mut(member).talk = None;
        }
        for event in events {
            match event {
                Event::Abort { rank, code, why } => {
                    // A rank that aborts because another rank died is not the reason.
                    self.reap(head);
                    head.send(&Up::Abort { rank, code, why });
                }
                Event::Note(text) => head.send(&Up::Note(text)),
                Event::Unreachable { by, rank } => head.send(&Up::Unreachable { by, rank }),
                // The server of a part of a job refuses this.
                Event::Spawn(..) => {}
                Event::Fence(put) => {
                    // This precedes the fence message, whose answer ends the wait.
                    self.report_fence(head);
                    head.send(&Up::Fence(put));
                }
                reply @ Event::Reply(..) => self.reply(reply),
            }
        }
        self.report_fence(head);
    }

    fn reply(&mut self, event: Event) {
        if let Event::Reply(member, line) = event
            && let Some(talk) = &mut self.ranks.get_mut(member).talk
        {
            talk.say(&line);
        }
    }

    /// Reports to the head the ranks that make a fence impossible to complete.
    fn report_fence(&mut self, head: &mut Channel) {
        if let (None, Some(rank)) = (self.reported_waiting, self.server.waiting()) {
            self.reported_waiting = Some(rank);
            head.send(&Up::Waiting(rank));
        }
        if let (None, Some(absent)) = (self.reported_absent, self.server.absent()) {
            self.reported_absent = Some(absent);
            head.send(&Up::Absent(absent));
        }
    }

    fn pump(&mut self, member: u32, which: usize, head: &mut Channel) {
        let output = &mut self.ranks.get_mut(member).outputs[which];
        let mut bytes = Vec::new();
        if let Some(source) = output
            && !source.pump(&mut bytes)
        {
            *output = None;
        }
        self.put_out(which, bytes, head);
    }

    fn put_out(&mut self, which: usize, bytes: Vec<u8>, head: &mut Channel) {
        if !bytes.is_empty() {
            self.unacknowledged += bytes.len();
            head.send(&Up::Output(which as u8, bytes));
        }
    }
}
