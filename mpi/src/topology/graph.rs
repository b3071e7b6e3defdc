//! Graphs that every process knows (MPI 5.0, section 8.5.3).

use crate::error::{Class, Result};
use crate::shown;

/// A graph: of each process the list of its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Where the list of each process ends in `edges`.
    index: Vec<i32>,
    edges: Vec<i32>,
}

impl Graph {
    /// A graph in the standard's form: `index[i]` is the number of neighbours of processes 0 to i together.
    ///
    /// # Errors
    /// Class ARG if `index` decreases, or does not fit to `edges`; RANK for an edge to a process that
    /// there is not.
    pub fn new(index: &[i32], edges: &[i32]) -> Result<Graph> {
        let mut last = 0;
        for (process, &end) in index.iter().enumerate() {
            if end < last {
                let text = format!("index {process} of the graph is {end}: it must not be below {last}");
                return Err(Class::ARG.error(text));
            }
            last = end;
        }
        let Some(edges) = edges.get(..last as usize) else {
            let text = format!("the index of the graph names {last} edges, but there are {}", edges.len());
            return Err(Class::ARG.error(text));
        };
        if let Some(bad) = edges.iter().find(|&&to| !(0..index.len() as i32).contains(&to)) {
            let text =
                format!("an edge of the graph leads to {bad}, but there are {} processes", index.len());
            return Err(Class::RANK.error(text));
        }
        Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
    }

    /// Processes of the graph.
    pub fn size(&self) -> i32 {
        self.index.len() as i32
    }

    /// The number of neighbours of processes 0 to i together.
    pub fn index(&self) -> &[i32] {
        &self.index
    }

    /// The neighbours of all processes, one list after another.
    pub fn edges(&self) -> &[i32] {
        &self.edges
    }

    /// `MPI_Graph_neighbors`: the neighbours of a process.
    ///
    /// # Errors
    /// Class RANK for a rank that is not in the graph.
    pub fn neighbours(&self, rank: i32) -> Result<&[i32]> {
        let end = usize::try_from(rank).ok().and_then(|rank| self.index.get(rank));
        let Some(&end) = end else {
            let text = format!("rank {} is not in a graph of {} processes", shown::rank(rank), self.size());
            return Err(Class::RANK.error(text));
        };
        let begin = if rank == 0 { 0 } else { self.index[rank as usize - 1] };
        Ok(&self.edges[begin as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_example() {
        // MPI 5.0, example 8.3.
        let graph = Graph::new(&[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]).unwrap();
        let lists: Vec<&[i32]> = (0..4).map(|rank| graph.neighbours(rank).unwrap()).collect();
        assert_eq!(lists, [&[1, 3][..], &[0], &[3], &[0, 2]]);
        assert_eq!(graph.neighbours(4).unwrap_err().class(), Class::RANK);
        assert_eq!(graph.neighbours(-1).unwrap_err().class(), Class::RANK);
    }

    #[test]
    fn wrong_graphs_are_refused() {
        assert_eq!(Graph::new(&[2, 1], &[1, 1]).unwrap_err().class(), Class::ARG);
        assert_eq!(Graph::new(&[1, 3], &[1, 0]).unwrap_err().class(), Class::ARG);
        assert_eq!(Graph::new(&[1, 2], &[1, 2]).unwrap_err().class(), Class::RANK);
    }
}
