//! Benchmarks of NewMadeleine, and what stands beside them.
//!
//! A figure says little alone: each benchmark prints, from the same run, what plain sockets reach on the same
//! rails ([`plain`]). [`pattern`] has what two ranks measure, [`stats`] condenses samples to a median and a
//! spread, [`table`] prints them on a terminal, [`plot`] draws them as SVG. This crate stands above the
//! library and is used by the command line only; [`plain`] knows nothing of NewMadeleine, so that the
//! yardstick cannot inherit its faults; [`comparison`] draws figures of other MPIs; [`phase`] predicts
//! phases of communication.
#![deny(unsafe_code)]

pub mod budget;
pub mod comparison;
pub mod pattern;
pub mod phase;
pub mod plain;
pub mod plot;
pub mod stats;
pub mod table;
