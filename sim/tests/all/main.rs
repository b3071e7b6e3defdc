//! Worlds, figures and oracles.
//! One program: linking a program for each subject takes longer than the tests. The library has no tests of
//! its own, for which it would be compiled once more.

mod adapt;
mod canaries;
mod credit;
mod data;
mod figures;
mod golden;
mod order;
mod parts;
mod repeatable;
mod seeds;
mod wires;
