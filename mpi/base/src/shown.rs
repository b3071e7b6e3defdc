//! Numbers in error messages: some binary interfaces have other numbers for the core's constants and codes,
//! and messages show the numbers that the program wrote.

use crate::constant::{ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT};
use crate::error::Class;
use std::sync::OnceLock;

/// The numbers that the program's interface has for the core's.
pub struct Numbers {
    /// Of ranks.
    pub rank: fn(i32) -> i32,
    /// Of tags.
    pub tag: fn(i32) -> i32,
    /// Of error classes and codes.
    pub class: fn(Class) -> i32,
}

static NUMBERS: OnceLock<Numbers> = OnceLock::new();

/// Errors have these numbers from now on; without it, the core's.
pub fn set(numbers: Numbers) {
    // A program has one interface, and says so with every try to initialise.
    let _ = NUMBERS.set(numbers);
}

/// A rank, with its name if it is a constant.
pub fn rank(rank: i32) -> String {
    let name = match rank {
        ANY_SOURCE => Some("MPI_ANY_SOURCE"),
        PROC_NULL => Some("MPI_PROC_NULL"),
        ROOT => Some("MPI_ROOT"),
        _ => None,
    };
    named(NUMBERS.get().map_or(rank, |numbers| (numbers.rank)(rank)), name)
}

/// A tag, with its name if it is a constant.
pub fn tag(tag: i32) -> String {
    let name = (tag == ANY_TAG).then_some("MPI_ANY_TAG");
    named(NUMBERS.get().map_or(tag, |numbers| (numbers.tag)(tag)), name)
}

/// An error class or code.
pub fn class(class: Class) -> i32 {
    NUMBERS.get().map_or(class.0, |numbers| (numbers.class)(class))
}

fn named(number: i32, name: Option<&str>) -> String {
    name.map_or(number.to_string(), |name| format!("{number} ({name})"))
}
