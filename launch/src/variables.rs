//! The environment variables of NewMadeleine: one list for all crates, which detects misspelt names.

mod meaning;

pub use meaning::meaning;
use std::ffi::OsString;

/// Set for ranks of our own launcher, which has already reported misspelt variables.
pub(crate) const STARTED_BY_US: &str = "NMAD_LOCAL_RANK";

/// Prefix of all names.
pub const PREFIX: &str = "NMAD_";

/// All variables that programs, libraries and launchers read or set; `docs/` explains each.
pub const ALL: [&str; 46] = [
    "NMAD_CC",
    "NMAD_CHUNK",
    "NMAD_CONFIG",
    "NMAD_CONGESTION",
    "NMAD_CREDIT",
    "NMAD_CROSS_MEMORY",
    "NMAD_CXX",
    "NMAD_DRIVER",
    "NMAD_EAGER_MAX",
    "NMAD_EXPLAIN",
    "NMAD_FC",
    "NMAD_FEED",
    "NMAD_IN_PLACE_MIN",
    "NMAD_LAUNCH_TIMEOUT",
    "NMAD_LOCAL_RANK",
    "NMAD_LOCAL_SIZE",
    "NMAD_LOG",
    "NMAD_MPI_ABI",
    "NMAD_MPI_ALLGATHER",
    "NMAD_MPI_ALLREDUCE",
    "NMAD_MPI_ALLTOALL",
    "NMAD_MPI_BARRIER",
    "NMAD_MPI_BCAST",
    "NMAD_MPI_CHECK",
    "NMAD_MPI_EXPLAIN",
    "NMAD_MPI_GATHER",
    "NMAD_MPI_INITIAL_ERRHANDLER",
    "NMAD_MPI_REDUCE",
    "NMAD_MPI_REDUCE_SCATTER",
    "NMAD_MPI_SCAN",
    "NMAD_MPI_SCATTER",
    "NMAD_MPI_WINDOW",
    "NMAD_PMIX",
    "NMAD_PROFILE",
    "NMAD_PROGRESS",
    "NMAD_RAILS",
    "NMAD_RETURN_WITHIN",
    "NMAD_SAMPLE",
    "NMAD_SECRET",
    "NMAD_SINGLETON",
    "NMAD_STARTED_BY",
    "NMAD_STATS",
    "NMAD_STRATEGY",
    "NMAD_TESTBED",
    "NMAD_THROTTLE",
    "NMAD_TRACE",
];

/// Variables of our tests, examples and scripts.
pub const OF_TESTS: [&str; 20] = [
    "NMAD_CLIENTS",
    "NMAD_INSIDE",
    "NMAD_INSIDE_SLURM",
    "NMAD_MACHINES",
    "NMAD_RDMA_BUDGET",
    "NMAD_RDMA_CACHE",
    "NMAD_RDMA_LIMIT_S",
    "NMAD_RDMA_MIB",
    "NMAD_RDMA_NMAD",
    "NMAD_SIZES",
    "NMAD_TEST_AGAIN",
    "NMAD_TEST_BULK",
    "NMAD_TEST_CASE",
    "NMAD_TEST_DRIVER",
    "NMAD_TEST_EXITS",
    "NMAD_TEST_INTERFACE",
    "NMAD_TEST_PARENT",
    "NMAD_TEST_REFUSED",
    "NMAD_TEST_ROUND",
    "NMAD_TEST_TARGET",
];

/// Returns the warnings for rank 0: one line for each unknown variable. Empty under our own launcher, which
/// has reported them.
pub fn misspelt() -> Vec<String> {
    unless_reported(std::env::vars_os().map(|(name, _)| name).collect())
}

fn unless_reported(names: Vec<OsString>) -> Vec<String> {
    match names.iter().any(|name| name == STARTED_BY_US) {
        true => Vec::new(),
        false => misspelt_among(names.into_iter()),
    }
}

/// Returns a line for each name that begins like ours but is unknown.
pub(crate) fn misspelt_among(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let names = names.filter_map(|name| name.into_string().ok());
    let is_known = |name: &str| ALL.iter().chain(&OF_TESTS).any(|known| *known == name);
    let mut unknown: Vec<String> = names.filter(|name| name.starts_with(PREFIX) && !is_known(name)).collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown.iter().map(|name| line(name)).collect()
}

fn line(name: &str) -> String {
    let nearest = ALL.iter().min_by_key(|known| strsim::damerau_levenshtein(known, name));
    let nearest = nearest.unwrap_or(&PREFIX);
    format!("{name} has no effect, there is no such variable: is {nearest} meant?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str]) -> Vec<String> {
        misspelt_among(names.iter().map(OsString::from))
    }

    #[test]
    fn the_nearest_one_is_named() {
        for (wrong, right) in
            [("RAIL", "RAILS"), ("STRATGEY", "STRATEGY"), ("MPI_ALLREDUCES", "MPI_ALLREDUCE"), ("", "CC")]
        {
            let (wrong, right) = (format!("{PREFIX}{wrong}"), format!("{PREFIX}{right}"));
            let lines = told(&[&wrong]);
            assert!(lines.len() == 1 && lines[0].contains(&format!("{wrong} has no effect")), "{lines:?}");
            assert!(lines[0].ends_with(&format!("is {right} meant?")), "{lines:?}");
        }
    }

    #[test]
    fn known_and_foreign_variables_are_not_reported() {
        assert!(told(&ALL).is_empty() && told(&OF_TESTS).is_empty());
        assert!(told(&["PATH", "PMI_RANK", "NMADNESS", "nmad_rails"]).is_empty());
        let under_ours = [STARTED_BY_US.into(), format!("{PREFIX}X").into()];
        assert_eq!(unless_reported(under_ours[1..].to_vec()).len(), 1);
        assert!(unless_reported(under_ours.to_vec()).is_empty());
        let twice = format!("{PREFIX}X");
        assert_eq!(told(&[&twice, &twice]).len(), 1);
    }
}
