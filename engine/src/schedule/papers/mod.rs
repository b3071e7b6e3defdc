//! The strategies of the papers, as described there: each fills packets and splits large bodies.
//! [`super::auto`] and [`super::split`] go beyond them.

pub(super) mod aggregate;
pub(super) mod aggregate_fastest;
pub(super) mod dichotomy;
pub(super) mod greedy;
pub(super) mod iso_split;
pub(super) mod ratio_split;
pub(super) mod weighted;
