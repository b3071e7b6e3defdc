//! The shared libraries of MAD-MPI and their headers, as programs in C see them.

mod header;
mod library;
mod programs;
mod survivors;
mod symbols;
