//! Packages that may be published say what they are, and hold all that they are made of.
use proc_macro2::{Delimiter, TokenTree};

use crate::source;
use crate::tree::{folder_of, join};
use crate::{Finding, Tree};

/// What the registry wants to know of a package.
const KEYS: [&str; 6] = ["description", "license", "repository", "readme", "keywords", "categories"];
/// Macros that read a file while the package is built.
const READERS: [&str; 3] = ["include", "include_str", "include_bytes"];
/// Folders of a package that are not built by those who depend on it.
const OWN: [&str; 3] = ["tests", "benches", "examples"];

/// Rule `package`.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let is_manifest = |(path, _): &(&str, &str)| path.rsplit('/').next() == Some("Cargo.toml");
    let manifests: Vec<(&str, &str)> = tree.with_extension("toml").filter(is_manifest).collect();
    let folders: Vec<&str> = manifests.iter().map(|(path, _)| folder_of(path)).collect();
    manifests.iter().flat_map(|(path, text)| of_package(tree, path, text, &folders)).collect()
}

fn of_package(tree: &Tree, path: &str, text: &str, folders: &[&str]) -> Vec<Finding> {
    // Broken manifests are cargo's business.
    let Ok(manifest) = text.parse::<toml::Table>() else { return Vec::new() };
    let Some(package) = manifest.get("package").and_then(toml::Value::as_table) else { return Vec::new() };
    // A package without a version cannot be published.
    if package.get("publish").is_some_and(|value| value.as_bool() == Some(false))
        || !package.contains_key("version")
    {
        return Vec::new();
    }
    let missing = KEYS.iter().filter(|key| !package.contains_key(**key));
    let what = |key| format!("no {key}: say it, or `publish = false`");
    let mut findings: Vec<Finding> = missing.map(|key| Finding::new("package", path, 0, what(key))).collect();
    let folder = folder_of(path);
    for (file, _) in tree.with_extension("rs").filter(|(file, _)| owner(file, folders) == Some(folder)) {
        let inside = file.strip_prefix(folder).unwrap_or(file).trim_start_matches('/');
        if OWN.iter().any(|own| inside.split('/').next() == Some(own)) {
            continue;
        }
        for (line, read) in read_files(tree.tokens(file)) {
            let lies_within = join(folder_of(file), &read)
                .is_some_and(|to| folder.is_empty() || to.starts_with(&format!("{folder}/")));
            if !lies_within {
                let what = format!("{read} lies outside of the package: link to it from within");
                findings.push(Finding::new("package", file, line, what));
            }
        }
    }
    findings
}

/// The innermost package that a file lies in.
fn owner<'a>(file: &str, folders: &[&'a str]) -> Option<&'a str> {
    let holds = |folder: &&&str| folder.is_empty() || file.starts_with(&format!("{folder}/"));
    folders.iter().filter(holds).max_by_key(|folder| folder.len()).copied()
}

/// The literal paths that a source file reads while it is built, with their lines.
fn read_files(tokens: &[TokenTree]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    source::rows(tokens, &mut |row: &[TokenTree]| {
        for (index, token) in row.iter().enumerate() {
            let is_reader = source::word(Some(token)).is_some_and(|word| READERS.contains(&word.as_str()));
            if !is_reader || !source::is_mark(row.get(index + 1), '!') {
                continue;
            }
            let Some(group) = source::bracket(row.get(index + 2), Delimiter::Parenthesis) else { continue };
            found.extend(
                source::string(source::inside(group).first()).map(|path| (source::line(token), path)),
            );
        }
    });
    found
}
