//! Constants as Fortran has them.

use crate::Abi;
use crate::constant::{Group, groups};

/// A group of constants of one kind of handles, or of integers.
pub(super) struct Values {
    /// The kind of handles in the table; none for integers.
    pub(super) handle: Option<&'static str>,
    /// Names, and numbers as 32 bits have them.
    pub(super) values: Vec<(String, i32)>,
}

/// All constants but those that are addresses.
pub(super) fn values(abi: Abi) -> Vec<Values> {
    let known =
        groups().iter().filter(|group| !group.name.starts_with("tool ") && group.name != "displacement");
    let all = known.filter_map(|group| Some(Values { handle: handle(group)?, values: numbers(group, abi) }));
    all.filter(|group| !group.values.is_empty()).collect()
}

/// The kind of handles that a group has, if it is not one of addresses.
fn handle(group: &Group) -> Option<Option<&'static str>> {
    match group.ctype {
        "int" => Some(None),
        ctype if ctype.ends_with('*') => None,
        _ => Some(Some(group.name.split(' ').next().unwrap_or(group.name))),
    }
}

fn numbers(group: &Group, abi: Abi) -> Vec<(String, i32)> {
    let wanted = |name: &str| {
        (!name.starts_with("MPIX_") || name.starts_with("MPIX_ERR_")) && !name.starts_with("MPI_T_")
    };
    let constants = group.constants.iter().filter(|constant| wanted(&constant.name()));
    let known = constants.filter_map(|constant| Some((constant.name(), constant.number(abi)?)));
    known.map(|(name, number)| in_fortran(group.name, &name, number, abi)).collect()
}

/// Name and number: lengths are without the zero at the end; indices begin with 1; MPICH's keys of
/// attributes that C answers as pointers are one less than those that Fortran has as values.
fn in_fortran(group: &str, name: &str, number: i64, abi: Abi) -> (String, i32) {
    let (name, number) = match (group, name) {
        ("length", name) => (name, number - 1),
        ("status index", "MPI_F_STATUS_SIZE") => ("MPI_STATUS_SIZE", number),
        ("status index", name) => (name, number + 1),
        ("keyval", name) if abi == Abi::Mpich && name != "MPI_KEYVAL_INVALID" => (name, number + 1),
        (_, name) => (name, number),
    };
    // Handles of MPICH use all 32 bits.
    (name.replace("MPI_F_", "MPI_"), number as u32 as i32)
}

/// The constant that says "where the view is" (MPI_DISPLACEMENT_CURRENT), which has 64 bits.
pub(super) fn displacement(abi: Abi) -> i64 {
    let group = crate::constant::group("displacement");
    group.constants[0].number(abi).expect("both interfaces have it")
}

/// Names of the common blocks of constants that are places: with those of MPICH, programs that it compiled
/// run here.
pub(super) struct Blocks {
    /// MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
    pub(super) places: &'static str,
    /// MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
    pub(super) lists: &'static str,
    /// MPI_ARGVS_NULL, MPI_ARGV_NULL
    pub(super) texts: &'static str,
    /// MPI_UNWEIGHTED
    pub(super) unweighted: &'static str,
    /// MPI_WEIGHTS_EMPTY
    pub(super) empty: &'static str,
    /// MPI_BUFFER_AUTOMATIC
    pub(super) automatic: &'static str,
}

/// The blocks of a binary interface.
pub(super) fn blocks(abi: Abi) -> Blocks {
    match abi {
        Abi::Standard => Blocks {
            places: "MADMPI1",
            lists: "MADMPI2",
            texts: "MADMPIC",
            unweighted: "MADMPI5",
            empty: "MADMPI9",
            automatic: "MADMPIA",
        },
        Abi::Mpich => Blocks {
            places: "MPIPRIV1",
            lists: "MPIPRIV2",
            texts: "MPIPRIVC",
            unweighted: "MPIFCMB5",
            empty: "MPIFCMB9",
            automatic: "MADMPIA",
        },
    }
}
