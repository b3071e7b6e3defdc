//! The list of variables is the whole one: it has what sources and pages name, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::probe::{Launcher, PROBE};

use nmad_words::setting::{ALL, OF_TESTS, PREFIX};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository")
}

/// The files below a folder that are text, without what builds leave and the list itself.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().expect("a kind");
        let is_ours = !path.starts_with(root().join("words/src/setting"));
        if kind.is_dir() && name != "target" && !name.as_encoded_bytes().starts_with(b".") {
            files(&path, found);
        } else if kind.is_file() && is_ours {
            found.push(path);
        }
    }
}

/// Every name with our prefix in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).filter_map(|(start, _)| {
        let before = text[..start].chars().next_back();
        let is_part = before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let rest = &text[start..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        let name = &rest[..end.unwrap_or(rest.len())];
        // The beginning of several names is none.
        (!is_part && !name.ends_with('_')).then_some(name)
    })
}

fn named_in(folder: &str) -> BTreeSet<String> {
    let mut found = Vec::new();
    files(&root().join(folder), &mut found);
    let texts = found.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.flat_map(|text| names(&text).map(String::from).collect::<Vec<_>>()).collect()
}

#[test]
fn the_launcher_tells_once_of_one_that_is_misspelt() {
    let (ours, ranks_own) = (format!("{PREFIX}RIALS"), format!("{PREFIX}CHUNKS=1"));
    let words = ["-n", "2", "--env", &ranks_own, PROBE, "rank", "ring"];
    let done = Launcher::start(&words, &[(&ours, "lo")]).done();
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("nmad: ")), "{lines:?}");
    assert!(lines[0].contains("CHUNKS has no effect") && lines[0].contains("CHUNK meant?"), "{lines:?}");
    assert!(lines[1].contains("RIALS has no effect") && lines[1].contains("RAILS meant?"), "{lines:?}");
}

#[test]
fn every_name_is_in_the_list() {
    let header = std::fs::read_to_string(root().join("capi/include/nmad.h")).expect("the header of C");
    let of_c: BTreeSet<&str> = names(&header).collect();
    let known: BTreeSet<&str> = ALL.iter().map(|setting| setting.name).chain(OF_TESTS).collect();
    let named = named_in("");
    assert!(named.len() > ALL.len(), "the repository is read");
    let missing: Vec<&String> =
        named.iter().filter(|name| !known.contains(&***name) && !of_c.contains(&***name)).collect();
    assert!(missing.is_empty(), "not in words/src/setting/table.rs: {missing:?}");
}

#[test]
fn every_entry_of_the_list_is_a_name() {
    let (pages, all) = (named_in("docs"), named_in(""));
    let unexplained: Vec<_> = ALL.iter().filter(|setting| !pages.contains(setting.name)).collect();
    assert!(unexplained.is_empty(), "in no page of docs/: {unexplained:?}");
    let unused: Vec<_> = OF_TESTS.iter().filter(|name| !all.contains(**name)).collect();
    assert!(unused.is_empty(), "nobody reads {unused:?}");
}
