//! The pictures of README beside other MPIs.
//!
//! `comparison DIR` draws what DIR/comparison.tsv has, a table of figures, into DIR. `comparison DIR REPORT`
//! makes that table first, from a report of `nmad bench compare` (report.json).
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use nmad_bench::comparison::{pictures, read};
use nmad_compare::{CellRow, Report};

/// The cells of the pictures: section of the table, its place, its pattern and variant.
const SECTIONS: [(&str, &str, &str, &str); 5] = [
    ("rails", "hosts2-4+1", "oneway", "w1"),
    ("hosts", "hosts2", "pingpong", "-"),
    ("hosts", "hosts2", "oneway", "w64"),
    ("hosts", "hosts2", "rate", "c16"),
    ("hosts", "hosts2", "types", "mixed"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let folder = words.next().ok_or("usage: comparison DIR [REPORT]")?;
    let folder = Path::new(&folder);
    let table = folder.join("comparison.tsv");
    if let Some(report) = words.next() {
        fs::write(&table, tabulated(&Report::read(Path::new(&report))?))?;
    }
    let text = fs::read_to_string(&table).map_err(|error| format!("{}: {error}", table.display()))?;
    for (name, svg) in pictures(&read(&text)?)? {
        fs::write(folder.join(name), svg)?;
        println!("{}", folder.join(name).display());
    }
    Ok(())
}

/// The table of a report: its figures by section, round, library and case.
fn tabulated(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "# {}, {} cores, Linux {}; {}\n# {}\n# section, round, library, case, microseconds\n",
        machine.processor, machine.cores, machine.kernel, report.made, report.command
    );
    for (section, place, pattern, variant) in SECTIONS {
        let is_of_it = |row: &&CellRow| {
            let cell = &row.cell;
            (&*cell.place, &*cell.pattern, &*cell.variant) == (place, pattern, variant)
        };
        for row in report.cells.iter().filter(is_of_it) {
            let Some(case) = case(section, (pattern, variant), row.cell.bytes) else { continue };
            // With their default settings.
            for (who, times) in row.times.iter().filter(|(who, _)| !who.contains(' ')) {
                for time in times {
                    let _ = writeln!(text, "{section}\t{}\t{who}\t{case}\t{:.3}", time.round, time.us);
                }
            }
        }
    }
    text
}

/// What the pictures call a cell; none: no picture has it.
fn case(section: &str, (pattern, variant): (&str, &str), bytes: u64) -> Option<String> {
    let length = match bytes {
        bytes if bytes.is_multiple_of(1 << 20) && bytes > 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) && bytes > 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    };
    match (section, pattern, bytes) {
        ("rails", _, 65536..) => Some(format!("one way {length}")),
        ("hosts", "pingpong" | "oneway", 8) | ("hosts", "rate", 64) | ("hosts", "types", 32768) => {
            Some(format!("{pattern} {variant} {length}"))
        }
        _ => None,
    }
}
