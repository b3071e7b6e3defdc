//! The loop around a target: options, corpus, iterations, and what is left of a failure.

use crate::rng::Rng;
use std::cell::Cell;
use std::fmt::Arguments;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Attempts to make a failing input shorter.
const SHRINK_MAX: usize = 4_000;

thread_local! {
    static TALKS: Cell<bool> = const { Cell::new(false) };
}

/// Prints what a target does, if a single file is replayed.
pub(crate) fn say(what: Arguments<'_>) {
    if TALKS.get() {
        println!("{what}");
    }
}

/// A program to fuzz, and the source of its input.
pub struct Target {
    /// Name of the program and of its folder in the corpus.
    pub name: &'static str,
    /// Panics if the input shows a bug.
    pub run: fn(&[u8]),
    /// Makes the input of one iteration from the corpus.
    pub(crate) generate: fn(&mut Rng, &[Vec<u8>]) -> Vec<u8>,
    /// First files of the corpus, by name.
    pub(crate) seeds: fn() -> Vec<(String, Vec<u8>)>,
}

struct Options {
    seconds: u64,
    seed: u64,
    corpus: PathBuf,
    write_seeds: bool,
    files: Vec<PathBuf>,
}

/// Runs a target as a program.
pub fn main(target: &Target) -> ExitCode {
    let result = options(target.name).and_then(|options| {
        if options.write_seeds {
            write_seeds(target, &options.corpus)
        } else if options.files.is_empty() {
            fuzz(target, &options)
        } else {
            replay(target, &options.files)
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}: {why}", target.name);
            ExitCode::FAILURE
        }
    }
}

fn options(name: &str) -> Result<Options, String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut options = Options { seconds: 20, seed: 1, corpus, write_seeds: false, files: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse().map_err(|e| format!("'{text}': {e}"));
        match argument.as_str() {
            "--seconds" => options.seconds = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--corpus" => options.corpus = PathBuf::from(value()?),
            "--write-seeds" => options.write_seeds = true,
            option if option.starts_with('-') => {
                return Err(format!(
                    "no option {option} (there are --seconds, --seed, --corpus, --write-seeds)"
                ));
            }
            file => options.files.push(PathBuf::from(file)),
        }
    }
    Ok(options)
}

fn write_seeds(target: &Target, corpus: &Path) -> Result<(), String> {
    fs::create_dir_all(corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    for (name, bytes) in (target.seeds)() {
        let path = corpus.join(name);
        fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn replay(target: &Target, files: &[PathBuf]) -> Result<(), String> {
    TALKS.set(true);
    for file in files {
        let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        println!("{}: {} B", file.display(), bytes.len());
        (target.run)(&bytes);
    }
    Ok(())
}

/// The files of a corpus, in the order of their names.
fn load(corpus: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let list = fs::read_dir(corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    let mut paths: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let read = |path: PathBuf| match fs::read(&path) {
        Ok(bytes) => Ok((path, bytes)),
        Err(e) => Err(format!("{}: {e}", path.display())),
    };
    paths.into_iter().filter(|path| path.is_file()).map(read).collect()
}

fn fuzz(target: &Target, options: &Options) -> Result<(), String> {
    let files = load(&options.corpus)?;
    for (path, bytes) in &files {
        if !passes(target, bytes) {
            return Err(format!("{} fails", path.display()));
        }
    }
    let corpus: Vec<Vec<u8>> = files.into_iter().map(|(_, bytes)| bytes).collect();
    let (begin, limit) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut iteration = 0;
    while begin.elapsed() < limit {
        let input = (target.generate)(&mut Rng::new(options.seed, iteration), &corpus);
        if !passes(target, &input) {
            return Err(leave(target, options.seed, iteration, &input)?);
        }
        iteration += 1;
    }
    println!(
        "{}: {} files and {iteration} inputs with seed {}: no failure",
        target.name,
        corpus.len(),
        options.seed
    );
    Ok(())
}

fn passes(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok()
}

/// Leaves the input of a failure, and a shorter one that fails too; says where.
fn leave(target: &Target, seed: u64, iteration: u64, input: &[u8]) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    let path = folder.join(format!("{}-{seed}-{iteration}", target.name));
    let short = path.with_extension("short");
    let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(|e| format!("{path:?}: {e}"));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    write(&path, input)?;
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let shorter = shrink(target, input);
    set_hook(hook);
    write(&short, &shorter)?;
    Ok(format!(
        "seed {seed} iteration {iteration} fails; its input is {}, and {} B that fail are {}",
        path.display(),
        shorter.len(),
        short.display()
    ))
}

/// Leaves out parts, then zeroes bytes, as long as the rest fails.
fn shrink(target: &Target, input: &[u8]) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut attempts = 0;
    let mut part = best.len() / 2;
    while part > 0 && attempts < SHRINK_MAX {
        let mut at = 0;
        while at + part <= best.len() && attempts < SHRINK_MAX {
            let mut less = best.clone();
            less.drain(at..at + part);
            attempts += 1;
            if passes(target, &less) {
                at += part;
            } else {
                best = less;
            }
        }
        part /= 2;
    }
    best
}
