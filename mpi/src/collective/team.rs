//! The processes that take part in the collectives of a communicator, and its neighbours.

use super::settings::settings;
use crate::algorithm::neighbor::Neighbors;
use crate::algorithm::team::Team;
use crate::comm::{Communicator, foreign};
use crate::constant::PROC_NULL;
use crate::error::{Class, Result};
use crate::topology::Topology;
use crate::world::world;

impl Communicator {
    /// The local group, its nodes with their switches, and the caches of our node.
    ///
    /// # Errors
    /// MPI is not initialised, or finalised.
    #[inline]
    pub(crate) fn team(&self) -> Result<&Team> {
        if let Some(team) = self.desk().team.get() {
            return Ok(team);
        }
        let world = world()?;
        let nodes = foreign::nodes(world, self.local());
        let [told, known] = settings().cache_ranks;
        let caches = foreign::caches(world, self.local(), told);
        let caches = (caches.as_deref(), if told > 0 { told } else { known });
        let me = self.rank().max(0) as usize;
        Ok(self.desk().team.get_or_init(|| {
            let team = Team::with_caches(&nodes, caches, me);
            match foreign::switches(world, self.local()) {
                Some(switches) => team.behind(&switches),
                None => team,
            }
        }))
    }

    /// The edges of its topology.
    ///
    /// # Errors
    /// Class TOPOLOGY if it has none.
    pub(crate) fn neighbors(&self) -> Result<&Neighbors> {
        let Some(topology) = self.topology() else {
            return Err(Class::TOPOLOGY.error(
                "the communicator has no topology: make one with MPI_Cart_create, MPI_Graph_create or \
                 MPI_Dist_graph_create_adjacent",
            ));
        };
        Ok(self.desk().neighbors.get_or_init(|| {
            let ranks = topology.neighbours(self.rank());
            let edges = |ranks: &[i32]| -> Vec<Option<u32>> {
                ranks.iter().map(|&rank| (rank != PROC_NULL).then_some(rank as u32)).collect()
            };
            match &**topology {
                Topology::Cart(_) => Neighbors::of_grid(&edges(&ranks.sources)),
                _ => Neighbors::of_graph(&edges(&ranks.sources), &edges(&ranks.destinations)),
            }
        }))
    }
}
