//! Files of a crate do not import each other in circles.
//!
//! A file imports another one if it names, in a `use` or in a path that begins with `crate` or `super`,
//! something that the other one defines; where a file only passes a name on (`pub use`), the one counts that
//! defines it. Two things do not count: what a module names of the files in its own folder, since it consists
//! of them (so a `mod.rs` that declares and passes on is in no circle; one that defines something itself is,
//! if files that it needs elsewhere need that), and tests. Methods are not followed: files may add some to
//! a type from below.
use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenTree};

use crate::paths::{self, Named};
use crate::source::{bracket, inside, is_mark, word};
use crate::tree::folder_of;
use crate::{Finding, Tree};

/// What definitions begin with.
const KINDS: [&str; 9] = ["struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod"];
/// No name is passed on more often than this.
const PASSES: usize = 8;

/// Rule `circle`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    for (path, _) in tree.with_extension("rs") {
        if let Some((root, module)) = place(tree, path) {
            crates.entry(root).or_default().push(File::read(path, module, tree.tokens(path)));
        }
    }
    crates.into_values().flat_map(|files| circles(&Crate::new(files))).collect()
}

/// A file of a crate, without its tests.
struct File<'a> {
    path: &'a str,
    module: Vec<String>,
    /// The paths in it.
    named: Vec<Named>,
    imports: Vec<Named>,
    defined: BTreeSet<String>,
}

impl<'a> File<'a> {
    fn read(path: &'a str, module: Vec<String>, tokens: &[TokenTree]) -> File<'a> {
        let tokens = without_tests(tokens);
        let (named, imports) = (paths::in_tokens(&tokens, &module), paths::imports(&tokens, &module));
        let is_kind = |token| word(Some(token)).is_some_and(|kind| KINDS.contains(&&*kind));
        let pairs = tokens.windows(2).filter(|pair| is_kind(&pair[0]));
        let defined = pairs.filter_map(|pair| word(pair.get(1))).collect();
        File { path, module, named, imports, defined }
    }
}

struct Crate<'a> {
    files: Vec<File<'a>>,
    places: BTreeMap<Vec<String>, usize>,
}

impl Crate<'_> {
    fn new(files: Vec<File<'_>>) -> Crate<'_> {
        let places = files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        Crate { files, places }
    }

    /// The file that defines what a path from the root of the crate names.
    fn definition(&self, path: &[String], passes: usize) -> Option<usize> {
        let of = |module: &[String]| self.places.get(module).copied();
        let (at, rest) = (0..=path.len()).rev().find_map(|len| Some((of(&path[..len])?, &path[len..])))?;
        let file = &self.files[at];
        let Some(name) = rest.first().filter(|name| passes < PASSES && !file.defined.contains(*name)) else {
            return Some(at);
        };
        if let Some(import) = file.imports.iter().find(|import| import.name == *name) {
            let further = [&import.path, &rest[1..]].concat();
            return self.definition(&further, passes + 1).or(Some(at));
        }
        let all = file.imports.iter().filter(|import| import.name == "*" && import.path != file.module);
        let known = all.filter_map(|import| self.definition(&import.path, passes + 1));
        known.into_iter().find(|&other| self.files[other].defined.contains(name)).or(Some(at))
    }

    /// The files that a file imports.
    fn imported(&self, at: usize) -> BTreeSet<usize> {
        let file = &self.files[at];
        let known = file.named.iter().filter_map(|named| self.definition(&named.path, 0));
        known.filter(|&other| !self.files[other].module.starts_with(&file.module)).collect()
    }
}

/// One finding for each set of files of which each imports, perhaps by way of others, all others.
fn circles(all: &Crate<'_>) -> Vec<Finding> {
    let imported: Vec<BTreeSet<usize>> = (0..all.files.len()).map(|at| all.imported(at)).collect();
    let reached: Vec<BTreeSet<usize>> = (0..imported.len()).map(|at| reach(&imported, at)).collect();
    let mut findings = Vec::new();
    for at in 0..imported.len() {
        let circle: Vec<usize> =
            reached[at].iter().copied().filter(|&other| reached[other].contains(&at)).collect();
        if circle.first() == Some(&at) {
            let names: Vec<&str> = circle.iter().map(|&file| all.files[file].path).collect();
            let what = format!(
                "files import each other in a circle ({}): move what they share into a file below",
                names.join(", ")
            );
            findings.push(Finding::new("circle", all.files[at].path, 0, what));
        }
    }
    findings
}

/// All that a file imports, and what that imports, and so on.
fn reach(imported: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<usize> = imported[from].iter().copied().collect();
    while let Some(at) = next.pop() {
        if reached.insert(at) {
            next.extend(&imported[at]);
        }
    }
    reached
}

/// The folder of the crate that a file belongs to, and the module that it is.
fn place<'a>(tree: &Tree, path: &'a str) -> Option<(&'a str, Vec<String>)> {
    let mut root = folder_of(path);
    while !(root == "src" || root.ends_with("/src")) {
        root = Some(folder_of(root)).filter(|folder| !folder.is_empty())?;
    }
    let inner = path.strip_prefix(root)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let is_program = inner == "main" && tree.has(&format!("{root}/lib.rs"));
    if is_program || inner.starts_with("bin/") {
        return None;
    }
    let inner = if matches!(inner, "lib" | "main") { "" } else { inner };
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    Some((root, inner.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()))
}

/// The tokens without the items that are compiled for tests only.
fn without_tests(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if is_mark(tokens.get(index), '#') && is_for_tests(tokens.get(index + 1)) {
            index += 2;
            while index < tokens.len() && !ends_item(&tokens[index]) {
                index += 1;
            }
            index += 1;
            continue;
        }
        kept.push(match &tokens[index] {
            TokenTree::Group(group) => {
                let inner = without_tests(&inside(group)).into_iter().collect();
                TokenTree::Group(Group::new(group.delimiter(), inner))
            }
            other => other.clone(),
        });
        index += 1;
    }
    kept
}

/// Whether this is `[cfg(test)]`, or `[cfg(all(test, ...))]`.
fn is_for_tests(attribute: Option<&TokenTree>) -> bool {
    let Some(attribute) = bracket(attribute, Delimiter::Bracket).map(inside) else { return false };
    if word(attribute.first()).as_deref() != Some("cfg") {
        return false;
    }
    let condition = bracket(attribute.get(1), Delimiter::Parenthesis).map(inside).unwrap_or_default();
    let is_test = |tokens: &[TokenTree]| word(tokens.first()).as_deref() == Some("test");
    let all = bracket(condition.get(1), Delimiter::Parenthesis).map(inside).unwrap_or_default();
    is_test(&condition) || (word(condition.first()).as_deref() == Some("all") && is_test(&all))
}

fn ends_item(token: &TokenTree) -> bool {
    is_mark(Some(token), ';') || is_mark(Some(token), ',') || bracket(Some(token), Delimiter::Brace).is_some()
}
