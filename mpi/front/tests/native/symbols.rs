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

/// What MPICH's library has besides, under one name.
const MPICH_DATA: [&str; 12] = [
    "MPI_UNWEIGHTED",
    "MPI_WEIGHTS_EMPTY",
    "MPI_T_PVAR_ALL_HANDLES",
    "MPIR_Dup_fn",
    "MPI_F_STATUS_IGNORE",
    "MPI_F_STATUSES_IGNORE",
    "MPI_F08_STATUS_IGNORE",
    "MPI_F08_STATUSES_IGNORE",
    "MPIX_GPU_query_support",
    "MPIX_Query_cuda_support",
    "MPIX_Query_hip_support",
    "MPIX_Query_ze_support",
];

/// What Fortran has a number for.
const MPICH_NUMBERS: [&str; 11] =
    ["Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Session", "Type", "Win"];

/// Removed from the standard, or for Fortran.
const MPICH_FUNCTIONS: [&str; 16] = [
    "Address",
    "Errhandler_create",
    "Errhandler_get",
    "Errhandler_set",
    "Type_extent",
    "Type_hindexed",
    "Type_hvector",
    "Type_lb",
    "Type_struct",
    "Type_ub",
    "Status_c2f",
    "Status_f2c",
    "Status_c2f08",
    "Status_f082c",
    "Status_f2f08",
    "Status_f082f",
];

#[test]
fn the_table_has_the_functions_of_the_standard() {
    let symbols = exports::symbols();
    let large = symbols.iter().filter(|name| name.starts_with("MPI_") && name.ends_with("_c"));
    let standard = symbols.iter().filter(|name| name.starts_with("MPI_"));
    assert_eq!((standard.count(), large.count()), (664, 161));
    assert_eq!(symbols.iter().collect::<BTreeSet<_>>().len(), symbols.len());
}

#[test]
fn both_libraries_export_the_names_of_mpi_and_nothing_else() {
    let mut expected: BTreeSet<String> = exports::symbols().into_iter().collect();
    assert_eq!(exported(Abi::Standard), expected);
    expected.extend(MPICH_DATA.map(String::from));
    let numbers = MPICH_NUMBERS.iter().flat_map(|kind| [format!("{kind}_c2f"), format!("{kind}_f2c")]);
    let functions = MPICH_FUNCTIONS.into_iter().map(String::from).chain(numbers);
    expected.extend(functions.flat_map(|name| [format!("MPI_{name}"), format!("PMPI_{name}")]));
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
