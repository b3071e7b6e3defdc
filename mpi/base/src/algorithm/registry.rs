//! All algorithms of all collectives by name, and what the user asks for of them.

use super::allgather::Allgather;
use super::allreduce::Allreduce;
use super::alltoall::Alltoall;
use super::barrier::Barrier;
use super::bcast::Bcast;
use super::choice::{AUTO, Choices, EXPLAIN, Family, Problem};
use super::gather::Gather;
use super::reduce::Reduce;
use super::reduce_scatter::ReduceScatter;
use super::scan::Scan;
use super::scatter::Scatter;
use crate::error::{Class, Result};
use nmad_words::setting::{MPI_EXPLAIN, switch};

impl Family {
    /// The names of its algorithms.
    pub fn algorithms(self) -> Vec<&'static str> {
        match self {
            Family::Barrier => Barrier::names(),
            Family::Bcast => Bcast::names(),
            Family::Gather => Gather::names(),
            Family::Scatter => Scatter::names(),
            Family::Allgather => Allgather::names(),
            Family::Alltoall => Alltoall::names(),
            Family::Reduce => Reduce::names(),
            Family::Allreduce => Allreduce::names(),
            Family::ReduceScatter => ReduceScatter::names(),
            Family::Scan => Scan::names(),
        }
    }
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
                None | Some("" | AUTO) => {}
                Some(name) => choices.name(family, name)?,
            }
        }
        if let Some(value) = lookup(EXPLAIN).filter(|value| !value.is_empty()) {
            MPI_EXPLAIN.check(&value).map_err(|why| Class::OTHER.error(format!("{EXPLAIN}: {why}")))?;
            choices.explain = switch(&value) == Some(true);
        }
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
                "{}={name}: {} has no such algorithm ({AUTO}, {})",
                family.variable(),
                family.name(),
                names.join(", ")
            )));
        };
        self.named[family as usize] = number as u8 + 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::choice::{Context, Memory};
    use crate::algorithm::cost::Cost;
    use crate::algorithm::operands::Operands;
    use crate::algorithm::operator::Operator;
    use crate::algorithm::place::{Buffer, Spot};
    use crate::algorithm::team::Team;
    use crate::datatype::{Basic, Datatype};
    use crate::op::{Op, Predefined};

    /// The shared memory of an allreduce of `len` bytes over ranks on these nodes, of 32 cores or so many,
    /// and the line about it.
    fn direct(choices: &Choices, nodes: &[u32], len: i64) -> (Option<Memory>, String) {
        direct_on(32, choices, nodes, len)
    }

    fn direct_on(cores: usize, choices: &Choices, nodes: &[u32], len: i64) -> (Option<Memory>, String) {
        let sum = Operator::new(&Op::Predefined(Predefined::Sum), Datatype::predefined(Basic::Double));
        let operands = Operands { operator: sum.expect("numbers have sums"), count: len / 8 };
        let (from, into) = (Spot::start(Buffer::Send), Spot::start(Buffer::Recv));
        let (problem, team) = (Allreduce { from, into, operands }, Team::new(nodes, 0));
        let context = Context { cost: &Cost { cores, ..Cost::default() }, choices, inner: false };
        let memory = context.direct(&problem, &team);
        (memory, context.explain(&problem, &team, memory))
    }

    #[test]
    fn memory_that_ranks_share_is_chosen_by_predicted_cost_and_by_name() {
        let free = Choices::default();
        let (memory, line) = direct(&free, &[0; 2], 8);
        assert!(memory == Some(Memory::Board) && line.contains("2 ranks: board, "), "{line}");
        let (memory, line) = direct_on(2, &free, &[0; 4], 1 << 20);
        assert!(memory == Some(Memory::Pool) && line.contains("boards does not fit, pool "), "{line}");
        assert_eq!(direct(&free, &[0; 32], 2000).0, None, "each rank would combine what all have");
        let (memory, line) = direct_on(64, &free, &[0; 64], 8);
        assert!(memory == Some(Memory::Boards) && line.contains("board does not fit, boards "), "{line}");
        assert_eq!(direct(&free, &[0, 0, 1, 1], 8).0, None, "no memory of two nodes");
        let named = |name| read("NMAD_MPI_ALLREDUCE", name).expect("there is one");
        assert_eq!(direct(&named("ring"), &[0; 2], 8).0, None);
        let (memory, line) = direct(&named("board"), &[0; 32], 2000);
        let asked = line.contains("board (asked for by NMAD_MPI_ALLREDUCE");
        assert!(memory == Some(Memory::Board) && asked, "{line}");
        let (memory, line) = direct_on(2, &named("board"), &[0; 4], 1 << 20);
        assert!(memory == Some(Memory::Pool) && !line.contains("asked for"), "as auto chooses: {line}");
    }

    fn read(name: &str, value: &str) -> Result<Choices> {
        Choices::read(|asked| (asked == name).then(|| value.to_string()))
    }

    #[test]
    fn users_name_algorithms_and_are_told_which_there_are() {
        let ring = read("NMAD_MPI_ALLREDUCE", "ring").expect("there is one");
        assert!(ring.named(Family::Allreduce).is_some() && ring.named(Family::Bcast).is_none());
        assert_eq!(Choices::default().agreed(&ring.figures()), ring);
        for free in ["", AUTO] {
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
