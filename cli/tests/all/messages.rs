//! The page of messages: the fixed words of each message on it are in the sources.

use std::fs;
use std::path::Path;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Sources of the crates that print messages.
const ROOMS: [&str; 7] =
    ["engine/src", "drivers/src", "launch/src", "src", "mpi/src", "cli/src", "bench/compare/src"];
/// Fixed words of a message that are shorter are not looked up: they also occur elsewhere.
const WORDS_MIN: usize = 8;

/// Appends the sources of a folder, with each literal on one line.
fn read(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            for line in fs::read_to_string(&path).expect("a source").lines() {
                match line.strip_suffix('\\') {
                    // The literal continues in the next line.
                    Some(begin) => all.push_str(begin.trim_start()),
                    None => all.extend([line.trim_start(), "\n"]),
                }
            }
        }
    }
}

#[test]
fn every_message_of_the_page_is_in_the_sources() {
    let mut all = String::new();
    ROOMS.iter().for_each(|room| read(&Path::new(SOURCE).join(room), &mut all));
    let page = fs::read_to_string(Path::new(SOURCE).join("docs/messages.md")).expect("the page");
    let messages: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|row| row.0).collect();
    assert!(messages.len() > 25, "{messages:?}");
    for message in messages {
        let words = message.split(['…', '(', ')', ';', '\'']).map(str::trim).filter(|w| w.len() >= WORDS_MIN);
        let missing: Vec<&str> = words.clone().filter(|words| !all.contains(words)).collect();
        assert!(words.count() > 0 && missing.is_empty(), "{message}: no source has {missing:?}");
    }
}
