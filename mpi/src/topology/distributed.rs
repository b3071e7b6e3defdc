//! Graphs of which every process knows its own edges (MPI 5.0, section 8.5.4).

use crate::error::{Class, Result};
use crate::shown;

/// An edge, as `MPI_Dist_graph_create` gets it from any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Where it begins.
    pub source: i32,
    /// Where it ends.
    pub destination: i32,
    /// Its weight; 1 if the graph has none.
    pub weight: i32,
}

/// The edges of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistGraph {
    sources: Vec<i32>,
    destinations: Vec<i32>,
    /// Weights of both lists; none if the graph has no weights.
    weights: Option<(Vec<i32>, Vec<i32>)>,
}

impl DistGraph {
    /// `MPI_Dist_graph_create_adjacent`: the process names all its edges, in a communicator of `size`
    /// processes. Only one of the two lists with weights: the other one gets ones.
    ///
    /// # Errors
    /// Class RANK for a neighbour that is not in the communicator, ARG for a negative weight or lists of
    /// different lengths.
    pub fn adjacent(
        size: i32,
        (sources, source_weights): (&[i32], Option<&[i32]>),
        (destinations, destination_weights): (&[i32], Option<&[i32]>),
    ) -> Result<DistGraph> {
        check(size, sources, source_weights)?;
        check(size, destinations, destination_weights)?;
        let weights = |list: Option<&[i32]>, len| list.map_or_else(|| vec![1; len], <[i32]>::to_vec);
        let has_weights = source_weights.is_some() || destination_weights.is_some();
        let both =
            || (weights(source_weights, sources.len()), weights(destination_weights, destinations.len()));
        Ok(DistGraph {
            sources: sources.to_vec(),
            destinations: destinations.to_vec(),
            weights: has_weights.then(both),
        })
    }

    /// The edges that a process names for `MPI_Dist_graph_create`: those from each source are `degrees`
    /// of the destinations, in order.
    ///
    /// # Errors
    /// Class RANK for an end that is not in the communicator of `size` processes, ARG for a negative
    /// degree or weight or lists of different lengths.
    pub fn edges(
        size: i32,
        sources: &[i32],
        degrees: &[i32],
        destinations: &[i32],
        weights: Option<&[i32]>,
    ) -> Result<Vec<Edge>> {
        check(size, sources, None)?;
        check(size, destinations, weights)?;
        if let Some(bad) = degrees.iter().find(|&&degree| degree < 0) {
            return Err(Class::ARG.error(format!("a degree is {bad}: it must not be negative")));
        }
        let total: i64 = degrees.iter().map(|&degree| i64::from(degree)).sum();
        if degrees.len() != sources.len() || total != destinations.len() as i64 {
            let text = format!(
                "{} sources with {} degrees, {total} together, for {} destinations",
                sources.len(),
                degrees.len(),
                destinations.len()
            );
            return Err(Class::ARG.error(text));
        }
        let begins =
            sources.iter().zip(degrees).flat_map(|(&source, &n)| std::iter::repeat_n(source, n as usize));
        let weight = |i: usize| weights.map_or(1, |weights| weights[i]);
        let edges = begins.zip(destinations).enumerate();
        Ok(edges.map(|(i, (source, &destination))| Edge { source, destination, weight: weight(i) }).collect())
    }

    /// The part of `rank` when all processes have named their edges; every process gets the edges in the
    /// same order.
    pub fn gather(rank: i32, edges: impl IntoIterator<Item = Edge>, has_weights: bool) -> DistGraph {
        let mut graph = DistGraph { sources: Vec::new(), destinations: Vec::new(), weights: None };
        let (mut into, mut out) = (Vec::new(), Vec::new());
        for edge in edges {
            if edge.destination == rank {
                graph.sources.push(edge.source);
                into.push(edge.weight);
            }
            if edge.source == rank {
                graph.destinations.push(edge.destination);
                out.push(edge.weight);
            }
        }
        graph.weights = has_weights.then_some((into, out));
        graph
    }

    /// From whom edges come.
    pub fn sources(&self) -> &[i32] {
        &self.sources
    }

    /// To whom edges go.
    pub fn destinations(&self) -> &[i32] {
        &self.destinations
    }

    /// Whether edges have weights.
    pub fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// The weights of the edges from the sources; none if edges have no weights.
    pub fn source_weights(&self) -> Option<&[i32]> {
        self.weights.as_ref().map(|(sources, _)| &sources[..])
    }

    /// The weights of the edges to the destinations; none if edges have no weights.
    pub fn destination_weights(&self) -> Option<&[i32]> {
        self.weights.as_ref().map(|(_, destinations)| &destinations[..])
    }
}

fn check(size: i32, ranks: &[i32], weights: Option<&[i32]>) -> Result<()> {
    if let Some(bad) = ranks.iter().find(|&&rank| !(0..size).contains(&rank)) {
        let bad = shown::rank(*bad);
        return Err(Class::RANK.error(format!("rank {bad} is not in a communicator of {size} processes")));
    }
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() != ranks.len() {
        return Err(Class::ARG.error(format!("{} weights for {} edges", weights.len(), ranks.len())));
    }
    match weights.iter().find(|&&weight| weight < 0) {
        Some(bad) => Err(Class::ARG.error(format!("a weight is {bad}: it must not be negative"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_reach_both_of_their_ends() {
        // A ring of three, all edges named by one process.
        let edges = DistGraph::edges(3, &[0, 1, 2], &[1, 1, 2], &[1, 2, 0, 2], Some(&[5, 6, 7, 8])).unwrap();
        let two = DistGraph::gather(2, edges.iter().copied(), true);
        assert_eq!((two.sources(), two.destinations()), (&[1, 2][..], &[0, 2][..]));
        assert_eq!(two.source_weights(), Some(&[6, 8][..]));
        assert_eq!(two.destination_weights(), Some(&[7, 8][..]));
        assert!(!DistGraph::gather(0, edges, false).is_weighted());
    }

    #[test]
    fn wrong_edges_are_refused() {
        let class = |result: Result<Vec<Edge>>| result.unwrap_err().class();
        assert_eq!(class(DistGraph::edges(2, &[2], &[0], &[], None)), Class::RANK);
        assert_eq!(class(DistGraph::edges(2, &[1], &[1], &[-1], None)), Class::RANK);
        assert_eq!(class(DistGraph::edges(2, &[1], &[-1], &[], None)), Class::ARG);
        assert_eq!(class(DistGraph::edges(2, &[1], &[2], &[0], None)), Class::ARG);
        assert_eq!(class(DistGraph::edges(2, &[1], &[1], &[0], Some(&[-1]))), Class::ARG);
    }

    #[test]
    fn neighbours_may_repeat_and_be_oneself() {
        let graph = DistGraph::adjacent(2, (&[1, 1], None), (&[0, 1, 0], Some(&[1, 2, 3]))).unwrap();
        assert_eq!(graph.source_weights(), Some(&[1, 1][..]));
        assert_eq!(graph.destinations(), [0, 1, 0]);
    }
}
