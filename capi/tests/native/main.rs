//! The library as C sees it: whether the header says what the library exports, and programs in C that use it,
//! the examples among them.
//!
//! A shared library is no dependency that cargo builds for tests, so they have cargo build it first.

mod header;
mod library;
mod programs;
