//! The symbols of the shared libraries: `MPI_X` and `PMPI_X` for each wrapper, with the ABI of C.

use crate::ctype::Form;
use crate::function::{Function, functions, symbol};
use crate::wrapper::signature;
use std::fmt::Write;

/// The source of all symbols, for a binary interface that is the type `Abi` there.
pub fn source() -> String {
    let mut text = String::new();
    for function in functions() {
        export(&mut text, function, Form::Int);
        if function.large {
            export(&mut text, function, Form::Large);
        }
    }
    text
}

/// The names of all symbols.
pub fn symbols() -> Vec<String> {
    let names = functions().iter().flat_map(Function::symbols);
    names.flat_map(|name| [format!("P{name}"), name]).collect()
}

fn export(text: &mut String, function: &Function, form: Form) {
    let (arguments, result) = signature(function, form);
    let concrete = |text: &str| text.replace("A::", "<Abi as front::Abi>::");
    let names: Vec<_> = function.arguments.iter().map(|each| &*each.name).collect();
    let (wrapper, name) = (form.name(&function.snake()), symbol(&form.name(&function.name)));
    // Two functions with the same body: optimised, they are one with two names.
    for prefix in ["", "P"] {
        writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({}) -> {} {{\n    \
             // SAFETY: the program passes what the standard says.\n    \
             unsafe {{ wrapper::{wrapper}::<Abi>({}) }}\n}}\n",
            concrete(&arguments),
            concrete(result),
            names.join(", ")
        )
        .expect("strings take everything");
    }
}
