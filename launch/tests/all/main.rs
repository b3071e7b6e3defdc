//! The launcher as users start it, its ranks, and the machines that it reaches.
//! One program: linking a program for each subject takes longer than the tests.

mod ending;
mod exchange;
mod machines;
mod probe;
mod signals;
mod spawn;
mod ssh;
mod streams;
mod variables;
