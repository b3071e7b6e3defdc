//! `nmad sim --golden`: figures for a reader, and their files for a commit.

use super::{FIGURES, named};
use nmad_words::{is_heard, say_line, tell_user};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the texts lie, from the root of the repository.
pub const FOLDER: &str = "sim/golden";

/// Prints the figures with this name (see [`named`]), or with `list` their names; with `bless` writes their
/// files instead. Failure with code 2 for an unknown name or outside of the repository.
pub fn run(name: Option<&str>, bless: bool) -> ExitCode {
    if name == Some("list") {
        return print(FIGURES.iter().map(|figure| format!("{:<16} {}", figure.name, figure.title)));
    }
    let figures = named(name);
    if figures.is_empty() {
        let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
        let (name, names) = (name.unwrap_or_default(), names.join(", "));
        tell_user(format_args!("nmad sim: no figure '{name}' (known: {names})"));
        return ExitCode::from(nmad_words::USAGE);
    }
    if !bless {
        return print(figures.iter().map(|figure| (figure.make)()));
    }
    let files = figures.iter().flat_map(|figure| figure.files());
    write(FOLDER, files.map(|(file, text)| (Path::new(FOLDER).join(file), text)))
}

/// Prints texts with an empty line between them, until nobody reads any more.
fn print(texts: impl Iterator<Item = String>) -> ExitCode {
    for (index, text) in texts.enumerate().take_while(|_| is_heard()) {
        let space = if index > 0 && text.ends_with('\n') { "\n" } else { "" };
        say_line(format_args!("{space}{}", text.trim_end_matches('\n')));
    }
    ExitCode::SUCCESS
}

/// Writes committed files, whose paths begin at the root of the repository, where `folder` is. Exit code 2
/// elsewhere.
pub fn write(folder: &str, files: impl IntoIterator<Item = (PathBuf, String)>) -> ExitCode {
    if !Path::new(folder).is_dir() {
        let remedy = "run --bless in the root of the repository";
        tell_user(format_args!("nmad sim: there is no folder {folder} here ({remedy})"));
        return ExitCode::from(nmad_words::USAGE);
    }
    for (path, text) in files {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if before == text {
            say_line(format_args!("{} unchanged", path.display()));
        } else if let Err(error) = std::fs::write(&path, text) {
            tell_user(format_args!("nmad sim: {}: {error}", path.display()));
            return ExitCode::FAILURE;
        } else {
            say_line(format_args!("{} written", path.display()));
        }
    }
    ExitCode::SUCCESS
}
