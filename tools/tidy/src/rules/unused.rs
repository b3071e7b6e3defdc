//! Source files that nobody compiles.
use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenTree};

use crate::manifest::crate_roots;
use crate::source::{bracket, inside, is_mark, rows, string, word};
use crate::tree::{folder_of, join};
use crate::{Finding, Tree};

/// Rule `unused`: every `.rs` file is a target of cargo or reached from one by `mod`, `#[path]`, `include!`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut used = BTreeSet::new();
    let mut open: Vec<(String, bool)> = crate_roots(tree).into_iter().map(|path| (path, true)).collect();
    while let Some((path, is_root)) = open.pop() {
        if tree.text(&path).is_none() || used.contains(&path) {
            continue;
        }
        let names = candidates(&path, is_root, tree.tokens(&path));
        open.extend(names.into_iter().filter(|(path, _)| tree.text(path).is_some()));
        used.insert(path);
    }
    let dead = tree.with_extension("rs").filter(|(path, _)| !used.contains(*path));
    dead.map(|(path, _)| Finding::new("unused", path, 0, "no module, target or include! leads here"))
        .collect()
}

/// The files that this one may lead to, each with whether modules in it lie in its own folder, as those of a
/// crate root do. `mod x;` has two places; the caller takes what exists.
fn candidates(path: &str, is_root: bool, tokens: &[TokenTree]) -> Vec<(String, bool)> {
    let folder = folder_of(path);
    let stays = is_root || path.ends_with("/mod.rs");
    let children = if stays { folder.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    let mut found = Vec::new();
    modules(tokens, folder, &children, &mut found);
    rows(tokens, &mut |row| found.extend(includes(row, folder).map(|path| (path, false))));
    found
}

/// Files named by `mod` in these tokens, whose modules lie in `children`; `#[path]` counts from `folder`.
fn modules(tokens: &[TokenTree], folder: &str, children: &str, found: &mut Vec<(String, bool)>) {
    for (index, token) in tokens.iter().enumerate() {
        let name = word(tokens.get(index + 1)).map(|name| name.trim_start_matches("r#").to_owned());
        match (word(Some(token)).as_deref(), name) {
            (Some("mod"), Some(name)) if is_mark(tokens.get(index + 2), ';') => {
                let written = path_attribute(&tokens[..index]).and_then(|path| join(folder, &path));
                found.extend(written.map(|path| (path, true)));
                found.extend(join(children, &format!("{name}.rs")).map(|path| (path, false)));
                found.extend(join(children, &format!("{name}/mod.rs")).map(|path| (path, true)));
            }
            (Some("mod"), Some(name)) => {
                let Some(body) = bracket(tokens.get(index + 2), Delimiter::Brace) else { continue };
                let nested = join(children, &name).unwrap_or_default();
                modules(&inside(body), &nested, &nested, found);
            }
            // A macro such as cfg_if! may hold modules.
            _ => {
                let is_macro = index > 0 && is_mark(tokens.get(index - 1), '!');
                let Some(body) = bracket(Some(token), Delimiter::Brace).filter(|_| is_macro) else {
                    continue;
                };
                rows(&inside(body), &mut |row| modules(row, folder, children, found));
            }
        }
    }
}

/// The path in the attributes that end these tokens (a visibility may stand after them).
fn path_attribute(before: &[TokenTree]) -> Option<String> {
    let mut rest = before;
    loop {
        rest = match rest {
            [front @ .., last] if word(Some(last)).as_deref() == Some("pub") => front,
            [front @ .., last] if bracket(Some(last), Delimiter::Parenthesis).is_some() => front,
            [front @ .., hash, body] if is_mark(Some(hash), '#') => {
                let body = inside(bracket(Some(body), Delimiter::Bracket)?);
                if word(body.first()).as_deref() == Some("path") && is_mark(body.get(1), '=') {
                    return string(body.get(2));
                }
                front
            }
            _ => return None,
        }
    }
}

/// Files named by `include!("...")` in these tokens.
fn includes(row: &[TokenTree], folder: &str) -> impl Iterator<Item = String> {
    row.windows(3).filter_map(move |call| {
        let TokenTree::Group(arguments) = &call[2] else { return None };
        let is_include = word(call.first()).as_deref() == Some("include") && is_mark(call.get(1), '!');
        let path = string(inside(arguments).first()).filter(|_| is_include)?;
        join(folder, &path)
    })
}
