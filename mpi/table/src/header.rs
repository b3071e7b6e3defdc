//! `mpi.h`, for each binary interface.

use crate::Abi;
use crate::constant::{Constant, Group, groups};
use crate::ctype::{self, Form};
use crate::function::{Function, functions, symbol};
use std::fmt::Write;

/// The text of `mpi.h`.
pub fn text(abi: Abi) -> String {
    let mut text = String::from(BEGIN);
    text.push_str(match abi {
        Abi::Standard => include_str!("../header/standard.h"),
        Abi::Mpich => include_str!("../header/mpich.h"),
    });
    for group in groups() {
        constants(&mut text, group, abi);
    }
    text.push_str(include_str!("../header/callbacks.h"));
    text.push_str(match abi {
        Abi::Standard => include_str!("../header/standard-functions.h"),
        Abi::Mpich => include_str!("../header/mpich-functions.h"),
    });
    text.push_str(
        "\n/* Functions; each has a second name, PMPI_..., for tools that put themselves in between. */\n",
    );
    for function in functions() {
        prototypes(&mut text, function);
    }
    text.push_str(END);
    text
}

const BEGIN: &str = "/* MPI 5.0 for C and C++, by MAD-MPI. Written by `nmad`: changes are lost. */\n\n\
                     #ifndef MADMPI_MPI_H\n#define MADMPI_MPI_H\n\n#include <stdint.h>\n\n\
                     #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
const END: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

fn constants(text: &mut String, group: &Group, abi: Abi) {
    let known = |constant: &Constant| Some((constant.name(), constant.number(abi)?));
    let known: Vec<_> = group.constants.iter().filter_map(known).collect();
    if known.is_empty() {
        return;
    }
    let as_enum = group.ctype == "int" && group.name != "version" && group.name != "length";
    let mut lines = String::new();
    for (name, number) in &known {
        let line = match as_enum {
            true => format!("    {name} = {},\n", number_of(*number)),
            false if group.ctype == "int" => format!("#define {name} {number}\n"),
            false => format!("#define {name} (({}){})\n", group.ctype, number_of(*number)),
        };
        lines.push_str(&line);
    }
    if as_enum {
        let lines = lines.strip_suffix(",\n").unwrap_or(&lines);
        write!(text, "\nenum {{\n{lines}\n}};\n").expect("strings take everything");
    } else {
        write!(text, "\n{lines}").expect("strings take everything");
    }
}

fn number_of(number: i64) -> String {
    if number >= 0x100 { format!("{number:#x}") } else { number.to_string() }
}

fn prototypes(text: &mut String, function: &Function) {
    for form in [Form::Int, Form::Large] {
        if form == Form::Large && !function.large {
            continue;
        }
        let prototype = prototype(function, form);
        let result = ctype::result(function.result.as_deref());
        writeln!(text, "{result} {prototype};\n{result} P{prototype};").expect("strings take everything");
    }
}

fn prototype(function: &Function, form: Form) -> String {
    let mut arguments: Vec<_> = function.arguments.iter().map(|each| ctype::declare(each, form)).collect();
    if function.name == "Pcontrol" {
        arguments.push("...".into());
    }
    let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
    format!("{}({arguments})", symbol(&form.name(&function.name)))
}
