//! What Fortran needs: `mpif.h` ([`header`]), the modules `mpi` and `mpi_f08` ([`module`]), and the
//! functions that compilers call for them ([`binding`]), which are those of C with every argument by
//! reference.
//!
//! Both modules consist of interfaces and constants only. The procedures behind them are the symbols that
//! `mpif.h` programs call (`mpi_send_`): a handle of `mpi_f08` is a structure of one integer, so its
//! address is that of an integer, and an error code that is not asked for is a null pointer.

pub mod binding;
mod constant;
mod declare;
pub mod header;
pub mod module;

use crate::argument::{Argument, Direction};
use crate::ctype::{Form, is_function, is_pointer};
use crate::function::{Function, functions};

/// Functions that Fortran does not have.
const C_ONLY: [&str; 2] = ["Abi_get_fortran_booleans", "Abi_set_fortran_booleans"];

/// Functions whose symbols are written by hand (`mpi/fortran/src`).
const BY_HAND: [&str; 16] = [
    "Attr_get",
    "Attr_put",
    "Comm_create_keyval",
    "Comm_get_attr",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Grequest_start",
    "Info_get",
    "Info_get_string",
    "Keyval_create",
    "Register_datarep",
    "Session_get_nth_pset",
    "Type_create_keyval",
    "Type_get_attr",
    "Win_create_keyval",
    "Win_get_attr",
];

/// All functions that Fortran has.
fn all() -> impl Iterator<Item = &'static Function> {
    functions().iter().filter(|function| {
        let of_c = matches!(function.chapter, "handle conversion" | "tools MPI_T");
        !of_c && !C_ONLY.contains(&&*function.name)
    })
}

fn is_by_hand(function: &Function) -> bool {
    BY_HAND.contains(&&*function.name)
}

/// The forms of a function.
fn forms(function: &Function) -> impl Iterator<Item = Form> {
    std::iter::once(Form::Int).chain(function.large.then_some(Form::Large))
}

/// Whether the last argument is an error code.
fn has_ierror(function: &Function) -> bool {
    function.result.is_none() && function.name != "Pcontrol"
}

/// Arguments that Fortran has: the command line stays with C.
fn has(argument: &Argument) -> bool {
    let is_command_line = argument.direction == Direction::Unused && argument.name.starts_with("arg");
    !is_command_line && !matches!(&*argument.kind, "int*" | "char***")
}

/// The name of an argument in Fortran.
fn name(argument: &Argument) -> &str {
    if argument.name == "indx" { "index" } else { &argument.name }
}

/// Whether the argument is text, whose length the compiler passes behind all arguments.
fn is_text(argument: &Argument) -> bool {
    argument.kind == "string" || is_pointer(&argument.kind) && has(argument)
}

/// Whether a value of this kind is passed as it is in C: by value there, by reference here.
fn is_scalar(argument: &Argument) -> bool {
    let kind = &*argument.kind;
    let pointers = [
        "choice",
        "location",
        "string",
        "status",
        "raw_status",
        "address",
        "buffer",
        "word",
        "triple",
        "weight",
    ];
    let is_in = matches!(argument.direction, Direction::In | Direction::Unused);
    is_in && argument.length.is_none() && !pointers.contains(&kind) && !is_function(kind) && !is_pointer(kind)
}
