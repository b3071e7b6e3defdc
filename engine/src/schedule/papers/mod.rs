//! The strategies of the papers, as they describe them: each a way of filling packets and of sharing a large
//! body out. [`super::auto`] and [`super::split`] go beyond them.

pub(super) mod aggregate;
pub(super) mod aggregate_fastest;
pub(super) mod dichotomy;
pub(super) mod greedy;
pub(super) mod iso_split;
pub(super) mod ratio_split;
pub(super) mod weighted;
