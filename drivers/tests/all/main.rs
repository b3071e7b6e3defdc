//! What each driver promises beyond the conformance suite, which has a program of its own: it also runs in a
//! virtual machine.
//! One program: linking a program for each subject takes longer than the tests.

mod around;
mod crossing;
mod encrypted;
mod observed;
mod shm;
mod strangers;
mod tcp;
mod udp;
mod woken;
