//! The core has no clock, no thread, no socket: its crates stay `no_std`.
use proc_macro2::{Delimiter, TokenTree};

use crate::source::{bracket, inside, is_mark, rows, word};
use crate::{Finding, Tree};

/// The crates that must be `no_std`; one that does not exist is left out.
const CRATES: [&str; 2] = ["wire/src/lib.rs", "engine/src/lib.rs"];

/// Rule `no-std`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let faces = CRATES.into_iter().filter(|path| tree.text(path).is_some());
    let hosted = faces.filter(|path| !is_no_std(tree.tokens(path)));
    hosted.map(|path| Finding::new("no-std", path, 1, "lacks `#![no_std]`")).collect()
}

/// Whether an inner attribute names `no_std`, plainly or under a condition such as `not(test)`.
fn is_no_std(tokens: &[TokenTree]) -> bool {
    tokens.windows(3).any(|attribute| {
        let body = bracket(attribute.get(2), Delimiter::Bracket);
        let is_inner = is_mark(attribute.first(), '#') && is_mark(attribute.get(1), '!');
        is_inner && body.is_some_and(|body| has_word(&inside(body), "no_std"))
    })
}

/// Whether a token, at any depth, is this word; a comment that mentions it has become a string by now.
fn has_word(tokens: &[TokenTree], wanted: &str) -> bool {
    let mut found = false;
    rows(tokens, &mut |row| found |= row.iter().any(|token| word(Some(token)).as_deref() == Some(wanted)));
    found
}
