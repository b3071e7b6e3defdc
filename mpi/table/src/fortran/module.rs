//! The modules `mpi` and `mpi_f08`: constants and interfaces, without code of their own.

use super::constant::{blocks, displacement, values};
use super::declare::{Module, derived, lines};
use super::{all, forms, has, has_ierror, header, is_by_hand, name};
use crate::Abi;
use crate::argument::{Argument, Direction};
use crate::ctype::{Form, is_function};
use crate::function::{Function, symbol};
use std::fmt::Write;

/// Kinds of handles, in the order in which `mpi_f08` has them.
const KINDS: [&str; 11] =
    ["comm", "type", "errhandler", "file", "group", "info", "message", "op", "request", "session", "win"];

/// The source of the module `mpi`.
pub fn plain(abi: Abi) -> String {
    let mut text = begin("mpi");
    constants(&mut text, abi, Module::Plain);
    text.push_str(
        "  integer :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE), MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)\n",
    );
    places(&mut text, abi);
    text.push_str(include_str!("../../fortran/deprecated.f90"));
    for function in all() {
        interface(&mut text, function, Module::Plain);
    }
    text.push_str(include_str!("../../fortran/shared.f90"));
    text.push_str("end module mpi\n");
    text
}

/// The source of the module `mpi_f08`.
pub fn f08(abi: Abi) -> String {
    let mut text = begin("mpi_f08");
    for kind in KINDS {
        put(
            &mut text,
            format_args!("  type, bind(C) :: {0}\n    integer :: MPI_VAL\n  end type\n", derived(kind)),
        );
    }
    text.push_str(match abi {
        Abi::Standard => include_str!("../../fortran/status-standard.f90"),
        Abi::Mpich => include_str!("../../fortran/status-mpich.f90"),
    });
    constants(&mut text, abi, Module::F08);
    text.push_str("  type(MPI_Status) :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)\n");
    places(&mut text, abi);
    comparisons(&mut text);
    text.push_str(include_str!("../../fortran/callbacks.f90"));
    for function in all().filter(|function| is_in_f08(function)) {
        interface(&mut text, function, Module::F08);
    }
    text.push_str(include_str!("../../fortran/shared.f90"));
    text.push_str("end module mpi_f08\n");
    text
}

/// What MPI-2 has replaced is not in `mpi_f08`.
fn is_in_f08(function: &Function) -> bool {
    !matches!(&*function.name, "Attr_delete" | "Attr_get" | "Attr_put" | "Keyval_create" | "Keyval_free")
}

fn put(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("strings take everything");
}

fn begin(name: &str) -> String {
    format!(
        "! MPI 5.0 for Fortran, by MAD-MPI. Written by `nmad`: changes are lost.\n\
         module {name}\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n  private :: c_ptr\n"
    )
}

fn constants(text: &mut String, abi: Abi, module: Module) {
    for name in ["ADDRESS", "COUNT", "OFFSET"] {
        put(text, format_args!("  integer, parameter :: MPI_{name}_KIND = 8\n"));
    }
    text.push_str("  integer, parameter :: MPI_INTEGER_KIND = 4\n");
    for group in values(abi) {
        let handle = group.handle.filter(|_| module == Module::F08).map(derived);
        for (name, number) in group.values {
            match &handle {
                None => put(text, format_args!("  integer, parameter :: {name} = {number}\n")),
                Some(kind) => {
                    put(text, format_args!("  type({kind}), parameter :: {name} = {kind}({number})\n"))
                }
            }
        }
    }
    put(
        text,
        format_args!(
            "  integer(MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = {}_MPI_OFFSET_KIND\n  \
             logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.\n  \
             logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.\n",
            displacement(abi)
        ),
    );
}

/// Constants that are places.
fn places(text: &mut String, abi: Abi) {
    text.push_str(
        "  integer :: MPI_BOTTOM, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC, MPI_ERRCODES_IGNORE(1)\n  \
         integer :: MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1)\n  \
         character :: MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)\n",
    );
    header::common(&mut |line: &str| put(text, format_args!("  {line}\n")), &blocks(abi));
}

/// Handles are compared with == and /=.
fn comparisons(text: &mut String) {
    for (operator, word) in [("==", "eq"), ("/=", "ne")] {
        put(text, format_args!("  interface operator({operator})\n"));
        for kind in KINDS {
            put(
                text,
                format_args!(
                    "    pure logical function madmpi_{kind}_{word}(a, b)\n      import\n      \
                     type({}), intent(in) :: a, b\n    end function\n",
                    derived(kind)
                ),
            );
        }
        text.push_str("  end interface\n");
    }
}

/// The interface of a function: under its name, and that of tools which put themselves in between.
fn interface(text: &mut String, function: &Function, module: Module) {
    let old = matches!(&*function.name, "Attr_get" | "Attr_put" | "Keyval_create");
    if old {
        return;
    }
    for prefix in ["", "P"] {
        // Functions that differ in the lengths of their arguments only have one name.
        let generic = function.name.strip_suffix("_c").unwrap_or(&function.name);
        put(text, format_args!("  interface {prefix}{}\n", symbol(generic)));
        for form in forms(function).filter(|form| is_in(function, *form, module)) {
            specific(text, prefix, function, form, module, "");
        }
        if module == Module::Plain && function.arguments.iter().any(|each| each.name == "baseptr") {
            specific(text, prefix, function, Form::Int, module, "_cptr");
        }
        text.push_str("  end interface\n");
        if module == Module::F08 && function.large && takes_function(function) && !is_by_hand(function) {
            text.push_str("  interface\n");
            specific(text, prefix, function, Form::Large, module, "");
            text.push_str("  end interface\n");
        }
    }
}

/// Whether a generic name has this form: large counts are those of `mpi_f08`, where compilers can tell them
/// apart.
fn is_in(function: &Function, form: Form, module: Module) -> bool {
    let differs = |each: &Argument| matches!(&*each.kind, "count" | "length" | "displ");
    form == Form::Int
        || module == Module::F08 && !takes_function(function) && function.arguments.iter().any(differs)
}

/// Compilers do not look at the arguments of functions that are arguments.
fn takes_function(function: &Function) -> bool {
    function.arguments.iter().any(|each| is_function(&each.kind))
}

fn specific(text: &mut String, prefix: &str, function: &Function, form: Form, module: Module, suffix: &str) {
    let mut own = format!("{prefix}{}{suffix}", symbol(&form.name(&function.name)));
    let gives_buffer = function.arguments.iter().any(|each| each.kind == "buffer");
    if module == Module::F08 && gives_buffer {
        own.push_str("_cptr");
    }
    let arguments: Vec<&Argument> = function.arguments.iter().filter(|each| has(each)).collect();
    let mut names: Vec<&str> = arguments.iter().map(|each| name(each)).collect();
    if has_ierror(function) {
        names.push("ierror");
    }
    let word = if function.result.is_some() { "function" } else { "subroutine" };
    put(text, format_args!("    {word} {own}({})\n      import\n", names.join(", &\n        ")));
    for argument in arguments {
        // With the suffix, the module `mpi` has pointers as `mpi_f08` has them.
        let as_pointer = !suffix.is_empty() && argument.name == "baseptr";
        let is_late = is_written_late(function, argument);
        for line in lines(argument, form, if as_pointer { Module::F08 } else { module }) {
            let line = if is_late { late(&line) } else { line };
            // Directives begin in the first column.
            put(text, format_args!("{}{line}\n", if line.starts_with('!') { "" } else { "      " }));
        }
    }
    match function.result.as_deref() {
        Some("double") => put(text, format_args!("      double precision :: {own}\n")),
        Some(_) => put(text, format_args!("      integer(MPI_ADDRESS_KIND) :: {own}\n")),
        None if has_ierror(function) => {
            put(text, format_args!("      integer{} :: ierror\n", optional(module)))
        }
        None => {}
    }
    put(text, format_args!("    end {word}\n"));
}

/// Returns whether a nonblocking call writes to the argument until its request is complete. Without `target`
/// compilers assume that the argument does not change after the call.
fn is_written_late(function: &Function, argument: &Argument) -> bool {
    let begins =
        function.arguments.iter().any(|each| each.kind == "request" && each.direction == Direction::Out);
    let is_written = matches!(argument.direction, Direction::Out | Direction::InOut);
    begins && is_written && !matches!(&*argument.kind, "request" | "choice" | "status")
}

/// Declares such an argument. It may be read before: MPIX_Comm_iagree reads its flag.
fn late(line: &str) -> String {
    line.replacen("intent(out)", "intent(inout)", 1).replacen(" ::", ", target ::", 1)
}

fn optional(module: Module) -> &'static str {
    match module {
        Module::Plain => ", intent(out)",
        Module::F08 => ", optional, intent(out)",
    }
}
