//! Manual pages and completions for shells, made from the command lines themselves, so that they always
//! agree.
//!
//! `nmad install` puts them where `man`, bash, zsh and fish look below a prefix.

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use nmad_launch::cli::RunArgs;

use crate::command;
use crate::compile;

/// The launcher's names.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// All files, each by its path below the prefix, with its text.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files = pages();
    for name in ["nmad"].into_iter().chain(LAUNCHERS) {
        files.extend(completions(name));
    }
    files
}

fn command_of(name: &'static str) -> Command {
    match name {
        "nmad" => command::command(),
        _ => RunArgs::augment_args(
            Command::new(name)
                .version(env!("CARGO_PKG_VERSION"))
                .about("Start several ranks of a program; another name of nmad run"),
        ),
    }
}

/// A page for `nmad`, one for each of its subcommands (`nmad-run`), and those of the other names.
fn pages() -> Vec<(String, String)> {
    let mut nmad = command_of("nmad");
    nmad.build();
    let subcommands = nmad.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let mut all: Vec<Command> = subcommands.cloned().collect();
    all.push(nmad.clone());
    all.push(command_of("mpiexec"));
    all.extend(compile::NAMES.map(|(name, about)| {
        let command = Command::new(name).about(about).disable_help_flag(true);
        command.override_usage(format!("{name} [OPTION...] ARGUMENT...")).after_help(compile::HELP)
    }));
    let mut pages: Vec<(String, String)> = all.into_iter().map(page).collect();
    // Other names of the same page.
    let same = |name: &str, of: &str| (format!("share/man/man1/{name}.1"), format!(".so man1/{of}.1\n"));
    pages.extend([same("mpirun", "mpiexec"), same("mpic++", "mpicxx")]);
    pages
}

fn page(command: Command) -> (String, String) {
    let version = concat!("nmad ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command).manual("NewMadeleine").source(version);
    (format!("share/man/man1/{}", page.get_filename()), text(|to| page.render(to).map_err(drop)))
}

fn completions(name: &'static str) -> [(String, String); 3] {
    let of = |shell: Shell| {
        let mut command = command_of(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> String {
        files().into_iter().find(|(other, _)| other == path).unwrap_or_else(|| panic!("no {path}")).1
    }

    #[test]
    fn each_subcommand_has_a_page_that_names_its_options() {
        let nmad = command::command();
        for one in nmad.get_subcommands().filter(|one| !one.is_hide_set()) {
            let page = file(&format!("share/man/man1/nmad-{}.1", one.get_name()));
            for option in
                one.get_arguments().filter(|one| !one.is_hide_set()).filter_map(|one| one.get_long())
            {
                // The manual writes hyphens with a backslash.
                let option = option.replace('-', "\\-");
                assert!(page.contains(&option), "{} --{option}", one.get_name());
            }
        }
        assert!(file("share/man/man1/mpicc.1").contains("abi=mpich"));
        assert!(file("share/man/man1/mpiexec.1").contains("timeout"));
        assert!(!files().iter().any(|(path, _)| path.contains("enter")), "what is hidden has none");
    }

    #[test]
    fn completions_know_the_subcommands() {
        for path in [
            "share/bash-completion/completions/nmad",
            "share/zsh/site-functions/_nmad",
            "share/fish/vendor_completions.d/nmad.fish",
        ] {
            let text = file(path);
            assert!(text.contains("testbed") && text.contains("uninstall"), "{path}");
        }
        assert!(file("share/bash-completion/completions/mpiexec").contains("--timeout"));
    }
}
