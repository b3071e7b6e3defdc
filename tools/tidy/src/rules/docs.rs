//! Every layer introduces itself: `lib.rs` and `mod.rs` begin with a module comment.
use crate::{Finding, Tree};

/// Rule `introduction`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.with_extension("rs").filter(|(path, _)| is_face(path));
    let silent = files.filter(|(_, text)| !text.trim_start().starts_with("//!"));
    silent
        .map(|(path, _)| {
            let what = "begins without `//!`: say which layer this is and what it must never know";
            Finding::new("introduction", path, 1, what)
        })
        .collect()
}

fn is_face(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("lib.rs" | "mod.rs"))
}
