//! Links in documents lead to files that exist, and to headings that exist in them.
use std::collections::BTreeMap;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::tree::{folder_of, join};
use crate::{Finding, Tree};

/// Where files and folders of this repository are shown in the network. Pages of the book name by this what
/// lies outside of the book.
const OURS: [&str; 2] = [
    "https://github.com/newmadeleine/newmadeleine/blob/main/",
    "https://github.com/newmadeleine/newmadeleine/tree/main/",
];

/// Rule `link`: links of markdown files, also those to files of this repository by way of the network;
/// others to the network are not followed.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, dest) in links(text) {
            if let Err(what) = follow(tree, path, &dest) {
                findings.push(Finding::new("link", path, line, what));
            }
        }
    }
    findings
}

/// Every link and picture of a document with its line; those of HTML as well.
pub(super) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let line = || text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((line(), dest_url.to_string()));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                links.extend(attributes(&html).map(|dest| (line(), dest.to_owned())));
            }
            _ => {}
        }
    }
    links
}

/// The values of `src` and `href` in a piece of HTML.
fn attributes(html: &str) -> impl Iterator<Item = &str> {
    ["src=\"", "href=\""]
        .into_iter()
        .flat_map(move |name| html.split(name).skip(1).filter_map(|rest| rest.split('"').next()))
}

/// The path of the file that a link of the document `path` means, from the root; `None` for one to the
/// network.
pub(super) fn target(path: &str, dest: &str) -> Option<Result<String, String>> {
    let file = dest.split(['#', '?']).next().unwrap_or(dest).replace("%20", " ");
    if let Some(rest) = OURS.iter().find_map(|prefix| file.strip_prefix(prefix)) {
        return Some(Ok(rest.trim_end_matches('/').to_owned()));
    }
    if dest.split('/').next().is_some_and(|first| first.contains(':')) {
        return None;
    }
    if file.is_empty() {
        return Some(Ok(path.to_owned()));
    }
    Some(join(folder_of(path), &file).ok_or_else(|| format!("no file {dest}")))
}

fn follow(tree: &Tree, path: &str, dest: &str) -> Result<(), String> {
    let Some(file) = target(path, dest) else { return Ok(()) };
    let file = file?;
    if !tree.has(&file) {
        return Err(format!("no file {dest}"));
    }
    let Some((_, anchor)) = dest.split_once('#') else { return Ok(()) };
    // Lines of source files (`#L10`) are not looked at.
    let Some(text) = tree.text(&file).filter(|_| file.ends_with(".md")) else { return Ok(()) };
    let is_there = anchors(text).iter().any(|one| one == anchor);
    if is_there { Ok(()) } else { Err(format!("no heading {dest}")) }
}

/// What headings are called in links: lower case, words joined by hyphens, no other marks; from the second
/// of a name on with a number.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(name.clone()).or_default();
                anchors.push(if *count == 0 { name } else { format!("{name}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_lowercase().to_string()),
        c if c.is_whitespace() => Some("-".into()),
        _ => None,
    });
    kept.collect()
}
