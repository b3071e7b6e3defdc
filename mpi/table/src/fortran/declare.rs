//! The declaration of an argument in the modules.

use super::{has, name};
use crate::argument::{Argument, Direction};
use crate::ctype::{Form, is_function, is_handle, is_pointer};

/// Which module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    /// `mpi`: handles and statuses are integers.
    Plain,
    /// `mpi_f08`: they are of derived types.
    F08,
}

/// The derived type of a kind of handles in `mpi_f08`.
pub(super) fn derived(kind: &str) -> String {
    match kind {
        "type" => "MPI_Datatype".into(),
        kind => format!("MPI_{}{}", kind[..1].to_uppercase(), &kind[1..]),
    }
}

/// The lines that declare an argument.
pub(super) fn lines(argument: &Argument, form: Form, module: Module) -> Vec<String> {
    if !has(argument) {
        return Vec::new();
    }
    let name = name(argument);
    match &*argument.kind {
        "choice" | "location" => choice(name, argument.direction == Direction::In),
        "buffer" if module == Module::Plain => choice(name, false),
        kind if is_function(kind) => vec![function(kind, name, form, module)],
        _ => vec![format!(
            "{}{} :: {name}{}",
            base(argument, form, module),
            intent(argument),
            shape(argument, module)
        )],
    }
}

/// A buffer of any type and rank. Compilers have different words for "check nothing". As a target it may be
/// in use after the call, so that accesses to it are not moved over a call that waits (gfortran 12 does so
/// otherwise).
fn choice(name: &str, is_in: bool) -> Vec<String> {
    let intent = if is_in { ", intent(in)" } else { "" };
    vec![
        format!("!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}"),
        format!("!DIR$ IGNORE_TKR {name}"),
        format!("type(*), dimension(*), target{intent} :: {name}"),
    ]
}

fn function(kind: &str, name: &str, form: Form, module: Module) -> String {
    let large = kind == "User_function" && form == Form::Large;
    match module {
        Module::Plain => format!("external :: {name}"),
        Module::F08 => format!("procedure(MPI_{kind}{}) :: {name}", if large { "_c" } else { "" }),
    }
}

fn base(argument: &Argument, form: Form, module: Module) -> String {
    let wide = |name: &str| format!("integer(MPI_{name}_KIND)");
    match (&*argument.kind, form) {
        ("count" | "length" | "bytes", Form::Large) | ("wide", _) => wide("COUNT"),
        ("displ", Form::Large) | ("bytes" | "aint" | "word", _) => wide("ADDRESS"),
        ("offset" | "start", _) => wide("OFFSET"),
        ("bool", _) => "logical".into(),
        ("double", _) => "double precision".into(),
        ("string", _) => "character(len=*)".into(),
        ("status" | "raw_status", _) if module == Module::F08 => "type(MPI_Status)".into(),
        ("address", _) if argument.name == "baseptr" && module == Module::F08 => "type(c_ptr)".into(),
        ("address", _) => wide("ADDRESS"),
        ("buffer", _) => "type(c_ptr)".into(),
        (kind, _) if is_pointer(kind) => "character(len=*)".into(),
        (kind, _) if is_handle(kind) && module == Module::F08 => format!("type({})", derived(kind)),
        _ => "integer".into(),
    }
}

/// Constants that stand for "no answer" are variables, so what may be one has no intent.
fn intent(argument: &Argument) -> &'static str {
    let list = argument.length.is_some();
    match (&*argument.kind, argument.direction) {
        ("status" | "raw_status", Direction::Out | Direction::InOut) => "",
        ("triple", _) | (_, Direction::In | Direction::Unused) => ", intent(in)",
        (_, Direction::Lent | Direction::InOut) => ", intent(inout)",
        (_, _) if list => "",
        _ => ", intent(out)",
    }
}

fn shape(argument: &Argument, module: Module) -> &'static str {
    let list = argument.length.is_some();
    match (&*argument.kind, module) {
        ("triple", _) => "(3,*)",
        ("status" | "raw_status", Module::Plain) if list => "(MPI_STATUS_SIZE,*)",
        ("status" | "raw_status", Module::Plain) => "(MPI_STATUS_SIZE)",
        // The arguments of several programs: one row for each.
        ("char**", _) => "(count,*)",
        _ if list => "(*)",
        _ => "",
    }
}
