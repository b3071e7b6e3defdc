//! The pages of the documentation: every command on them runs, and prints what they promise.
//!
//! An indented block of README.md or docs/*.md consists of commands, one a line; anything else is fenced, with
//! its language. Comments in front of a block say what the test cannot know; `blocks.rs` lists them. The list of
//! all commands: `cargo test -p nmad-cli --test all pages -- --nocapture`.

mod blocks;
mod promise;

use crate::command::{Ended, run};
use crate::install;
use blocks::{Block, Kind, blocks};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Programs that pages run without saying where they come from, and their sources below [`SOURCE`].
const PROGRAMS: [(&str, &str); 4] = [
    ("hello", "capi/examples/hello.c"),
    ("ring", "mpi/front/examples/ring.c"),
    ("program", "mpi/front/examples/ring.c"),
    ("PROGRAM", "mpi/front/examples/ring.c"),
];

#[test]
fn every_command_of_the_pages_runs() {
    let mut pages = vec![PathBuf::from(SOURCE).join("README.md")];
    let docs = fs::read_dir(Path::new(SOURCE).join("docs")).expect("the documentation");
    pages.extend(docs.map(|entry| entry.expect("an entry").path()));
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.sort();
    let place = Place::new();
    let (queue, failures) = (Mutex::new(pages.into_iter()), Mutex::new(Vec::new()));
    // Two pages at a time: most commands wait for their ranks to start.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(page) = queue.lock().expect("no panic").next() else { break };
                    failures.lock().expect("no panic").extend(Page::new(&place, &page).run());
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{} of the pages' blocks:\n{}", failures.len(), failures.join("\n"));
}

/// What all pages share.
struct Place {
    /// Holds the compiled programs.
    programs: TempDir,
    /// Why this machine has no testbed.
    no_testbed: Option<String>,
}

impl Place {
    fn new() -> Place {
        let programs = tempfile::tempdir().expect("a folder");
        for (name, source) in PROGRAMS {
            let compiler = if name == "hello" { "cc" } else { "mpicc" };
            let mut command = Command::new(compiler);
            command.arg(Path::new(SOURCE).join(source)).arg("-o").arg(programs.path().join(name));
            if name == "hello" {
                let prefix = install::prefix();
                command.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib"));
                command.arg("-lnmad").arg(format!("-Wl,-rpath,{}/lib", prefix.display()));
            }
            let ended = run(command.env("PATH", search_path(&[])));
            assert_eq!(ended.code, Some(0), "{source}: {}", ended.err);
        }
        let no_testbed = nmad_testbed::available().err().map(|refused| refused.to_string());
        Place { programs, no_testbed }
    }
}

/// The installed commands first, then the system's, then `more`.
fn search_path(more: &[&Path]) -> std::ffi::OsString {
    let system = std::env::var_os("PATH").unwrap_or_default();
    let first = std::iter::once(install::prefix().join("bin"));
    let all = first.chain(std::env::split_paths(&system)).chain(more.iter().map(|path| path.to_path_buf()));
    std::env::join_paths(all).expect("no folder has a colon in its name")
}

/// A page, and a folder of its own in which its commands run.
struct Page<'a> {
    place: &'a Place,
    name: String,
    blocks: Vec<Block>,
    folder: TempDir,
    /// Lines that set variables for all commands after them.
    exports: Vec<String>,
    /// Commands that ran, and what they printed.
    ran: Vec<(String, Ended)>,
}

impl<'a> Page<'a> {
    fn new(place: &'a Place, path: &Path) -> Page<'a> {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let blocks = blocks(&fs::read_to_string(path).expect("a page"));
        let folder = tempfile::tempdir().expect("a folder");
        let link = |to: &Path, name: &str| symlink(to, folder.path().join(name)).expect("a link");
        for (name, source) in PROGRAMS {
            link(&place.programs.path().join(name), name);
            let source = Path::new(SOURCE).join(source);
            let copy = folder.path().join(source.file_name().expect("a name"));
            fs::copy(&source, copy).expect("a copy");
        }
        // As in a clone of the repository, and as after an installation: `DIR` is the prefix on the pages.
        for name in ["mpi", "capi", "python", "sim"] {
            link(&Path::new(SOURCE).join(name), name);
        }
        let prefix = install::prefix();
        fs::create_dir(folder.path().join("home")).expect("a folder");
        link(prefix, "home/nmad");
        link(prefix, "DIR");
        Page { place, name, blocks, folder, exports: Vec::new(), ran: Vec::new() }
    }

    /// Runs the page from top to bottom; returns a text for each block that is not as it should be.
    fn run(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            let result = match &block.kind {
                Kind::Commands => self.commands(&block),
                Kind::Fenced => self.promise(&block),
            };
            failures.extend(result.err().map(|text| format!("{}:{}: {text}", self.name, block.line)));
        }
        failures
    }

    fn commands(&mut self, block: &Block) -> Result<(), String> {
        block.check_marks()?;
        for (number, command) in block.commands() {
            let (start, name) = (Instant::now(), format!("{}:{number}", self.name));
            if let Some(why) = self.reason_not_to(block, &command) {
                println!("not run  {name:<22} {command}: {why}");
                continue;
            }
            if command.starts_with("export ") {
                self.exports.push(command);
                continue;
            }
            let ended = self.shell(block, &command);
            println!("ran      {name:<22} {command} ({:.1} s)", start.elapsed().as_secs_f64());
            let wanted = block.exit_code(&command);
            if ended.code != Some(wanted) {
                let (out, err) = (&ended.out, &ended.err);
                return Err(format!(
                    "`{command}` ended with {:?} instead of {wanted}:\n{out}{err}",
                    ended.code
                ));
            }
            self.ran.push((command, ended));
        }
        Ok(())
    }

    fn reason_not_to(&self, block: &Block, command: &str) -> Option<String> {
        let is_there = |tool: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
        };
        let missing = block.needs().into_iter().find(|tool| !is_there(tool));
        let builds_hosts = ["nmad testbed", "nmad bench", "nmad demo"].iter().any(|word| command.contains(word))
            || block.around().contains("testbed");
        block
            .not_run(command)
            .or_else(|| missing.map(|tool| format!("there is no {tool} here")))
            .or_else(|| self.place.no_testbed.clone().filter(|_| builds_hosts))
    }

    fn shell(&self, block: &Block, command: &str) -> Ended {
        let command = match block.around() {
            "" => command.to_string(),
            around => format!("{around} sh -ec '{command}'"),
        };
        let script = [&self.exports[..], &[command]].concat().join("\n");
        let folder = self.folder.path();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &script]).current_dir(folder).env("HOME", folder.join("home"));
        run(shell.env("PATH", search_path(&[folder])).env("TMPDIR", folder))
    }

    /// Whether a command of the page has printed what a fenced block promises.
    fn promise(&self, block: &Block) -> Result<(), String> {
        let Some(promised) = block.printed_by() else { return Ok(()) };
        let Some((command, ended)) =
            self.ran.iter().rev().find(|(command, _)| command.contains(promised.command))
        else {
            println!("unread   {}:{} the command did not run here", self.name, block.line);
            return Ok(());
        };
        let printed = format!("{}{}", ended.out, ended.err);
        if promise::is_kept(&block.text, &printed, promised.with_other_figures) {
            return Ok(());
        }
        Err(format!("`{command}` does not print what the page promises, but\n{printed}"))
    }
}
