//! `nmad info --mpi`: which functions of MPI there are, and which only answer that they are not supported.

use nmad_mpi_table::{Form, Function, functions};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::output::{say_json, say_line};

/// What there is to tell.
#[derive(Serialize)]
struct Mpi {
    /// The version of the standard.
    version: &'static str,
    /// The libraries, and the binary interfaces that they have.
    libraries: [(&'static str, &'static str); 2],
    /// How many functions there are.
    functions: usize,
    /// Those that answer MPI_ERR_UNSUPPORTED_OPERATION, by chapter.
    unsupported: BTreeMap<&'static str, Vec<String>>,
}

/// Prints it.
pub(super) fn print(json: bool) {
    let mpi = gather();
    if json {
        return say_json("mpi", &mpi);
    }
    let missing: usize = mpi.unsupported.values().map(Vec::len).sum();
    say_line(format_args!("MAD-MPI: MPI {}", mpi.version));
    for (library, interface) in mpi.libraries {
        say_line(format_args!("  {library:<18} {interface}"));
    }
    say_line(format_args!(
        "{} of {} functions are supported; these answer MPI_ERR_UNSUPPORTED_OPERATION:",
        mpi.functions - missing,
        mpi.functions
    ));
    for (chapter, names) in &mpi.unsupported {
        say_line(format_args!("  {chapter} ({})", names.len()));
        for line in lines(names) {
            say_line(format_args!("    {line}"));
        }
    }
}

/// Longest line of names.
const WIDTH: usize = 90;

/// The names in lines.
fn lines(names: &[String]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for name in names {
        let last = lines.last_mut().expect("there is one");
        match last.is_empty() {
            true => last.push_str(name),
            false if last.len() + name.len() < WIDTH => last.extend([" ", name]),
            false => lines.push(name.clone()),
        }
    }
    lines
}

fn gather() -> Mpi {
    let count = functions().iter().map(|function| function.symbols().len()).sum();
    let mut unsupported: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for function in functions().iter().filter(|function| function.unsupported) {
        unsupported.entry(function.chapter).or_default().extend(names(function));
    }
    Mpi {
        version: "5.0",
        libraries: [
            ("libmpi_abi.so.1", "the binary interface of MPI 5"),
            ("libmpi.so.12", "the binary interface of MPICH, also as libmpich.so.12"),
        ],
        functions: count,
        unsupported,
    }
}

fn names(function: &Function) -> impl Iterator<Item = String> {
    let forms = [Form::Int, Form::Large].into_iter().filter(|form| *form == Form::Int || function.large);
    forms.map(|form| format!("MPI_{}", form.name(&function.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_functions_of_the_standard_are_counted_and_later_chapters_listed() {
        let mpi = gather();
        assert_eq!(mpi.functions, 664);
        assert!(mpi.unsupported["MPI-IO"].contains(&"MPI_File_open".to_string()));
        assert!(!mpi.unsupported.values().flatten().any(|name| matches!(&**name, "MPI_Send" | "MPI_Put_c")));
    }
}
