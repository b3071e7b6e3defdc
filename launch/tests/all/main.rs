//! The launcher as users start it, its ranks, and the machines that it reaches.
//! One program: linking a program for each subject takes longer than the tests.

// The first by its name: it waits longest, and others run meanwhile.
mod by_ssh;
mod ending;
mod exchange;
mod machines;
mod probe;
mod signals;
mod spawn;
mod streams;
mod tree;
mod variables;
