//! MAD-MPI beside other MPIs: one set of C sources, compiled with each library's `mpicc`, run in turns by
//! each library's `mpiexec`, judged by statistics and drawn.
//!
//! This crate stands on the testbed and below the commands `nmad bench compare`, `nmad bench imbalance`
//! and `nmad bench io`. It knows every MPI, ours too, only as a prefix with `bin/mpicc` and `bin/mpiexec`; it
//! must never link the library that it measures.
//!
//! | file | subject |
//! |---|---|
//! | `place`, `plan` | where ranks run; which cells are measured there |
//! | `contestant`, `wheel`, `sources` | the MPIs: found, installed by pip, and the program built for each |
//! | `field` | the MPIs of a run, and whoever hears of it |
//! | `launch`, `job` | the command line of a job; a job that is watched and ended |
//! | `machine` | what the machine is, and whether something else runs on it |
//! | `store` | every figure as a line of a file, so that a later run continues |
//! | `ground` | the testbed of a place |
//! | `measure`, `pace` | the turns; how long samples may be, and how long the rest takes |
//! | `course` | turns of programs that read a list of cells |
//! | `imbalance` | the programs of P5 |
//! | `io` | accesses of files |
//! | `folder`, `interrupt` | the folders of these files; signals that end the run and remove them |
//! | `facts`, `modes` | the circumstances of a job; jobs that fall into two modes |
//! | `statistics`, `verdict`, `diff` | intervals; a report from figures; two reports compared |
//! | `page`, `markdown`, `heat`, `words` | the report as HTML and as Markdown, its pictures, and in words |
#![forbid(unsafe_code)]

mod contestant;
mod course;
mod diff;
mod error;
mod facts;
mod field;
mod folder;
mod ground;
mod heat;
mod imbalance;
mod interrupt;
mod io;
mod job;
mod launch;
mod machine;
mod markdown;
mod measure;
mod modes;
mod pace;
mod page;
mod place;
mod plan;
mod report;
mod sources;
mod statistics;
mod store;
mod verdict;
mod wheel;
mod words;

pub use diff::{Change, Diff};
pub use error::CompareError;
pub use facts::{Difference, Facts};
pub use field::{Done, Watch};
pub use imbalance::{Exercise, FLOOD, ImbalanceRequest, Measured, PROGRAMS, VARIANTS};
pub use imbalance::{Plan as ImbalancePlan, place_names as imbalance_places, run as run_imbalance};
pub use io::{Access, Accessed, IoPlan, IoRequest, run as run_io};
pub use job::RankFigures;
pub use measure::{NEAR_ROUNDS, Request, run};
pub use modes::{Jobs, ModesRow, Split};
pub use place::PLACES;
pub use plan::{Extent, names};
pub use report::{CellRow, Mean, PatternRow, Report, RoundTime};
pub use wheel::PeerSpec;
pub use words::{diff_text, text};

/// The name of what is compared with the others.
pub const OURS: &str = "ours";
