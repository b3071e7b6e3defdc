//! Manual pages and completions for shells, made from the command lines themselves, so that they always
//! agree.
//!
//! `nmad install` puts them where `man`, bash, zsh and fish look below a prefix.

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use nmad_launch::cli::RunArgs;

use crate::compile;
use newmadeleine::setting;

/// The launcher's names.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// All files, each by its path below the prefix, with its text; `nmad` is the command line of that name.
pub(crate) fn files(nmad: &Command) -> Vec<(String, String)> {
    let mut files = pages(nmad.clone());
    files.extend(completions("nmad", nmad.clone()));
    for name in LAUNCHERS {
        files.extend(completions(name, launcher(name)));
    }
    files
}

fn launcher(name: &'static str) -> Command {
    let about = "Start several ranks of a program; another name of nmad run";
    RunArgs::augment_args(Command::new(name).version(env!("CARGO_PKG_VERSION")).about(about))
}

/// A page for `nmad`, one for each of its subcommands (`nmad-run`), and those of the other names.
fn pages(mut nmad: Command) -> Vec<(String, String)> {
    nmad.build();
    let subcommands = nmad.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let mut all: Vec<Command> = subcommands.cloned().collect();
    all.push(nmad.clone());
    all.push(launcher("mpiexec"));
    all.extend(compile::NAMES.map(|(name, about)| {
        let command = Command::new(name).about(about).disable_help_flag(true);
        command.override_usage(format!("{name} [OPTION...] ARGUMENT...")).after_help(compile::HELP)
    }));
    let mut pages: Vec<(String, String)> = all.into_iter().map(page).collect();
    // Other names of the same page.
    let same = |name: &str, of: &str| (format!("share/man/man1/{name}.1"), format!(".so man1/{of}.1\n"));
    pages.extend([same("mpirun", "mpiexec"), same("mpic++", "mpicxx")]);
    pages.extend([same("mpif90", "mpifort"), same("mpif77", "mpifort")]);
    pages
}

fn page(command: Command) -> (String, String) {
    let version = concat!("nmad ", env!("CARGO_PKG_VERSION"));
    // Settings concern the commands that run programs.
    let is_of_programs = ["nmad", "nmad-run", "mpiexec"].contains(&command.get_name());
    let page = Man::new(command).manual("NewMadeleine").source(version);
    let mut roff = text(|to| page.render(to).map_err(drop));
    if is_of_programs {
        roff.push_str(&setting::roff());
    }
    (format!("share/man/man1/{}", page.get_filename()), roff)
}

fn completions(name: &'static str, mut command: Command) -> [(String, String); 3] {
    let mut of = |shell: Shell| {
        text(|to| {
            clap_complete::generate(shell, &mut command, name, to);
            Ok(())
        })
    };
    [
        (format!("share/bash-completion/completions/{name}"), of(Shell::Bash)),
        (format!("share/zsh/site-functions/_{name}"), of(Shell::Zsh)),
        (format!("share/fish/vendor_completions.d/{name}.fish"), of(Shell::Fish)),
    ]
}

/// What `write` writes. Writing to memory cannot fail, and help is text.
fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), ()>) -> String {
    let mut bytes = Vec::new();
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
