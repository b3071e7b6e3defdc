//! The committed tables and pictures: `nmad sim --scale --bless` writes them, tests make a part of them anew.

use super::fabric::FABRICS;
use super::packet;
use super::regret;
use super::times::{self, Row};
use nmad_mpi::algorithm::choice::Family;
use nmad_words::{USAGE, say_line, tell_user};
use std::path::Path;
use std::process::ExitCode;

/// Folder of the tables, from the root of the repository.
pub const FOLDER: &str = "scale/golden";
/// Folder of the pictures, which the documents show.
pub const PICTURES: &str = "docs/img";
/// A committed table.
#[derive(Debug)]
pub struct Golden {
    /// Its file, without the ending.
    pub name: &'static str,
    /// Makes its text.
    pub make: fn() -> String,
    /// It has a picture, drawn from its text.
    pub is_drawn: bool,
}

/// All of them.
pub const TABLES: &[Golden] = &[
    Golden { name: "model", make: || packet::table(Family::ALL, &mut |_, _, _| {}), is_drawn: false },
    Golden { name: "times-1K", make: || times_of(1 << 10), is_drawn: true },
    Golden { name: "times-1M", make: || times_of(1 << 20), is_drawn: true },
    Golden { name: "regret-fat-tree", make: || regret::table(&FABRICS[0]), is_drawn: false },
    Golden { name: "regret-dragonfly", make: || regret::table(&FABRICS[1]), is_drawn: false },
    Golden { name: "regret-two-rails", make: || regret::table(&FABRICS[2]), is_drawn: false },
];

fn times_of(len: u64) -> String {
    let fabric = &FABRICS[0];
    let cases = Family::ALL.iter().flat_map(|&family| times::cases(fabric, family, len));
    times::text(fabric, len, &cases.map(Row::of).collect::<Vec<_>>())
}

/// Writes tables and their pictures.
pub fn write<'a>(tables: impl IntoIterator<Item = &'a Golden>) -> ExitCode {
    if !Path::new(FOLDER).is_dir() {
        let remedy = "run --bless in the root of the repository";
        tell_user(format_args!("nmad sim: there is no folder {FOLDER} here ({remedy})"));
        return ExitCode::from(USAGE);
    }
    for Golden { name, make, is_drawn } in tables {
        let text = make();
        let picture = is_drawn.then(|| times::drawn(&text));
        let is_put = put(FOLDER, &format!("{name}.txt"), &text);
        if !is_put || !picture.is_none_or(|picture| put(PICTURES, &format!("{name}.svg"), &picture)) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes a file; returns whether that went well.
fn put(folder: &str, name: &str, text: &str) -> bool {
    let path = Path::new(folder).join(name);
    if std::fs::read_to_string(&path).is_ok_and(|before| before == *text) {
        say_line(format_args!("{} unchanged", path.display()));
        return true;
    }
    match std::fs::write(&path, text) {
        Ok(()) => say_line(format_args!("{} written", path.display())),
        Err(error) => {
            tell_user(format_args!("nmad sim: {}: {error}", path.display()));
            return false;
        }
    }
    true
}
