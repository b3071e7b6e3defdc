//! Collectives at scale: their results, their times, the start of a job, and the committed tables.

mod golden;
mod results;
mod start;
mod times;
mod windows;
