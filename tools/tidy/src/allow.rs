//! Exceptions, each with its reason: `tools/tidy/allow.txt`.
//!
//! One entry per line: the rule, the file (or `file::function`), then why. Lines that begin with `#` explain.
use crate::{Finding, Tree};

/// Where the list lies in the workspace.
pub const PATH: &str = "tools/tidy/allow.txt";
const RULE: &str = "allow";

struct Entry<'a> {
    line: usize,
    rule: &'a str,
    subject: &'a str,
    reason: &'a str,
}

/// Takes away the findings that an entry excepts, and adds one for each entry that excepts nothing or gives
/// no reason.
pub fn apply(tree: &Tree, mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut complaints = Vec::new();
    for entry in entries(tree.text(PATH).unwrap_or("")) {
        let before = findings.len();
        findings.retain(|finding| !(finding.rule == entry.rule && finding.subject() == entry.subject));
        if findings.len() == before {
            let what = format!("`{} {}` excepts nothing: remove it", entry.rule, entry.subject);
            complaints.push(Finding::new(RULE, PATH, entry.line, what));
        }
        if entry.reason.is_empty() {
            let what = format!("`{} {}` gives no reason", entry.rule, entry.subject);
            complaints.push(Finding::new(RULE, PATH, entry.line, what));
        }
    }
    findings.append(&mut complaints);
    findings
}

fn entries(text: &str) -> impl Iterator<Item = Entry<'_>> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
        let (rule, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim_start();
        let (subject, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Entry { line: number, rule, subject, reason: reason.trim() }
    })
}
