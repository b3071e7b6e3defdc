//! The functions of `functions.txt`.

use crate::argument::{Argument, Direction};
use std::sync::LazyLock;

/// A function of MPI, as the table has it: families and forms are one entry each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name without `MPI_`; with `MPIX_` for one that is not of the standard.
    pub name: String,
    /// The function that the core has for it, if it is another one's.
    pub does: Option<String>,
    /// The chapter.
    pub chapter: &'static str,
    /// There is a form with large counts.
    pub large: bool,
    /// It is deprecated.
    pub deprecated: bool,
    /// It may be called before Init and after Finalize.
    pub early: bool,
    /// The core receives the form that was called.
    pub tells_form: bool,
    /// The front does it by hand.
    pub by_hand: bool,
    /// Its arguments in the order of the standard.
    pub arguments: Vec<Argument>,
    /// The kind of its result, if that is not an error code.
    pub result: Option<String>,
}

impl Function {
    /// The name of the Rust functions for it, in core and fronts.
    pub fn snake(&self) -> String {
        self.name.to_lowercase()
    }

    /// Whether it is of the standard.
    pub fn is_standard(&self) -> bool {
        !self.name.starts_with(EXTENSION)
    }

    /// Whether it is of the tools interface.
    pub(crate) fn is_of_tools(&self) -> bool {
        self.name.starts_with("T_")
    }

    /// The function of the core that does the work.
    pub fn core(&self) -> String {
        self.does.as_ref().unwrap_or(&self.name).to_lowercase()
    }

    /// Whether it is a collective that moves or combines data: which of its counts and types mean something
    /// depends on the rank and on `MPI_IN_PLACE`, so they are checked where that is known.
    pub(crate) fn checks_data_itself(&self) -> bool {
        matches!(self.chapter, "collectives" | "neighbourhood collectives")
    }

    /// Names of its symbols: the one, and that with large counts.
    pub fn symbols(&self) -> Vec<String> {
        let large = self.large.then(|| symbol(&format!("{}_c", self.name)));
        std::iter::once(symbol(&self.name)).chain(large).collect()
    }
}

/// How functions that are not of the standard begin.
const EXTENSION: &str = "MPIX_";

/// The name of a function in C.
pub(crate) fn symbol(name: &str) -> String {
    if name.starts_with(EXTENSION) { name.to_string() } else { format!("MPI_{name}") }
}

/// All functions; the members of a family each by itself, the forms of a function together.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| parse(include_str!("../functions.txt")));
    &FUNCTIONS
}

fn parse(text: &'static str) -> Vec<Function> {
    let mut chapter = "";
    let mut all = Vec::new();
    for line in joined(text) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            // Chapters are lines of their own in the text.
            Some(_) => chapter = chapter_in(text, &line),
            None => all.extend(entry(&line, chapter)),
        }
    }
    all
}

/// The lines of the table, those that continue one joined with it.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match lines.last_mut() {
            Some(last) if line.starts_with(' ') => last.push_str(&format!(" {}", line.trim())),
            _ => lines.push(line.to_string()),
        }
    }
    lines
}

fn chapter_in(text: &'static str, heading: &str) -> &'static str {
    let line = text.lines().find(|line| *line == heading).expect("the heading is in the text");
    &line[1..line.len() - 1]
}

fn entry(line: &str, chapter: &'static str) -> Vec<Function> {
    let (line, result) = match line.split_once(" -> ") {
        Some((line, result)) => (line, Some(result.to_string())),
        None => (line, None),
    };
    let mut words = line.split_whitespace();
    let flags = words.next().unwrap_or_default();
    let name = words.next().unwrap_or_else(|| panic!("functions.txt: '{line}' has no name"));
    let (name, does) = match name.split_once('=') {
        Some((name, does)) => (name, Some(does.to_string())),
        None => (name, None),
    };
    assert!(flags.chars().all(|flag| "cfdeFh-".contains(flag)), "functions.txt: flags of {name}: '{flags}'");
    let has = |flag| flags.contains(flag);
    let function = Function {
        name: name.to_string(),
        does,
        chapter,
        large: has('c'),
        deprecated: has('d'),
        early: has('e'),
        tells_form: has('F'),
        by_hand: has('h'),
        arguments: words.map(Argument::parse).collect(),
        result,
    };
    if has('f') { family(function) } else { vec![function] }
}

/// A blocking collective, the nonblocking one and the persistent one.
fn family(blocking: Function) -> Vec<Function> {
    let request = || Argument::plain("request", Direction::Out, "request");
    let mut nonblocking = blocking.clone();
    nonblocking.name = format!("I{}", blocking.snake());
    nonblocking.arguments.push(request());
    let mut persistent = blocking.clone();
    persistent.name = format!("{}_init", blocking.name);
    persistent.arguments.push(Argument::plain("info", Direction::In, "info"));
    persistent.arguments.push(request());
    vec![blocking, nonblocking, persistent]
}
