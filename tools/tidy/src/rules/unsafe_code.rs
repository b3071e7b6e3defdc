//! Unsafe code lives in few files, each on a list.
use proc_macro2::TokenTree;

use crate::source::{line, rows, word};
use crate::{Finding, Tree};

/// Where the list lies: one path per line, `#` begins a remark.
const LIST: &str = "tools/tidy/unsafe.txt";
const RULE: &str = "unsafe";

/// Rule `unsafe`: the keyword stands in listed files only, and each listed file needs it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let list = listed(tree.text(LIST).unwrap_or(""));
    let mut findings = Vec::new();
    for (path, _) in tree.with_extension("rs") {
        let is_listed = list.iter().any(|(_, entry)| *entry == path);
        if let Some(at) = first_use(tree.tokens(path)).filter(|_| !is_listed) {
            let what = format!("unsafe code outside of the files in {LIST}");
            findings.push(Finding::new(RULE, path, at, what));
        }
    }
    for (number, path) in list {
        if first_use(tree.tokens(path)).is_none() {
            findings.push(Finding::new(RULE, LIST, number, format!("{path} has no unsafe code: remove it")));
        }
    }
    findings
}

/// The entries of the list with their lines.
fn listed(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.enumerate().filter(|(_, line)| !line.is_empty()).map(|(index, line)| (index + 1, line)).collect()
}

/// The line of the first `unsafe`, comments and strings left out.
fn first_use(tokens: &[TokenTree]) -> Option<usize> {
    let mut lines = Vec::new();
    rows(tokens, &mut |row| {
        lines.extend(row.iter().filter(|token| word(Some(token)).as_deref() == Some("unsafe")).map(line));
    });
    lines.into_iter().min()
}
