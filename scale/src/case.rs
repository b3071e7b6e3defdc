//! One collective with its number of ranks and bytes: its problems, its algorithms, and its run.

use super::fabric::CACHE_CORES;
use super::job::Job;
use super::stage::{Outcome, Stage, Watch};
use super::world::World;
use nmad_mpi_base::algorithm::allgather::Allgather;
use nmad_mpi_base::algorithm::allreduce::Allreduce;
use nmad_mpi_base::algorithm::alltoall::Alltoall;
use nmad_mpi_base::algorithm::barrier::Barrier;
use nmad_mpi_base::algorithm::bcast::Bcast;
use nmad_mpi_base::algorithm::choice::{Algorithm, Choices, Context, Family, Problem};
use nmad_mpi_base::algorithm::cost::Cost;
use nmad_mpi_base::algorithm::gather::Gather;
use nmad_mpi_base::algorithm::operands::Operands;
use nmad_mpi_base::algorithm::operator::Operator;
use nmad_mpi_base::algorithm::place::{Blocks, Buffer, Place, Spot};
use nmad_mpi_base::algorithm::reduce::Reduce;
use nmad_mpi_base::algorithm::reduce_scatter::ReduceScatter;
use nmad_mpi_base::algorithm::scan::Scan;
use nmad_mpi_base::algorithm::scatter::Scatter;
use nmad_mpi_base::algorithm::schedule::{Builder, Schedule};
use nmad_mpi_base::algorithm::team::Team;
use nmad_mpi_base::datatype::{Basic, Datatype};
use nmad_mpi_base::op::{Op, Predefined};

/// A collective on a machine. Where there is a root, it is rank 0.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The machine.
    pub stage: Stage,
    /// Which collective.
    pub family: Family,
    /// Bytes of the vector, or of the block of a rank; a multiple of eight.
    pub len: u64,
}

/// A generic closure over the problem type of a case; `make` returns the problem of a rank.
trait Ask {
    type Answer;
    fn ask<P: Problem>(self, make: &dyn Fn(usize) -> P) -> Self::Answer;
}

const SEND: Spot = Spot::start(Buffer::Send);
const RECV: Spot = Spot::start(Buffer::Recv);

impl Case {
    /// The names of the algorithms that can do it, with the time that the choice predicts, in nanoseconds.
    pub fn algorithms(&self) -> Vec<(&'static str, f64)> {
        struct Fitting<'a>(&'a Team, &'a Cost);
        impl Ask for Fitting<'_> {
            type Answer = Vec<(&'static str, f64)>;
            fn ask<P: Problem>(self, make: &dyn Fn(usize) -> P) -> Self::Answer {
                let (problem, Fitting(team, cost)) = (make(0), self);
                let cost = cost.with_data(problem.data(team));
                let fits = P::algorithms().iter().filter(|algorithm| (algorithm.fits)(&problem, team));
                fits.map(|algorithm| (algorithm.name, (algorithm.cost)(&problem, team, &cost))).collect()
            }
        }
        self.put(Fitting(&self.team(), &self.stage.fabric.cost()))
    }

    /// The algorithm that MAD-MPI takes.
    pub fn chosen(&self) -> &'static str {
        struct Chosen<'a>(&'a Team, &'a Cost);
        impl Ask for Chosen<'_> {
            type Answer = &'static str;
            fn ask<P: Problem>(self, make: &dyn Fn(usize) -> P) -> &'static str {
                let context = Context { cost: self.1, choices: &Choices::default(), inner: false };
                context.choose(&make(0), self.0).name
            }
        }
        self.put(Chosen(&self.team(), &self.stage.fabric.cost()))
    }

    /// The schedules of all ranks by an algorithm, one after the other; `take` returns whether it wants more.
    pub fn schedules(&self, name: &str, mut take: impl FnMut(Schedule) -> bool) {
        struct Build<'a, T>(&'a Case, &'a str, &'a mut T);
        impl<T: FnMut(Schedule) -> bool> Ask for Build<'_, T> {
            type Answer = ();
            fn ask<P: Problem>(self, make: &dyn Fn(usize) -> P) {
                let (team, cost) = (self.0.team(), self.0.stage.fabric.cost());
                let cost = cost.with_data(make(0).data(&team));
                let context = Context { cost: &cost, choices: &Choices::default(), inner: false };
                let known = P::algorithms().iter().find(|algorithm| algorithm.name == self.1);
                let Some(Algorithm { build, .. }) = known else { return };
                for rank in 0..team.size() {
                    let mut builder = Builder::default();
                    builder.operator(&sum());
                    build(&make(rank), &team.seen_from(rank), &context, &mut builder);
                    if !(self.2)(builder.finish()) {
                        return;
                    }
                }
            }
        }
        self.put(Build(self, name, &mut take));
    }

    /// The job by an algorithm; none if it has more messages than this.
    ///
    /// # Errors
    /// Ranks do not agree about a message.
    pub fn job(&self, name: &str, messages_max: usize) -> Result<Option<Job>, String> {
        let (mut job, mut fewest) = (Job::default(), usize::MAX);
        self.schedules(name, |schedule| {
            let before = job.sent();
            job.add(&[&schedule]);
            fewest = fewest.min(job.sent() - before);
            // An estimate: each further rank sends as many as the rank that has sent fewest so far.
            job.ranks() < 4 || job.sent() + fewest * (self.stage.ranks - job.ranks()) <= messages_max
        });
        if job.ranks() < self.stage.ranks || job.sent() > messages_max {
            return Ok(None);
        }
        job.connect().map(|()| Some(job)).map_err(|why| format!("{name} of {self:?}: {why}"))
    }

    /// Runs the case by an algorithm; none if that sends more than `messages_max` messages.
    ///
    /// # Panics
    /// The schedules of the ranks do not fit each other: then the algorithm is broken.
    pub fn run_within(&self, name: &str, messages_max: usize) -> Option<Outcome> {
        let job = self.job(name, messages_max).unwrap_or_else(|why| panic!("{why}"))?;
        Some(self.watched(&job, &mut ()).unwrap_or_else(|why| panic!("{name} of {self:?}: {why}")))
    }

    /// Runs a job of this case.
    ///
    /// # Errors
    /// It does not end.
    pub fn watched(&self, job: &Job, watch: &mut impl Watch) -> Result<Outcome, String> {
        World::new(&self.stage, (job, 2 * self.received()), watch).run()
    }

    /// The ranks and their hosts, seen from rank 0.
    pub fn team(&self) -> Team {
        let caches = self.stage.caches();
        let team = Team::with_caches(&self.stage.nodes(), (Some(&caches), CACHE_CORES as u32), 0);
        team.behind(&self.stage.switches())
    }

    /// Bytes of the receive buffer of a rank that gets most.
    pub fn received(&self) -> u64 {
        match self.family {
            Family::Gather
            | Family::Scatter
            | Family::Allgather
            | Family::Alltoall
            | Family::ReduceScatter => self.len * self.stage.ranks as u64,
            _ => self.len,
        }
    }

    fn put<A: Ask>(&self, ask: A) -> A::Answer {
        let (ranks, len, word) = (self.stage.ranks, self.len, Datatype::predefined(Basic::Int64));
        let count = (len / 8) as i64;
        let (operands, all) = (|count| Operands { operator: sum(), count }, ranks as i64 * count);
        let own = |spot| Place::bytes(spot, len);
        let blocks = |buffer| Blocks::even(buffer, count, word);
        let (from, into) = (SEND, RECV);
        match self.family {
            Family::Barrier => ask.ask(&|_| Barrier),
            Family::Bcast => ask.ask(&|_| Bcast { data: own(RECV), root: 0 }),
            Family::Gather => ask.ask(&|rank| Gather {
                send: Some(own(SEND)),
                recv: (rank == 0).then(|| blocks(Buffer::Recv)),
                block: Some(len),
                root: 0,
                left: None,
            }),
            Family::Scatter => ask.ask(&|rank| Scatter {
                send: (rank == 0).then(|| blocks(Buffer::Send)),
                recv: Some(own(RECV)),
                block: Some(len),
                root: 0,
            }),
            Family::Allgather => {
                ask.ask(&|_| Allgather { send: Some(own(SEND)), recv: blocks(Buffer::Recv) })
            }
            Family::Alltoall => ask.ask(&|_| Alltoall {
                send: Some(blocks(Buffer::Send)),
                recv: blocks(Buffer::Recv),
                block: Some(len),
            }),
            Family::Reduce => ask.ask(&|rank| Reduce {
                from,
                into: (rank == 0).then_some(into),
                operands: operands(count),
                root: 0,
            }),
            Family::Allreduce => ask.ask(&|_| Allreduce { from, into, operands: operands(count) }),
            Family::ReduceScatter => ask.ask(&|_| ReduceScatter {
                from,
                into,
                operands: operands(all),
                bounds: (0..=ranks as i64).map(|rank| rank * count).collect(),
            }),
            Family::Scan => ask.ask(&|_| Scan { from, into, operands: operands(count), is_exclusive: false }),
        }
    }
}

/// Sums of integers.
fn sum() -> Operator {
    let sum = Op::Predefined(Predefined::Sum);
    Operator::new(&sum, Datatype::predefined(Basic::Int64)).expect("integers have sums")
}
