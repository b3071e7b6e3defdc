//! The rules, one per file. Each takes the tree and returns what it finds; none knows of another, nor of the
//! allow list.
use crate::{Finding, Tree};

pub mod book;
pub mod circles;
pub mod docs;
pub mod edges;
pub mod length;
pub mod links;
pub mod markers;
pub mod mentions;
pub mod no_std;
pub mod package;
pub mod unsafe_code;
pub mod untested;
pub mod unused;

/// A rule: returns its findings in the tree.
pub type Rule = fn(&Tree) -> Vec<Finding>;

/// All rules.
pub const ALL: &[Rule] = &[
    book::check,
    circles::check,
    docs::check,
    edges::check,
    length::check_files,
    length::check_functions,
    length::check_lines,
    links::check,
    markers::check,
    mentions::check,
    no_std::check,
    package::check,
    unsafe_code::check,
    untested::check,
    unused::check,
];
