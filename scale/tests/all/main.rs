//! Collectives at scale: their results, their times, and the committed tables.

mod golden;
mod results;
mod times;
