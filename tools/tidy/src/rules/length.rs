//! Lines, functions and files that are too long to take in.
use proc_macro2::{Delimiter, TokenTree};

use crate::source::{bracket, inside, is_mark, line, word};
use crate::{Finding, Tree};

/// Columns, as rustfmt is configured; it leaves comments and strings alone, this does not.
const LINE: usize = 110;
/// Lines of a file, tests included.
const FILE: usize = 500;
/// Lines of a function, from its `fn` to its closing brace.
const FUNCTION: usize = 70;

/// Rule `line-length`.
pub fn check_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        for (index, text) in text.lines().enumerate() {
            let columns = text.chars().count();
            if columns > LINE {
                let what = format!("{columns} columns, {LINE} allowed");
                findings.push(Finding::new("line-length", path, index + 1, what));
            }
        }
    }
    findings
}

/// Rule `file-length`.
pub fn check_files(tree: &Tree) -> Vec<Finding> {
    let lengths = tree.with_extension("rs").map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > FILE);
    long.map(|(path, lines)| Finding::new("file-length", path, 0, format!("{lines} lines, {FILE} allowed")))
        .collect()
}

/// Rule `function-length`; also, as `syntax`, files that are no Rust.
pub fn check_functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in tree.with_extension("rs") {
        match tree.syntax(path) {
            Ok(tokens) => functions(path, tokens, &mut findings),
            Err(error) => findings.push(Finding::new("syntax", path, 0, error.to_owned())),
        }
    }
    findings
}

fn functions(path: &str, tokens: &[TokenTree], findings: &mut Vec<Finding>) {
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            functions(path, &inside(group), findings);
        }
        if word(Some(token)).as_deref() != Some("fn") {
            continue;
        }
        let Some(name) = word(tokens.get(index + 1)) else { continue };
        let Some(end) = end_of_body(&tokens[index..]) else { continue };
        let lines = end + 1 - line(token);
        if lines > FUNCTION {
            let what = format!("fn {name}: {lines} lines, {FUNCTION} allowed");
            let finding = Finding::new("function-length", path, line(token), what);
            findings.push(Finding { item: Some(name), ..finding });
        }
    }
}

/// The last line of the function that begins here; none if it has no body.
fn end_of_body(tokens: &[TokenTree]) -> Option<usize> {
    let end =
        tokens.iter().find(|t| is_mark(Some(t), ';') || bracket(Some(t), Delimiter::Brace).is_some())?;
    bracket(Some(end), Delimiter::Brace).map(|body| body.span_close().end().line)
}
