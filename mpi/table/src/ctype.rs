//! The types of arguments, in C and in the fronts' Rust.

use crate::argument::{Argument, Direction};

/// Which form of a function: that with `int`, or that with `MPI_Count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `MPI_Send`
    Int,
    /// `MPI_Send_c`
    Large,
}

impl Form {
    /// The name of this form.
    pub fn name(self, name: &str) -> String {
        match self {
            Form::Int => name.to_string(),
            Form::Large => format!("{name}_c"),
        }
    }
}

/// Kinds of handles, and their types in C.
const HANDLES: [(&str, &str); 11] = [
    ("comm", "MPI_Comm"),
    ("group", "MPI_Group"),
    ("type", "MPI_Datatype"),
    ("op", "MPI_Op"),
    ("request", "MPI_Request"),
    ("info", "MPI_Info"),
    ("errhandler", "MPI_Errhandler"),
    ("message", "MPI_Message"),
    ("win", "MPI_Win"),
    ("file", "MPI_File"),
    ("session", "MPI_Session"),
];

/// Whether values of this kind are handles that the fronts translate.
pub(crate) fn is_handle(kind: &str) -> bool {
    HANDLES.iter().any(|(name, _)| *name == kind)
}

/// Whether values of this kind are functions of the program.
pub(crate) fn is_function(kind: &str) -> bool {
    kind.ends_with("_function")
}

/// Whether values of this kind are pointers that are handed on as they are.
pub(crate) fn is_pointer(kind: &str) -> bool {
    kind.ends_with('*')
}

fn scalar(kind: &str, form: Form) -> String {
    let by_form = |int: &str, large: &str| if form == Form::Int { int.into() } else { large.into() };
    match kind {
        "count" | "length" => by_form("int", "MPI_Count"),
        "displ" => by_form("int", "MPI_Aint"),
        "bytes" => by_form("MPI_Aint", "MPI_Count"),
        "aint" => "MPI_Aint".into(),
        "wide" => "MPI_Count".into(),
        "offset" | "start" => "MPI_Offset".into(),
        "status" | "raw_status" => "MPI_Status".into(),
        "string" => "char".into(),
        "choice" | "location" | "address" | "buffer" | "word" => "void".into(),
        "double" => "double".into(),
        _ if is_function(kind) => format!("MPI_{kind}{}", large_function(kind, form)),
        _ if kind.starts_with("T_") => format!("MPI_{kind}"),
        _ if is_pointer(kind) => kind.into(),
        _ => HANDLES.iter().find(|(name, _)| *name == kind).map_or("int", |(_, ctype)| ctype).into(),
    }
}

fn large_function(kind: &str, form: Form) -> &'static str {
    let counts = matches!(kind, "User_function" | "Datarep_conversion_function");
    if counts && form == Form::Large { "_c" } else { "" }
}

/// The type that a function returns, in C.
pub(crate) fn result(kind: Option<&str>) -> String {
    kind.map_or("int".into(), |kind| scalar(kind, Form::Int))
}

/// The declaration of an argument in C.
pub(crate) fn declare(argument: &Argument, form: Form) -> String {
    let Argument { name, direction, kind, length, .. } = argument;
    let base = scalar(kind, form);
    let is_in = matches!(direction, Direction::In | Direction::Unused);
    let constant = if is_in { "const " } else { "" };
    match (&**kind, length) {
        ("triple", _) => format!("int {name}[][3]"),
        ("choice" | "location" | "string" | "status" | "raw_status", None) => {
            format!("{constant}{base} *{name}")
        }
        ("address" | "buffer" | "word", _) => format!("void *{name}"),
        // Lists of strings are pointers to what the program may change.
        (kind, Some(_)) if is_pointer(kind) => format!("{base} {name}[]"),
        (kind, None) if is_function(kind) => format!("{base} *{name}"),
        // As a pointer: compilers warn of arrays at the address that MPI_STATUSES_IGNORE is.
        ("status", Some(_)) => format!("{base} *{name}"),
        ("weight", Some(_)) => format!("const int {name}[]"),
        (_, Some(_)) => format!("{constant}{base} {name}[]"),
        (_, None) if is_in => format!("{base} {name}"),
        (_, None) => format!("{base} *{name}"),
    }
}

/// The type of a scalar in the fronts' Rust; for handles and statuses, of the binary interface `A`.
pub(crate) fn rust_scalar(kind: &str, form: Form) -> &'static str {
    match kind {
        "status" | "raw_status" => "A::Status",
        "string" => "c_char",
        "choice" | "location" | "word" => "c_void",
        "address" | "buffer" => "*mut c_void",
        "triple" => "[i32; 3]",
        "double" => "f64",
        // Pointers, even where other handles are numbers.
        "file" => "A::File",
        _ if is_handle(kind) => "A::Handle",
        _ if is_function(kind) => "c_void",
        _ if is_pointer(kind) => "*mut c_void",
        "T_cb_safety" | "T_source_order" => "i32",
        _ if kind.starts_with("T_") => "*mut c_void",
        _ => match &*scalar(kind, form) {
            "int" => "i32",
            _ => "i64",
        },
    }
}

/// The type of an argument in the fronts' Rust.
pub(crate) fn rust(argument: &Argument, form: Form) -> String {
    let Argument { direction, kind, length, .. } = argument;
    let base = rust_scalar(kind, form);
    let is_in = matches!(direction, Direction::In | Direction::Unused);
    match (&**kind, length) {
        ("address" | "buffer", None) => "*mut *mut c_void".into(),
        ("word", None) => "*mut c_void".into(),
        ("choice" | "location" | "string" | "status" | "raw_status", None) if is_in => {
            format!("*const {base}")
        }
        (kind, None) if is_function(kind) => format!("*const {base}"),
        (_, None) if is_in => base.into(),
        (_, Some(_)) if is_in => format!("*const {base}"),
        _ => format!("*mut {base}"),
    }
}
