//! Worlds, figures and oracles.
//! One program: linking a program for each subject takes longer than the tests.

mod adapt;
mod canaries;
mod credit;
mod golden;
mod parts;
mod repeatable;
mod seeds;
mod wires;
