//! What a manifest leaves out of `cargo test` has nothing to test. Leaving it out saves the time in which it
//! would be compiled and linked once more.
use proc_macro2::{Delimiter, TokenTree};

use crate::source::{bracket, inside, is_mark, line, rows, word};
use crate::tree::{folder_of, join};
use crate::{Finding, Tree};

const RULE: &str = "untested";

/// What begins an example in Rust, as rustdoc reads it.
const RUST: [&str; 6] = ["", "rust", "no_run", "should_panic", "ignore", "compile_fail"];

/// Rule `untested`: a program with `test = false` has no `#[test]` in its file, a library none in its folder;
/// a library with `doctest = false` has no example in its documentation.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let is_manifest = |(path, _): &(&str, &str)| path.rsplit('/').next() == Some("Cargo.toml");
    let manifests = tree.with_extension("toml").filter(is_manifest);
    manifests.flat_map(|(path, text)| of_package(tree, folder_of(path), text)).collect()
}

fn of_package(tree: &Tree, folder: &str, manifest: &str) -> Vec<Finding> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else { return Vec::new() };
    let bins = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let of_bins = bins.filter(|bin| is_off(bin, "test"));
    let of_bins = of_bins.filter_map(|bin| join(folder, bin.get("path")?.as_str()?));
    let source = join(folder, "src").unwrap_or_default();
    let of_lib = |key| {
        let is_off = manifest.get("lib").is_some_and(|lib| is_off(lib, key));
        let files = tree.under(&source).filter(move |path| is_off && path.ends_with(".rs"));
        files.map(str::to_owned).collect::<Vec<_>>()
    };
    let tests = of_bins.chain(of_lib("test")).filter_map(|path| {
        let line = first_test(tree.tokens(&path))?;
        Some(Finding::new(RULE, &path, line, "a test that `test = false` leaves out"))
    });
    let examples = of_lib("doctest").into_iter().filter_map(|path| {
        let line = first_example(tree.text(&path)?)?;
        Some(Finding::new(RULE, &path, line, "an example that `doctest = false` leaves out"))
    });
    tests.chain(examples).collect()
}

fn is_off(target: &toml::Value, key: &str) -> bool {
    target.get(key).and_then(toml::Value::as_bool) == Some(false)
}

/// The line of the first `#[test]`, also within modules and macros.
fn first_test(tokens: &[TokenTree]) -> Option<usize> {
    let mut lines = Vec::new();
    rows(tokens, &mut |row| {
        for pair in row.windows(2).filter(|pair| is_mark(pair.first(), '#')) {
            let body = bracket(pair.get(1), Delimiter::Bracket).map(inside).unwrap_or_default();
            if body.len() == 1 && word(body.first()).as_deref() == Some("test") {
                lines.push(line(&pair[0]));
            }
        }
    });
    lines.into_iter().min()
}

/// The line of the first example in documentation.
fn first_example(text: &str) -> Option<usize> {
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(said) = line.strip_prefix("//!").or(line.strip_prefix("///")) else { continue };
        let Some(language) = said.trim().strip_prefix("```") else { continue };
        if !is_inside && RUST.contains(&language) {
            return Some(index + 1);
        }
        is_inside = !is_inside;
    }
    None
}
