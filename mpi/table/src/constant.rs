//! The constants of `constants.txt`.

use crate::Abi;
use std::sync::LazyLock;

/// Constants that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// The type in C.
    pub ctype: &'static str,
    /// Its constants.
    pub constants: Vec<Constant>,
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    name: &'static str,
    standard: Option<i64>,
    mpich: Option<i64>,
    core: Option<i64>,
}

impl Constant {
    /// Its name in C.
    pub fn name(&self) -> String {
        if self.name.starts_with("MPIX_") { self.name.to_string() } else { format!("MPI_{}", self.name) }
    }

    /// Its number, if the binary interface has it.
    pub fn number(&self, abi: Abi) -> Option<i64> {
        match abi {
            Abi::Standard => self.standard,
            Abi::Mpich => self.mpich,
        }
    }

    /// The core's number.
    pub fn core(&self) -> Option<i64> {
        self.core.or(self.standard)
    }
}

/// All constants.
pub fn groups() -> &'static [Group] {
    static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| parse(include_str!("../constants.txt")));
    &GROUPS
}

/// The group of this name.
pub(crate) fn group(name: &str) -> &'static Group {
    groups()
        .iter()
        .find(|group| group.name == name)
        .unwrap_or_else(|| panic!("constants.txt has no [{name}]"))
}

fn parse(text: &'static str) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, ctype)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            all.push(Group { name, ctype, constants: Vec::new() });
            continue;
        }
        let mut words = line.split_whitespace();
        let name = words.next().expect("the line is not empty");
        let mut number = || words.next().and_then(number);
        let constant = Constant { name, standard: number(), mpich: number(), core: number() };
        all.last_mut().expect("constants are in groups").constants.push(constant);
    }
    all
}

fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
