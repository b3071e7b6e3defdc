//! A call of a collective: its schedule is found or built, and run in one of three forms.

use super::agreement::greatest;
use super::desk::Key;
use super::posted::{Rest, Way, posted};
use super::running::{Again, Running, complete};
use super::settings::settings;
use super::trial::{Attempt, Pick};
use crate::algorithm::board::Ranks;
use crate::algorithm::check::{Alike, Form, Kind, Operation, Record};
use crate::algorithm::choice::{Context, Memory, Problem};
use crate::algorithm::memory::Buffers;
use crate::algorithm::run::Run;
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::Team;
use crate::comm::{Communicator, Named, lookup};
use crate::error::Result;
use crate::handle::{Comm, Request};
use crate::request::{Persistent, State};
use crate::status::Status;
use crate::task::{self, Task};
use crate::world::world;
use newmadeleine::tell_user;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// The communicator of a call. A program may not free it during the call; what goes on behind the call shares
/// it ([`On::named`]), which costs a call that blocks nothing.
#[derive(Clone, Copy)]
pub(super) struct On {
    pub(super) comm: &'static Communicator,
    handle: Comm,
}

impl On {
    fn of(handle: Comm) -> Result<On> {
        Ok(On { comm: lookup(handle)?, handle })
    }

    /// The communicator, to keep.
    pub(super) fn named(self) -> Result<Named> {
        Named::of(self.handle)
    }
}

/// A collective that a program calls.
pub(super) struct Call {
    pub(super) on: On,
    team: &'static Team,
    kind: Kind,
    /// The algorithm, if measurements have decided, or it is tried.
    pub(super) pick: Cell<Option<Pick>>,
    /// The call tries it.
    pub(super) attempt: Cell<Option<Attempt>>,
}

/// A call that is ready to run.
pub(crate) struct Ready {
    on: On,
    /// None: it takes place in memory. Apart, so that what is short stays small.
    planned: Option<Box<Planned>>,
    /// How it went there.
    way: Way,
    attempt: Option<Attempt>,
}

/// A schedule that is ready to run.
struct Planned {
    run: Run,
    key: Option<Key>,
    buffers: Buffers,
}

/// The key of a printed line about a choice: operation, form, bytes, ranks and nodes, memory.
type Printed = (u8, u8, u64, [usize; 2], &'static str);

/// Returns whether no such line was printed yet. A line at each call would slow down collectives that build a
/// schedule at each call.
#[cold]
fn is_first_line((kind, len, team): (Kind, u64, &Team), memory: Option<Memory>) -> bool {
    static PRINTED: Mutex<BTreeSet<Printed>> = Mutex::new(BTreeSet::new());
    let Kind { operation, form } = kind;
    let size = [team.size(), team.group_count()];
    let line = (operation as u8, form as u8, len, size, memory.map_or("", Memory::name));
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(line)
}

impl Call {
    #[inline]
    pub(super) fn new(operation: Operation, form: Form, comm: Comm) -> Result<Call> {
        world()?;
        let on = On::of(comm)?;
        on.comm.health().check()?;
        let (team, kind) = (on.comm.team()?, Kind { operation, form });
        Ok(Call { on, team, kind, pick: Cell::default(), attempt: Cell::default() })
    }

    /// A call that was done in memory, or was begun there.
    #[inline]
    pub(super) fn done(self, way: Way) -> Ready {
        Ready { on: self.on, planned: None, way, attempt: self.attempt.get() }
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
    #[inline]
    pub(super) fn me(&self) -> usize {
        self.team().me()
    }

    /// Ranks of the local group.
    #[inline]
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

    #[inline]
    pub(super) fn team(&self) -> &'static Team {
        self.team
    }

    /// Adds a problem to a schedule, by the algorithm that suits it.
    pub(super) fn solve<P: Problem>(&self, problem: &P, context: &Context<'_>, builder: &mut Builder) {
        self.explain(problem, context, None);
        problem.build(self.team(), context, builder);
    }

    /// Tells the user which algorithm was chosen, and why, if that was asked for: once for each size.
    pub(super) fn explain<P: Problem>(&self, problem: &P, context: &Context<'_>, memory: Option<Memory>) {
        if context.choices.explain
            && self.me() == 0
            && is_first_line((self.kind, problem.len(), self.team()), memory)
        {
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
        let buffers = Buffers { send: send.cast_mut().cast(), recv: recv.cast() };
        if settings().check {
            run.bind(0, buffers);
            run.check_buffers()?;
        }
        let planned = Some(Box::new(Planned { run, key, buffers }));
        Ok(Ready { on: self.on, planned, way: Way::Ended, attempt: self.attempt.get() })
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
        match self.pick.get() {
            None => build(self, &settings.context(), &mut builder)?,
            Some(pick) => {
                let choices = settings.choices.with(pick.family, pick.place);
                build(self, &Context { choices: &choices, ..settings.context() }, &mut builder)?;
            }
        }
        Ok(Run::new(Arc::new(builder.finish())))
    }

    /// The messages of a problem that are begun later, when the ranks are known whose parts are left to them:
    /// the operation is counted now, as on the ranks that begin with messages.
    pub(super) fn later<P: Problem>(
        &self,
        (send, recv): (*const c_void, *mut c_void),
        problem: impl FnOnce(Option<Ranks>) -> P + Send + 'static,
    ) -> Rest {
        let number = self.on.comm.next_in_background();
        let buffers = Buffers { send: send.cast_mut().cast(), recv: recv.cast() };
        let Call { on, team, kind, .. } = *self;
        let call = Call { on, team, kind, pick: Cell::default(), attempt: Cell::default() };
        // The program may free the communicator before this runs.
        let kept = on.named();
        Box::new(move |left| {
            let _kept = kept?;
            let problem = problem(Some(left));
            let solve = |call: &Call, context: &Context<'_>, builder: &mut Builder| {
                call.solve(&problem, context, builder);
                Ok(())
            };
            let mut run = call.build(Alike::default(), solve)?;
            run.bind(number, buffers);
            run.start();
            Ok(run)
        })
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

/// The number of an operation that blocks.
pub(super) fn next_blocking(comm: &Communicator) -> u64 {
    match settings().check {
        // Counted like all others, so that one that does not block is found out.
        true => comm.next_in_background(),
        false => comm.next_operation(),
    }
}

/// Records the end of a tried call; the last one of a trial agrees with all other ranks.
#[cold]
fn end_attempt(comm: &Communicator, attempt: Attempt) {
    let trials = &comm.desk().trials;
    let Some(mut figures) = trials.ended(attempt) else { return };
    if greatest(comm, &mut figures).is_err() {
        return trials.abandoned(attempt);
    }
    let line = trials.agreed(attempt, &figures);
    let is_first = comm.team().is_ok_and(|team| team.me() == 0);
    if let Some(line) = line.filter(|_| settings().choices.explain && is_first) {
        tell_user(format_args!("nmad: {line}"));
    }
}

impl Planned {
    fn block(self, comm: &Communicator) -> Result<()> {
        let Planned { mut run, key, buffers } = self;
        run.bind(next_blocking(comm), buffers);
        let ended = complete(comm, &mut run);
        if let Some(key) = key {
            comm.desk().put(key, run);
        }
        ended
    }
}

impl Ready {
    /// Blocking: runs it to its end.
    #[inline]
    pub(crate) fn block(self) -> Result<()> {
        if let Some(planned) = self.planned {
            planned.block(self.on.comm)?;
        }
        if let Some(attempt) = self.attempt {
            end_attempt(self.on.comm, attempt);
        }
        Ok(())
    }

    /// Nonblocking: a request that ends with it.
    pub(crate) fn begin(self) -> Result<Request> {
        let on = self.on.named()?;
        let Some(planned) = self.planned else { return posted(on, self.way) };
        let Planned { mut run, key, buffers } = *planned;
        run.bind(on.comm.next_in_background(), buffers);
        run.start();
        let running = Running { comm: on.comm.clone(), run: Some(run), key };
        Ok(State::Task(task::start(world()?, Box::new(running)), on).into_request())
    }

    /// Persistent: a request that can be started again and again.
    pub(crate) fn keep(self) -> Result<Request> {
        let Some(planned) = self.planned else { return Ok(State::ended(Status::EMPTY).into_request()) };
        let (on, Planned { mut run, buffers, .. }) = (self.on.named()?, *planned);
        run.bind(on.comm.next_in_background(), buffers);
        let run = Arc::new(Mutex::new(run));
        let make = move || {
            run.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).start();
            let again = Again { comm: on.comm.clone(), run: run.clone() };
            let task: Arc<Task> = task::start(world()?, Box::new(again));
            Ok(State::Task(task, on.clone()))
        };
        Ok(State::Persistent(Persistent::new(make)).into_request())
    }
}
