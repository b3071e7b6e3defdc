//! The table of settings as people read it: on a terminal, in a page of documentation, in a manual page.

use super::{ALL, Reader, Setting, Values};
use std::fmt::Write;

/// Groups of settings, in the order of the pages.
const GROUPS: [(&str, &[Reader]); 5] = [
    ("Sessions", &[Reader::Session, Reader::Running]),
    ("MPI", &[Reader::Mpi]),
    ("Launching", &[Reader::Launcher]),
    ("Compiling", &[Reader::Compiler]),
    ("Set by launchers and testbeds, not by users", &[Reader::Internal]),
];

/// Returns the settings in groups with a title.
fn groups() -> impl Iterator<Item = (&'static str, Vec<&'static Setting>)> {
    GROUPS.iter().map(|(title, readers)| {
        (*title, ALL.iter().copied().filter(|setting| readers.contains(&setting.reader)).collect())
    })
}

impl Values {
    /// Returns the words of [`Values::Words`]; empty for other values.
    pub const fn words(&self) -> &'static [&'static str] {
        match self {
            Values::Words(words) => words,
            _ => &[],
        }
    }

    /// Returns the valid values in words.
    pub fn in_words(&self) -> String {
        match self {
            Values::Size { least: 0 } => "a size".into(),
            Values::Size { least } => format!("a size, at least {least}"),
            Values::Seconds => "seconds".into(),
            Values::Switch => "on or off".into(),
            Values::Words(words) => words.join(", "),
            Values::Form(form) => (*form).into(),
        }
    }
}

/// Returns the meaning of a setting, and when to set it.
fn explained(setting: &Setting) -> String {
    match setting.when {
        "" => setting.meaning.into(),
        when => format!("{}. Set it: {when}", setting.meaning),
    }
}

/// Returns the settings that users set as lines for a terminal: name, values and default, then the meaning.
pub fn text() -> String {
    let mut text = String::new();
    for (title, settings) in groups().take(GROUPS.len() - 1) {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{title}:");
        for setting in settings {
            let values = setting.values.in_words();
            let _ = writeln!(text, "  {} [{values}; default: {}]", setting.name, setting.default);
            let _ = writeln!(text, "      {}", setting.meaning);
        }
    }
    text
}

/// Returns the tables of `docs/settings.md`.
pub fn markdown() -> String {
    let mut text = String::new();
    for (title, settings) in groups() {
        let _ = writeln!(
            text,
            "\n### {title}\n\n| variable | values | default | what it does |\n|---|---|---|---|"
        );
        for setting in settings {
            let (values, what) = (setting.values.in_words(), explained(setting));
            let _ = writeln!(text, "| `{}` | {values} | {} | {what} |", setting.name, setting.default);
        }
    }
    text
}

/// Returns the section `ENVIRONMENT` of a manual page, in roff.
pub fn roff() -> String {
    let mut text = String::from(".SH ENVIRONMENT\n");
    for setting in groups().take(GROUPS.len() - 1).flat_map(|(_, settings)| settings) {
        let values = setting.values.in_words();
        let line = format!("{} ({values}; default: {})", explained(setting), setting.default);
        // A hyphen in roff is no minus sign, which options have.
        let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{}", setting.name, line.replace('-', "\\-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_each_setting_that_users_set() {
        let (text, markdown, roff) = (text(), markdown(), roff());
        for setting in ALL {
            assert!(markdown.contains(setting.name), "{}", setting.name);
            let is_users = setting.reader != Reader::Internal;
            assert_eq!((text.contains(setting.name), roff.contains(setting.name)), (is_users, is_users));
        }
        assert!(roff.lines().all(|line| !line.starts_with('.') || line.starts_with(".SH") || line == ".TP"));
    }
}
