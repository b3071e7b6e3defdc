//! The command as users type it.
//! One program: linking a program for each subject takes longer than the tests.

mod blocks;
mod command;
mod compare;
mod fortran;
mod imbalance;
mod install;
mod io;
mod jobs;
mod json;
mod many;
mod messages;
mod model;
mod networks;
mod output;
mod pages;
mod perfetto;
mod plugins;
mod replaced;
mod settings;
mod trace;
mod windows;
mod words;
