//! The pictures of README beside other MPIs.
//!
//! `comparison DIR [FILE]` reads FILE (DIR/comparison.tsv if none is given), a table of figures, and draws
//! into DIR.
use std::error::Error;
use std::path::Path;
use std::{env, fs};

use nmad_bench::comparison::{pictures, read};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let folder = words.next().ok_or("usage: comparison DIR [FILE]")?;
    let folder = Path::new(&folder);
    let table = words.next().map_or_else(|| folder.join("comparison.tsv"), Into::into);
    let text = fs::read_to_string(&table).map_err(|error| format!("{}: {error}", table.display()))?;
    for (name, svg) in pictures(&read(&text)?)? {
        fs::write(folder.join(name), svg)?;
        println!("{}", folder.join(name).display());
    }
    Ok(())
}
