//! The pages in `docs/` make a book: `docs/SUMMARY.md` lists each of them once, and none links to what is
//! outside of it by a relative path, which would lead nowhere on the site.
use crate::rules::links;
use crate::{Finding, Tree};

const FOLDER: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Rule `book`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.text(SUMMARY) else { return Vec::new() };
    let listed: Vec<(usize, String)> = links::links(summary)
        .into_iter()
        .filter_map(|(line, dest)| Some((line, links::target(SUMMARY, &dest)?.ok()?)))
        .collect();
    let mut findings = Vec::new();
    for (index, (line, page)) in listed.iter().enumerate() {
        if listed[..index].iter().any(|(_, other)| other == page) {
            findings.push(Finding::new("book", SUMMARY, *line, format!("{page} is listed twice")));
        }
    }
    for (path, text) in tree.with_extension("md").filter(|(path, _)| path.starts_with(FOLDER)) {
        if path == SUMMARY {
            continue;
        }
        if !listed.iter().any(|(_, page)| page == path) {
            let what = format!("is not in the book: list it in {SUMMARY}");
            findings.push(Finding::new("book", path, 0, what));
        }
        for (line, dest) in links::links(text).into_iter().filter(|(_, dest)| !dest.contains("://")) {
            let leaves =
                links::target(path, &dest).is_some_and(|to| to.is_ok_and(|to| !to.starts_with(FOLDER)));
            if leaves {
                let what = format!("{dest} is outside of the book: name it by its address in the network");
                findings.push(Finding::new("book", path, line, what));
            }
        }
    }
    findings
}
