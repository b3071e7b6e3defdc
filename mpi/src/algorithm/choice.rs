//! Which algorithm a collective runs: the one that is predicted to end first, or the one that the user names.

use super::cost::Cost;
use super::schedule::Builder;
use super::team::Team;
use crate::error::{Class, Result};
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

/// A collective for which there are several algorithms.
pub trait Problem: Sized + 'static {
    /// Which collective it is.
    const FAMILY: Family;

    /// Its algorithms. One that fits everything comes first.
    fn algorithms() -> &'static [Algorithm<Self>];

    /// Bytes that describe its size, for the log.
    fn len(&self) -> u64;

    /// Does it within a schedule, by the algorithm that suits a team best.
    fn build(&self, team: &Team, context: &Context<'_>, builder: &mut Builder) {
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
    /// Within an algorithm of two levels: no further levels, and nothing that the user has named.
    pub inner: bool,
}

macro_rules! families {
    ($($variant:ident $name:literal $variable:literal;)*) => {
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
                match self { $(Family::$variant => $variable,)* }
            }
        }
    };
}

families! {
    Barrier "barrier" "NMAD_MPI_BARRIER";
    Bcast "bcast" "NMAD_MPI_BCAST";
    Gather "gather" "NMAD_MPI_GATHER";
    Scatter "scatter" "NMAD_MPI_SCATTER";
    Allgather "allgather" "NMAD_MPI_ALLGATHER";
    Alltoall "alltoall" "NMAD_MPI_ALLTOALL";
    Reduce "reduce" "NMAD_MPI_REDUCE";
    Allreduce "allreduce" "NMAD_MPI_ALLREDUCE";
    ReduceScatter "reduce_scatter" "NMAD_MPI_REDUCE_SCATTER";
    Scan "scan" "NMAD_MPI_SCAN";
}

/// The variable that asks for a line about each choice, and with `1` for it on standard error.
pub const EXPLAIN: &str = "NMAD_MPI_EXPLAIN";

impl Family {
    /// The names of its algorithms.
    pub fn algorithms(self) -> Vec<&'static str> {
        fn names<P: Problem>() -> Vec<&'static str> {
            P::algorithms().iter().map(|algorithm| algorithm.name).collect()
        }
        match self {
            Family::Barrier => names::<super::barrier::Barrier>(),
            Family::Bcast => names::<super::bcast::Bcast>(),
            Family::Gather => names::<super::gather::Gather>(),
            Family::Scatter => names::<super::scatter::Scatter>(),
            Family::Allgather => names::<super::allgather::Allgather>(),
            Family::Alltoall => names::<super::alltoall::Alltoall>(),
            Family::Reduce => names::<super::reduce::Reduce>(),
            Family::Allreduce => names::<super::allreduce::Allreduce>(),
            Family::ReduceScatter => names::<super::reduce_scatter::ReduceScatter>(),
            Family::Scan => names::<super::scan::Scan>(),
        }
    }
}

/// What the user wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// For each family: the number of the algorithm, from one; zero: choose.
    named: [u8; Family::ALL.len()],
    /// Tell which algorithm was chosen, and why.
    pub explain: bool,
}

impl Choices {
    /// Reads settings: `lookup` answers the value of a variable.
    ///
    /// # Errors
    /// A variable names no algorithm of its collective.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Choices> {
        let mut choices = Choices::default();
        for &family in Family::ALL {
            match lookup(family.variable()).as_deref() {
                None | Some("" | AUTO | BOARD) => {}
                Some(name) => choices.name(family, name)?,
            }
        }
        choices.explain = lookup(EXPLAIN).is_some_and(|value| !matches!(&*value, "" | "0"));
        Ok(choices)
    }

    /// Names the algorithm of a family.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn name(&mut self, family: Family, name: &str) -> Result<()> {
        let names = family.algorithms();
        let Some(number) = names.iter().position(|known| *known == name) else {
            return Err(Class::OTHER.error(format!(
                "{}={name}: {} has no such algorithm ({AUTO}, {BOARD}, {})",
                family.variable(),
                family.name(),
                names.join(", ")
            )));
        };
        self.named[family as usize] = number as u8 + 1;
        Ok(())
    }

    /// Whether the user leaves the choice to us, so that short data may take the board ([`super::board`]) and
    /// long reductions the pool ([`super::pool`]).
    #[inline]
    pub fn is_free(&self, family: Family) -> bool {
        self.named[family as usize] == 0
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
        let named = self.choices.named[P::FAMILY as usize].checked_sub(1).filter(|_| !self.inner);
        if let Some(named) = named.and_then(|number| algorithms.get(number as usize)).filter(fits) {
            return named;
        }
        let offered = algorithms.iter().filter(|a| !(self.inner && a.name == TWO_LEVEL)).filter(fits);
        let cost = |algorithm: &Algorithm<P>| (algorithm.cost)(problem, team, self.cost);
        offered.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(&algorithms[0])
    }

    /// The same context within an algorithm of two levels.
    #[must_use]
    pub fn within(&self) -> Self {
        Context { inner: true, ..*self }
    }

    /// One line about a choice: the time predicted for each algorithm.
    pub fn explain<P: Problem>(&self, problem: &P, team: &Team) -> String {
        let chosen = self.choose(problem, team);
        let (family, size, len) = (P::FAMILY.name(), team.size(), problem.len());
        let mut line = format!("{family} of {len} B over {size} ranks: {}", chosen.name);
        let named = self.choices.named[P::FAMILY as usize] > 0;
        if named {
            let variable = P::FAMILY.variable();
            let _ = write!(line, " (asked for by {variable})");
        }
        for algorithm in P::algorithms() {
            let us = (algorithm.cost)(problem, team, self.cost) / 1000.0;
            let _ = match (algorithm.fits)(problem, team) {
                true => write!(line, ", {} {us:.1} us", algorithm.name),
                false => write!(line, ", {} does not fit", algorithm.name),
            };
        }
        line
    }
}

/// The name by which users leave the choice to us.
pub const AUTO: &str = "auto";
/// The name of what is done on the board where that is possible, and otherwise as [`AUTO`] chooses.
pub const BOARD: &str = "board";
/// The name of all algorithms that treat nodes apart.
pub const TWO_LEVEL: &str = "two_level";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Choices> {
        Choices::read(|asked| (asked == name).then(|| value.to_string()))
    }

    #[test]
    fn users_name_algorithms_and_are_told_which_there_are() {
        let ring = read("NMAD_MPI_ALLREDUCE", "ring").expect("there is one");
        assert!(!ring.is_free(Family::Allreduce) && ring.is_free(Family::Bcast));
        assert_eq!(Choices::default().agreed(&ring.figures()), ring);
        for free in ["", AUTO, BOARD] {
            assert_eq!(read("NMAD_MPI_ALLREDUCE", free), Ok(Choices::default()));
        }
        for &family in Family::ALL {
            let error = read(family.variable(), "rign").expect_err("there is none");
            assert!(family.algorithms().iter().all(|name| error.text().contains(name)), "{error}");
            assert!(error.text().contains(family.variable()), "{error}");
        }
        assert!(read(EXPLAIN, "1").is_ok_and(|choices| choices.explain));
    }
}
