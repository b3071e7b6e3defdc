//! A model of a communication phase (P5 section 7): how long it takes each rank, and how uneven that is.
//!
//! [`pattern`] reads the messages of each rank in their order, the posting of receives, and the calculation
//! meanwhile; [`predict`] goes through it message by message, with the times that the profiles of
//! the rails say, and with what their rails and cores are busy meanwhile; [`outcome`] is what comes of that.

mod arrive;
mod cores;
mod cycle;
mod fragments;
mod message;
pub mod outcome;
pub mod pattern;
pub mod predict;
mod rails;
mod turns;

#[cfg(test)]
mod against_simulator;
#[cfg(test)]
mod tests;
