//! The command `nmad`: the last layer, on top of everything.
//!
//! It parses command lines and prints. `nmad-bench` measures, `nmad-launch` starts jobs, `nmad-testbed`
//! builds hosts. One file or folder for each subcommand; [`command`](main) has the list. `mpiexec` and
//! `mpirun` are other names of the same program and mean `nmad run`; under the names `mpicc`, `mpicxx` and
//! `mpifort` it calls the compiler.
#![deny(unsafe_code)]

mod bench;
mod command;
mod compile;
mod demo;
mod driver;
mod explain;
mod info;
mod install;
mod manual;
mod model;
mod output;
mod profiles;
mod progress;
mod sample;
mod settings;
mod sim;
mod size;
mod stage;
mod trace;

pub use command::{main, mpiexec};
