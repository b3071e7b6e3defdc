//! Packets as bytes and back.
//! One program: linking a program for each subject takes longer than the tests.

mod common;
mod malformed;
mod round_trip;
