//! `mpif.h`: constants and common blocks, in lines that are valid in both source forms of Fortran.

use super::constant::{Blocks, blocks, displacement, values};
use crate::Abi;
use std::fmt::Write;

/// The text of `mpif.h`.
pub fn text(abi: Abi) -> String {
    let mut text = String::from(
        "!     MPI 5.0 for Fortran, by MAD-MPI. Written by `nmad`: changes are lost.\n\
         !     Programs that are written today should say `use mpi_f08`.\n",
    );
    let mut line = |line: &str| writeln!(text, "      {line}").expect("strings take everything");
    for (name, number) in values(abi).into_iter().flat_map(|group| group.values) {
        line(&format!("INTEGER {name}"));
        line(&format!("PARAMETER ({name}={number})"));
    }
    for name in ["ADDRESS", "COUNT", "OFFSET", "INTEGER"] {
        line(&format!("INTEGER MPI_{name}_KIND"));
        line(&format!("PARAMETER (MPI_{name}_KIND={})", if name == "INTEGER" { 4 } else { 8 }));
    }
    line("INTEGER*8 MPI_DISPLACEMENT_CURRENT");
    line(&format!("PARAMETER (MPI_DISPLACEMENT_CURRENT={})", displacement(abi)));
    for name in ["SUBARRAYS_SUPPORTED", "ASYNC_PROTECTS_NONBLOCKING"] {
        line(&format!("LOGICAL MPI_{name}"));
        line(&format!("PARAMETER (MPI_{name}=.FALSE.)"));
    }
    for name in PLACES {
        line(name);
    }
    for name in EXTERNALS {
        line(&format!("EXTERNAL {name}"));
    }
    common(&mut line, &blocks(abi));
    text
}

const PLACES: [&str; 12] = [
    "INTEGER MPI_BOTTOM, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC",
    "INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)",
    "INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)",
    "INTEGER MPI_ERRCODES_IGNORE(1)",
    "INTEGER MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1)",
    "CHARACTER*1 MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)",
    "DOUBLE PRECISION MPI_WTIME, MPI_WTICK",
    "DOUBLE PRECISION PMPI_WTIME, PMPI_WTICK",
    "INTEGER(MPI_ADDRESS_KIND) MPI_AINT_ADD",
    "INTEGER(MPI_ADDRESS_KIND) MPI_AINT_DIFF",
    "INTEGER(MPI_ADDRESS_KIND) PMPI_AINT_ADD",
    "INTEGER(MPI_ADDRESS_KIND) PMPI_AINT_DIFF",
];

/// Functions that programs pass on, or that have a type.
const EXTERNALS: [&str; 9] = [
    "MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK",
    "MPI_AINT_ADD, MPI_AINT_DIFF",
    "PMPI_AINT_ADD, PMPI_AINT_DIFF",
    "MPI_DUP_FN, MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN",
    "MPI_COMM_DUP_FN, MPI_COMM_NULL_COPY_FN",
    "MPI_TYPE_DUP_FN, MPI_TYPE_NULL_COPY_FN",
    "MPI_WIN_DUP_FN, MPI_WIN_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN, MPI_TYPE_NULL_DELETE_FN",
    "MPI_WIN_NULL_DELETE_FN, MPI_CONVERSION_FN_NULL",
];

/// The common blocks; the modules have the same.
pub(super) fn common(line: &mut dyn FnMut(&str), blocks: &Blocks) {
    let mut block = |name: &str, members: &str| {
        line(&format!("COMMON /{name}/ {members}"));
        line(&format!("SAVE /{name}/"));
    };
    block(blocks.places, "MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE");
    block(blocks.lists, "MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE");
    block(blocks.texts, "MPI_ARGVS_NULL, MPI_ARGV_NULL");
    block(blocks.unweighted, "MPI_UNWEIGHTED");
    block(blocks.empty, "MPI_WEIGHTS_EMPTY");
    block(blocks.automatic, "MPI_BUFFER_AUTOMATIC");
}
