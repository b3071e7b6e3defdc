//! Files that documents mention in backquotes exist: source files, and what begins with a folder of the root.
//! Any end of a path will do.
use pulldown_cmark::{Event, Parser};

use crate::{Finding, Tree};

/// Rule `mention`. What the changelog tells of earlier versions may be gone.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.with_extension("md").filter(|(path, _)| *path != "CHANGELOG.md");
    documents.flat_map(|(path, text)| of_document(tree, path, text)).collect()
}

fn of_document(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let Event::Code(words) = event else { continue };
        if is_path(tree, &words) && !exists(tree, words.trim_end_matches('/')) {
            let line = text[..range.start].matches('\n').count() + 1;
            let what = format!("mentions `{words}`, which is not there");
            let item = Some(words.to_string());
            findings.push(Finding { item, ..Finding::new("mention", path, line, what) });
        }
    }
    findings
}

/// Whether these words are the path of a source file, or begin with a folder of the root.
fn is_path(tree: &Tree, words: &str) -> bool {
    let is_plain = words.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let root = words.split_once('/').map_or("", |(first, _)| first);
    is_plain && (words.ends_with(".rs") || (!root.is_empty() && tree.under(root).next().is_some()))
}

fn exists(tree: &Tree, path: &str) -> bool {
    let (file, folder) = (format!("/{path}"), format!("/{path}/"));
    tree.has(path) || tree.under("").any(|other| other.ends_with(&file) || other.contains(&folder))
}
