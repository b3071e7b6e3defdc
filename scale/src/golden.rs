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
/// Bytes of the tables of times, and their names.
pub const TIMES: [(u64, &str); 2] = [(1 << 10, "times-1K"), (1 << 20, "times-1M")];

/// Writes all of them.
pub fn write() -> ExitCode {
    if !Path::new(FOLDER).is_dir() {
        tell_user(format_args!(
            "nmad sim: there is no folder {FOLDER} here (run --bless in the root of the repository)"
        ));
        return ExitCode::from(USAGE);
    }
    let mut has_failed = !put(FOLDER, "model.txt", packet::table(Family::ALL, &mut |_, _, _| {}));
    for (len, name) in TIMES {
        let fabric = &FABRICS[0];
        let cases = Family::ALL.iter().flat_map(|&family| times::cases(fabric, family, len));
        let text = times::text(fabric, len, &cases.map(Row::of).collect::<Vec<_>>());
        has_failed |= !put(PICTURES, &format!("{name}.svg"), times::drawn(&text));
        has_failed |= !put(FOLDER, &format!("{name}.txt"), text);
    }
    for fabric in FABRICS {
        has_failed |= !put(FOLDER, &format!("regret-{}.txt", fabric.name), regret::table(fabric));
    }
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Writes a file; returns whether that went well.
fn put(folder: &str, name: &str, text: String) -> bool {
    let path = Path::new(folder).join(name);
    if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
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
