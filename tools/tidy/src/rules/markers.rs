//! Leftover markers: notes to self, holes in the code, and what was meant for one run only.
use proc_macro2::TokenTree;

use crate::source::{is_mark, line, rows, word};
use crate::{Finding, Tree};

/// Words that mark unfinished work, in comments and strings alike. Written in two halves, or this file would
/// be its own first finding.
const NOTES: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Macros that stand for missing code or were meant for one run.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Rule `marker`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        for (index, text) in text.lines().enumerate() {
            for note in NOTES.iter().filter(|note| has_word(text, note)) {
                findings.push(Finding::new("marker", path, index + 1, format!("leftover {note}")));
            }
        }
        rows(tree.tokens(path), &mut |row| check_macros(path, row, &mut findings));
    }
    findings
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == wanted)
}

fn check_macros(path: &str, row: &[TokenTree], findings: &mut Vec<Finding>) {
    for pair in row.windows(2) {
        let Some(name) = word(pair.first()).filter(|name| MACROS.contains(&&**name)) else { continue };
        if is_mark(pair.get(1), '!') {
            findings.push(Finding::new("marker", path, line(&pair[0]), format!("leftover {name}!")));
        }
    }
}
