//! One-line meanings of the environment variables, for tools that list them.

/// Names and meanings, by name.
const MEANINGS: [(&str, &str); 46] = [
    ("NMAD_CC", "The C compiler that mpicc calls"),
    ("NMAD_CHUNK", "Bytes of a large message that a rail gets at once"),
    ("NMAD_CONFIG", "The configuration file"),
    ("NMAD_CONGESTION", "Bound of data in flight on lossy rails: share, newreno, swift"),
    ("NMAD_CREDIT", "Unexpected data that one peer may leave in this process, in bytes"),
    ("NMAD_CROSS_MEMORY", "Single copy (CMA) of large data inside a node: on or off"),
    ("NMAD_CXX", "The C++ compiler that mpicxx calls"),
    ("NMAD_DRIVER", "Drivers of interfaces: tcp, udp, packet, verbs, ofi:PROVIDER"),
    ("NMAD_EAGER_MAX", "Longest message that is sent without a request to send, in bytes"),
    ("NMAD_EXPLAIN", "A line for each message that is sent: 1, or a file"),
    ("NMAD_FC", "The Fortran compiler that mpifort calls"),
    ("NMAD_FEED", "When rails are fed: accumulate, prepare, backlog:BYTES"),
    ("NMAD_IN_PLACE_MIN", "Shortest data that is not copied into its packet, in bytes"),
    ("NMAD_LAUNCH_TIMEOUT", "How long this process waits for its launcher and the other ranks, in seconds"),
    ("NMAD_LOCAL_RANK", "Set by the launcher: the number of this process on its host"),
    ("NMAD_LOCAL_SIZE", "Set by the launcher: the processes of the job on this host"),
    ("NMAD_LOG", "Level of messages on standard error: off, error, warn, info, debug"),
    ("NMAD_MPI_ABI", "The binary interface that mpicc compiles for: standard or mpich"),
    ("NMAD_MPI_ALLGATHER", "The algorithm of MPI_Allgather"),
    ("NMAD_MPI_ALLREDUCE", "The algorithm of MPI_Allreduce"),
    ("NMAD_MPI_ALLTOALL", "The algorithm of MPI_Alltoall"),
    ("NMAD_MPI_BARRIER", "The algorithm of MPI_Barrier"),
    ("NMAD_MPI_BCAST", "The algorithm of MPI_Bcast"),
    ("NMAD_MPI_CHECK", "1: find collectives that do not match and buffers that overlap"),
    ("NMAD_MPI_EXPLAIN", "1: say which algorithm each collective has, and why"),
    ("NMAD_MPI_GATHER", "The algorithm of MPI_Gather"),
    ("NMAD_MPI_INITIAL_ERRHANDLER", "The initial error handler"),
    ("NMAD_MPI_REDUCE", "The algorithm of MPI_Reduce"),
    ("NMAD_MPI_REDUCE_SCATTER", "The algorithm of MPI_Reduce_scatter"),
    ("NMAD_MPI_SCAN", "The algorithm of MPI_Scan"),
    ("NMAD_MPI_SCATTER", "The algorithm of MPI_Scatter"),
    ("NMAD_MPI_WINDOW", "How windows of other processes are accessed: auto, network, frames (messages only)"),
    ("NMAD_PMIX", "The PMIx library that is loaded"),
    ("NMAD_PROFILE", "A file of profiles that replace the measured ones"),
    ("NMAD_PROGRESS", "Progress of messages while the program computes: off, auto, idle, dedicated:CORES"),
    ("NMAD_RAILS", "Interfaces that are used"),
    ("NMAD_RETURN_WITHIN", "Time to wait for a rank whose rails have all failed, in seconds"),
    ("NMAD_SAMPLE", "Whether rails are measured at first use: auto, off, force"),
    ("NMAD_SECRET", "Set by the launcher: the secret of the job"),
    ("NMAD_SINGLETON", "1: a process of Slurm without PMI is a job of its own"),
    ("NMAD_STARTED_BY", "Set for spawned processes: the port of the process that started them"),
    ("NMAD_STATS", "Statistics of the rails at the end: 1 (standard error), or a folder"),
    ("NMAD_STRATEGY", "The strategy that distributes messages over rails"),
    ("NMAD_TESTBED", "Set by the testbed for processes on its hosts"),
    ("NMAD_THROTTLE", "Rates to which rails are slowed down in software"),
    ("NMAD_TRACE", "A file or folder for the trace of each rank and its rails"),
];

/// Returns the meaning of a variable of [`super::ALL`].
pub fn meaning(name: &str) -> &'static str {
    let found = MEANINGS.iter().find(|(known, _)| *known == name);
    found.map_or("A setting of NewMadeleine; its documentation explains it", |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_has_a_meaning_and_no_other_name_has() {
        let names: Vec<&str> = MEANINGS.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted());
        assert!(names.iter().all(|name| super::super::ALL.contains(name)));
        assert!(MEANINGS.iter().all(|(name, text)| meaning(name) == *text && text.len() > 8));
    }
}
