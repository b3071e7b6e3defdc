//! Reads every source file and says where the house is untidy.
//!
//! What a compiler does not check but a reader suffers from: lines, functions and files that are too long,
//! leftover markers, files nobody uses, folders that know more than they may, files that import each other in
//! circles, unsafe code out of its place, missing introductions, broken links, documents that mention files
//! that are gone. One file per rule in [`rules`]; the numbers and tables to adjust
//! stand at the top of each. Exceptions are written down with a reason ([`allow`]), and one that is no longer
//! needed is a finding, too. This crate stands apart from all others and reads them as text.
#![forbid(unsafe_code)]

pub mod allow;
pub mod finding;
pub mod manifest;
pub mod paths;
pub mod rules;
pub mod source;
pub mod tree;

use std::io;
use std::path::Path;

pub use finding::Finding;
pub use tree::Tree;

/// Everything untidy in the workspace whose root is `root`, in order of path and line.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let tree = Tree::read(root)?;
    let raw = rules::ALL.iter().flat_map(|rule| rule(&tree)).collect();
    let mut findings = allow::apply(&tree, raw);
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests;
