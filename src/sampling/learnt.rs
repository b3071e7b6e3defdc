//! Values that drivers have learnt about their rails: stored with the profiles, for later jobs.

use super::hardware::{self, Distance, Key};
use super::stock::speaks;
use super::{Origin, ProfileInfo, cache};
use crate::options::{Options, Sampling};
use nmad_launch::Bootstrap;
use std::path::Path;

/// Returns the values that earlier jobs stored for a rail to ranks of the same host, by its name and
/// number. Empty if the user wants all rails measured again.
pub(crate) fn recall(options: &Options, rail: &str, number: u8) -> Vec<String> {
    if options.sample == Sampling::Force {
        return Vec::new();
    }
    let throttle = options.throttle.get(usize::from(number)).copied();
    // Only shared memory recalls what it has learnt, and is never encrypted.
    let words = hardware::rail(rail, throttle, false);
    let key = Key { rail: words, distance: Distance::SameHost, host: hardware::host() };
    let file = options.profile.as_deref();
    // Errors in files are reported where profiles are looked up.
    let shipped = file.and_then(|file| cache::shipped(file).ok()).unwrap_or_default();
    let found = super::find(&key, &shipped, file).ok().flatten();
    found.map_or_else(Vec::new, |(profile, _)| profile.learnt().to_vec())
}

/// Stores the values that the rails have learnt, by their numbers, with the profiles that this machine has
/// measured, if this rank writes files for its host.
pub(crate) fn keep(job: &dyn Bootstrap, profiles: &[ProfileInfo], learnt: &[Vec<String>]) {
    let Some(folder) = cache::folder().filter(|_| speaks(job)) else { return };
    for info in profiles.iter().filter(|info| info.key.distance == Distance::SameHost) {
        let news = learnt.get(usize::from(info.number)).filter(|news| !news.is_empty());
        if let Some((news, error)) = news.and_then(|news| Some((news, keep_one(&folder, info, news).err()?)))
        {
            log::debug!("{} cannot keep what it has learnt ({} lines): {error}", info.rail, news.len());
        }
    }
}

/// Another job may have changed the file since this one has read it.
fn keep_one(folder: &Path, info: &ProfileInfo, news: &[String]) -> std::io::Result<()> {
    let Some((profile, Origin::Measured | Origin::Cache(_))) = &info.known else { return Ok(()) };
    let now = cache::load(folder, &info.key).ok().flatten().unwrap_or_else(|| (**profile).clone());
    let all = merged(now.learnt(), news);
    if all == now.learnt() { Ok(()) } else { cache::store(folder, &info.key, &now.with_learnt(all)) }
}

/// Merges both lists; of two lines with the same first word the new one stays.
fn merged(old: &[String], new: &[String]) -> Vec<String> {
    let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let kept = old.iter().filter(|line| !new.iter().any(|other| name(other) == name(line)));
    let mut all: Vec<String> = kept.chain(new).cloned().collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::{Method, Profile, Provenance, Sample};
    use std::sync::Arc;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn learnt_values_are_stored_with_the_profile_and_replace_only_their_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = Key { rail: "shm".into(), distance: Distance::SameHost, host: "a machine".into() };
        let sample = |len: u64| (Method::Copy, Sample::of(len, &mut [100 + len]).expect("a time"));
        let provenance = Provenance { key: key.to_string(), ..Provenance::default() };
        let profile = Arc::new(Profile::new(provenance, [8, 1024].map(sample)).expect("two sizes"));
        let info = |origin| ProfileInfo {
            rail: "shm".into(),
            number: 0,
            key: key.clone(),
            known: Some((profile.clone(), origin)),
        };
        let kept = || cache::load(folder.path(), &key).expect("whole");
        let foreign = info(Origin::Shipped("x".into()));
        keep_one(folder.path(), &foreign, &lines(&["far x 1"])).expect("nothing to write");
        assert_eq!(kept(), None, "what the user ships is not changed");
        keep_one(folder.path(), &info(Origin::Measured), &lines(&["far x 1", "near x 1"])).expect("written");
        keep_one(folder.path(), &info(Origin::Measured), &lines(&["near x 2"])).expect("written");
        let found = kept().expect("it was written");
        assert_eq!(found.learnt(), lines(&["far x 1", "near x 2"]));
        assert_eq!(found.samples(Method::Copy), profile.samples(Method::Copy));
    }
}
