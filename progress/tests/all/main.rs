//! Waits, sleep and the helper, over rails without a network.
//! One program: linking a program for each subject takes longer than the tests. The test that forks has its
//! own, and so have those that need a core for the helper.

mod bounded;
mod common;
mod helper;
mod pause;
mod receive;
mod send;
mod service;
mod signals;
mod sleep;
mod threads;
