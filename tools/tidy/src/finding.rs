//! One thing that is untidy.
use std::fmt;

/// One thing that is untidy, and where. Ordered by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root, with `/` between folders.
    pub path: String,
    /// The line, counted from one; zero: the file as a whole.
    pub line: usize,
    /// The rule's name, as the allow list writes it.
    pub rule: &'static str,
    /// What within the file, if one exception should not cover all of it: the name of a function.
    pub item: Option<String>,
    /// The fault, and the remedy where it is not obvious.
    pub what: String,
}

impl Finding {
    /// A finding about a line, or with zero about the whole file.
    pub fn new(rule: &'static str, path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, rule, item: None, what: what.into() }
    }

    /// What an entry of the allow list must name to except this finding: `path` or `path::item`.
    pub fn subject(&self) -> String {
        match &self.item {
            Some(item) => format!("{}::{item}", self.path),
            None => self.path.clone(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}: {}", self.rule, self.what)
    }
}
