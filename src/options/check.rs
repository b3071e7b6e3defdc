//! Checks valid settings against this machine, like a job when it starts, for callers that need the result
//! earlier.

use super::values::setting;
use super::{Explain, Options, Stats};
use crate::error::SessionError;
use crate::rails;
use crate::sampling::cache;
use crate::strategies;
use crate::summary;
use nmad_words::setting::{EXPLAIN, OBSERVATIONS, PROFILE, PROGRESS, STATS, STRATEGY, TRACE};
use std::path::Path;

impl Options {
    /// Checks settings that do not depend on the machine: the strategy exists. One in a plug-in is not looked
    /// for, since ranks may have other files.
    ///
    /// # Errors
    /// [`SessionError::Setting`] names the setting and the remedy.
    pub fn check(&self) -> Result<(), SessionError> {
        let is_elsewhere = self.strategy.as_deref().is_some_and(strategies::is_plug_in);
        let wrong = if is_elsewhere { None } else { self.wrong_strategy() };
        wrong.map_or(Ok(()), Err)
    }

    /// Returns all problems of the settings on this machine and in this folder, also unreadable files,
    /// missing folders, and missing interfaces. Opening a session fails with the first one.
    pub fn problems(&self) -> Vec<SessionError> {
        let profile = self.profile.iter().filter_map(|file| {
            let why = cache::shipped(file).err()?;
            Some(setting(&Options::name_of(&PROFILE), format!("{why}; nmad sample --out FILE makes one")))
        });
        let explain = match &self.explain {
            Explain::File(file) => Some((&EXPLAIN, file)),
            Explain::Off | Explain::StandardError => None,
        };
        let written = self.trace.iter().map(|file| (&TRACE, file)).chain(explain);
        let written = written.chain(self.observations.iter().map(|file| (&OBSERVATIONS, file)));
        let folders =
            written.filter_map(|(one, file)| Some(setting(&Options::name_of(one), no_folder(file)?)));
        let stats = match &self.stats {
            Stats::Folder(folder) => summary::check(folder).err(),
            Stats::Off | Stats::StandardError => None,
        };
        let stats = stats.map(|why| setting(&Options::name_of(&STATS), why));
        let rails = rails::check(self).err();
        let progress = self.progress.iter().filter_map(|progress| progress.check().err());
        let progress = progress.map(|why| setting(&Options::name_of(&PROGRESS), why));
        self.wrong_strategy()
            .into_iter()
            .chain(profile)
            .chain(folders)
            .chain(stats)
            .chain(progress)
            .chain(rails)
            .collect()
    }

    fn wrong_strategy(&self) -> Option<SessionError> {
        let name = self.strategy.as_ref()?;
        let made = self.registry(&[]).and_then(|known| known.make(name).map_err(|error| error.to_string()));
        Some(setting(&Options::name_of(&STRATEGY), made.err()?))
    }
}

/// Returns the error if the folder of this file does not exist.
fn no_folder(file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_missing = !folder.is_dir();
    is_missing.then(|| format!("cannot write {}: there is no folder {}", file.display(), folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_invalid_setting_is_named_with_its_remedy() {
        let mut options = Options::default();
        assert!(options.check().is_ok() && options.problems().is_empty());
        let wrong =
            [("strategy", "fifoo"), ("profile", "/no/such"), ("trace", "/no/t"), ("explain", "/no/e")];
        let stats = [("stats", "/no/such")];
        for (key, value) in
            wrong.into_iter().chain(stats).chain([("progress", "dedicated:1023"), ("rails", "eth99")])
        {
            options.set(key, value).expect("it can be read");
        }
        let found: Vec<String> = options.problems().iter().map(|problem| problem.to_string()).collect();
        let words = [
            "known: fifo",
            "nmad sample",
            "no folder /no",
            "no folder /no",
            "no/such",
            "may run",
            "there are: ",
        ];
        assert_eq!(found.len(), words.len(), "{found:?}");
        for (found, word) in found.iter().zip(words) {
            assert!(found.contains(word) && found.contains("(NMAD_"), "{found}");
        }
    }
}
