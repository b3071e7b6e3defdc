//! The ranks of one job on one host, in the agent: their start, and their side of the fence.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::process::Rlimit;

use super::channel::Channel;
use super::message::{Command, JobUp, Place, Release, Up, Work, pairs_in};
use crate::binding::topology::Topology;
use crate::binding::{self, quota};
use crate::local::guard::Guard;
use crate::local::job::check_folder;
use crate::local::output::LineStart;
use crate::local::ranks::Ranks;
use crate::local::spawn::Seat;
use crate::local::{Inherit, Program};
use crate::pmi::delta;
use crate::pmi::server::{Absent, Event, Server};
use crate::{LaunchError, RankStatus, Secret};

/// The ranks of a job on this host.
pub struct Party {
    /// The number of the job.
    pub job: u32,
    pub ranks: Ranks,
    pub places: Vec<Place>,
    pub server: Server,
    /// Fences that have ended.
    fences: u32,
    reported_waiting: Option<u32>,
    reported_absent: Option<Absent>,
}

impl Party {
    /// Starts the ranks; returns also the standard inputs of those that read the launcher's.
    ///
    /// # Errors
    /// A program or folder does not exist on this host, or the system has no resources left.
    pub fn start(
        job: u32,
        work: Work,
        files: Option<Rlimit>,
        head: &mut Channel,
    ) -> Result<(Party, Vec<OwnedFd>), LaunchError> {
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
        let secret = Secret::from_bytes(work.secret);
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
                group: job,
                cores: own.as_ref().and_then(|own| binding::mask(own)),
                ft: work.ft,
            };
            let start = LineStart::of(&work.output, job, place.rank);
            pipes.extend(ranks.start(&seat, &secret, files, &start)?);
        }
        let members = places.iter().map(|place| (place.rank, place.program));
        let mut server = Server::part(&work.job, members, work.size, &work.mapping);
        work.preset.iter().for_each(|(key, value)| server.preset(key, value));
        let (reported_waiting, reported_absent) = (None, None);
        Ok((Party { job, ranks, places, server, fences: 0, reported_waiting, reported_absent }, pipes))
    }

    /// Sends a message about this job to the head.
    pub fn say(&self, message: JobUp, head: &mut Channel) {
        head.send(&Up::Job(self.job, message));
    }

    /// Ends the fence, since all hosts are in it. A second message about the same fence changes nothing.
    ///
    /// # Errors
    /// The values of other hosts are malformed.
    pub fn release(&mut self, release: &Release) -> Result<(), String> {
        if release.fence <= self.fences {
            return Ok(());
        }
        let read = release.put.iter().map(|part| delta::read_pairs(part)).collect::<Option<Vec<_>>>();
        let put = read.ok_or("the values of ranks on other hosts arrived malformed")?;
        self.fences = release.fence;
        self.reported_waiting = None;
        for event in self.server.release(put.into_iter().flatten().collect()) {
            self.reply(event);
        }
        Ok(())
    }

    /// Records the end of a member, and reports it to the head.
    pub fn ended(&mut self, member: u32, pid: u32, status: RankStatus, head: &mut Channel) {
        self.server.gone(member);
        let (rank, phase) = (self.places[member as usize].rank, self.server.phase(member));
        // Another rank may wait in the fence, too.
        self.reported_waiting = self.reported_waiting.filter(|waiting| *waiting != rank);
        self.say(JobUp::Ended { rank, pid, status, phase }, head);
        self.report_fence(head);
    }

    /// Kills a rank.
    pub fn kill(&self, rank: u32) {
        if let Some(member) = self.places.iter().position(|place| place.rank == rank) {
            self.ranks.kill(member as u32);
        }
    }

    /// Sends a line to a member.
    pub fn reply(&mut self, event: Event) {
        if let Event::Reply(member, line) = event
            && let Some(talk) = &mut self.ranks.get_mut(member).talk
        {
            talk.say(&line);
        }
    }

    /// Reports the first waiting and the first absent rank to the head, which finds fences that cannot
    /// complete.
    pub fn report_fence(&mut self, head: &mut Channel) {
        if let (None, Some(rank)) = (self.reported_waiting, self.server.waiting()) {
            self.reported_waiting = Some(rank);
            self.say(JobUp::Waiting(rank), head);
        }
        if let (None, Some(absent)) = (self.reported_absent, self.server.absent()) {
            self.reported_absent = Some(absent);
            self.say(JobUp::Absent(absent), head);
        }
    }
}
