//! `nmad-tidy [ROOT]`: prints what is untidy and fails if anything is.
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nmad-tidy: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<usize> {
    let root = env::args_os().nth(1).map_or_else(find_root, |arg| Ok(PathBuf::from(arg)))?;
    let findings = nmad_tidy::check(&root)?;
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("{} untidy", findings.len());
    Ok(findings.len())
}

/// The nearest folder above the current one whose manifest describes a workspace.
fn find_root() -> io::Result<PathBuf> {
    let here = env::current_dir()?;
    let is_root = |dir: &&Path| {
        let manifest = fs::read_to_string(dir.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    };
    here.ancestors()
        .find(is_root)
        .map(Path::to_owned)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no workspace here or above: name its root"))
}
