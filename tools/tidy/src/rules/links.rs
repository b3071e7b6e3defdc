//! Links in documents lead to files that exist.
use pulldown_cmark::{Event, Parser, Tag};

use crate::tree::{folder_of, join};
use crate::{Finding, Tree};

/// Rule `link`: relative links of markdown files; those to the network or within a page are not followed.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (event, range) in Parser::new(text).into_offset_iter() {
            let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) =
                event
            else {
                continue;
            };
            if !leads_somewhere(tree, folder_of(path), &dest_url) {
                let line = text[..range.start].lines().count().max(1);
                findings.push(Finding::new("link", path, line, format!("no file {dest_url}")));
            }
        }
    }
    findings
}

fn leads_somewhere(tree: &Tree, folder: &str, target: &str) -> bool {
    let has_scheme = target.split('/').next().is_some_and(|first| first.contains(':'));
    if has_scheme || target.starts_with('#') {
        return true;
    }
    let file = target.split(['#', '?']).next().unwrap_or(target).replace("%20", " ");
    join(folder, &file).is_some_and(|path| tree.has(&path))
}
