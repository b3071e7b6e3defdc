//! What all processes agree on at the beginning: what messages cost, and which algorithms the user names.

use crate::algorithm::choice::{Choices, Context};
use crate::algorithm::cost::Cost;
use std::sync::OnceLock;

/// What governs collectives.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) cost: Cost,
    pub(super) choices: Choices,
    /// Algorithms are tried ([`super::trial`]).
    pub(super) tries: bool,
    /// Ranks of a node that share a cache, in their order, as the user says, and the most of any cache as
    /// sessions say; zero: neither.
    pub(super) cache_ranks: [u32; 2],
    /// Ranks compare what they call.
    pub(super) check: bool,
}

impl Settings {
    pub(super) fn context(&self) -> Context<'_> {
        Context { cost: &self.cost, choices: &self.choices, inner: false }
    }
}

pub(super) static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings that all ranks agreed on; before that, those of a process alone.
#[inline]
pub(super) fn settings() -> &'static Settings {
    SETTINGS.get().unwrap_or_else(|| alone())
}

#[cold]
fn alone() -> &'static Settings {
    static ALONE: OnceLock<Settings> = OnceLock::new();
    ALONE.get_or_init(Settings::default)
}

/// Whether choices are told (`NMAD_MPI_EXPLAIN=1`).
pub(crate) fn explains() -> bool {
    settings().choices.explain
}

/// Whether what programs do wrong is looked for (`NMAD_MPI_CHECK=1`).
pub(crate) fn is_checking() -> bool {
    settings().check
}
