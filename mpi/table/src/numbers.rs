//! The translation of numbers between a binary interface and the core.

use crate::Abi;
use crate::constant::{Constant, Group, group};
use std::fmt::Write;

/// Groups whose numbers arguments have.
const TRANSLATED: [&str; 24] = [
    "thread",
    "rank",
    "tag",
    "comparison",
    "topology",
    "split",
    "combiner",
    "order",
    "distribution",
    "darg",
    "typeclass",
    "class",
    "lock",
    "flavor",
    "model",
    "assertion",
    "verbosity",
    "binding",
    "scope",
    "variable",
    "safety",
    "source",
    "openmode",
    "seek",
];

/// Groups of predefined handles.
const HANDLES: [&str; 11] =
    ["comm", "group", "win", "file", "session", "message", "info", "errhandler", "request", "op", "type"];

/// The source of a module: for each group `GROUP_in` and `GROUP_out`, which take the interface's number and
/// give the core's (none: not a number of the group), and back; and the lengths of strings.
pub fn source(abi: Abi) -> String {
    let mut text = String::new();
    for name in TRANSLATED.into_iter().chain(["keyval"]).chain(HANDLES) {
        // The classes of the tools interface are classes like others.
        let more = (name == "class").then(|| pairs(group("tool class"), abi));
        let pairs: Vec<_> = pairs(group(name), abi).chain(more.into_iter().flatten()).collect();
        translation(&mut text, &format!("{name}_in"), &pairs);
        let back: Vec<_> = pairs.into_iter().map(|(name, outer, core)| (name, core, outer)).collect();
        translation(&mut text, &format!("{name}_out"), &back);
    }
    for constant in &group("length").constants {
        let name = constant.name().replace("MPI_", "");
        let number = constant.number(abi).expect("both have lengths");
        write!(text, "/// Longest, its end included.\npub const {name}: usize = {number};\n").expect("grows");
    }
    text
}

/// Name, number and the core's number.
fn pairs(group: &'static Group, abi: Abi) -> impl Iterator<Item = (String, i32, i32)> {
    let pair = move |constant: &Constant| {
        // Handles use all 32 bits.
        Some((constant.name(), constant.number(abi)? as i32, constant.core()? as i32))
    };
    let range = |constant: &&Constant| constant.name() != "MPI_ERR_LASTCODE";
    group.constants.iter().filter(range).filter_map(pair)
}

fn translation(text: &mut String, name: &str, pairs: &[(String, i32, i32)]) {
    let arms: String = pairs.iter().map(|(_, from, to)| format!("        {from} => Some({to}),\n")).collect();
    write!(
        text,
        "/// A number, in the other's numbers.\n#[inline]\npub fn {name}(number: i32) -> Option<i32> {{\n    \
         match number {{\n{arms}        _ => None,\n    }}\n}}\n\n"
    )
    .expect("strings take everything");
}
