//! MAD-MPI's collectives on thousands of simulated ranks in virtual time.
//!
//! Above the simulator and the base of MAD-MPI, below the command `nmad`. The schedules that ship
//! (`nmad_mpi_base::algorithm`) are built for every rank of a [`case::Case`], by the algorithm that the
//! choice takes or by another one, and run as one [`job::Job`] in a [`world::World`]: cores, the memory of
//! hosts and the links of a [`fabric::Fabric`] are resources that one message or step uses at a time. What a
//! message takes between two idle hosts is measured in the packet-level simulator, with the engine that ships
//! ([`fabric::Measured`]), and [`packet`] runs small jobs there to tell how far this model is off. Nothing
//! here reads a clock, starts a thread or depends on chance.
#![forbid(unsafe_code)]

pub mod case;
pub mod cli;
pub mod fabric;
pub mod golden;
pub mod job;
pub mod links;
pub mod packet;
pub mod regret;
pub mod rival;
pub mod rounds;
pub mod stage;
pub mod start;
pub mod times;
pub mod windows;
pub mod world;
