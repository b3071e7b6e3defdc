//! The contestants of a run: found, installed, and given the measuring program; and whoever hears of that.

use std::path::{Path, PathBuf};

use crate::contestant::{Contestant, Installation};
use crate::sources::{Program, Workshop};
use crate::{CompareError, OURS, PeerSpec};

/// Hears how far it is.
pub trait Watch {
    /// Something takes a while before the turns begin.
    fn step(&mut self, text: &str);
    /// A turn begins.
    fn turn(&mut self, done: &Done);
    /// Something is missing.
    fn tell(&mut self, text: &str);
}

/// How far it is.
#[derive(Debug, Clone)]
pub struct Done {
    /// The current turn, as text.
    pub text: String,
    /// Seconds since the turns began.
    pub elapsed_s: f64,
    /// An estimate of what is left.
    pub left_s: f64,
}

/// What the user has named.
pub(crate) struct Field<'a> {
    pub(crate) ours: &'a Path,
    pub(crate) peers: &'a [PeerSpec],
    /// Where wheels are kept.
    pub(crate) cache: &'a Path,
}

impl Field<'_> {
    /// Ours and the peers that there are, each with the program; peers that cannot be used are reported.
    pub(crate) fn find(
        &self,
        workshop: &Workshop,
        program: &Program,
        missing: &mut Missing,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Contestant>, CompareError> {
        let made = |name: &str, prefix: PathBuf| {
            let installation = Installation::find(&prefix)?;
            let built = workshop.build(program, &prefix, name)?;
            Ok(Contestant::new(name, installation, built))
        };
        workshop.unpack(program)?;
        watch.step("building the program for MAD-MPI");
        let prefix = std::path::absolute(self.ours).map_err(CompareError::file("find", self.ours))?;
        let mut all = vec![made(OURS, prefix).map_err(CompareError::Ours)?];
        for peer in self.peers {
            let name = peer.name();
            if all.iter().any(|known| known.name == name) {
                return Err(CompareError::Argument(format!("there are two peers of the name '{name}'")));
            }
            watch.step(&format!("preparing {name}"));
            match peer.prefix(self.cache).and_then(|prefix| made(name, prefix)) {
                Ok(contestant) => all.push(contestant),
                Err(why) => missing.add(format!("{name}: {why}"), watch),
            }
        }
        Ok(all)
    }
}

/// Reasons why parts of a run are missing, each once.
#[derive(Default)]
pub(crate) struct Missing(Vec<String>);

impl Missing {
    pub(crate) fn add(&mut self, text: String, watch: &mut dyn Watch) {
        if !self.0.contains(&text) {
            watch.tell(&text);
            self.0.push(text);
        }
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.0
    }
}
