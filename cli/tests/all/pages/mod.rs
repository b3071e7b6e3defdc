//! The pages of the documentation: every command on them runs, and prints what they promise.
//!
//! An indented block of README.md or docs/*.md consists of commands, one a line; anything else is fenced,
//! with its language. Comments in front of a block say what the test cannot know; `blocks.rs` lists them. The
//! list of all commands: `cargo test -p nmad-cli --test all pages -- --nocapture`.

mod blocks;
mod promise;
mod typed;

use crate::command::{Ended, run};
use crate::install;
use blocks::{Block, Kind, blocks};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;
use tempfile::TempDir;
use typed::Typed;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Programs that pages run without saying where they come from, and their sources below [`SOURCE`].
const PROGRAMS: [(&str, &str); 6] = [
    ("hello", "capi/examples/hello.c"),
    ("serve", "capi/examples/hello.c"),
    ("work", "capi/examples/hello.c"),
    ("ring", "mpi/front/examples/ring.c"),
    ("program", "mpi/front/examples/ring.c"),
    ("PROGRAM", "mpi/front/examples/ring.c"),
];

/// Pages that are run at the same time.
const AT_ONCE: usize = 4;
/// Pages whose commands take some seconds each.
const LONGEST: [&str; 4] = ["docs/simulator.md", "docs/ranks-die.md", "docs/strategy.md", "docs/encrypt.md"];

#[test]
fn every_command_of_the_pages_runs() {
    let mut pages = vec![PathBuf::from(SOURCE).join("README.md")];
    let docs = fs::read_dir(Path::new(SOURCE).join("docs")).expect("the documentation");
    pages.extend(docs.map(|entry| entry.expect("an entry").path()));
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    // The longest first, so that none of them is left alone at the end.
    let is_long = |page: &PathBuf| LONGEST.iter().any(|name| page.ends_with(name));
    pages.sort_by_key(|page| (!is_long(page), page.clone()));
    let place = Place::new();
    let (queue, failures) = (Mutex::new(pages.into_iter()), Mutex::new(Vec::new()));
    // Most commands wait for their ranks to start.
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
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
            let is_of_mpi = source.starts_with("mpi");
            let compiler = if is_of_mpi { "mpicc" } else { "cc" };
            let mut command = Command::new(compiler);
            command.arg(Path::new(SOURCE).join(source)).arg("-o").arg(programs.path().join(name));
            if !is_of_mpi {
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

/// A command of ours that prints the help of its subcommand instead, once it has read the options before.
fn with_help(command: &str) -> Option<String> {
    let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
    let program = command.split(' ').find(|word| !is_variable(word))?;
    // Where the options end, and the program of the user begins.
    let end = [" -- ", " ./"].iter().filter_map(|mark| command.find(mark)).min();
    let options = match (program, end) {
        ("nmad", None) if !command.contains("nmad run") => command,
        ("nmad" | "mpiexec", Some(end)) => &command[..end],
        _ => return None,
    };
    Some(format!("{options} --help"))
}

/// A page, and a folder of its own in which its commands run.
struct Page<'a> {
    place: &'a Place,
    name: String,
    blocks: Vec<Block>,
    typed: Vec<Typed>,
    folder: TempDir,
    /// Lines that set variables for all commands after them.
    exports: Vec<String>,
    /// Commands that ran, and what they printed.
    ran: Vec<(String, Ended)>,
}

impl<'a> Page<'a> {
    fn new(place: &'a Place, path: &Path) -> Page<'a> {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a page");
        let (blocks, typed) = (blocks(&text), typed::rows(&text));
        let folder = tempfile::tempdir().expect("a folder");
        let link = |to: &Path, name: &str| symlink(to, folder.path().join(name)).expect("a link");
        for (name, _) in PROGRAMS {
            link(&place.programs.path().join(name), name);
        }
        link(&Path::new(SOURCE).join("mpi/front/examples/ring.c"), "ring.c");
        let examples = fs::read_dir(install::prefix().join("share/doc/nmad/examples")).expect("examples");
        for example in examples.map(|entry| entry.expect("an entry")) {
            link(&example.path(), &example.file_name().to_string_lossy());
        }
        // As in a clone of the repository, and as after an installation: `DIR` is the prefix on the pages.
        for name in ["mpi", "capi", "python", "sim"] {
            link(&Path::new(SOURCE).join(name), name);
        }
        for name in ["home", "tmp"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        link(install::prefix(), "DIR");
        for (name, text) in blocks.iter().filter_map(Block::file) {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its permissions");
        }
        Page { place, name, blocks, typed, folder, exports: Vec::new(), ran: Vec::new() }
    }

    /// Runs the page from top to bottom; returns a text for each command and block with a fault.
    fn run(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            let found = match &block.kind {
                Kind::Commands => self.commands(&block),
                Kind::Fenced => self.promise(&block).err().into_iter().collect(),
            };
            failures.extend(found.iter().map(|text| format!("{}:{}: {text}", self.name, block.line)));
        }
        for row in std::mem::take(&mut self.typed) {
            failures.extend(self.typed(&row).err().map(|text| format!("{}:{}: {text}", self.name, row.line)));
        }
        failures
    }

    fn commands(&mut self, block: &Block) -> Vec<String> {
        let mut failures: Vec<String> = block.check_marks().err().into_iter().collect();
        for (number, command) in block.commands() {
            if let Err(text) = self.command(block, number, &command) {
                failures.push(text);
            }
        }
        failures
    }

    /// Runs a command; of one that is not run, only its options are checked.
    fn command(&mut self, block: &Block, number: usize, command: &str) -> Result<(), String> {
        let (start, name) = (Instant::now(), format!("{}:{number}", self.name));
        if let Some(why) = self.reason_not_to(block, command) {
            println!("not run  {name:<22} {command}: {why}");
            let Some(help) = with_help(command) else { return Ok(()) };
            let ended = self.shell(block.around(), &help);
            return match ended.code {
                Some(0) => Ok(()),
                code => Err(format!("`{help}` ended with {code:?}: {}", ended.err)),
            };
        }
        if command.starts_with("export ") {
            self.exports.push(command.into());
            return Ok(());
        }
        let ended = self.shell(block.around(), command);
        println!("ran      {name:<22} {command} ({:.1} s)", start.elapsed().as_secs_f64());
        let wanted = block.exit_code(command);
        if ended.code != Some(wanted) {
            let (out, err) = (&ended.out, &ended.err);
            return Err(format!("`{command}` ended with {:?} instead of {wanted}:\n{out}{err}", ended.code));
        }
        self.ran.push((command.into(), ended));
        Ok(())
    }

    /// Whether wrong input has the answer that a table says.
    fn typed(&self, row: &Typed) -> Result<(), String> {
        let Typed { line, command, texts, code } = row;
        if self.place.no_testbed.is_some() && command.contains("testbed") {
            return Ok(());
        }
        let ended = self.shell("", command);
        println!("ran      {:<22} {command}", format!("{}:{line}", self.name));
        let err = &ended.err;
        if ended.code != Some(*code) {
            return Err(format!("`{command}` ended with {:?} instead of {code}: {err}", ended.code));
        }
        match texts.iter().find(|text| !promise::contains(err, text)) {
            None => Ok(()),
            Some(text) => Err(format!("`{command}` does not print `{text}`, but {err}")),
        }
    }

    fn reason_not_to(&self, block: &Block, command: &str) -> Option<String> {
        let is_there = |tool: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
        };
        let missing = block.needs().into_iter().find(|tool| !is_there(tool));
        let builds_hosts =
            ["nmad testbed", "nmad bench", "nmad demo"].iter().any(|word| command.contains(word))
                || block.around().contains("testbed");
        block
            .not_run(command)
            .or_else(|| missing.map(|tool| format!("there is no {tool} here")))
            .or_else(|| self.place.no_testbed.clone().filter(|_| builds_hosts))
    }

    /// Runs a command in the page's folder, in a shell that `around` starts.
    fn shell(&self, around: &str, command: &str) -> Ended {
        let command = match around {
            "" => command.to_string(),
            _ => format!("{around} sh -ec '{command}'"),
        };
        let folder = self.folder.path();
        let tmp = folder.join("tmp");
        // What `cargo run` would build and start is installed already. Nothing is written to the common /tmp.
        let command = command.replace("cargo run --release -- ", "nmad ");
        let command = command.replace("/tmp/", &format!("{}/", tmp.display()));
        let script = [&self.exports[..], &[command]].concat().join("\n");
        let mut shell = Command::new("sh");
        shell.args(["-ec", &script]).current_dir(folder).env("HOME", folder.join("home"));
        run(shell.env("PATH", search_path(&[folder])).env("TMPDIR", tmp).env_remove("CARGO"))
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
