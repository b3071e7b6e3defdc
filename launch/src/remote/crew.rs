//! All ranks of one host, in its agent. A *member* is the index of a rank among the ranks of its job on this
//! host; messages to the head have ranks, except requests to spawn.

use rustix::event::{PollFd, PollFlags};
use rustix::process::Rlimit;

use super::channel::Channel;
use super::message::{JobDown, JobUp, Up, Work};
use super::party::Party;
use crate::RankEnd;
use crate::local::input::Input;
use crate::local::spawn;
use crate::pmi::delta;
use crate::pmi::server::{Event, Server};

/// Limit of unacknowledged output to the head, in bytes; the last output of ended ranks may exceed it. The
/// buffers of a connection take this much, so a stopped head does not look like a dead one.
const WINDOW: usize = 64 * 1024;

/// The index of a job on this host, and a member of it.
type Who = (usize, u32);

/// A source of events.
#[derive(Clone, Copy)]
pub enum Ready {
    Talk(Who),
    /// A rank's standard output (0) or error (1).
    Output(Who, usize),
    Input,
}

/// The ranks of this host.
pub struct Crew {
    parties: Vec<Party>,
    files: Option<Rlimit>,
    input: Input,
    /// Whether the head waits for the acknowledgement of a piece of input.
    owes_input: bool,
    unacknowledged: usize,
}

impl Crew {
    /// Makes a host without ranks.
    pub fn new() -> Crew {
        let files = spawn::raise_limit_of_files();
        let input = Input::new(None, Vec::new());
        Crew { parties: Vec::new(), files, input, owes_input: false, unacknowledged: 0 }
    }

    /// Handles a message of the head about one job.
    pub fn handle_job(&mut self, job: u32, message: JobDown, head: &mut Channel) {
        let party = self.parties.iter_mut().find(|party| party.job == job);
        match (message, party) {
            (JobDown::Start(work), _) => self.start(job, *work, head),
            (JobDown::End, Some(party)) => party.ranks.signal(libc::SIGKILL),
            (JobDown::Release(release), Some(party)) => {
                if let Err(why) = party.release(&release) {
                    head.send(&Up::Note(why));
                    party.ranks.signal(libc::SIGKILL);
                }
            }
            (JobDown::Spawned(member, started), Some(party)) => {
                party.reply(Server::spawned(member, started.as_ref().copied().map_err(|why| &**why)));
            }
            (JobDown::EndUnreachable(rank), Some(party)) => party.kill(rank),
            (JobDown::Died(died), Some(party)) => {
                died.iter().for_each(|rank| party.ranks.tell_death(*rank));
            }
            // Messages for ranks that could not be started are ignored.
            (_, None) => {}
        }
    }

    fn start(&mut self, job: u32, work: Work, head: &mut Channel) {
        let answer = match Party::start(job, work, self.files, head) {
            Ok((party, pipes)) => {
                self.parties.push(party);
                if !pipes.is_empty() {
                    self.input = Input::new(None, pipes);
                }
                JobUp::Started
            }
            Err(error) => JobUp::Failed { code: i32::from(error.exit_code()), why: error.to_string() },
        };
        head.send(&Up::Job(job, answer));
    }

    /// Returns all descriptors to wait for, each with its source.
    pub fn interests(&self) -> Vec<(PollFd<'_>, Ready)> {
        let mut all = Vec::new();
        let ranks = self.parties.iter().enumerate();
        let ranks =
            ranks.flat_map(|(at, party)| party.ranks.iter().map(move |(member, rank)| ((at, member), rank)));
        for (who, rank) in ranks {
            let talk = rank.talk.as_ref();
            all.extend(talk.map(|talk| (PollFd::new(talk, talk.wants()), Ready::Talk(who))));
            for (which, source) in rank.outputs.iter().enumerate().filter(|_| self.unacknowledged < WINDOW) {
                let source = source.as_ref();
                all.extend(source.map(|one| (PollFd::new(one, PollFlags::IN), Ready::Output(who, which))));
            }
        }
        let readers = self.input.wants_write();
        all.extend(readers.map(|fd| (PollFd::from_borrowed_fd(fd, PollFlags::OUT), Ready::Input)));
        all
    }

    /// Handles an event.
    pub fn handle(&mut self, ready: Ready, head: &mut Channel) {
        match ready {
            Ready::Talk(who) => self.listen(who, head),
            Ready::Output(who, which) => self.pump(who, which, head),
            Ready::Input => {
                self.input.write();
                self.acknowledge_input(head);
            }
        }
    }

    /// Reaps ended ranks, and reports their last messages and their end to the head.
    pub fn reap(&mut self, head: &mut Channel) {
        for party in 0..self.parties.len() {
            for end in self.parties[party].ranks.reap() {
                self.ended(party, end, head);
            }
        }
    }

    /// Forwards a signal.
    pub fn signal(&mut self, signal: i32) {
        self.parties.iter().for_each(|party| party.ranks.signal(signal));
    }

    /// Gives a piece of input to the ranks that read it.
    pub fn feed(&mut self, bytes: Vec<u8>, head: &mut Channel) {
        self.input.feed(bytes);
        self.owes_input = true;
        self.acknowledge_input(head);
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
        for party in &mut self.parties {
            for member in 0..party.places.len() as u32 {
                if let Some(output) = party.ranks.get_mut(member).outputs.get_mut(usize::from(which)) {
                    *output = None;
                }
            }
        }
    }

    fn acknowledge_input(&mut self, head: &mut Channel) {
        if self.owes_input && self.input.is_idle() {
            self.owes_input = false;
            head.send(&Up::InputTaken);
        }
    }

    fn ended(&mut self, party: usize, end: RankEnd, head: &mut Channel) {
        let member = end.rank;
        self.listen((party, member), head);
        self.parties[party].ranks.get_mut(member).talk = None;
        for which in 0..2 {
            let mut bytes = Vec::new();
            if let Some(source) = self.parties[party].ranks.get_mut(member).outputs[which].take() {
                source.drain(&mut bytes);
            }
            self.put_out(which, bytes, head);
        }
        self.parties[party].ended(member, end.pid, end.status, head);
    }

    fn listen(&mut self, (at, member): Who, head: &mut Channel) {
        let party = &mut self.parties[at];
        let Some(talk) = &mut party.ranks.get_mut(member).talk else { return };
        let mut events = Vec::new();
        talk.write();
        if !talk.read(member, &mut party.server, &mut events) {
            party.ranks.get_mut(member).talk = None;
        }
        for event in events {
            self.said(at, event, head);
        }
        self.parties[at].report_fence(head);
    }

    fn said(&mut self, at: usize, event: Event, head: &mut Channel) {
        let party = &mut self.parties[at];
        match event {
            Event::Abort { rank, code, why } => {
                // A rank may abort because another one died; then that death is the reason.
                self.reap(head);
                head.send(&Up::Abort { rank, code, why });
            }
            Event::Note(text) => head.send(&Up::Note(text)),
            Event::Unreachable { by, rank } => party.say(JobUp::Unreachable { by, rank }, head),
            Event::Spawn(member, request) => party.say(JobUp::Spawn(member, request), head),
            Event::Fence(put) => {
                // Before the fence message, whose answer resets what was reported.
                party.report_fence(head);
                party.say(JobUp::Fence(delta::write_pairs(&put)), head);
            }
            reply @ Event::Reply(..) => party.reply(reply),
        }
    }

    fn pump(&mut self, (party, member): Who, which: usize, head: &mut Channel) {
        let output = &mut self.parties[party].ranks.get_mut(member).outputs[which];
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
