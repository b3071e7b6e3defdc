//! Detects misspelt names of settings in an environment.

use super::{ALL, LOCAL_RANK, OF_TESTS, PREFIX};
use std::ffi::OsString;

/// Returns the warnings for rank 0: one line for each unknown variable. Empty under our own launcher, which
/// has reported them.
pub fn misspelt() -> Vec<String> {
    unless_reported(std::env::vars_os().map(|(name, _)| name).collect())
}

/// Our launcher sets [`LOCAL_RANK`] for its ranks.
fn unless_reported(names: Vec<OsString>) -> Vec<String> {
    match names.iter().any(|name| name == LOCAL_RANK.name) {
        true => Vec::new(),
        false => misspelt_among(names.into_iter()),
    }
}

/// Returns a line for each name that begins like ours but is unknown.
pub fn misspelt_among(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let names = names.filter_map(|name| name.into_string().ok());
    let known = ALL.iter().map(|setting| setting.name).chain(OF_TESTS);
    let is_known = |name: &str| known.clone().any(|known| known == name);
    let mut unknown: Vec<String> = names.filter(|name| name.starts_with(PREFIX) && !is_known(name)).collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown.iter().map(|name| line(name)).collect()
}

fn line(name: &str) -> String {
    let names = ALL.iter().map(|setting| setting.name);
    let nearest = names.min_by_key(|known| strsim::damerau_levenshtein(known, name)).unwrap_or(PREFIX);
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
        let all: Vec<&str> = ALL.iter().map(|setting| setting.name).collect();
        assert!(told(&all).is_empty() && told(&OF_TESTS).is_empty());
        assert!(told(&["PATH", "PMI_RANK", "NMADNESS", "nmad_rails"]).is_empty());
        let under_ours = [LOCAL_RANK.name.into(), format!("{PREFIX}X").into()];
        assert_eq!(unless_reported(under_ours[1..].to_vec()).len(), 1);
        assert!(unless_reported(under_ours.to_vec()).is_empty());
        let twice = format!("{PREFIX}X");
        assert_eq!(told(&[&twice, &twice]).len(), 1);
    }
}
