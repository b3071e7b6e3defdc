//! The symbols that Fortran programs call, in Rust: each calls the function of C. Declarations of those
//! functions come with them, with the types of the binary interface.

use super::{all, forms, has, has_ierror, is_by_hand, is_scalar, is_text, name};
use crate::Abi;
use crate::argument::{Argument, Direction, Length};
use crate::ctype::{Form, is_function, is_handle, is_pointer, rust_scalar};
use crate::function::{Function, functions};
use std::fmt::Write;

/// The declarations of the functions of C, and the symbols that the table can describe.
pub fn source(abi: Abi) -> String {
    let mut text = String::from("unsafe extern \"C\" {\n");
    for function in functions() {
        declarations(&mut text, function);
    }
    text.push_str("}\n");
    for function in all().filter(|function| !is_by_hand(function)) {
        for form in forms(function) {
            for prefix in ["", "P"] {
                symbol(&mut text, function, form, prefix, abi);
            }
        }
    }
    text
}

/// The names of all symbols that are written from the table.
pub fn symbols() -> Vec<String> {
    let each = all().filter(|function| !is_by_hand(function)).flat_map(Function::symbols);
    each.flat_map(|name| {
        let name = name.to_lowercase();
        [format!("{name}_"), format!("p{name}_")]
    })
    .collect()
}

fn declarations(text: &mut String, function: &Function) {
    for form in forms(function) {
        let arguments: Vec<_> =
            function.arguments.iter().map(|each| format!("{}: {}", each.name, c_type(each, form))).collect();
        let result = match function.result.as_deref() {
            Some("double") => "f64",
            Some(kind) if is_handle(kind) => handle(kind),
            Some("aint") => "i64",
            _ => "i32",
        };
        for prefix in ["", "P"] {
            let name = crate::function::symbol(&form.name(&function.name));
            writeln!(text, "    pub fn {prefix}{name}({}) -> {result};", arguments.join(", "))
                .expect("strings take everything");
        }
    }
}

/// The type of a kind of handles: files are pointers even where the others are numbers.
fn handle(kind: &str) -> &'static str {
    if kind == "file" { "File" } else { "Handle" }
}

fn base(kind: &str, form: Form) -> &'static str {
    match rust_scalar(kind, form) {
        "A::Handle" | "A::File" => handle(kind),
        "A::Status" => "c_void",
        "[i32; 3]" => "i32",
        base => base,
    }
}

/// The type of an argument in C. A pointer there is never constant here.
fn c_type(argument: &Argument, form: Form) -> String {
    let base = base(&argument.kind, form);
    match &*argument.kind {
        kind if is_function(kind) => "*const c_void".into(),
        kind if is_pointer(kind) => "*mut c_void".into(),
        "word" => "*mut c_void".into(),
        _ if is_scalar(argument) => base.into(),
        _ => format!("*mut {base}"),
    }
}

/// The type of an argument in Fortran: a pointer.
fn fortran_type(argument: &Argument, form: Form) -> String {
    match &*argument.kind {
        kind if is_function(kind) => "*const c_void".into(),
        kind if is_handle(kind) => "*mut i32".into(),
        kind if is_pointer(kind) => "*mut c_char".into(),
        "word" => "*mut isize".into(),
        kind => format!("*mut {}", base(kind, form)),
    }
}

fn symbol(text: &mut String, function: &Function, form: Form, prefix: &str, abi: Abi) {
    let arguments: Vec<&Argument> = function.arguments.iter().filter(|each| has(each)).collect();
    let mut parameters: Vec<String> =
        arguments.iter().map(|each| format!("{}: {}", name(each), fortran_type(each, form))).collect();
    if has_ierror(function) {
        parameters.push("ierror: *mut i32".into());
    }
    let texts = arguments.iter().filter(|each| is_text(each));
    parameters.extend(texts.map(|each| format!("{}_len: usize", name(each))));
    let c_name = format!("{prefix}{}", crate::function::symbol(&form.name(&function.name)));
    let result = match function.result.as_deref() {
        Some("double") => " -> f64",
        Some(_) => " -> i64",
        None => "",
    };
    let gives_buffer = arguments.iter().any(|each| each.kind == "buffer");
    for suffix in if gives_buffer { &["", "_cptr"][..] } else { &[""] } {
        writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {}{suffix}_({}){result} {{\n    unsafe {{",
            c_name.to_lowercase(),
            parameters.join(", ")
        )
        .expect("strings take everything");
        text.push_str(&body(function, &c_name, abi, !suffix.is_empty()));
        text.push_str("    }\n}\n");
    }
    if arguments.iter().any(|each| each.name == "baseptr") && form == Form::Int {
        // A pointer of C has the size of an address.
        let names: Vec<_> = arguments.iter().map(|each| name(each)).collect();
        let lower = c_name.to_lowercase();
        writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {lower}_cptr_({}) {{\n    \
             unsafe {{ {lower}_({}, ierror) }}\n}}",
            parameters.join(", "),
            names.join(", ")
        )
        .expect("strings take everything");
    }
}

/// Code before the call, the argument, code after it, and code after success.
#[derive(Default)]
struct Lines {
    before: String,
    call: String,
    after: String,
    well: String,
}

fn body(function: &Function, c_name: &str, abi: Abi, as_pointer: bool) -> String {
    let mut all = Lines::default();
    let mut call = Vec::new();
    for argument in &function.arguments {
        let lines = lines(function, argument, abi, as_pointer);
        call.push(lines.call);
        all.before.push_str(&lines.before);
        all.after.push_str(&lines.after);
        all.well.push_str(&lines.well);
    }
    let call = format!("{c_name}({})", call.join(", "));
    let Lines { before, after, well, .. } = all;
    if function.result.is_some() {
        return format!("{before}        {call}\n");
    }
    if !has_ierror(function) {
        return format!("{before}        {call};\n");
    }
    let well = if well.is_empty() { well } else { format!("        if code == 0 {{\n{well}        }}\n") };
    format!("{before}        let code = {call};\n{after}{well}        place::give(ierror, code);\n")
}

fn line(text: String) -> String {
    format!("        {text}\n")
}

fn lines(function: &Function, argument: &Argument, abi: Abi, as_pointer: bool) -> Lines {
    let it = name(argument);
    let call = |text: String| Lines { call: text, ..Lines::default() };
    let list = argument.length.is_some();
    match (&*argument.kind, argument.direction) {
        _ if !has(argument) && is_scalar(argument) => call("0".into()),
        _ if !has(argument) => call("std::ptr::null_mut()".into()),
        (kind, _) if is_function(kind) => call(it.into()),
        ("string", Direction::Out) => text_out(function, argument),
        ("string", _) => Lines {
            before: line(format!("let {it}_ = text::{}({it}, {it}_len);", taken(function))),
            call: format!("{it}_.as_ptr().cast_mut()"),
            ..Lines::default()
        },
        ("written", _) => Lines { well: written(function, it), ..call(it.into()) },
        ("choice" | "location", _) => call(format!("place::choice({it})")),
        ("buffer", _) => buffer(it, as_pointer),
        ("word", _) => call(format!("place::word({it})")),
        ("status" | "raw_status", _) if list => call(format!("place::statuses({it})")),
        ("status" | "raw_status", _) => call(format!("place::status({it})")),
        ("keyval", Direction::In) => call(format!("abi::keyval_in(*{it})")),
        (_, _) if it.ends_with("weights") => call(format!("place::weights({it})")),
        (kind, _) if is_handle(kind) && list => handles(function, argument, abi),
        (kind, _) if is_handle(kind) => one_handle(argument),
        (_, Direction::Out) if it == "index" && !list => {
            Lines { well: line(format!("    place::count_from_one({it}, 1);")), ..call(it.into()) }
        }
        (_, Direction::Out) if it == "array_of_indices" => {
            Lines { well: line(format!("    place::count_from_one({it}, *outcount);")), ..call(it.into()) }
        }
        _ if is_scalar(argument) => call(format!("*{it}")),
        _ => call(it.into()),
    }
}

/// Keys and values of infos lose blanks on both sides, other text those at its end.
fn taken(function: &Function) -> &'static str {
    if function.chapter == "info" { "trimmed" } else { "taken" }
}

/// The constant that says how long a text may be that goes out.
fn room(argument: &Argument) -> &str {
    match (&argument.room, &*argument.name) {
        (Some(room), _) => room,
        (None, "port_name") => "MAX_PORT_NAME",
        (None, name) => panic!("nothing says how long {name} may be"),
    }
}

fn text_out(_function: &Function, argument: &Argument) -> Lines {
    let it = name(argument);
    Lines {
        before: line(format!("let mut {it}_ = text::Room::new(abi::{});", room(argument))),
        call: format!("{it}_.place()"),
        well: line(format!("    {it}_.give({it}, {it}_len);")),
        ..Lines::default()
    }
}

/// Text that does not fit is cut off, and so is its length.
fn written(function: &Function, it: &str) -> String {
    let text =
        function.arguments.iter().find(|each| each.kind == "string" && each.direction == Direction::Out);
    let text = text.map(name).expect("a length is that of a text");
    line(format!("    text::limit({it}, {text}_len);"))
}

/// A buffer that is given back: Fortran's own interfaces have no use for its address.
fn buffer(it: &str, as_pointer: bool) -> Lines {
    if as_pointer {
        return Lines {
            well: line(format!("    place::given_back({it});")),
            call: it.into(),
            ..Lines::default()
        };
    }
    Lines {
        before: line(format!("let mut {it}_ = std::ptr::null_mut();\n        let _ = {it};")),
        call: format!("&raw mut {it}_"),
        ..Lines::default()
    }
}

fn one_handle(argument: &Argument) -> Lines {
    let it = name(argument);
    let kind = &argument.kind;
    let taken = line(format!("let mut {it}_ = abi::{kind}_in(*{it});"));
    let given = format!("*{it} = abi::{kind}_out({it}_);");
    let place = format!("&raw mut {it}_");
    match argument.direction {
        Direction::Lent => Lines { before: taken, call: place, ..Lines::default() },
        Direction::InOut => Lines { before: taken, call: place, after: line(given), ..Lines::default() },
        Direction::Out => Lines {
            before: line(format!("let mut {it}_ = abi::no_{}();", handle(kind).to_lowercase())),
            call: place,
            well: line(format!("    {given}")),
            ..Lines::default()
        },
        _ => Lines { call: format!("abi::{kind}_in(*{it})"), ..Lines::default() },
    }
}

/// A list of handles: of MPICH, numbers as Fortran has them.
fn handles(function: &Function, argument: &Argument, abi: Abi) -> Lines {
    let it = name(argument);
    let kind = &argument.kind;
    if abi == Abi::Mpich {
        return Lines { call: it.into(), ..Lines::default() };
    }
    let len = length(argument);
    let before = line(format!("let mut {it}_ = abi::list({it}, {len}, abi::{kind}_in);"));
    let given = format!("abi::give_list({it}, &{it}_, abi::{kind}_out);");
    let call = format!("{it}_.as_mut_ptr()");
    let is_hand = function.by_hand;
    match argument.direction {
        Direction::InOut => Lines { before, call, after: line(given), ..Lines::default() },
        Direction::Out => Lines {
            before: line(format!("let mut {it}_ = vec![abi::no_handle(); {len}];")),
            call,
            well: line(format!(
                "    {}",
                if is_hand { given.replace("give_list", "give_made") } else { given }
            )),
            ..Lines::default()
        },
        _ => Lines { before, call, ..Lines::default() },
    }
}

fn length(argument: &Argument) -> String {
    match argument.length.as_ref().expect("it is a list") {
        Length::Argument(count) => format!("place::length(i64::from(*{count}))"),
        Length::Peers => "length::peers(*comm)".into(),
        Length::Sends => "length::sends(*comm, sendbuf)".into(),
        Length::Sources => "length::sources(*comm)".into(),
        Length::Targets => "length::targets(*comm)".into(),
        other => panic!("{}: no list of handles is as long as {other:?}", argument.name),
    }
}
