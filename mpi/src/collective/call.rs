//! A call of a collective: its schedule is found or built, and run in one of three forms.

use super::desk::Key;
use super::port::{Free, Held, Within};
use super::posted::{Way, posted};
use super::settings::settings;
use crate::algorithm::check::{ARGUMENTS, Alike, Form, Kind, Operation, Record};
use crate::algorithm::choice::{Context, Memory, Problem};
use crate::algorithm::run::{Caller, Run};
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::Team;
use crate::comm::{Communicator, Named};
use crate::error::Result;
use crate::handle::{Comm, Request};
use crate::request::{Ended, Persistent, State};
use crate::status::Status;
use crate::task::{self, Served, Task, Work};
use crate::world::{World, world};
use newmadeleine::engine::Engine;
use newmadeleine::tell_user;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// A collective that a program calls.
pub(super) struct Call {
    pub(super) on: Named,
    kind: Kind,
}

/// A call that is ready to run.
pub(crate) struct Ready {
    on: Named,
    /// None: it takes place in memory.
    run: Option<Run>,
    /// How it went there.
    way: Way,
    key: Option<Key>,
    send: *mut u8,
    recv: *mut u8,
}

impl Call {
    pub(super) fn new(operation: Operation, form: Form, comm: Comm) -> Result<Call> {
        world()?;
        Ok(Call { on: Named::of(comm)?, kind: Kind { operation, form } })
    }

    /// A call that was done in memory, or was begun there.
    pub(super) fn done(self, way: Way) -> Ready {
        let none = std::ptr::null_mut();
        Ready { on: self.on, run: None, way, key: None, send: none, recv: none }
    }

    pub(super) fn form(&self) -> Form {
        self.kind.form
    }

    pub(super) fn is_blocking(&self) -> bool {
        self.kind.form == Form::Blocking
    }

    pub(super) fn operation(&self) -> Operation {
        self.kind.operation
    }

    /// Our rank.
    pub(super) fn me(&self) -> usize {
        self.team().me()
    }

    /// Ranks of the local group.
    pub(super) fn size(&self) -> usize {
        self.on.comm.local().len() as usize
    }

    /// Ranks of the other group; none unless there is one.
    pub(super) fn remote(&self) -> Option<usize> {
        self.on.comm.remote().map(|remote| remote.len() as usize)
    }

    /// Ranks that our blocks go to and come from.
    pub(super) fn peers(&self) -> usize {
        self.remote().unwrap_or(self.size())
    }

    pub(super) fn team(&self) -> &Team {
        self.on.comm.team().expect("MPI runs: looked up when the call began")
    }

    /// Adds a problem to a schedule, by the algorithm that suits it.
    pub(super) fn solve<P: Problem>(&self, problem: &P, context: &Context<'_>, builder: &mut Builder) {
        self.explain(problem, context, None);
        problem.build(self.team(), context, builder);
    }

    /// Tells the user which algorithm was chosen, and why, if that was asked for.
    pub(super) fn explain<P: Problem>(&self, problem: &P, context: &Context<'_>, memory: Option<Memory>) {
        if context.choices.explain && self.me() == 0 {
            tell_user(format_args!("nmad: {}", context.explain(problem, self.team(), memory)));
        }
    }

    /// Finds the schedule for a key, or builds one: `build` adds to it.
    pub(super) fn ready(
        self,
        key: Option<Key>,
        alike: Alike,
        (send, recv): (*const c_void, *mut c_void),
        build: impl FnOnce(&Call, &Context<'_>, &mut Builder) -> Result<()>,
    ) -> Result<Ready> {
        // The check compares the form of this call, which a kept schedule may not have.
        let key = key.filter(|_| !settings().check);
        let kept = key.as_ref().and_then(|key| self.on.comm.desk().take(key));
        let mut run = match kept {
            Some(run) => run,
            None => self.build(alike, build)?,
        };
        let (send, recv) = (send.cast_mut().cast(), recv.cast());
        if settings().check {
            run.bind(0, send, recv);
            run.check_buffers()?;
        }
        Ok(Ready { on: self.on, run: Some(run), way: Way::Ended, key, send, recv })
    }

    #[cold]
    fn build(
        &self,
        alike: Alike,
        build: impl FnOnce(&Call, &Context<'_>, &mut Builder) -> Result<()>,
    ) -> Result<Run> {
        let settings = settings();
        let mut builder = Builder::default();
        if settings.check {
            self.tell(alike, &mut builder);
        }
        build(self, &settings.context(), &mut builder)?;
        Ok(Run::new(Arc::new(builder.finish())))
    }

    /// Tells everybody what we call, and compares.
    fn tell(&self, alike: Alike, builder: &mut Builder) {
        let (record, team) = (Record { kind: self.kind, alike }, self.team());
        match self.on.comm.remote() {
            None => record.build(team, team.size(), builder),
            Some(remote) => {
                let is_first = self.on.comm.local().world(0) < remote.world(0);
                let (both, first) = team.of_both(remote.len() as usize, is_first);
                record.build(&both, first, builder);
            }
        }
    }
}

/// In the checking mode, finds out whether all ranks begin the same operation, which is no collective of
/// [`crate::algorithm`], with the same arguments.
pub(crate) fn announce(
    operation: Operation,
    comm: Comm,
    arguments: impl FnOnce() -> [Option<u64>; ARGUMENTS],
) -> Result<()> {
    if !settings().check {
        return Ok(());
    }
    let nothing = (std::ptr::null(), std::ptr::null_mut());
    let call = Call::new(operation, Form::Blocking, comm)?;
    let alike = Alike { arguments: arguments(), ..Alike::default() };
    call.ready(None, alike, nothing, |_, _, _| Ok(()))?.block()
}

impl Ready {
    /// Blocking: runs it to its end.
    pub(crate) fn block(self) -> Result<()> {
        let Some(mut run) = self.run else { return Ok(()) };
        let number = match settings().check {
            // Counted like all others, so that one that does not block is found out.
            true => self.on.comm.next_in_background(),
            false => self.on.comm.next_operation(),
        };
        run.bind(number, self.send, self.recv);
        let ended = complete(&self.on.comm, &mut run);
        if let Some(key) = self.key {
            self.on.comm.desk().put(key, run);
        }
        ended
    }

    /// Nonblocking: a request that ends with it.
    pub(crate) fn begin(self) -> Result<Request> {
        let Some(mut run) = self.run else { return posted(self.on, self.way) };
        run.bind(self.on.comm.next_in_background(), self.send, self.recv);
        run.start();
        let running = Running { comm: self.on.comm.clone(), run: Some(run), key: self.key };
        Ok(State::Task(task::start(world()?, Box::new(running)), self.on).into_request())
    }

    /// Persistent: a request that can be started again and again.
    pub(crate) fn keep(self) -> Result<Request> {
        let Some(mut run) = self.run else { return Ok(State::ended(Status::EMPTY).into_request()) };
        run.bind(self.on.comm.next_in_background(), self.send, self.recv);
        let (on, run) = (self.on, Arc::new(Mutex::new(run)));
        let make = move || {
            run.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).start();
            let again = Again { comm: on.comm.clone(), run: run.clone() };
            let task: Arc<Task> = task::start(world()?, Box::new(again));
            Ok(State::Task(task, on.clone()))
        };
        Ok(State::Persistent(Persistent::new(make)).into_request())
    }
}

/// Runs to the end on the caller's thread.
pub(super) fn complete(comm: &Communicator, run: &mut Run) -> Result<()> {
    let world = world()?;
    run.start();
    if !run.calls_user() && !task::any() {
        let ended = world
            .node()
            .drive(|step| run.advance(&mut Held { step, comm, is_urgent: true }, Caller::Program), task::any);
        if let Some(ended) = ended {
            return ended;
        }
    }
    task::run(world, &mut Borrowed { comm, run }).answer().map(drop)
}

/// Takes a step of a run.
fn advance(world: &World, comm: &Communicator, run: &mut Run) -> Option<Ended> {
    let ended = match run.calls_user() {
        true => run.advance(&mut Free { world, comm }, Caller::Program),
        false => {
            let go = |step: &mut newmadeleine::progress::Step<'_, '_>| {
                run.advance(&mut Held { step, comm, is_urgent: false }, Caller::Program)
            };
            world.node().step(go)
        }
    };
    ended.map(told)
}

/// The same on a thread of the library's own, which has the engine: what needs a function of the program
/// waits for a call.
fn serve(engine: &mut Engine, comm: &Communicator, run: &mut Run) -> Served {
    let before = run.place();
    match run.advance(&mut Within { engine, comm }, Caller::Library) {
        Some(ended) => Served::Ended(told(ended)),
        None if run.place() != before => Served::Moved,
        None => Served::Nothing,
    }
}

fn told(ended: Result<()>) -> Ended {
    match ended {
        Ok(()) => Ended::well(Status::EMPTY),
        Err(error) => Ended::badly(Status::EMPTY, error),
    }
}

/// A run of a blocking call.
struct Borrowed<'a> {
    comm: &'a Communicator,
    run: &'a mut Run,
}

impl Work for Borrowed<'_> {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        advance(world, self.comm, self.run)
    }
}

/// A run of a nonblocking call; when it has ended, it is kept for the next one.
struct Running {
    comm: Arc<Communicator>,
    run: Option<Run>,
    key: Option<Key>,
}

impl Work for Running {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        advance(world, &self.comm, self.run.as_mut()?)
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        self.run.as_mut().map_or(Served::Nothing, |run| serve(engine, &self.comm, run))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(run) = self.run.take().filter(Run::is_over) else { return };
        if let Some(key) = self.key.take() {
            self.comm.desk().put(key, run);
        }
    }
}

/// A run of a persistent request, which keeps it.
struct Again {
    comm: Arc<Communicator>,
    run: Arc<Mutex<Run>>,
}

impl Work for Again {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let mut run = self.run.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        advance(world, &self.comm, &mut run)
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        // A thread of the program that has it waits for the engine.
        self.run.try_lock().map_or(Served::Busy, |mut run| serve(engine, &self.comm, &mut run))
    }
}
