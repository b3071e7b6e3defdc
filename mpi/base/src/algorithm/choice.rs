//! Which algorithm a collective runs: the one that is predicted to end first, or the one that the user
//! names.

use super::board::{self, tiers};
use super::cost::Cost;
use super::operands::Operands;
use super::pool;
use super::schedule::Builder;
use super::team::Team;
use nmad_words::setting;
use std::fmt::Write;

/// One way to do a collective.
pub struct Algorithm<P: 'static> {
    /// The name by which the user chooses it.
    pub name: &'static str,
    /// Whether it can do this problem, the same on all ranks.
    pub fits: fn(&P, &Team) -> bool,
    /// Predicted nanoseconds, the same on all ranks.
    pub cost: fn(&P, &Team, &Cost) -> f64,
    /// Adds our part to a schedule.
    pub build: fn(&P, &Team, &Context<'_>, &mut Builder),
}

/// The blocking collective of a communicator for which such memory is made: many communicators never have
/// as many.
pub const FIRST: u32 = 4;

/// Memory that all ranks of a node see, in which they do a collective without messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Short collectives ([`super::board`]).
    Board,
    /// Short collectives of many ranks ([`super::board::tiers`]).
    Boards,
    /// Long reductions ([`super::pool`]).
    Pool,
}

impl Memory {
    /// The name by which the user chooses it.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Board => "board",
            Memory::Boards => "boards",
            Memory::Pool => "pool",
        }
    }
}

/// One way to do a collective in such memory: no schedule, so it serves blocking calls.
pub struct Direct<P: 'static> {
    /// The memory.
    pub memory: Memory,
    /// As for an [`Algorithm`].
    pub fits: fn(&P, &Team) -> bool,
    /// Predicted nanoseconds, the same on all ranks.
    pub cost: fn(&P, &Team, &Cost) -> f64,
}

/// An algorithm, with messages or in memory, as a choice sees it.
pub struct Offer<P> {
    name: &'static str,
    fits: fn(&P, &Team) -> bool,
    cost: fn(&P, &Team, &Cost) -> f64,
}

/// A problem in which the operands of all ranks are combined.
pub trait Combines: Problem {
    /// Those of this rank.
    fn operands(&self) -> &Operands;
}

impl<P: Combines> Direct<P> {
    /// On the board each rank combines all operands.
    pub const ON_BOARD: Direct<P> = Direct {
        memory: Memory::Board,
        fits: |p, team| p.operands().is_plain() && board::serves(team, p.len()),
        cost: |p, team, cost| {
            cost.look(team, p.len()) + cost.reduce(team, p.len() * (team.size() as u64 - 1))
        },
    };

    /// On boards of groups each leader combines the operands of its group, then those of all groups.
    pub const ON_BOARDS: Direct<P> = Direct {
        memory: Memory::Boards,
        fits: |p, team| p.operands().is_plain() && tiers::serves(team, p.len()),
        cost: |p, team, cost| {
            let [group, groups] = tiers::shape(team.size());
            let combined = cost.reduce(team, p.len() * (group + groups - 2) as u64);
            cost.boards(team, p.len()) + combined
        },
    };

    /// In the pool each rank combines a part of all of them.
    pub const IN_POOL: Direct<P> = Direct {
        memory: Memory::Pool,
        fits: |p, team| p.operands().is_plain() && pool::serves(team, p.len()),
        cost: |p, team, cost| cost.pooled(team, p.len(), !matches!(P::FAMILY, Family::ReduceScatter)),
    };
}

/// A collective for which there are several algorithms.
pub trait Problem: Sized + 'static {
    /// Which collective it is.
    const FAMILY: Family;

    /// Its algorithms. One that fits everything comes first.
    fn algorithms() -> &'static [Algorithm<Self>];

    /// Its algorithms in memory that the ranks of a node share.
    fn direct() -> &'static [Direct<Self>];

    /// All of them, in this order.
    fn all() -> impl Iterator<Item = Offer<Self>> {
        let schedules = Self::algorithms().iter().map(|a| Offer { name: a.name, fits: a.fits, cost: a.cost });
        let direct = Self::direct().iter();
        schedules.chain(direct.map(|d| Offer { name: d.memory.name(), fits: d.fits, cost: d.cost }))
    }

    /// Their names.
    fn names() -> Vec<&'static str> {
        Self::all().map(|offer| offer.name).collect()
    }

    /// Bytes that describe its size, for the log.
    fn len(&self) -> u64;

    /// Bytes of a rank's buffers, the same on all ranks.
    fn data(&self, _: &Team) -> u64 {
        2 * self.len()
    }

    /// Predicted nanoseconds of the best algorithm within another one.
    fn inner_cost(&self, team: &Team, cost: &Cost) -> f64 {
        let algorithms = Self::algorithms().iter().filter(|algorithm| is_for_inner(algorithm.name, team));
        let fitting = algorithms.filter(|algorithm| (algorithm.fits)(self, team));
        fitting.map(|algorithm| (algorithm.cost)(self, team, cost)).fold(f64::INFINITY, f64::min)
    }

    /// Predicted nanoseconds of two levels that move blocks of `block` bytes: of each rank within a group,
    /// and of all ranks of a group between the leaders. `of` makes the problem with blocks of a length.
    fn by_groups(block: u64, team: &Team, cost: &Cost, of: impl Fn(u64) -> Self) -> f64 {
        let [local, leaders] = team.shapes();
        of(block).inner_cost(local, cost) + of(local.blocks(block)).inner_cost(leaders, cost)
    }

    /// Does it within a schedule, by the algorithm that suits a team best.
    fn build(&self, team: &Team, context: &Context<'_>, builder: &mut Builder) {
        let cost = context.cost.with_data(self.data(team));
        let context = &Context { cost: &cost, ..*context };
        let algorithm = context.choose(self, team);
        (algorithm.build)(self, team, context, builder);
    }
}

/// What choices depend on beside the problem.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The measured costs.
    pub cost: &'a Cost,
    /// What the user wants.
    pub choices: &'a Choices,
    /// Within another algorithm: nodes are not treated apart (caches are), and nothing that the user has
    /// named counts.
    pub inner: bool,
}

macro_rules! families {
    ($($variant:ident $name:literal $setting:ident;)*) => {
        /// Collectives that share algorithms.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Family { $(#[doc = $name] $variant,)* }

        impl Family {
            /// All of them.
            pub const ALL: &[Family] = &[$(Family::$variant),*];

            /// As users know it.
            pub fn name(self) -> &'static str {
                match self { $(Family::$variant => $name,)* }
            }

            /// The variable of the environment that names its algorithm.
            pub fn variable(self) -> &'static str {
                match self { $(Family::$variant => setting::$setting.name,)* }
            }
        }
    };
}

families! {
    Barrier "barrier" MPI_BARRIER;
    Bcast "bcast" MPI_BCAST;
    Gather "gather" MPI_GATHER;
    Scatter "scatter" MPI_SCATTER;
    Allgather "allgather" MPI_ALLGATHER;
    Alltoall "alltoall" MPI_ALLTOALL;
    Reduce "reduce" MPI_REDUCE;
    Allreduce "allreduce" MPI_ALLREDUCE;
    ReduceScatter "reduce_scatter" MPI_REDUCE_SCATTER;
    Scan "scan" MPI_SCAN;
}

/// The variable that asks for a line about each choice on standard error.
pub const EXPLAIN: &str = setting::MPI_EXPLAIN.name;

/// What the user wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// For each family: the number of the algorithm, from one; zero: choose.
    pub(super) named: [u8; Family::ALL.len()],
    /// Tell which algorithm was chosen, and why.
    pub explain: bool,
}

impl Choices {
    /// The place of the named algorithm in [`Problem::names`].
    pub(super) fn named(&self, family: Family) -> Option<usize> {
        self.named[family as usize].checked_sub(1).map(usize::from)
    }

    /// The same choices, but the algorithm of this place for a family; nothing is told about it.
    #[must_use]
    pub fn with(&self, family: Family, place: usize) -> Choices {
        let mut choices = Choices { explain: false, ..self.clone() };
        choices.named[family as usize] = place as u8 + 1;
        choices
    }

    /// Whether the user leaves the choice of a family to us.
    pub fn is_free(&self, family: Family) -> bool {
        self.named(family).is_none()
    }

    /// As numbers, of which all ranks take the largest, so that they choose alike.
    pub fn figures(&self) -> [f64; Family::ALL.len()] {
        self.named.map(f64::from)
    }

    /// The choices that all ranks agreed on.
    #[must_use]
    pub fn agreed(&self, figures: &[f64; Family::ALL.len()]) -> Choices {
        Choices { named: figures.map(|figure| figure as u8), explain: self.explain }
    }
}

impl Context<'_> {
    /// The algorithm for a problem.
    pub fn choose<P: Problem>(&self, problem: &P, team: &Team) -> &'static Algorithm<P> {
        let algorithms = P::algorithms();
        let fits = |algorithm: &&'static Algorithm<P>| (algorithm.fits)(problem, team);
        if let Some(named) = self.named::<P>().and_then(|place| algorithms.get(place)).filter(fits) {
            return named;
        }
        let offered = algorithms.iter().filter(|a| !self.inner || is_for_inner(a.name, team)).filter(fits);
        // Each cost is computed once: that of two levels is a choice of its own.
        let cost = self.cost.with_data(problem.data(team));
        let costs = offered.map(|algorithm| ((algorithm.cost)(problem, team, &cost), algorithm));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(&algorithms[0], |(_, best)| best)
    }

    fn named<P: Problem>(&self) -> Option<usize> {
        self.choices.named(P::FAMILY).filter(|_| !self.inner)
    }

    /// The shared memory in which a blocking call is predicted to end before it would with any schedule, or
    /// which the user names.
    pub fn direct<P: Problem>(&self, problem: &P, team: &Team) -> Option<Memory> {
        let fits = |direct: &&'static Direct<P>| (direct.fits)(problem, team);
        let chosen = self.choose(problem, team);
        if let Some(place) = self.named::<P>() {
            let direct = place.checked_sub(P::algorithms().len()).and_then(|place| P::direct().get(place));
            if let Some(direct) = direct.filter(fits) {
                return Some(direct.memory);
            }
            if P::algorithms().get(place).is_some_and(|named| named.name == chosen.name) {
                return None;
            }
        }
        let known = self.cost.with_data(problem.data(team));
        let cost = |direct: &Direct<P>| (direct.cost)(problem, team, &known);
        let best = P::direct().iter().filter(fits).min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        (cost(best) < (chosen.cost)(problem, team, &known)).then_some(best.memory)
    }

    /// Places, among [`Problem::names`], of the algorithms that fit and are predicted to take at most
    /// `within` times as long as the best; the best first.
    pub fn promising<P: Problem>(&self, problem: &P, team: &Team, within: f64) -> Vec<usize> {
        let fitting = P::all().enumerate().filter(|(_, offer)| (offer.fits)(problem, team));
        let cost = self.cost.with_data(problem.data(team));
        let mut costs: Vec<(f64, usize)> =
            fitting.map(|(place, offer)| ((offer.cost)(problem, team, &cost), place)).collect();
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = within * costs.first().map_or(0.0, |best| best.0);
        costs.into_iter().take_while(|&(ns, _)| ns <= most).map(|(_, place)| place).collect()
    }

    /// Returns this context for the algorithms of which another one consists.
    #[must_use]
    pub fn within(&self) -> Self {
        Context { inner: true, ..*self }
    }

    /// One line about a choice, in `memory` or with a schedule: the time predicted for each algorithm.
    pub fn explain<P: Problem>(&self, problem: &P, team: &Team, memory: Option<Memory>) -> String {
        let chosen = memory.map_or_else(|| self.choose(problem, team).name, Memory::name);
        let (family, size, len) = (P::FAMILY.name(), team.size(), problem.len());
        let mut line = format!("{family} of {len} B over {size} ranks: {chosen}");
        if self.named::<P>().is_some_and(|place| P::names().get(place) == Some(&chosen)) {
            let _ = write!(line, " (asked for by {})", P::FAMILY.variable());
        }
        let known = self.cost.with_data(problem.data(team));
        for Offer { name, fits, cost } in P::all() {
            let us = cost(problem, team, &known) / 1000.0;
            let _ = match fits(problem, team) {
                true => write!(line, ", {name} {us:.1} us"),
                false => write!(line, ", {name} does not fit"),
            };
        }
        if let (None, Some(direct)) = (memory, self.direct(problem, team)) {
            let _ = write!(line, "; {} from blocking call {FIRST} on", direct.name());
        }
        line
    }
}

/// The name by which users leave the choice to us.
pub const AUTO: &str = "auto";
/// The name of all algorithms that treat the groups of a team apart: nodes, or caches within a node. What
/// they do within a node may be of two levels again, with the caches, and among nodes with their switches.
pub const TWO_LEVEL: &str = "two_level";

/// The name of all algorithms that pass pieces along a tree of all levels.
pub const MULTI_LEVEL: &str = "multi_level";

/// The name of all algorithms in which each rank of a node leads a part of a vector.
pub const GRID: &str = "grid";

/// Whether an algorithm may be part of another one, in a team.
fn is_for_inner(name: &str, team: &Team) -> bool {
    ![TWO_LEVEL, GRID].contains(&name) || team.crowd() == 1 || !team.spans_nodes()
}
