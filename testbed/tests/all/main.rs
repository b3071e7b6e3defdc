//! Hosts and the rails between them.
//! One program: linking a program for each subject takes longer than the tests.

mod command;
mod hosts;
mod lab;
