//! What the libraries export.

use crate::library::{ABIS, folder, output, soname};
use nmad_mpi_table::{Abi, exports};
use std::collections::BTreeSet;
use std::process::Command;

fn exported(abi: Abi) -> BTreeSet<String> {
    let library = folder().join(soname(abi));
    let lines = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    lines.lines().filter_map(|line| line.split_whitespace().nth(2)).map(String::from).collect()
}

#[test]
fn the_table_has_the_functions_of_the_standard() {
    let symbols = exports::symbols();
    let large = symbols.iter().filter(|name| name.starts_with("MPI_") && name.ends_with("_c"));
    assert_eq!((symbols.len(), large.count()), (2 * 664, 161));
    assert_eq!(symbols.iter().collect::<BTreeSet<_>>().len(), symbols.len());
}

#[test]
fn both_libraries_export_the_names_of_mpi_and_nothing_else() {
    let mut expected: BTreeSet<String> = exports::symbols().into_iter().collect();
    assert_eq!(exported(Abi::Standard), expected);
    let more = ["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_T_PVAR_ALL_HANDLES", "MPIR_Dup_fn"];
    expected.extend(more.map(String::from));
    assert_eq!(exported(Abi::Mpich), expected);
}

#[test]
fn libraries_have_the_names_that_programs_load() {
    for abi in ABIS {
        let dynamic = output(Command::new("readelf").arg("-d").arg(folder().join(soname(abi))));
        assert!(dynamic.contains(&format!("soname: [{}]", soname(abi))), "{dynamic}");
    }
}

#[test]
fn mpi4py_finds_every_symbol_that_it_cannot_be_loaded_without() {
    let needs = [
        (Abi::Mpich, include_str!("mpi4py-wheel.txt")),
        (Abi::Standard, include_str!("mpi4py-standard.txt")),
    ];
    for (abi, names) in needs {
        let exported = exported(abi);
        let missing = names.lines().filter(|name| !name.starts_with('#') && !exported.contains(*name));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
