//! What a session tells about the cores of its node, and the switches of all nodes.

use crate::session::Session;

impl Session {
    /// Returns the number of cores that the ranks of this node may use together; less than the number of
    /// ranks if oversubscribed.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns how many nodes share these cores: hosts of a testbed or containers of one machine; 1 if this
    /// is the only one.
    pub fn nodes_of_machine(&self) -> usize {
        self.nodes_of_machine
    }

    /// Returns the ranks of this node in ascending order, each with the number of the last-level cache that
    /// its cores share; none unless each rank is bound to the cores of one cache, and there are several.
    pub fn caches(&self) -> &[(u32, u32)] {
        &self.caches
    }

    /// Returns the nodes ([`Session::nodes`]) in ascending order, each with a number for its switch; none
    /// unless the user (`NMAD_MPI_SWITCH`) or Slurm names those of all.
    pub fn switches(&self) -> &[(u32, u32)] {
        &self.switches
    }

    /// Returns the extra time of a message between two ranks of this node that share no cache, in
    /// nanoseconds; zero if that was not measured.
    pub fn across_ns(&self) -> u64 {
        self.across_ns
    }
}
